//! Scores and rewards before any advantage.

use tokenwise::reward::{
    self, ClippedRewardsConfig, ClippedRewardsInput, KlInScoresInput, RepetitionConfig, RewardScale, TruncatedInput,
};

use crate::golden::{
    case::{Case, Number, Ran},
    compare::Output,
};

pub(super) fn kl_in_scores<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let (old, reference) = (case.tokens("old_log_probs")?, case.tokens("ref_log_probs")?);
    let mut out = vec![R::zero(); case.rows];
    let input = KlInScoresInput { scores: &scores, old_log_probs: &old, ref_log_probs: &reference };
    reward::kl_in_scores(&case.batch()?, input, case.number("beta", Some(case.conventions.kl_reward_beta))?, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}

pub(super) fn repetition_penalty<R: Number>(case: &Case<'_>) -> Ran {
    let tokens = case.ids("tokens", case.rows * case.cols)?;
    let default = RepetitionConfig::default();
    let config = RepetitionConfig {
        ngram: case.number("ngram", Some(default.ngram as f64))? as usize,
        penalty: case.number("penalty", Some(default.penalty))?,
    };
    let mut out = vec![R::zero(); case.rows];
    reward::repetition_penalty(&case.batch()?, &tokens, &config, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}

pub(super) fn stop_properly_penalty<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let truncated: Vec<bool> = case.input::<f64>("truncated", case.rows)?.into_iter().map(|x| x != 0.0).collect();
    let mut out = vec![R::zero(); case.rows];
    let input = TruncatedInput { scores: &scores, truncated: &truncated };
    reward::stop_properly_penalty(input, case.number("coefficient", None)?, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}

pub(super) fn clipped_rewards<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, kl) = (case.input::<R>("scores", case.rows)?, case.tokens("kl")?);
    let default = ClippedRewardsConfig::default();
    let config = ClippedRewardsConfig {
        beta: case.number("beta", Some(default.beta))?,
        low: case.number("low", Some(default.low))?,
        high: case.number("high", Some(default.high))?,
    };
    let mut out = vec![R::zero(); case.rows * case.cols];
    let input = ClippedRewardsInput { scores: &scores, kl: &kl };
    reward::clipped_rewards(&case.batch()?, input, &config, &mut out)?;
    Ok(vec![("rewards", Output::tokens(out))])
}

/// `low` and `high` alone clip; with `bias`, `scale` or `bound` they are moved first.
pub(super) fn reward_scale_clip<R: Number>(case: &Case<'_>) -> Ran {
    let scores = case.input::<R>("scores", case.rows)?;
    let scale = if case.param("bound").is_some() {
        RewardScale::ShiftScaleClip {
            bias: case.number("bias", Some(0.0))?,
            scale: case.number("scale", Some(1.0))?,
            bound: case.number("bound", None)?,
        }
    } else {
        RewardScale::Clip { low: case.number("low", None)?, high: case.number("high", None)? }
    };
    let mut out = vec![R::zero(); case.rows];
    let held = reward::reward_scale_clip(&scores, &scale, &mut out)?;
    Ok(vec![("scores", Output::entries(out)), ("held", Output::Scalar(held))])
}
