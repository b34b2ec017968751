//! Token losses and their aggregation.

use tokenwise::{
    loss::{
        Aggregate, AggregateMode, Counts, DualClip, EmptyRows, PolicyLoss, PolicyLossInput, PpoConfig, ReportedKl,
        SurrogateConfig, ValueConfig, ValueFactor, ValueLoss,
    },
    Groups,
};

use super::{count, Tokens};

/// ∂loss/∂(loss of a token), for every kept token.
pub(crate) fn weights(tokens: Tokens<'_>, config: &Aggregate<'_>) -> Vec<f64> {
    let lens: Vec<usize> = tokens.rows.iter().map(|row| tokens.kept_of(row).len()).collect();
    let (n, s, p, ranks) = match config.counts {
        Counts::Global(global) => {
            (global.tokens as f64, global.sequences as f64, global.prompts as f64, global.ranks as f64)
        }
        Counts::Local => {
            let rows = match config.empty_rows {
                EmptyRows::Counted => lens.len(),
                EmptyRows::Excluded => lens.iter().filter(|&&len| len > 0).count(),
                _ => panic!("no textbook version of this variant"),
            };
            let prompts = if let AggregateMode::PromptMean { groups, .. } = config.mode { groups.count() } else { 0 };
            (lens.iter().sum::<usize>() as f64, rows as f64, prompts as f64, 1.0)
        }
        _ => panic!("no textbook version of this variant"),
    };
    let mut out = vec![0.0; tokens.keep.len()];
    for (i, row) in tokens.rows.iter().enumerate() {
        let weight = match config.mode {
            AggregateMode::TokenMean => 1.0 / n,
            AggregateMode::TokenSum => 1.0,
            AggregateMode::SequenceMeanTokenSum => 1.0 / s,
            AggregateMode::SequenceMeanTokenSumNorm { scale } => 1.0 / s / scale,
            AggregateMode::SequenceMeanTokenMean => 1.0 / s / count(lens[i], config.divisor),
            AggregateMode::PromptMean { groups, tokens } => {
                let prompt = groups.ids().nth(i).unwrap_or(0);
                1.0 / p / tokens[prompt] as f64
            }
            _ => panic!("no textbook version of this variant"),
        };
        for slot in tokens.kept_of(row) {
            out[slot] = weight * ranks;
        }
    }
    out
}

/// The weighted sum, and the weights.
pub(crate) fn aggregate(tokens: Tokens<'_>, losses: &[f64], config: &Aggregate<'_>) -> (f64, Vec<f64>) {
    let weights = weights(tokens, config);
    (tokens.sum(|slot| weights[slot] * losses[slot]), weights)
}

/// Kept tokens of each prompt.
pub(crate) fn group_tokens(tokens: Tokens<'_>, groups: &Groups<'_>) -> Vec<f64> {
    let mut out = vec![0.0; groups.count()];
    for (row, group) in tokens.rows.iter().zip(groups.ids()) {
        out[group] += tokens.kept_of(row).len() as f64;
    }
    out
}

/// −c times the aggregated entropy, and its gradient.
pub(crate) fn entropy_bonus(
    tokens: Tokens<'_>,
    entropy: &[f64],
    coefficient: f64,
    config: &Aggregate<'_>,
) -> (f64, Vec<f64>) {
    let (mean, weights) = aggregate(tokens, entropy, config);
    (-coefficient * mean, tokens.fill(|slot| -coefficient * weights[slot]))
}

/// −Agg ρ A, and its gradient.
pub(crate) fn surrogate(
    tokens: Tokens<'_>,
    input: PolicyLossInput<'_, f64>,
    config: &SurrogateConfig<'_>,
) -> (f64, Vec<f64>) {
    let bound = config.log_ratio_bound.unwrap_or(f64::INFINITY);
    let PolicyLossInput { log_probs, old_log_probs, advantages, weights: rollout } = input;
    let d = |slot: usize| log_probs[slot] - old_log_probs[slot];
    let omega = |slot: usize| rollout.map_or(1.0, |rollout| rollout[slot]);
    let losses = tokens.fill(|slot| -advantages[slot] * d(slot).max(-bound).min(bound).exp() * omega(slot));
    let (loss, weights) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| if d(slot).abs() > bound { 0.0 } else { weights[slot] * losses[slot] });
    (loss, grad)
}

/// The ratio after a bound on both signs.
pub(crate) fn held_ratio(ratio: f64, dual_clip: DualClip) -> f64 {
    if let DualClip::BothSigns(delta) = dual_clip {
        ratio.min(delta)
    } else {
        ratio
    }
}

/// The loss of one token as a function of its ratio, by the three-case formula.
fn clipped(ratio: f64, advantage: f64, config: &PpoConfig<'_>) -> f64 {
    let inside = ratio.max(1.0 - config.clip_low).min(1.0 + config.clip_high);
    let (plain, held) = (-advantage * ratio, -advantage * inside);
    match config.dual_clip {
        DualClip::Off => plain.max(held),
        DualClip::NegativeOnly(c) if advantage < 0.0 => plain.max(held).min(-advantage * c),
        DualClip::NegativeOnly(_) => plain.max(held),
        DualClip::BothSigns(_) => (-advantage * held_ratio(ratio, config.dual_clip)).max(held),
        _ => panic!("no textbook version of this variant"),
    }
}

/// The clipped loss with its metrics, and its gradient. Ratios exactly at a bound are not expected.
pub(crate) fn ppo_clip(
    tokens: Tokens<'_>,
    input: PolicyLossInput<'_, f64>,
    config: &PpoConfig<'_>,
) -> (PolicyLoss, Vec<f64>) {
    let bound = config.log_ratio_bound.unwrap_or(f64::INFINITY);
    let PolicyLossInput { log_probs, old_log_probs, advantages, weights: rollout } = input;
    let d = |slot: usize| log_probs[slot] - old_log_probs[slot];
    let ratio = |slot: usize| d(slot).max(-bound).min(bound).exp();
    let omega = |slot: usize| rollout.map_or(1.0, |rollout| rollout[slot]);
    let unweighed = |slot: usize| clipped(ratio(slot), advantages[slot], config);
    let losses = tokens.fill(|slot| unweighed(slot) * omega(slot));
    let (loss, weights) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| {
        // the loss depends on the ratio exactly where it is still −ρA
        let plain = -advantages[slot] * ratio(slot);
        if unweighed(slot) == plain && d(slot).abs() <= bound {
            weights[slot] * plain * omega(slot)
        } else {
            0.0
        }
    });
    let share = |yes: &dyn Fn(usize) -> bool| tokens.mean(config.divisor, |slot| if yes(slot) { 1.0 } else { 0.0 });
    let held = |slot: usize| {
        let (ratio, advantage) = (held_ratio(ratio(slot), config.dual_clip), advantages[slot]);
        (advantage < 0.0 && ratio < 1.0 - config.clip_low) || (advantage > 0.0 && ratio > 1.0 + config.clip_high)
    };
    let beyond_dual = |slot: usize| match config.dual_clip {
        DualClip::Off => false,
        DualClip::NegativeOnly(c) => advantages[slot] < 0.0 && ratio(slot) > c,
        DualClip::BothSigns(delta) => ratio(slot) > delta,
        _ => panic!("no textbook version of this variant"),
    };
    let kl = tokens.mean(config.divisor, |slot| match config.reported_kl {
        ReportedKl::Bounded => -d(slot).max(-bound).min(bound),
        ReportedKl::Unbounded => -d(slot),
        _ => panic!("no textbook version of this variant"),
    });
    let mut result = PolicyLoss::default();
    result.loss = loss;
    result.clip_fraction = share(&held);
    result.clip_fraction_lower = share(&beyond_dual);
    result.kl = kl;
    (result, grad)
}

/// The critic's loss with its metric, and its gradient.
pub(crate) fn value_loss(
    tokens: Tokens<'_>,
    predictions: &[f64],
    values: &[f64],
    returns: &[f64],
    config: &ValueConfig<'_>,
) -> (ValueLoss, Vec<f64>) {
    let factor = if config.factor == ValueFactor::Half { 0.5 } else { 1.0 };
    let errors = |slot: usize| {
        let (v, old, target) = (predictions[slot], values[slot], returns[slot]);
        let inside = config.clip.map_or(v, |clip| v.max(old - clip).min(old + clip));
        ((v - target) * (v - target), (inside - target) * (inside - target))
    };
    let losses = tokens.fill(|slot| factor * errors(slot).0.max(errors(slot).1));
    let (loss, weights) = aggregate(tokens, &losses, &config.aggregate);
    let held = |slot: usize| errors(slot).1 > errors(slot).0;
    let grad = tokens.fill(|slot| {
        let slope = 2.0 * factor * (predictions[slot] - returns[slot]);
        if held(slot) {
            0.0
        } else {
            weights[slot] * slope
        }
    });
    let mut result = ValueLoss::default();
    result.loss = loss;
    result.clip_fraction = tokens.mean(config.divisor, |slot| if held(slot) { 1.0 } else { 0.0 });
    (result, grad)
}
