//! Estimators whose result is per token.

use tokenwise::advantage::{
    Across, DiscountFrom, GdpoConfig, LengthNormalization, MinillmConfig, OptimalBaselineConfig, OptimalBaselineInput,
    ReinforcePlusPlusBaselineConfig, ReinforcePlusPlusConfig, ReturnsConfig, ZeroTail,
};

use super::{
    advantage::{broadcast, discounted_returns, steps, whiten},
    groups::{centred, decoupled_scores, members},
    Tokens,
};

/// Whitened returns, and returns.
pub(crate) fn reinforce_plus_plus(
    tokens: Tokens<'_>,
    rewards: &[f64],
    bootstrap: &[f64],
    config: &ReinforcePlusPlusConfig,
) -> (Vec<f64>, Vec<f64>) {
    let returns_config = ReturnsConfig { gamma: config.gamma, across: config.across };
    let returns = discounted_returns(tokens, rewards, bootstrap, &returns_config);
    (whiten(tokens, &returns, &config.whiten), returns)
}

/// Centred scores, broadcast to the tokens, whitened.
pub(crate) fn reinforce_plus_plus_baseline(
    tokens: Tokens<'_>,
    groups: &[u32],
    scores: &[f64],
    config: &ReinforcePlusPlusBaselineConfig,
) -> Vec<f64> {
    whiten(tokens, &broadcast(tokens, &centred(groups, scores, config.singleton)), &config.whiten)
}

fn undiscounted(tokens: Tokens<'_>, rewards: &[f64]) -> Vec<f64> {
    discounted_returns(tokens, rewards, &vec![0.0; tokens.rows.len()], &ReturnsConfig::default())
}

/// G − b, and G.
pub(crate) fn remax(tokens: Tokens<'_>, rewards: &[f64], baselines: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let returns = undiscounted(tokens, rewards);
    let baselines = broadcast(tokens, baselines);
    (tokens.fill(|slot| returns[slot] - baselines[slot]), returns)
}

/// Sources compared separately, summed, broadcast to the tokens, whitened.
pub(crate) fn gdpo(
    tokens: Tokens<'_>,
    groups: &[u32],
    sources: &[Vec<f64>],
    weights: &[f64],
    config: &GdpoConfig,
) -> Vec<f64> {
    whiten(tokens, &broadcast(tokens, &decoupled_scores(groups, sources, weights, &config.group)), &config.whiten)
}

/// The column of a token, from its slot and the kept tokens before it.
type Column = fn(usize, usize) -> usize;

fn optimal(
    tokens: Tokens<'_>,
    groups: &[u32],
    input: OptimalBaselineInput<'_, f64>,
    config: &OptimalBaselineConfig,
    column: Column,
    members: impl Fn(usize) -> Vec<usize>,
) -> (Vec<f64>, Vec<f64>) {
    let returns = undiscounted(tokens, input.rewards);
    // for each sequence, the tokens as (column, slot, C_t = s_0 + … + s_t)
    let mut paths = Vec::new();
    for row in tokens.rows {
        let mut path = 0.0;
        let token = |(k, &slot): (usize, &usize)| {
            let weight = input.is_weights.map_or(1.0, |weights| weights[slot]);
            path += (1.0 - 2.0 * input.old_log_probs[slot].exp() + input.sum_pi_squared[slot]) * weight * weight;
            (column(slot - row.start, k), slot, path)
        };
        paths.push(tokens.kept_of(row).iter().enumerate().map(token).collect::<Vec<_>>());
    }
    let mut advantages = vec![0.0; tokens.keep.len()];
    for i in 0..groups.len() {
        let group = members(i);
        let longest_other = group.iter().filter(|&&j| j != i).map(|&j| paths[j].len()).max().unwrap_or(0);
        let longer = config.zero_tail == ZeroTail::NoBaseline && paths[i].len() > longest_other;
        for &(at, slot, _) in &paths[i] {
            let same = || group.iter().flat_map(|&j| &paths[j]).filter(|token| token.0 == at);
            let total: f64 = same().map(|&(_, slot, path)| returns[slot] * path).sum();
            let weight = same().map(|token| token.2).sum::<f64>() + config.epsilon;
            let no_baseline = group.len() == 1 || (longer && at >= longest_other);
            advantages[slot] = returns[slot] - if no_baseline { 0.0 } else { total / weight };
        }
    }
    (advantages, returns)
}

/// Columns are slots.
pub(crate) fn optimal_token_baseline(
    tokens: Tokens<'_>,
    groups: &[u32],
    input: OptimalBaselineInput<'_, f64>,
    config: &OptimalBaselineConfig,
) -> (Vec<f64>, Vec<f64>) {
    optimal(tokens, groups, input, config, |slot, _| slot, |i| members(groups, i))
}

/// Columns are kept tokens; only sequences with kept tokens are members.
pub(crate) fn tir_optimal_token_baseline(
    tokens: Tokens<'_>,
    groups: &[u32],
    input: OptimalBaselineInput<'_, f64>,
    config: &OptimalBaselineConfig,
) -> (Vec<f64>, Vec<f64>) {
    let with_tokens = |&j: &usize| !tokens.kept_of(&tokens.rows[j]).is_empty();
    let of = |i| members(groups, i).into_iter().filter(with_tokens).collect();
    optimal(tokens, groups, input, config, |_, kept| kept, of)
}

/// A⁰ + β (teacher − student).
pub(crate) fn opd_advantage(
    tokens: Tokens<'_>,
    teacher: &[f64],
    student: &[f64],
    advantages: Option<&[f64]>,
    coefficient: f64,
) -> Vec<f64> {
    tokens.fill(|slot| {
        advantages.map_or(0.0, |advantages| advantages[slot]) + coefficient * (teacher[slot] - student[slot])
    })
}

/// The sums themselves, with powers of γ from the token or from the start.
pub(crate) fn minillm_advantage(
    tokens: Tokens<'_>,
    teacher: &[f64],
    student: &[f64],
    config: &MinillmConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let steps = match config.length {
            // dropped slots count because the padding does: all slots are steps
            LengthNormalization::KeptAndPadding => row.clone().collect(),
            _ => steps(tokens, row, config.across),
        };
        let moves = |slot: usize| tokens.keep[slot] || config.across == Across::ZeroStep;
        // the power of each slot, counted from the start
        let mut powers = vec![0];
        for slot in row.clone() {
            powers.push(powers[slot - row.start] + i32::from(moves(slot)));
        }
        let power = |slot: usize| powers[slot - row.start];
        for &slot in steps.iter().filter(|&&slot| tokens.keep[slot]) {
            let (mut total, mut length) = (0.0, 0.0);
            for &later in steps.iter().filter(|&&later| later >= slot) {
                let discount = config.gamma.powi(power(later) - power(slot));
                if tokens.keep[later] {
                    total += discount * (teacher[later] - student[later]);
                    length += discount;
                } else if config.length == LengthNormalization::KeptAndPadding {
                    length += 1e-4 * discount;
                }
            }
            let from_start = config.from == DiscountFrom::Start && config.gamma > 0.0;
            out[slot] = match config.length {
                LengthNormalization::Off if from_start => total * config.gamma.powi(power(slot)),
                LengthNormalization::Off => total,
                _ => total / length,
            };
        }
    }
    out
}
