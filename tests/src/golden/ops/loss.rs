use serde_json::Value;
use tokenwise::{
    loss::{
        self, Aggregate, AggregateMode, Counts, DualClip, EntropyBonusConfig, GlobalCounts, PolicyLossInput, PpoConfig,
        SurrogateConfig, ValueConfig, ValueLossInput,
    },
    Error,
};

use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// Runs `with` with the aggregation a case names under `key`.
pub(super) fn with_aggregate(case: &Case<'_>, key: &str, with: impl FnOnce(Aggregate<'_>) -> Ran) -> Ran {
    let name = case.text(key, "token-mean")?;
    let scale = case.number("scale_factor", Some(case.cols as f64))?;
    let mut tokens = Vec::new();
    let mode = match name {
        "token-mean" => AggregateMode::TokenMean,
        "token-sum" => AggregateMode::TokenSum,
        "seq-mean-token-sum" => AggregateMode::SequenceMeanTokenSum,
        "seq-mean-token-mean" => AggregateMode::SequenceMeanTokenMean,
        "seq-mean-token-sum-norm" => AggregateMode::SequenceMeanTokenSumNorm { scale },
        "prompt-mean" => {
            let groups = case.groups()?;
            tokens.resize(groups.count(), 0);
            loss::group_tokens(&case.batch()?, &groups, &mut tokens)?;
            AggregateMode::PromptMean { groups, tokens: &tokens }
        }
        _ => return Err(Failure::Unfit(format!("{key}: unknown mode \"{name}\""))),
    };
    let mut aggregate = case.conventions.aggregate(mode);
    // an extension of the format: the counts of the whole step
    if case.param("global_tokens").is_some() || case.param("global_sequences").is_some() {
        aggregate.counts = Counts::Global(GlobalCounts {
            tokens: case.number("global_tokens", Some(0.0))? as u64,
            sequences: case.number("global_sequences", Some(0.0))? as u64,
            prompts: case.number("global_prompts", Some(0.0))? as u64,
            ranks: case.number("ranks", Some(1.0))? as u64,
        });
    }
    with(aggregate)
}

/// What a framework makes of an empty mask, in place of our error.
fn or_empty(case: &Case<'_>, ran: Ran, name: &'static str) -> Ran {
    match (ran, case.conventions.empty_loss.value()) {
        (Err(Failure::Refused(Error::EmptyMask)), Some(value)) => Ok(vec![(name, Output::Scalar(value))]),
        (ran, _) => ran,
    }
}

pub(super) fn aggregate<R: Number>(case: &Case<'_>) -> Ran {
    let losses = case.tokens::<R>("losses")?;
    let ran = with_aggregate(case, "mode", |aggregate| {
        let mut weights = vec![R::zero(); losses.len()];
        let value = loss::aggregate(&case.batch()?, &losses, &aggregate, &mut weights)?;
        Ok(vec![("value", Output::Scalar(value)), ("weights", Output::tokens(weights))])
    });
    or_empty(case, ran, "value")
}

/// The three inputs of a policy loss.
pub(super) fn with_policy_input<R: Number>(
    case: &Case<'_>,
    with: impl FnOnce(PolicyLossInput<'_, R>, Aggregate<'_>) -> Ran,
) -> Ran {
    case.family(&[
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
    ]);
    let (log_probs, old_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens::<R>("old_log_probs")?);
    let advantages = case.tokens::<R>("advantages")?;
    let weights = if case.has_input("rollout_weights") { Some(case.tokens::<R>("rollout_weights")?) } else { None };
    let input = PolicyLossInput {
        log_probs: &log_probs,
        old_log_probs: &old_log_probs,
        advantages: &advantages,
        weights: weights.as_deref(),
    };
    let ran = with_aggregate(case, "aggregate", |aggregate| with(input, aggregate));
    or_empty(case, ran, "loss")
}

pub(super) fn surrogate<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = SurrogateConfig { log_ratio_bound: None, aggregate };
        let loss = loss::surrogate(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![("loss", Output::Scalar(loss)), ("grad", Output::tokens(grad))])
    })
}

/// `null` is off, a number the bound, absence the profile's default.
pub(super) fn dual_clip(case: &Case<'_>) -> Result<DualClip, Failure> {
    let bound = match case.param("dual_clip") {
        Some(Value::Null) => None,
        Some(_) => Some(case.number("dual_clip", None)?),
        None => case.conventions.dual_clip_bound,
    };
    Ok(bound.map_or(DualClip::Off, |bound| case.conventions.dual_clip(bound)))
}

pub(super) fn ppo_clip<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let config = PpoConfig {
            clip_low: case.number("clip_low", Some(0.2))?,
            clip_high: case.number("clip_high", Some(0.2))?,
            dual_clip: dual_clip(case)?,
            aggregate,
            ..case.conventions.ppo()
        };
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let result = loss::ppo_clip(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("clip_fraction", Output::Scalar(result.clip_fraction)),
            ("clip_fraction_lower", Output::Scalar(result.clip_fraction_lower)),
            ("kl", Output::Scalar(result.kl)),
        ])
    })
}

pub(super) fn value_loss<R: Number>(case: &Case<'_>) -> Ran {
    let (predictions, values, returns) =
        (case.tokens::<R>("predictions")?, case.tokens::<R>("values")?, case.tokens::<R>("returns")?);
    let clip = match case.param("clip") {
        Some(Value::Null) => None,
        Some(_) => Some(case.number("clip", None)?),
        None => case.conventions.value_clip,
    };
    let ran = with_aggregate(case, "aggregate", |aggregate| {
        let config = ValueConfig { clip, aggregate, ..case.conventions.value() };
        let mut grad = vec![R::zero(); predictions.len()];
        let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
        let result = loss::value_loss(&case.batch()?, input, &config, &mut grad)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("clip_fraction", Output::Scalar(result.clip_fraction)),
        ])
    });
    or_empty(case, ran, "loss")
}

pub(super) fn entropy_bonus<R: Number>(case: &Case<'_>) -> Ran {
    let entropy = case.tokens::<R>("entropy")?;
    let coefficient = case.number("coefficient", Some(0.01))?;
    let ran = with_aggregate(case, "aggregate", |aggregate| {
        let mut grad = vec![R::zero(); entropy.len()];
        let config = EntropyBonusConfig { coefficient, aggregate };
        let loss = loss::entropy_bonus(&case.batch()?, &entropy, &config, &mut grad)?;
        Ok(vec![("loss", Output::Scalar(loss)), ("grad", Output::tokens(grad))])
    });
    or_empty(case, ran, "loss")
}
