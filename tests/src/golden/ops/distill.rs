//! Losses between a student and its teacher's likeliest tokens.

use serde::Serialize;
use tokenwise::{
    loss::{AggregateMode, ForwardKlTopKConfig, TopKJsdConfig},
    rollout::{LogBound, RolloutConfig, WeightBound},
};
use tokenwise_catalogue::{Array, Kind, Number};

use crate::golden::{
    case::{Case, Failure},
    step::{value, Names, Run, Step},
};

/// A config of a loss whose aggregation follows the profile.
pub(super) fn with_aggregate(case: &Case<'_>, step: Step, config: impl Serialize) -> Result<Step, Failure> {
    let usual = value(case.conventions.aggregate(AggregateMode::TokenMean))?;
    let mut step = step.config(case, config)?;
    step.config.set("aggregate", case.aggregate("aggregate", usual)?);
    Ok(step)
}

/// The ids of the `k` largest logits of each row, the largest first.
fn likeliest<R: Number>(case: &Case<'_>) -> Result<Array<R>, Failure> {
    let (vocab, k) = (case.whole("vocab")? as usize, case.whole("k")? as usize);
    let logits = case.input::<R>("logits", case.rows * case.cols * vocab)?;
    let mut out = Vec::new();
    for row in logits.chunks(vocab.max(1)) {
        let mut ids: Vec<u32> = (0..vocab as u32).collect();
        ids.sort_by(|&a, &b| row[b as usize].widen().total_cmp(&row[a as usize].widen()));
        // the core refuses a list that is too short
        out.extend(&ids[..k.min(vocab)]);
    }
    Ok(Array::Index(out))
}

/// Propagates the gradient with respect to log-probabilities of ids to the logits.
fn to_logits<R: Number>(run: &mut Run<'_, R>, names: Names) -> Result<(), Failure> {
    run.step(Step::new("topk_logits_gradient", names)?)
}

pub(super) fn forward_kl_topk<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let case = run.case;
    run.made.insert("student_ids", (Kind::TopK, likeliest(case)?));
    run.step(Step::new("topk_log_probs", &[("tokens", "teacher_ids"), ("log_probs", "log_probs")])?)?;
    run.step(with_aggregate(case, Step::new(case.op, &[])?, ForwardKlTopKConfig::default())?)?;
    to_logits(run, &[("tokens", "teacher_ids"), ("grad_log_probs", "grad")])
}

/// The entries are the student's likeliest tokens.
pub(super) fn topk_jsd<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    const IDS: Names = &[("tokens", "ids"), ("log_probs", "student")];
    const TEACHER: Names = &[("logits", "teacher_logits"), ("tokens", "ids"), ("log_probs", "teacher_log_probs")];
    let case = run.case;
    run.made.insert("ids", (Kind::TopK, likeliest(case)?));
    run.step(Step::new("topk_log_probs", IDS)?)?;
    run.step(Step::new("topk_log_probs", TEACHER)?)?;
    if case.has_input("old_log_probs") {
        // TRL's capped importance weights
        let bound = WeightBound::Truncate { upper: case.number("is_clip", None)? };
        let config = RolloutConfig { bound, log_bound: LogBound::At(20.0), ..Default::default() };
        let names: Names = &[("old_log_probs", "log_probs"), ("rollout_log_probs", "old_log_probs")];
        run.step(Step::new("rollout_weights", names)?.fixed(config)?)?;
    }
    let step = Step::new(case.op, &[("log_probs", "student")])?;
    run.step(with_aggregate(case, step, TopKJsdConfig::default())?)?;
    to_logits(run, &[("tokens", "ids"), ("grad_log_probs", "grad")])
}
