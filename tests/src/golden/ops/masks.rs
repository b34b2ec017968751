//! Which tokens, sequences and prompts take part: gates, masks, filters.

use tokenwise::{
    rollout::{
        self, GateConfig, GateLevel, GateMode, GateStatistic, GroupRule, OffPolicyConfig, OffPolicyInput, PfPpoRule,
        VetoConfig,
    },
    Layout, Moments, Profile,
};

use super::rollout::{input, log_probs};
use crate::golden::{
    case::{word, Case, Number, Ran},
    compare::Output,
};

fn kept(keep: Vec<bool>) -> Vec<f64> {
    keep.into_iter().map(|keep| f64::from(u8::from(keep))).collect()
}

fn mask(keep: Vec<bool>) -> Ran {
    Ok(vec![("mask", Output::Tokens(kept(keep)))])
}

pub(super) fn rollout_gate<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let level = word(case.text("level", "off")?, "level", |name| match name {
        "off" => Some(GateLevel::Off),
        "token" => Some(GateLevel::Token),
        "sequence" | "seq" => Some(GateLevel::Sequence),
        _ => None,
    })?;
    let statistic = word(case.text("statistic", "ratio")?, "statistic", |name| match name {
        "ratio" => Some(GateStatistic::Ratio),
        "binary_kl" => Some(GateStatistic::BinaryKl),
        "tv" => Some(GateStatistic::TotalVariation),
        _ => None,
    })?;
    let mode = word(case.text("mode", "mask")?, "mode", |name| match name {
        "mask" => Some(GateMode::Mask),
        "clip" => Some(GateMode::Clip),
        _ => None,
    })?;
    let default = GateConfig::default();
    let (lower, upper) = (case.number("lower", Some(default.lower))?, case.number("upper", Some(default.upper))?);
    let mut weights = vec![R::zero(); case.rows * case.cols];
    let config = GateConfig { level, statistic, mode, lower, upper };
    let report = rollout::rollout_gate(&case.batch()?, input(&log_probs), &config, &mut weights)?;
    Ok(vec![
        ("weights", Output::tokens(weights)),
        ("filtered", Output::Scalar(report.filtered)),
        ("kl", Output::Scalar(report.kl)),
    ])
}

pub(super) fn off_policy_sequence_mask<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, old_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("old_log_probs")?);
    let advantages = case.tokens("advantages")?;
    let unscored = case.conventions.unscored;
    let config = OffPolicyConfig { threshold: case.number("threshold", Some(1e-4))?, unscored };
    let mut keep = vec![false; case.rows * case.cols];
    let input = OffPolicyInput { log_probs: &log_probs, old_log_probs: &old_log_probs, advantages: &advantages };
    rollout::off_policy_sequence_mask(&case.batch()?, input, &config, &mut keep)?;
    mask(keep)
}

pub(super) fn kl_mask<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let mut keep = vec![false; case.rows * case.cols];
    rollout::kl_mask(&case.batch()?, input(&log_probs), case.number("threshold", None)?, &mut keep)?;
    mask(keep)
}

pub(super) fn m2po_mask<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let batch = case.batch()?;
    let (mut scratch, mut keep) = (vec![0.0; batch.kept()], vec![false; case.rows * case.cols]);
    rollout::m2po_mask(&batch, input(&log_probs), case.number("threshold", None)?, &mut scratch, &mut keep)?;
    mask(keep)
}

pub(super) fn sequence_veto<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let (lower, upper) = (case.number("lower", Some(1e-4))?, case.number("upper", Some(f64::INFINITY))?);
    let mut keep = vec![false; case.rows * case.cols];
    rollout::sequence_veto(&case.batch()?, input(&log_probs), &VetoConfig { lower, upper }, &mut keep)?;
    mask(keep)
}

pub(super) fn high_entropy_mask<R: Number>(case: &Case<'_>) -> Ran {
    let entropy = case.tokens::<R>("entropy")?;
    let mut keep = vec![false; case.rows * case.cols];
    rollout::high_entropy_mask(&case.batch()?, &entropy, case.number("share", None)?, &mut keep)?;
    mask(keep)
}

pub(super) fn response_mask_from_eos(case: &Case<'_>) -> Ran {
    let tokens = case.ids("tokens", case.rows * case.cols)?;
    let eos = case.ids("eos", case.input_len("eos"))?;
    let mut keep = vec![false; tokens.len()];
    rollout::response_mask_from_eos(&Layout::padded(case.rows, case.cols)?, &tokens, &eos, &mut keep)?;
    mask(keep)
}

pub(super) fn probability_difference<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let difference = rollout::probability_difference(&case.batch()?, input(&log_probs))?;
    Ok(difference.entries().map(|(key, value)| (key, Output::Scalar(value))).into())
}

/// One entry per sequence: whether its prompt stays.
pub(super) fn dynamic_sampling_filter<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, groups) = (case.input::<R>("scores", case.rows)?, case.groups()?);
    let rule = match case.text("rule", if case.profile == Some(Profile::OpenRlhf0_11) { "mean" } else { "constant" })? {
        "constant" => GroupRule::NotConstant,
        "spread" => GroupRule::Spread { at_least: case.number("at_least", Some(1e-6))? },
        "mean" => GroupRule::MeanBetween { low: case.number("low", Some(0.0))?, high: case.number("high", Some(1.0))? },
        other => return word(other, "rule", |_| None),
    };
    let (mut scratch, mut keep) = (vec![Moments::default(); groups.count()], vec![false; groups.count()]);
    rollout::dynamic_sampling_filter(&groups, &scores, &rule, &mut scratch, &mut keep)?;
    Ok(vec![("keep", Output::Entries(kept(groups.ids().map(|group| keep[group]).collect())))])
}

pub(super) fn pf_ppo_weights<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let rule = match case.text("method", "pow")? {
        "pow" => PfPpoRule::Power { power: case.number("power", Some(2.0))? },
        "max_min" => PfPpoRule::MaxMin,
        "max_random" => PfPpoRule::MaxRandom,
        other => return word(other, "method", |_| None),
    };
    let mut weights = vec![0.0; case.rows];
    rollout::pf_ppo_weights(&scores, &rule, &mut weights)?;
    Ok(vec![("weights", Output::Entries(weights))])
}
