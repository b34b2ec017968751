//! All that a framework logs for a batch; the losses are this library's own.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    loss::{self, PolicyLoss, PolicyLossInput, PpoConfig, ValueConfig, ValueLossInput},
    metric::{
        self, KlUse, Lengths, OpenRlhfConfig, OpenRlhfInput, Reduction, RewardSource, TrlConfig, TrlInput, TrlLevel,
        TrlLoss, TrlOutput, TrlRewards, TrlScale, VerlConfig, VerlInput,
    },
    rollout::{rollout_gate, GateConfig, GateLevel, RolloutInput},
    Moments, Profile,
};

use super::loss::dual_clip;
use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::{Output, Outputs},
};

/// A token input that need not be there.
fn optional<R: Number>(case: &Case<'_>, key: &str) -> Result<Option<Vec<R>>, Failure> {
    case.has_input(key).then(|| case.tokens(key)).transpose()
}

fn named(entries: impl Iterator<Item = (&'static str, f64)>) -> Outputs {
    entries.map(|(key, value)| (key, Output::Scalar(value))).collect()
}

/// One of some names.
fn choice<T: Copy>(case: &Case<'_>, key: &str, choices: &[(&'static str, T)]) -> Result<T, Failure> {
    let name = case.text(key, choices[0].0)?;
    let found = choices.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| Failure::Malformed(format!("{key}: unknown \"{name}\"")))
}

/// The clipped loss, or what the framework makes of an empty mask.
fn policy<R: Number>(case: &Case<'_>, config: &PpoConfig<'_>, weights: Option<&[R]>) -> Result<PolicyLoss, Failure> {
    let [new, old] = [case.tokens::<R>("log_probs")?, case.tokens("old_log_probs")?];
    let advantages = case.tokens("advantages")?;
    let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights };
    let mut grad = vec![R::zero(); case.rows * case.cols];
    match loss::ppo_clip(&case.batch()?, input, config, &mut grad) {
        Err(tokenwise::Error::EmptyMask) => Ok(PolicyLoss { loss: f64::NAN, ..Default::default() }),
        result => Ok(result?),
    }
}

fn value<R: Number>(case: &Case<'_>, config: &ValueConfig<'_>) -> Result<loss::ValueLoss, Failure> {
    let [predictions, values] = [case.tokens::<R>("predictions")?, case.tokens("values")?];
    let returns = case.tokens("returns")?;
    let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
    match loss::value_loss(&case.batch()?, input, config, &mut vec![R::zero(); case.rows * case.cols]) {
        Err(tokenwise::Error::EmptyMask) => Ok(loss::ValueLoss { loss: f64::NAN, clip_fraction: 0.0 }),
        result => Ok(result?),
    }
}

pub(super) fn verl_metrics<R: Number>(case: &Case<'_>) -> Ran {
    let names = [
        "scores",
        "rewards",
        "advantages",
        "returns",
        "values",
        "predictions",
        "log_probs",
        "ref_log_probs",
        "old_log_probs",
        "rollout_log_probs",
        "entropies",
        "sum_pi_squared",
    ];
    let mut slices = Vec::new();
    for name in names {
        slices.push(optional::<R>(case, name)?);
    }
    let slice = |index: usize| slices[index].as_deref();
    let [responses, prompts] = [case.ids("response_lengths", case.rows)?, case.ids("prompt_lengths", case.rows)?];
    let profile = Profile::Verl0_9_1;
    let sampler = slice(9).is_some();
    let input = VerlInput {
        scores: slice(0),
        rewards: slice(1),
        advantages: slice(2),
        returns: slice(3),
        values: slice(4),
        predictions: slice(5),
        response_lengths: Some(Lengths { tokens: &responses, limit: case.cols as u32 }),
        prompt_lengths: Some(Lengths { tokens: &prompts, limit: case.whole("prompt_limit")? }),
        log_probs: slice(6),
        ref_log_probs: slice(7),
        old_log_probs: slice(8),
        rollout_log_probs: slice(9),
        old_entropies: None,
        entropies: slice(10),
        sum_pi_squared: slice(11),
        weights: None,
        gradient_norm: Some(case.number("gradient_norm", None)?).filter(|_| sampler),
        policy_loss: Some(policy::<R>(case, &profile.ppo(), None)?),
        value_loss: Some(value::<R>(case, &profile.value())?),
        reward_kl: None,
        mask_before_rejection: None,
    };
    let config = VerlConfig {
        kl: KlConfig { estimator: KlEstimator::K3, ..profile.kl() },
        kl_coefficient: case.number("kl_coefficient", None)?,
        entropy_coefficient: case.number("entropy_coefficient", None)?,
        ..Default::default()
    };
    Ok(named(metric::verl_metrics(&case.batch()?, input, &config, &mut [])?.entries()))
}

pub(super) fn reduce_metrics(case: &Case<'_>) -> Ran {
    let values = case.tokens::<f64>("values")?;
    let rule = Reduction::of_key(case.text("key", "")?, case.flag("global_counts", false)?);
    Ok(vec![("value", Output::Scalar(rule.of(&values)?))])
}

const LEVELS: [(&str, TrlLevel); 2] = [("token", TrlLevel::Token), ("sequence", TrlLevel::Sequence)];

pub(super) fn trl_metrics<R: Number>(case: &Case<'_>) -> Ran {
    let names =
        ["log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs", "weights", "advantages", "entropies"];
    let mut slices = Vec::new();
    for name in names {
        slices.push(optional::<R>(case, name)?);
    }
    let slice = |index: usize| slices[index].as_deref();
    let flags: Vec<bool> = case.ids("truncated", case.rows)?.into_iter().map(|flag| flag == 1).collect();
    let [prompts, lengths] = [case.ids("prompt_lengths", case.rows)?, case.ids("completion_lengths", case.rows)?];
    let malformed = || Failure::Malformed("source_weights: expected numbers".into());
    let listed = case.param("source_weights").and_then(|value| value.as_array()).ok_or_else(malformed)?;
    let weights: Vec<f64> = listed.iter().filter_map(|weight| weight.as_f64()).collect();
    let sources = case.input::<R>("sources", weights.len() * case.rows)?;
    let groups = case.groups()?;
    let config = TrlConfig {
        clip_low: case.number("clip_low", Some(0.2))?,
        clip_high: case.number("clip_high", Some(0.2))?,
        dual_clip: dual_clip(case)?,
        level: choice(case, "level", &LEVELS)?,
        weight_level: choice(
            case,
            "mode",
            &[
                ("token_truncate", TrlLevel::Token),
                ("token_mask", TrlLevel::Token),
                ("sequence_truncate", TrlLevel::Sequence),
                ("sequence_mask", TrlLevel::Sequence),
            ],
        )?,
        scale: choice(case, "scale", &[("group", TrlScale::Group), ("batch", TrlScale::Batch)])?,
        entropy_coefficient: Some(case.number("entropy_coefficient", None)?),
        tokens_seen: u64::from(case.whole("tokens_seen")?),
    };
    // the groups say it
    case.whole("generations")?;
    let ppo = PpoConfig {
        clip_low: config.clip_low,
        clip_high: config.clip_high,
        dual_clip: config.dual_clip,
        ..Profile::Trl1_16.ppo()
    };
    let loss = match config.level {
        TrlLevel::Token => policy::<R>(case, &ppo, None)?,
        TrlLevel::Sequence => sequence_policy::<R>(case, &ppo)?,
    };
    let input = TrlInput {
        log_probs: slice(0),
        old_log_probs: slice(1),
        ref_log_probs: slice(2),
        rollout_log_probs: slice(3),
        weights: slice(4),
        advantages: slice(5),
        entropies: slice(6),
        loss: Some(TrlLoss::Clipped(loss)),
        rewards: Some(TrlRewards { groups, sources: &sources, source_weights: &weights }),
        completion_lengths: Some(&lengths),
        truncated: Some(&flags),
        prompt_lengths: Some(&prompts),
    };
    let mut per_source = vec![RewardSource::default(); weights.len()];
    let mut scratch = vec![Moments::default(); groups.count()];
    let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let found = metric::trl_metrics(&case.batch()?, input, &config, output)?;
    let mut outputs = named(found.entries());
    outputs.push(("source_means", Output::Entries(found.sources.iter().map(|source| source.mean).collect())));
    outputs.push(("source_stds", Output::Entries(found.sources.iter().map(|source| source.std).collect())));
    Ok(outputs)
}

/// The clipped loss of a sequence's ratio, as the mean over tokens.
fn sequence_policy<R: Number>(case: &Case<'_>, ppo: &PpoConfig<'_>) -> Result<PolicyLoss, Failure> {
    let [new, old] = [case.tokens::<R>("log_probs")?, case.tokens("old_log_probs")?];
    let advantages = case.tokens("advantages")?;
    let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: None };
    let config = loss::GspoConfig {
        clip_low: ppo.clip_low,
        clip_high: ppo.clip_high,
        aggregate: ppo.aggregate,
        ..Profile::Trl1_16.gspo()
    };
    Ok(loss::gspo(&case.batch()?, input, &config, &mut vec![R::zero(); case.rows * case.cols])?)
}

pub(super) fn openrlhf_metrics<R: Number>(case: &Case<'_>) -> Ran {
    let profile = Profile::OpenRlhf0_11;
    let (batch, groups) = (case.batch()?, case.groups()?);
    let kl_use = choice(case, "kl_use", &[("reward", KlUse::Reward), ("loss", KlUse::Loss)])?;
    let level =
        choice(case, "gate", &[("off", GateLevel::Off), ("token", GateLevel::Token), ("seq", GateLevel::Sequence)])?;
    let [old, rollout] = [case.tokens::<R>("old_log_probs")?, case.tokens("rollout_log_probs")?];
    let mut weights = vec![R::zero(); case.rows * case.cols];
    let gate = RolloutInput { old_log_probs: &old, rollout_log_probs: &rollout };
    let gate = rollout_gate(&batch, gate, &GateConfig { level, ..Default::default() }, &mut weights)?;
    let gated = level != GateLevel::Off;
    let [new, reference] = [case.tokens::<R>("log_probs")?, case.tokens("ref_log_probs")?];
    let [entropies, rewards, predictions] =
        [case.tokens("entropies")?, case.tokens("rewards")?, case.tokens("predictions")?];
    let scores = case.input("scores", case.rows)?;
    let lengths = case.ids("total_lengths", case.rows)?;
    let flags: Vec<bool> = case.ids("truncated", case.rows)?.into_iter().map(|flag| flag == 1).collect();
    // the groups say it
    let alone = case.whole("samples")? == 1;
    let input = OpenRlhfInput {
        log_probs: Some(if kl_use == KlUse::Loss { &new } else { &old }),
        ref_log_probs: Some(&reference),
        entropies: Some(&entropies),
        rewards: Some(&rewards),
        predictions: Some(&predictions),
        scores: Some(&scores),
        groups: Some(groups).filter(|_| !alone),
        total_lengths: Some(Lengths { tokens: &lengths, limit: case.whole("limit")? }),
        truncated: Some(&flags),
        policy_loss: Some(policy(case, &profile.ppo(), gated.then_some(&weights[..]))?),
        gate: gated.then_some(gate),
        value_loss: Some(value::<R>(case, &profile.value())?),
    };
    let config = OpenRlhfConfig { kl_use, ..Default::default() };
    let mut scratch = vec![Moments::default(); if alone { 0 } else { groups.count() }];
    Ok(named(metric::openrlhf_metrics(&batch, input, &config, &mut scratch)?.entries()))
}
