//! Returns, advantages, and the distribution of a score over tokens.

use std::ops::Range;

use tokenwise::{
    advantage::{
        Across, Center, EpsilonPlace, GaeConfig, GroupConfig, GroupScale, ReturnsConfig, Scale, Singleton, WhitenConfig,
    },
    Divisor,
};

use super::{mean_and_variance, Tokens};

/// The slots a recursion walks through: the kept ones, or all up to the last kept one.
pub(super) fn steps(tokens: Tokens<'_>, row: &Range<usize>, across: Across) -> Vec<usize> {
    let kept = tokens.kept_of(row);
    match (across, kept.last()) {
        (Across::ZeroStep, Some(&last)) => (row.start..=last).collect(),
        _ => kept,
    }
}

/// G_t = Σ_k γ^k r_{t+k}, then the bootstrap: the sum itself, no recursion.
pub(crate) fn discounted_returns(
    tokens: Tokens<'_>,
    rewards: &[f64],
    bootstrap: &[f64],
    config: &ReturnsConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, after) in tokens.rows.iter().zip(bootstrap) {
        let steps = steps(tokens, row, config.across);
        for (k, &slot) in steps.iter().enumerate().filter(|(_, &slot)| tokens.keep[slot]) {
            let mut discount = 1.0;
            for &later in &steps[k..] {
                if tokens.keep[later] {
                    out[slot] += discount * rewards[later];
                }
                discount *= config.gamma;
            }
            out[slot] += discount * after;
        }
    }
    out
}

/// A_t = Σ_k (γλ)^k δ_{t+k}: the sum itself, no recursion. Returns advantages and returns.
pub(crate) fn gae(
    tokens: Tokens<'_>,
    rewards: &[f64],
    values: &[f64],
    bootstrap: &[f64],
    config: &GaeConfig,
) -> (Vec<f64>, Vec<f64>) {
    let mut advantages = vec![0.0; tokens.keep.len()];
    for (row, after) in tokens.rows.iter().zip(bootstrap) {
        let steps = steps(tokens, row, config.across);
        let of = |numbers: &[f64], slot: usize| if tokens.keep[slot] { numbers[slot] } else { 0.0 };
        for (k, &slot) in steps.iter().enumerate().filter(|(_, &slot)| tokens.keep[slot]) {
            let mut decay = 1.0;
            for (j, &later) in steps.iter().enumerate().skip(k) {
                let next = steps.get(j + 1).map_or(*after, |&next| of(values, next));
                advantages[slot] += decay * (of(rewards, later) + config.gamma * next - of(values, later));
                decay *= config.gamma * config.lambda;
            }
        }
    }
    let returns = tokens.fill(|slot| advantages[slot] + values[slot]);
    (advantages, returns)
}

/// G − V, and G.
pub(crate) fn monte_carlo_advantage(
    tokens: Tokens<'_>,
    rewards: &[f64],
    values: &[f64],
    bootstrap: &[f64],
    config: &ReturnsConfig,
) -> (Vec<f64>, Vec<f64>) {
    let returns = discounted_returns(tokens, rewards, bootstrap, config);
    (tokens.fill(|slot| returns[slot] - values[slot]), returns)
}

/// The score shared by the last `k` kept tokens.
pub(crate) fn last_k_credit(tokens: Tokens<'_>, scores: &[f64], k: usize) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, score) in tokens.rows.iter().zip(scores) {
        let kept = tokens.kept_of(row);
        let sharing = &kept[kept.len() - k.min(kept.len())..];
        for &slot in sharing {
            out[slot] = score / sharing.len() as f64;
        }
    }
    out
}

/// The score shared by all kept tokens.
pub(crate) fn uniform_credit(tokens: Tokens<'_>, scores: &[f64]) -> Vec<f64> {
    last_k_credit(tokens, scores, tokens.keep.len())
}

/// The score shared in proportion to weights.
pub(crate) fn attention_credit(tokens: Tokens<'_>, scores: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, score) in tokens.rows.iter().zip(scores) {
        let kept = tokens.kept_of(row);
        let total: f64 = kept.iter().map(|&slot| weights[slot]).sum();
        for slot in kept {
            out[slot] = score * weights[slot] / total;
        }
    }
    out
}

/// Scores against the mean, and the deviation, of their group.
pub(crate) fn group_relative(groups: &[u32], scores: &[f64], config: &GroupConfig) -> Vec<f64> {
    // a lone score is divided in single precision, as in the framework that defines this rule
    relative(groups, scores, config, f64::from((1.0 + config.epsilon) as f32))
}

/// Like `group_relative`; `lone` is the divisor of a lone raw score.
pub(super) fn relative(groups: &[u32], scores: &[f64], config: &GroupConfig, lone: f64) -> Vec<f64> {
    let deviation = |numbers: &[f64]| mean_and_variance(numbers, config.spread, Divisor::Count).1.sqrt();
    // one score has no sample deviation: taken as 0
    let of_all = if scores.len() < 2 { 0.0 } else { deviation(scores) };
    let member = |(i, &score): (usize, &f64)| {
        let group: Vec<f64> = (0..scores.len()).filter(|&j| groups[j] == groups[i]).map(|j| scores[j]).collect();
        let scale = match config.scale {
            GroupScale::StandardDeviation if group.len() == 1 => lone,
            GroupScale::StandardDeviation => deviation(&group) + config.epsilon,
            GroupScale::BatchDeviation => of_all + config.epsilon,
            GroupScale::Unit => 1.0,
            _ => panic!("no textbook version of this variant"),
        };
        match config.singleton {
            Singleton::Zero if group.len() == 1 => 0.0,
            Singleton::Raw if group.len() == 1 => score / scale,
            Singleton::Undefined if group.len() == 1 => f64::NAN,
            _ => (score - group.iter().sum::<f64>() / group.len() as f64) / scale,
        }
    };
    scores.iter().enumerate().map(member).collect()
}

/// Each score minus the mean of the others of its group.
pub(crate) fn leave_one_out(groups: &[u32], scores: &[f64], singleton: Singleton) -> Vec<f64> {
    let member = |(i, &score): (usize, &f64)| {
        let others: Vec<f64> =
            (0..scores.len()).filter(|&j| j != i && groups[j] == groups[i]).map(|j| scores[j]).collect();
        match singleton {
            Singleton::Zero if others.is_empty() => 0.0,
            Singleton::Raw if others.is_empty() => score,
            Singleton::Undefined if others.is_empty() => f64::NAN,
            _ => score - others.iter().sum::<f64>() / others.len() as f64,
        }
    };
    scores.iter().enumerate().map(member).collect()
}

/// One number per sequence, broadcast to its kept tokens.
pub(crate) fn broadcast(tokens: Tokens<'_>, values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, value) in tokens.rows.iter().zip(values) {
        for slot in tokens.kept_of(row) {
            out[slot] = *value;
        }
    }
    out
}

/// The sum of each sequence.
pub(crate) fn sequence_sums(tokens: Tokens<'_>, rewards: &[f64]) -> Vec<f64> {
    tokens.rows.iter().map(|row| tokens.kept_of(row).iter().map(|&slot| rewards[slot]).sum()).collect()
}

/// Mean 0 and deviation 1 over the kept tokens.
pub(crate) fn whiten(tokens: Tokens<'_>, values: &[f64], config: &WhitenConfig) -> Vec<f64> {
    let kept: Vec<f64> = tokens.kept().iter().map(|&slot| values[slot]).collect();
    let (mean, variance) = mean_and_variance(&kept, config.spread, config.divisor);
    let deviation = match (config.scale, config.place) {
        (Scale::Unit, _) => 1.0,
        (_, EpsilonPlace::InsideRoot) => (variance + config.epsilon).sqrt(),
        (_, EpsilonPlace::Outside) => variance.sqrt() + config.epsilon,
        (_, EpsilonPlace::FloorVariance) => variance.max(config.epsilon).sqrt(),
        _ => panic!("no textbook version of this variant"),
    };
    let back = if config.center == Center::KeepMean { mean } else { 0.0 };
    tokens.fill(|slot| (values[slot] - mean) / deviation + back)
}
