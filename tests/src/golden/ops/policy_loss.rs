//! Policy losses.

use serde::Serialize;
use tokenwise::{
    loss::{Aggregate, AggregateMode, BypassConfig, BypassForm, LuspoConfig, PpoConfig},
    rollout::{RejectionConfig, RolloutConfig, RolloutLevel, WeightBound},
    Profile,
};
use tokenwise_catalogue::{find, Array, Entry, Kind, Number, Value};

use super::rollout::criteria;
use crate::golden::{
    case::{word, Case, Failure},
    step::{value, Names, Run, Step},
};

/// Parameters that the losses of this family may have; a case may contain others.
const FAMILY: [&str; 11] = [
    "clip_low",
    "clip_high",
    "dual_clip",
    "tau_pos",
    "tau_neg",
    "ratio",
    "kl_coef",
    "beta",
    "lower",
    "upper",
    "aggregate",
];
const NAMES: Names = &[
    ("weights", "rollout_weights"),
    ("tau_positive", "tau_pos"),
    ("tau_negative", "tau_neg"),
    ("ratio_cap", "dual_clip"),
];

/// Reads the parameters that a case may contain, whether its loss has such settings or not.
fn family(case: &Case<'_>) -> Result<(), Failure> {
    for key in FAMILY {
        case.param(key);
    }
    case.aggregate("aggregate", Value::EMPTY).map(drop)
}

/// The loss of this name.
pub(super) fn loss(case: &Case<'_>, entry: &str, config: impl Serialize) -> Result<Step, Failure> {
    family(case)?;
    Ok(Step::new(entry, NAMES)?.config(case, config)?.or_empty(case.conventions.empty_loss, &["loss"]))
}

pub(super) fn cispo(case: &Case<'_>) -> Result<Step, Failure> {
    let c = &case.conventions;
    let (low, high) = (case.number("clip_low", Some(0.2))?, case.number("clip_high", Some(0.2))?);
    loss(case, case.op, c.cispo())?.set("bounds", c.cispo_bounds_at(low, high))
}

/// verl and TRL weight all sequences equally, whatever their configured mode.
pub(super) fn sapo(case: &Case<'_>) -> Result<Step, Failure> {
    let step = loss(case, case.op, case.conventions.sapo())?;
    let named = case.param("aggregate").is_some() && case.profile != Some(Profile::Verl0_9_1);
    Ok(if named { step } else { step.mode("seq-mean-token-mean") })
}

/// GSPO and LUSPO. TRL reports the share of clipped sequences; we and the others count tokens.
pub(super) fn of_sequences<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let (case, c) = (run.case, &run.case.conventions);
    let gspo = || loss(case, "gspo", c.gspo());
    run.step(match (case.op, case.profile) {
        ("luspo", _) => loss(case, "luspo", LuspoConfig::default())?,
        // OpenRLHF weights all sequences equally, whatever its configured mode
        (_, Some(Profile::OpenRlhf0_11)) => gspo()?.mode("seq-mean-token-mean"),
        _ => gspo()?,
    })?;
    if case.profile != Some(Profile::Trl1_16) || !run.numbers.contains_key("clip_fraction") {
        return Ok(());
    }
    let mut held = 0;
    for row in 0..case.rows {
        let slots = case.batch()?.mask().as_slice().iter().enumerate();
        let alone = slots.map(|(slot, keep)| *keep && slot / case.cols == row).collect();
        let mut of_row = Run::<R>::new(case);
        of_row.step(gspo()?.mode("token-sum").mask(alone))?;
        held += usize::from(of_row.numbers.get("clip_fraction").is_some_and(|share| *share > 0.0));
    }
    run.numbers.insert("clip_fraction".into(), held as f64 / case.rows as f64);
    Ok(())
}

/// TRL's mean counts rows without kept tokens, whose ratio is 1.
pub(super) fn vespo<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let case = run.case;
    run.step(loss(case, case.op, case.conventions.vespo())?)?;
    let batch = case.batch()?;
    let (kept, rows) = (batch.kept_sequences() as f64, batch.sequences() as f64);
    if let Some(mean) = run.numbers.get_mut("phi_mean") {
        *mean = (*mean * kept + (rows - kept)) / rows;
    }
    Ok(())
}

/// Whether a loss treats sequences by the sign of their scores.
pub(super) fn reads_scores(op: &str) -> bool {
    let reads = |entry: &Entry, name| entry.inputs.iter().any(|column| column.name == name);
    find(op).is_some_and(|entry| entry.stage == "loss" && reads(entry, "scores") && reads(entry, "advantages"))
}

/// The settings that every loss with an aggregation has.
#[derive(Serialize)]
struct Aggregated<'a> {
    aggregate: Aggregate<'a>,
}

/// If the case has no scores, the sign of the advantage is used for that of the score.
pub(super) fn of_scores<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let case = run.case;
    let aggregate = case.conventions.aggregate(AggregateMode::TokenMean);
    let step = || loss(case, case.op, Aggregated { aggregate })?.params_but(case, &FAMILY);
    if case.has_input("scores") {
        return run.step(step()?);
    }
    let of = |score: f64| {
        let mut run = Run::<R>::new(case);
        run.made.insert("scores", (Kind::Sequence, Array::Real(vec![R::narrow(score); case.rows])));
        run.step(step()?)?;
        Ok::<_, Failure>(run)
    };
    let (mut good, mut bad) = (of(1.0)?, of(0.0)?);
    if let (Array::Real(mut grad), Array::Real(bad)) = (good.take("grad"), bad.take("grad")) {
        let (log_probs, advantages) = (case.tokens::<R>("log_probs")?, case.tokens::<R>("advantages")?);
        // the loss of a token is its gradient times log π, so the losses follow from the gradients
        let mut loss = 0.0;
        for (slot, _) in case.batch()?.mask().as_slice().iter().enumerate().filter(|(_, keep)| **keep) {
            if advantages[slot] <= R::zero() {
                grad[slot] = bad[slot];
            }
            loss += (grad[slot] * log_probs[slot]).widen();
        }
        good.made.insert("grad", (Kind::Token, Array::Real(grad)));
        good.numbers.insert("loss".into(), loss);
    }
    *run = good;
    Ok(())
}

pub(super) fn bypass_mode(case: &Case<'_>) -> Result<Step, Failure> {
    family(case)?;
    let (c, divisor) = (&case.conventions, case.conventions.divisor);
    let bound = WeightBound::Truncate { upper: case.number("upper", Some(2.0))? };
    let weights = match case.text("level", "")? {
        "" => None,
        name => {
            let level = word(name, "level", |name| match name {
                "token" => Some(RolloutLevel::Token),
                "sequence" => Some(RolloutLevel::Sequence),
                _ => None,
            })?;
            Some(RolloutConfig { level, bound, divisor, ..Default::default() })
        }
    };
    let form = if case.text("form", "ppo_clip")? == "reinforce" {
        BypassForm::Reinforce(c.reinforce())
    } else {
        let aggregate = c.aggregate(AggregateMode::TokenMean);
        BypassForm::PpoClip(PpoConfig { dual_clip: c.dual_clip(3.0), aggregate, divisor, ..Default::default() })
    };
    let rejection = RejectionConfig { divisor, ..Default::default() };
    let criteria = if case.text("options", "")?.is_empty() { Vec::new() } else { criteria(case)? };
    case.text("thresholds", "")?;
    let mut step = Step::new("bypass_loss", &[])?.fixed(BypassConfig { weights, rejection, form, divisor })?;
    if let Some(rejection) = step.config.get_mut("rejection") {
        rejection.set("criteria", value(criteria)?);
    }
    if let Some(policy) = step.config.get_mut("policy") {
        if let Some(aggregate) = policy.take("aggregate") {
            policy.set("aggregate", case.aggregate("aggregate", aggregate)?);
        }
    }
    Ok(step.or_empty(c.empty_loss, &["loss"]))
}
