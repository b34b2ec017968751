use tokenwise::reward::{self, KlInRewardInput, KlRewardConfig, OverlongConfig, OverlongInput, ShapeInput};

use super::divergence::estimator;
use crate::golden::{
    case::{Case, Number, Ran},
    compare::Output,
};

pub(super) fn place_scores<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let mut out = vec![R::zero(); case.rows * case.cols];
    reward::place_scores(&case.batch()?, &scores, &mut out)?;
    Ok(vec![("rewards", Output::tokens(out))])
}

pub(super) fn shape_rewards<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, kl) = (case.tokens::<R>("scores")?, case.tokens("kl")?);
    let mut out = vec![R::zero(); scores.len()];
    let beta = case.number("beta", None)?;
    reward::shape_rewards(&case.batch()?, ShapeInput { scores: &scores, kl: &kl }, beta, &mut out)?;
    Ok(vec![("rewards", Output::tokens(out))])
}

pub(super) fn kl_in_reward<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.tokens::<R>("scores")?;
    let (old, reference) = (case.tokens("old_log_probs")?, case.tokens("ref_log_probs")?);
    let beta = case.number("beta", Some(case.conventions.kl_reward_beta))?;
    let config = KlRewardConfig { beta, kl: estimator(case)?, ..case.conventions.kl_reward() };
    let mut out = vec![R::zero(); scores.len()];
    let input = KlInRewardInput { scores: &scores, old_log_probs: &old, ref_log_probs: &reference };
    let current_kl = reward::kl_in_reward(&case.batch()?, input, &config, &mut out)?;
    Ok(vec![("rewards", Output::tokens(out)), ("current_kl", Output::Scalar(current_kl))])
}

pub(super) fn overlong_penalty<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, lengths) = (case.input::<R>("scores", case.rows)?, case.ids("lengths", case.rows)?);
    let config = OverlongConfig {
        max_len: case.whole("max_len")?,
        buffer: case.whole("buffer")?,
        factor: case.number("factor", Some(1.0))?,
        ..case.conventions.overlong()
    };
    let mut out = vec![R::zero(); case.rows];
    reward::overlong_penalty(OverlongInput { scores: &scores, lengths: &lengths }, &config, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}
