//! Losses that draw a student to a teacher, the KL loss, and verl's bypass mode.

use serde_json::Value;
use tokenwise::{
    divergence::KlInput,
    loss::{
        self, BypassConfig, BypassForm, BypassOutput, ForwardKlTopKConfig, ForwardKlTopKInput, ForwardKlTopKOutput,
        IwOpdConfig, IwOpdInput, JsdConfig, JsdInput, KlLossConfig, OpdLossConfig, OpdLossInput, OpdRoute, PpoConfig,
        ReinforceConfig, TopKIds, TopKInput, TopKJsdConfig, TopKRest,
    },
    policy::{self, PolicyConfig, TopKGradientInput, TopKLogitsInput},
    rollout::{
        self, Criterion, CriterionMetrics, LogBound, RejectionConfig, RejectionOption, RolloutConfig, RolloutInput,
        RolloutLevel, WeightBound,
    },
};

use super::{
    divergence::estimator,
    loss::{with_aggregate, with_policy_input},
    policy::vocab,
};
use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// A number, or `null` for none.
fn optional(case: &Case<'_>, key: &str, default: Option<f64>) -> Result<Option<f64>, Failure> {
    match case.param(key) {
        None => Ok(default),
        Some(Value::Null) => Ok(None),
        Some(_) => case.number(key, None).map(Some),
    }
}

pub(super) fn kl_loss<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, ref_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("ref_log_probs")?);
    let (kl, coefficient) = (estimator(case)?, case.number("coefficient", Some(1e-3))?);
    with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); log_probs.len()];
        let input = KlInput { log_probs: &log_probs, ref_log_probs: &ref_log_probs };
        let config = KlLossConfig { kl, coefficient, aggregate };
        let result = loss::kl_loss(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("aggregated", Output::Scalar(result.aggregated)),
            ("mean", Output::Scalar(result.mean)),
            ("grad", Output::tokens(grad)),
        ])
    })
}

pub(super) fn opd_loss<R: Number>(case: &Case<'_>) -> Ran {
    let [new, old, teacher] = tokens_of::<R>(case)?;
    let input = OpdLossInput { log_probs: &new, old_log_probs: &old, teacher_log_probs: &teacher, weights: None };
    let route = match case.text("route", "clipped")? {
        "clipped" => OpdRoute::Clipped,
        "surrogate" => OpdRoute::Surrogate,
        "reinforce" => OpdRoute::Reinforce,
        "supervised" => OpdRoute::Supervised,
        other => return Err(Failure::Malformed(format!("route: unknown \"{other}\""))),
    };
    let default = OpdLossConfig::default();
    let config = OpdLossConfig {
        kl: estimator(case)?,
        max_loss: optional(case, "max_loss", default.max_loss)?,
        route,
        clip_low: case.number("clip_low", Some(0.2))?,
        clip_high: case.number("clip_high", Some(0.2))?,
        dual_clip: case.conventions.ppo().dual_clip,
        divisor: case.conventions.divisor,
        ..default
    };
    with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); new.len()];
        let result = loss::opd_loss(&case.batch()?, input, &OpdLossConfig { aggregate, ..config }, &mut grad)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("clip_fraction", Output::Scalar(result.clip_fraction)),
            ("clip_fraction_lower", Output::Scalar(result.clip_fraction_lower)),
            ("kl", Output::Scalar(result.kl)),
            ("abs_loss", Output::Scalar(result.abs_loss)),
            ("loss_min", Output::Scalar(result.loss_min)),
            ("loss_max", Output::Scalar(result.loss_max)),
        ])
    })
}

/// Student now, student when it sampled, teacher.
fn tokens_of<R: Number>(case: &Case<'_>) -> Result<[Vec<R>; 3], Failure> {
    Ok([case.tokens("log_probs")?, case.tokens("old_log_probs")?, case.tokens("teacher_log_probs")?])
}

pub(super) fn iw_opd<R: Number>(case: &Case<'_>) -> Ran {
    let [new, old, teacher] = tokens_of::<R>(case)?;
    let input = IwOpdInput { log_probs: &new, old_log_probs: &old, teacher_log_probs: &teacher };
    let (gamma, epsilon) = (case.number("gamma", Some(0.5))?, case.number("epsilon", Some(1e-8))?);
    with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); new.len()];
        let config = IwOpdConfig { gamma, epsilon, aggregate };
        let result = loss::iw_opd(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("mean_advantage", Output::Scalar(result.mean_advantage)),
            ("mean_abs_advantage", Output::Scalar(result.mean_abs_advantage)),
            ("mean_weight", Output::Scalar(result.mean_weight)),
            ("min_weight", Output::Scalar(result.min_weight)),
            ("max_weight", Output::Scalar(result.max_weight)),
        ])
    })
}

/// The ids of the `k` largest logits of each row, the largest first.
fn likeliest<R: Number>(logits: &[R], vocab: usize, k: usize) -> Vec<u32> {
    let mut out = Vec::new();
    for row in logits.chunks(vocab) {
        let mut ids: Vec<u32> = (0..vocab as u32).collect();
        ids.sort_by(|&a, &b| row[b as usize].widen().total_cmp(&row[a as usize].widen()));
        out.extend(&ids[..k]);
    }
    out
}

/// Reads the log-probabilities of ids from logits.
fn chosen<R: Number>(case: &Case<'_>, logits: &[R], vocab: usize, ids: &[u32], k: usize) -> Result<Vec<R>, Failure> {
    let mut out = vec![R::zero(); ids.len()];
    let input = TopKLogitsInput { logits, vocab, tokens: ids, k };
    policy::topk_log_probs(&case.batch()?, input, &PolicyConfig::default(), &mut out)?;
    Ok(out)
}

/// Takes a gradient by the log-probabilities of ids back to the logits.
fn to_logits<R: Number>(
    case: &Case<'_>,
    (logits, vocab): (&[R], usize),
    (ids, k): (&[u32], usize),
    grad: &[R],
) -> Result<Output, Failure> {
    let mut out = vec![R::zero(); logits.len()];
    let input = TopKGradientInput { logits, vocab, tokens: ids, k, grad_log_probs: grad };
    policy::topk_logits_gradient(&case.batch()?, input, &PolicyConfig::default(), &mut out)?;
    Ok(Output::rows(out, vocab))
}

pub(super) fn forward_kl_topk<R: Number>(case: &Case<'_>) -> Ran {
    let ((vocab, len), k) = (vocab(case)?, case.whole("k")? as usize);
    let slots = case.rows * case.cols;
    let (logits, teacher) = (case.input::<R>("logits", len)?, case.input::<R>("teacher_log_probs", slots * k)?);
    let (ids, own) = (case.ids("teacher_ids", slots * k)?, likeliest(&logits, vocab, k));
    let log_probs = chosen(case, &logits, vocab, &ids, k)?;
    let default = ForwardKlTopKConfig::default();
    let log_prob_floor = optional(case, "log_prob_floor", default.log_prob_floor)?;
    let max_loss = optional(case, "max_loss", default.max_loss)?;
    with_aggregate(case, "aggregate", |aggregate| {
        let config = ForwardKlTopKConfig { log_prob_floor, max_loss, aggregate };
        let (mut losses, mut grad) = (vec![R::zero(); slots], vec![R::zero(); slots * k]);
        let input = ForwardKlTopKInput {
            log_probs: &log_probs,
            teacher_log_probs: &teacher,
            k,
            ids: Some(TopKIds { teacher: &ids, student: &own }),
        };
        let output = ForwardKlTopKOutput { losses: &mut losses, grad: &mut grad };
        let result = loss::forward_kl_topk(&case.batch()?, input, &config, output)?;
        let overlap = result.overlap.unwrap_or_default();
        let [student, student_min, student_max] = result.student_mass.map(Output::Scalar);
        let [mass, mass_min, mass_max] = result.teacher_mass.map(Output::Scalar);
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("losses", Output::tokens(losses)),
            ("grad_logits", to_logits(case, (&logits, vocab), (&ids, k), &grad)?),
            ("grad", Output::rows(grad, k)),
            ("loss_min", Output::Scalar(result.loss_min)),
            ("loss_max", Output::Scalar(result.loss_max)),
            ("student_mass", student),
            ("student_mass_min", student_min),
            ("student_mass_max", student_max),
            ("teacher_mass", mass),
            ("teacher_mass_min", mass_min),
            ("teacher_mass_max", mass_max),
            ("overlap_ratio", Output::Scalar(overlap.ratio)),
            ("overlap_token_advantage", Output::Scalar(overlap.token_advantage)),
        ])
    })
}

pub(super) fn generalized_jsd<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let (logits, teacher_logits) = (case.input::<R>("logits", len)?, case.input::<R>("teacher_logits", len)?);
    let (beta, temperature) = (case.number("beta", Some(0.5))?, case.number("temperature", Some(1.0))?);
    with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); len];
        let input = JsdInput { logits: &logits, teacher_logits: &teacher_logits, vocab, weights: None };
        let config = JsdConfig { beta, temperature, aggregate };
        let loss = loss::generalized_jsd(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![("loss", Output::Scalar(loss)), ("grad_logits", Output::rows(grad, vocab))])
    })
}

/// The entries are the student's likeliest tokens.
pub(super) fn topk_jsd<R: Number>(case: &Case<'_>) -> Ran {
    let ((vocab, len), k) = (vocab(case)?, case.whole("k")? as usize);
    let (logits, teacher_logits) = (case.input::<R>("logits", len)?, case.input::<R>("teacher_logits", len)?);
    let ids = likeliest(&logits, vocab, k);
    let log_probs = chosen(case, &logits, vocab, &ids, k)?;
    let teacher = chosen(case, &teacher_logits, vocab, &ids, k)?;
    let beta = case.number("beta", Some(0.5))?;
    let rest = match case.text("rest", "tail")? {
        "tail" => TopKRest::Tail,
        "renormalize" => TopKRest::Renormalize,
        other => return Err(Failure::Malformed(format!("rest: unknown \"{other}\""))),
    };
    let weights = if case.has_input("old_log_probs") { Some(capped::<R>(case)?) } else { None };
    with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); ids.len()];
        let weights = weights.as_deref();
        let input = TopKInput { log_probs: &log_probs, teacher_log_probs: &teacher, k, weights };
        let loss = loss::topk_jsd(&case.batch()?, input, &TopKJsdConfig { beta, rest, aggregate }, &mut grad)?;
        let grad_logits = to_logits(case, (&logits, vocab), (&ids, k), &grad)?;
        Ok(vec![("loss", Output::Scalar(loss)), ("grad_logits", grad_logits)])
    })
}

/// TRL's capped importance weights.
fn capped<R: Number>(case: &Case<'_>) -> Result<Vec<R>, Failure> {
    let (new, old) = (case.tokens::<R>("log_probs")?, case.tokens::<R>("old_log_probs")?);
    let bound = WeightBound::Truncate { upper: case.number("is_clip", None)? };
    let config = RolloutConfig { bound, log_bound: LogBound::At(20.0), ..Default::default() };
    let mut weights = vec![R::zero(); new.len()];
    let input = RolloutInput { old_log_probs: &new, rollout_log_probs: &old };
    rollout::rollout_weights(&case.batch()?, input, &config, &mut weights)?;
    Ok(weights)
}

pub(super) fn bypass_mode<R: Number>(case: &Case<'_>) -> Ran {
    let divisor = case.conventions.divisor;
    let bound = WeightBound::Truncate { upper: case.number("upper", Some(2.0))? };
    let level = match case.param("level").and_then(Value::as_str) {
        None => None,
        Some("token") => Some(RolloutLevel::Token),
        Some("sequence") => Some(RolloutLevel::Sequence),
        Some(other) => return Err(Failure::Malformed(format!("level: expected token or sequence, got \"{other}\""))),
    };
    let weights = level.map(|level| RolloutConfig { level, bound, divisor, ..Default::default() });
    let mut criteria = [Criterion::default(); RejectionOption::ALL.len()];
    let (options, thresholds) = (case.text("options", "")?, case.text("thresholds", "")?);
    let count = if options.is_empty() { 0 } else { rollout::parse_rejection(options, thresholds, &mut criteria)? };
    let rejection = RejectionConfig { criteria: &criteria[..count], divisor };
    let reinforce = case.text("form", "ppo_clip")? == "reinforce";
    with_policy_input::<R>(case, |input, aggregate| {
        let form = if reinforce {
            BypassForm::Reinforce(ReinforceConfig { aggregate, divisor })
        } else {
            let dual_clip = case.conventions.dual_clip(3.0);
            BypassForm::PpoClip(PpoConfig { dual_clip, aggregate, divisor, ..Default::default() })
        };
        let len = input.log_probs.len();
        let (mut weighed, mut grad, mut keep) = (vec![R::zero(); len], vec![R::zero(); len], vec![false; len]);
        let mut per_criterion = vec![CriterionMetrics::default(); count];
        let output =
            BypassOutput { weights: &mut weighed, keep: &mut keep, per_criterion: &mut per_criterion, grad: &mut grad };
        let config = BypassConfig { weights, rejection, form, divisor };
        let result = loss::bypass_loss(&case.batch()?, input, &config, output)?;
        let mut outputs = vec![
            ("loss", Output::Scalar(result.policy.loss)),
            ("grad", Output::tokens(grad)),
            ("weights", Output::tokens(weighed)),
            ("clip_fraction", Output::Scalar(result.policy.clip_fraction)),
            ("clip_fraction_lower", Output::Scalar(result.policy.clip_fraction_lower)),
            ("kl", Output::Scalar(result.policy.kl)),
        ];
        outputs.extend(result.mismatch.entries().map(|(key, value)| (key, Output::Scalar(value))));
        Ok(outputs)
    })
}
