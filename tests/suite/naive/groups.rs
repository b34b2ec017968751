//! Scores compared with those of the same prompt, one sequence at a time.

use tokenwise::{
    advantage::{
        BestOfGroupConfig, FactorPrecision, GpgConfig, GroupConfig, GroupScale, LeaveOneOutScaledConfig, Level,
        MaxRlConfig, MeanDivisor, NormalizeConfig, Own, Singleton,
    },
    Divisor, Spread,
};

use super::{advantage::relative, mean_and_variance, Tokens};

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The members of `i`'s group.
pub(super) fn members(groups: &[u32], i: usize) -> Vec<usize> {
    (0..groups.len()).filter(|&j| groups[j] == groups[i]).collect()
}

/// A number for each sequence from the scores of its group; `singleton` decides the value of a lone score.
fn compared(groups: &[u32], scores: &[f64], singleton: Singleton, compare: impl Fn(f64, &[f64]) -> f64) -> Vec<f64> {
    let member = |i: usize| {
        let group: Vec<f64> = members(groups, i).into_iter().map(|j| scores[j]).collect();
        match singleton {
            _ if group.len() > 1 => compare(scores[i], &group),
            Singleton::Zero => 0.0,
            Singleton::Raw => scores[i],
            Singleton::Undefined => f64::NAN,
            _ => panic!("no textbook version of this variant"),
        }
    };
    (0..scores.len()).map(member).collect()
}

/// Each score minus the mean of its group.
pub(super) fn centred(groups: &[u32], scores: &[f64], singleton: Singleton) -> Vec<f64> {
    compared(groups, scores, singleton, |score, group| score - mean(group))
}

/// The lead of the best over the second best; 0 for all others.
pub(crate) fn best_of_group(groups: &[u32], scores: &[f64], config: &BestOfGroupConfig) -> Vec<f64> {
    let deviation = |numbers: &[f64]| mean_and_variance(numbers, config.spread, Divisor::Count).1.sqrt();
    let mut out = vec![0.0; scores.len()];
    for (i, out) in out.iter_mut().enumerate() {
        let mut order = members(groups, i);
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let group: Vec<f64> = order.iter().map(|&j| scores[j]).collect();
        let lead = group[0] - group[1];
        if i == order[0] && lead > 0.0 {
            *out = match config.scale {
                GroupScale::Unit => lead,
                GroupScale::StandardDeviation => lead / (deviation(&group) + config.epsilon),
                GroupScale::BatchDeviation => lead / (deviation(scores) + config.epsilon),
                _ => panic!("no textbook version of this variant"),
            };
        }
    }
    out
}

/// Against the mean over the tokens of the group.
pub(crate) fn length_weighted_baseline(
    tokens: Tokens<'_>,
    groups: &[u32],
    scores: &[f64],
    singleton: Singleton,
) -> Vec<f64> {
    let length = |i: usize| tokens.kept_of(&tokens.rows[i]).len() as f64;
    let alone = centred(groups, scores, singleton);
    let member = |i: usize| {
        let group = members(groups, i);
        let total: f64 = group.iter().map(|&j| length(j)).sum();
        if group.len() == 1 {
            alone[i]
        } else if total == 0.0 {
            0.0
        } else {
            scores[i] - group.iter().map(|&j| length(j) * scores[j]).sum::<f64>() / total
        }
    };
    (0..scores.len()).map(member).collect()
}

/// Centred, times samples over samples that scored.
pub(crate) fn gpg_advantage(groups: &[u32], scores: &[f64], config: &GpgConfig) -> Vec<f64> {
    let scored = scores.iter().filter(|&&score| score != 0.0).count();
    let (all, scored) = (scores.len() as f64, scored.max(1) as f64);
    let factor = match config.factor {
        FactorPrecision::Exact => all / scored,
        FactorPrecision::Single => f64::from(1.0 / scored as f32 * all as f32),
        _ => panic!("no textbook version of this variant"),
    };
    centred(groups, scores, config.singleton).into_iter().map(|centred| factor * centred / config.norm).collect()
}

/// Against mean and sample deviation of the others.
pub(crate) fn leave_one_out_scaled(groups: &[u32], scores: &[f64], config: &LeaveOneOutScaledConfig) -> Vec<f64> {
    let member = |i: usize| {
        let others: Vec<f64> = members(groups, i).into_iter().filter(|&j| j != i).map(|j| scores[j]).collect();
        if others.is_empty() {
            return 0.0;
        }
        let difference = scores[i] - mean(&others);
        let deviation = mean_and_variance(&others, Spread::Sample, Divisor::Count).1.sqrt();
        // one other has no deviation
        if deviation > 0.0 {
            difference / (deviation + config.epsilon)
        } else {
            difference
        }
    };
    (0..scores.len()).map(member).collect()
}

/// Centred, in units of the mean.
pub(crate) fn max_rl(groups: &[u32], scores: &[f64], config: &MaxRlConfig) -> Vec<f64> {
    compared(groups, scores, config.singleton, |score, group| {
        let mean = mean(group);
        match config.divisor {
            MeanDivisor::PlusEpsilon => (score - mean) / (mean + config.epsilon),
            MeanDivisor::IfPositive if mean > 0.0 => (score - mean) / mean,
            MeanDivisor::IfPositive => 0.0,
            _ => panic!("no textbook version of this variant"),
        }
    })
}

/// Centred, then divided by the root mean square of the result.
pub(crate) fn normalize_scores(groups: &[u32], scores: &[f64], config: &NormalizeConfig) -> Vec<f64> {
    let all: Vec<usize> = (0..scores.len()).collect();
    let over = |level: Level, i: usize| if level == Level::Batch { all.clone() } else { members(groups, i) };
    let centre = |i: usize| {
        let mut over = over(config.mean, i);
        if config.own == Own::LeftOut {
            over.retain(|&j| j != i);
        }
        let total: f64 = over.iter().map(|&j| scores[j]).sum();
        let mean = if over.is_empty() { 0.0 } else { total / over.len() as f64 };
        scores[i] - if config.mean == Level::Off { 0.0 } else { mean }
    };
    let centred: Vec<f64> = all.iter().map(|&i| centre(i)).collect();
    let member = |i: usize| {
        let over = over(config.deviation, i);
        let squares: f64 = over.iter().map(|&j| centred[j] * centred[j]).sum();
        let deviation = match (config.spread, over.len()) {
            (Spread::Sample, 1) => 1.0,
            (Spread::Sample, n) => (squares / (n - 1) as f64).sqrt(),
            (Spread::Population, n) => (squares / n as f64).sqrt(),
            _ => panic!("no textbook version of this variant"),
        };
        if config.deviation == Level::Off {
            centred[i]
        } else {
            centred[i] / (deviation + config.epsilon)
        }
    };
    all.iter().map(|&i| member(i)).collect()
}

/// The weighted sum of each source's own comparison.
pub(crate) fn decoupled_scores(
    groups: &[u32],
    sources: &[Vec<f64>],
    weights: &[f64],
    config: &GroupConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; groups.len()];
    for (scores, weight) in sources.iter().zip(weights) {
        for (out, advantage) in out.iter_mut().zip(relative(groups, scores, config, 1.0 + config.epsilon)) {
            *out += weight * advantage;
        }
    }
    out
}

/// Advantages, and the final baseline of each role.
pub(crate) fn role_baseline(roles: &[u32], scores: &[f64], decay: f64, count: usize) -> (Vec<f64>, Vec<f64>) {
    // (1 − d) Σ d^age s over the earlier scores of the role
    let baseline = |role: u32, before: usize| {
        let earlier = (0..before).rev().filter(|&j| roles[j] == role);
        earlier.enumerate().map(|(age, j)| (1.0 - decay) * decay.powi(age as i32) * scores[j]).sum::<f64>()
    };
    let advantages = (0..scores.len()).map(|i| scores[i] - baseline(roles[i], i)).collect();
    (advantages, (0..count).map(|role| baseline(role as u32, scores.len())).collect())
}
