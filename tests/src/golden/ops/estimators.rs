use serde_json::Value;
use tokenwise::{
    advantage::{self, *},
    Moments, Profile,
};

use super::advantage::{laid_on_tokens, scores};
use crate::golden::{
    case::{numbers, Case, Failure, Number, Ran},
    compare::{Output, Outputs},
};

fn zeros<R: Number>(case: &Case<'_>) -> Vec<R> {
    vec![R::zero(); case.rows * case.cols]
}

fn advantages_and_returns<R: Number>(advantages: Vec<R>, returns: Vec<R>) -> Outputs {
    vec![("advantages", Output::tokens(advantages)), ("returns", Output::tokens(returns))]
}

pub(super) fn td_lambda<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let config = TdLambdaConfig {
        gamma: case.number("gamma", Some(1.0))?,
        lambda: case.number("lambda", Some(1.0))?,
        ..case.conventions.td_lambda()
    };
    let mut out = zeros(case);
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    advantage::td_lambda(&case.batch()?, input, &config, &mut out)?;
    Ok(vec![("returns", Output::tokens(out))])
}

pub(super) fn upgo<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let mut out = zeros(case);
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    advantage::upgo(&case.batch()?, input, &mut out)?;
    Ok(vec![("returns", Output::tokens(out))])
}

pub(super) fn vtrace<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let (log_probs, old_log_probs) = (case.tokens("log_probs")?, case.tokens("old_log_probs")?);
    let rho_bar = case.number("rho_bar", Some(1.0))?;
    let config = VtraceConfig {
        gamma: case.number("gamma", Some(1.0))?,
        lambda: case.number("lambda", Some(1.0))?,
        rho_bar,
        c_bar: case.number("c_bar", Some(1.0))?,
        rho_bar_pg: rho_bar,
        ..Default::default()
    };
    let (mut targets, mut advantages) = (zeros(case), zeros(case));
    let input = VtraceInput {
        rewards: &rewards,
        values: &values,
        bootstrap: &bootstrap,
        log_probs: &log_probs,
        old_log_probs: &old_log_probs,
    };
    let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
    advantage::vtrace(&case.batch()?, input, &config, output)?;
    Ok(vec![("targets", Output::tokens(targets)), ("advantages", Output::tokens(advantages))])
}

pub(super) fn grpo_passk<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let scale = if case.flag("norm_by_std", true)? { GroupScale::StandardDeviation } else { GroupScale::Unit };
    let config = BestOfGroupConfig { scale, ..case.conventions.best_of_group() };
    let (mut moments, mut top) = (vec![Moments::default(); groups.count()], vec![TopTwo::default(); groups.count()]);
    let mut out = vec![R::zero(); case.rows];
    let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
    best_of_group(&groups, &scores, &config, scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn rloo_vectorized<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    // unlike rloo, it gives a score on its own nothing
    let config = LeaveOneOutConfig { singleton: Singleton::Zero };
    leave_one_out(&groups, &scores, &config, &mut scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn opo<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let (mut scratch, mut out) = (vec![WeightedSum::default(); groups.count()], vec![R::zero(); case.rows]);
    let config = case.conventions.length_weighted();
    length_weighted_baseline(&case.batch()?, &groups, &scores, &config, &mut scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn gpg_advantage<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    advantage::gpg_advantage(&groups, &scores, &case.conventions.gpg(), &mut scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn gdpo<R: Number>(case: &Case<'_>) -> Ran {
    let groups = case.groups()?;
    let weights = match case.param("weights").filter(|value| !value.is_null()) {
        Some(Value::Array(list)) => {
            numbers("weights", &Value::Array(list.clone()), list.len()).map_err(Failure::Unfit)?
        }
        Some(other) => return Err(Failure::Unfit(format!("weights: expected a list, got {other}"))),
        None => vec![1.0; case.input_len("reward_sources") / case.rows.max(1)],
    };
    let sources = case.input::<R>("reward_sources", weights.len() * case.rows)?;
    let config = case.conventions.gdpo();
    let (mut moments, mut scores) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    let input = GdpoInput { sources: &sources, weights: &weights };
    if case.profile == Some(Profile::Trl1_16) {
        return decoupled_by_trl(case, input, &config.group);
    }
    let scratch = GdpoScratch { moments: &mut moments, scores: &mut scores };
    let mut out = zeros(case);
    advantage::gdpo(&case.batch()?, &groups, input, &config, scratch, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

/// TRL normalises the sums over the sequences of the batch, not over their tokens.
fn decoupled_by_trl<R: Number>(case: &Case<'_>, input: GdpoInput<'_, R>, group: &GroupConfig) -> Ran {
    let groups = case.groups()?;
    let (mut scratch, mut sums) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    decoupled_scores(&groups, input, group, &mut scratch, &mut sums)?;
    let config =
        NormalizeConfig { mean: Level::Batch, deviation: Level::Batch, epsilon: group.epsilon, ..Default::default() };
    let mut out = vec![R::zero(); case.rows];
    normalize_scores(&groups, &sums, &config, &mut scratch, &mut out)?;
    laid_on_tokens(case, &out)
}

pub(super) fn reinforce_plus_plus<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, bootstrap) = (case.tokens::<R>("rewards")?, case.bootstrap()?);
    let config =
        ReinforcePlusPlusConfig { gamma: case.number("gamma", Some(1.0))?, ..case.conventions.reinforce_plus_plus() };
    let (mut advantages, mut returns) = (zeros(case), zeros(case));
    let input = ReturnsInput { rewards: &rewards, bootstrap: &bootstrap };
    let output = ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns };
    advantage::reinforce_plus_plus(&case.batch()?, input, &config, output)?;
    Ok(advantages_and_returns(advantages, returns))
}

pub(super) fn reinforce_plus_plus_baseline<R: Number>(case: &Case<'_>) -> Ran {
    let scores = scores::<R>(case)?;
    let groups = case.groups()?;
    let config = case.conventions.reinforce_plus_plus_baseline();
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], zeros(case));
    advantage::reinforce_plus_plus_baseline(&case.batch()?, &groups, &scores, &config, &mut scratch, &mut out)?;
    Ok(vec![("advantages", Output::tokens(out))])
}

pub(super) fn remax<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, baselines) = (case.tokens::<R>("rewards")?, case.input("baselines", case.rows)?);
    let (mut advantages, mut returns) = (zeros(case), zeros(case));
    let input = RemaxInput { rewards: &rewards, baselines: &baselines };
    let output = RemaxOutput { advantages: &mut advantages, returns: &mut returns };
    advantage::remax(&case.batch()?, input, output)?;
    Ok(advantages_and_returns(advantages, returns))
}

/// The baseline per slot, or per kept token.
pub(super) fn optimal_token_baseline<R: Number>(case: &Case<'_>) -> Ran {
    let rewards = case.tokens::<R>("rewards")?;
    let (old_log_probs, sum_pi_squared) = (case.tokens("old_log_probs")?, case.tokens("sum_pi_squared")?);
    let (batch, groups) = (case.batch()?, case.groups()?);
    let zero_tail = if case.flag("handle_zero_tail", true)? { ZeroTail::NoBaseline } else { ZeroTail::OwnReturn };
    let config = OptimalBaselineConfig { zero_tail, ..Default::default() };
    let mut columns = vec![WeightedSum::default(); optimal_baseline_columns(&batch, &groups)?];
    let mut lengths = vec![TopTwo::default(); groups.count()];
    let (mut advantages, mut returns) = (zeros(case), zeros(case));
    let input = OptimalBaselineInput {
        rewards: &rewards,
        old_log_probs: &old_log_probs,
        sum_pi_squared: &sum_pi_squared,
        is_weights: None,
    };
    let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    if case.op == "tir_optimal_token_baseline" {
        tir_optimal_token_baseline(&batch, &groups, input, &config, scratch, output)?;
    } else {
        advantage::optimal_token_baseline(&batch, &groups, input, &config, scratch, output)?;
    }
    Ok(advantages_and_returns(advantages, returns))
}
