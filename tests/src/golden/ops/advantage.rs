use tokenwise::{
    advantage::{
        self, AttentionInput, Center, GaeConfig, GaeInput, GaeOutput, GroupConfig, GroupScale, Level, MonteCarloInput,
        MonteCarloOutput, NormalizeConfig, ReturnsConfig, ReturnsInput,
    },
    profile::ScoreSlots,
    Moments,
};

use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

fn returns_config(case: &Case<'_>) -> Result<ReturnsConfig, Failure> {
    Ok(ReturnsConfig { gamma: case.number("gamma", Some(1.0))?, ..case.conventions.returns() })
}

pub(super) fn discounted_returns<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, bootstrap) = (case.tokens::<R>("rewards")?, case.bootstrap()?);
    let mut out = vec![R::zero(); rewards.len()];
    let input = ReturnsInput { rewards: &rewards, bootstrap: &bootstrap };
    advantage::discounted_returns(&case.batch()?, input, &returns_config(case)?, &mut out)?;
    Ok(vec![("returns", Output::tokens(out))])
}

pub(super) fn gae<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let config = GaeConfig {
        gamma: case.number("gamma", Some(1.0))?,
        lambda: case.number("lambda", Some(1.0))?,
        ..case.conventions.gae()
    };
    let (mut raw, mut returns) = (vec![R::zero(); rewards.len()], vec![R::zero(); rewards.len()]);
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let whiten = case.flag("whiten", true)?;
    advantage::gae(&case.batch()?, input, &config, GaeOutput { advantages: &mut raw, returns: &mut returns })?;
    let mut advantages = raw.clone();
    if whiten {
        advantage::whiten(&case.batch()?, &raw, &case.conventions.whiten(), &mut advantages)?;
    }
    Ok(vec![("advantages", Output::tokens(advantages)), ("returns", Output::tokens(returns))])
}

pub(super) fn masked_whiten<R: Number>(case: &Case<'_>) -> Ran {
    let x = case.tokens::<R>("x")?;
    let center = if case.flag("shift_mean", true)? { Center::Shift } else { Center::KeepMean };
    let config = advantage::WhitenConfig { center, ..case.conventions.whiten() };
    let mut out = vec![R::zero(); x.len()];
    advantage::whiten(&case.batch()?, &x, &config, &mut out)?;
    Ok(vec![("out", Output::tokens(out))])
}

pub(super) fn uniform_credit<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let mut out = vec![R::zero(); case.rows * case.cols];
    advantage::uniform_credit(&case.batch()?, &scores, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

pub(super) fn last_k_credit<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let mut out = vec![R::zero(); case.rows * case.cols];
    advantage::last_k_credit(&case.batch()?, &scores, case.whole("k")? as usize, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

pub(super) fn attention_credit<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, weights) = (case.input::<R>("scores", case.rows)?, case.tokens("weights")?);
    let mut out = vec![R::zero(); case.rows * case.cols];
    advantage::attention_credit(&case.batch()?, AttentionInput { scores: &scores, weights: &weights }, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

pub(super) fn monte_carlo_advantage<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let (mut advantages, mut returns) = (vec![R::zero(); rewards.len()], vec![R::zero(); rewards.len()]);
    advantage::monte_carlo_advantage(
        &case.batch()?,
        MonteCarloInput { rewards: &rewards, values: &values, bootstrap: &bootstrap },
        &returns_config(case)?,
        MonteCarloOutput { advantages: &mut advantages, returns: &mut returns },
    )?;
    Ok(vec![("advantages", Output::tokens(advantages)), ("returns", Output::tokens(returns))])
}

/// One score per sequence, counted as the profile counts.
pub(super) fn scores<R: Number>(case: &Case<'_>) -> Result<Vec<R>, Failure> {
    case.family(&["norm_by_std"]);
    let rewards = case.tokens::<R>("rewards")?;
    let batch = if case.conventions.score_slots == ScoreSlots::All { case.whole_batch()? } else { case.batch()? };
    let mut scores = vec![R::zero(); case.rows];
    advantage::sequence_sums(&batch, &rewards, &mut scores)?;
    Ok(scores)
}

/// Lays per-sequence advantages on the kept tokens.
pub(super) fn laid_on_tokens<R: Number>(case: &Case<'_>, per_sequence: &[R]) -> Ran {
    let mut out = vec![R::zero(); case.rows * case.cols];
    advantage::broadcast(&case.batch()?, per_sequence, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

pub(super) fn grpo<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let scale = match case.text("scale", if case.flag("norm_by_std", true)? { "group" } else { "none" })? {
        "group" => GroupScale::StandardDeviation,
        "batch" => GroupScale::BatchDeviation,
        "none" => GroupScale::Unit,
        other => return Err(Failure::Unfit(format!("scale: expected group, batch or none, got \"{other}\""))),
    };
    let config = GroupConfig { scale, ..case.conventions.group() };
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    advantage::group_relative(&groups, &scores, &config, &mut scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn rloo<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    advantage::leave_one_out(&groups, &scores, &case.conventions.leave_one_out(), &mut scratch, &mut out)?;
    if case.flag("normalize", false)? {
        let config =
            NormalizeConfig { mean: Level::Batch, deviation: Level::Batch, epsilon: 1e-4, ..Default::default() };
        let raw = out.clone();
        advantage::normalize_scores(&groups, &raw, &config, &mut scratch, &mut out)?;
    }
    laid_on_tokens(case, &out)
}
