//! The dual game: token weights, structure, and the loss.

use std::collections::BTreeMap;

use tokenwise::{
    loss::{DualGameConfig, DualGameInput, DualGameLoss, DualGradient},
    weight::{
        BranchSpread, BranchValue, ScoreScope, StructuralConfig, StructuralInput, TokenWeight, TokenWeightInput,
        TrieConfig, TrieInput, TriePrefix,
    },
};

use super::{loss::aggregate, token_loss::mean_or_zero, Tokens};

/// w of a slot, and its derivative with respect to the log-probability.
fn weight(input: &TokenWeightInput<'_, f64>, slot: usize) -> (f64, f64) {
    let (p, a) = (input.log_probs[slot].exp(), input.advantages[slot].abs());
    let (plain, slope) = (p * (1.0 - p) * a, (p - 2.0 * p * p) * a);
    match (input.weight, input.ref_log_probs) {
        (TokenWeight::Structural(given), _) => (given[slot], 0.0),
        (TokenWeight::KlGated, Some(reference)) => {
            let d = input.log_probs[slot] - reference[slot];
            (plain * d.abs(), slope * d.abs() + plain * if d == 0.0 { 0.0 } else { d.signum() })
        }
        _ => (plain, slope),
    }
}

/// p (1 − p) |A|, gated or given.
pub(crate) fn token_weights(tokens: Tokens<'_>, input: TokenWeightInput<'_, f64>) -> Vec<f64> {
    tokens.fill(|slot| weight(&input, slot).0)
}

/// |A_t − A_{t−1}| over kept tokens.
pub(crate) fn advantage_jump(tokens: Tokens<'_>, advantages: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; advantages.len()];
    for row in tokens.rows {
        for pair in tokens.kept_of(row).windows(2) {
            out[pair[1]] = (advantages[pair[1]] - advantages[pair[0]]).abs();
        }
    }
    out
}

fn z(x: &[f64], slots: &[usize], n: f64) -> BTreeMap<usize, f64> {
    let mean = slots.iter().map(|&slot| x[slot]).sum::<f64>() / n;
    let variance = slots.iter().map(|&slot| (x[slot] - mean) * (x[slot] - mean)).sum::<f64>() / n;
    let sigma = (variance + 1e-6).sqrt();
    slots.iter().map(|&slot| (slot, ((x[slot] - mean) / (sigma + 1e-6)).clamp(-3.0, 3.0))).collect()
}

/// max(0, c z(C) + α z(S) + β z(D)).
pub(crate) fn structural_weights(
    tokens: Tokens<'_>,
    input: StructuralInput<'_, f64>,
    config: &StructuralConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    let scopes: Vec<(Vec<usize>, f64)> = match config.scope {
        ScoreScope::Batch => vec![(tokens.kept(), tokens.kept().len().max(1) as f64)],
        ScoreScope::Sequence => tokens
            .rows
            .iter()
            .map(|row| tokens.kept_of(row))
            .map(|kept| (kept.clone(), kept.len() as f64 + 1e-6))
            .collect(),
        _ => panic!("no textbook version of this variant"),
    };
    for (slots, n) in scopes {
        let surprisal: Vec<f64> = input.log_probs.iter().map(|x| -x).collect();
        let mean = slots.iter().map(|&slot| surprisal[slot]).sum::<f64>() / n;
        let drift: Vec<f64> = surprisal.iter().zip(input.advantages).map(|(s, a)| a * (s - mean)).collect();
        let [c, s, d] = [input.complexity, &surprisal, &drift].map(|x| z(x, &slots, n));
        for slot in slots {
            let sum = config.complexity * c[&slot] + config.surprisal * s[&slot] + config.drift * d[&slot];
            out[slot] = sum.max(0.0);
        }
    }
    out
}

fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// How far the branches at each position are from each other.
pub(crate) fn trie_complexity(
    tokens: Tokens<'_>,
    groups: &[u32],
    input: TrieInput<'_, f64>,
    config: &TrieConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    let score = |row: usize| tokens.kept_of(&tokens.rows[row]).iter().map(|&slot| input.rewards[slot]).sum::<f64>();
    let at = |row: usize, t: usize| {
        let slot = tokens.rows[row].start + t;
        (t < tokens.rows[row].len() && tokens.keep[slot]).then(|| (slot, input.tokens[slot]))
    };
    let prefix = |row: usize, t: usize| (0..t).map(|t| at(row, t).map(|(_, id)| id)).collect::<Vec<_>>();
    for row in 0..tokens.rows.len() {
        for t in 0..tokens.rows[row].len() {
            let Some((slot, _)) = at(row, t) else { continue };
            let mut branches: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for other in 0..tokens.rows.len() {
                let alike = groups[other] == groups[row]
                    && (config.prefix == TriePrefix::Any || prefix(other, t) == prefix(row, t));
                if let (true, Some((_, id))) = (alike, at(other, t)) {
                    branches.entry(id).or_default().push(score(other));
                }
            }
            let mut values: Vec<f64> = branches
                .into_values()
                .filter(|scores| scores.len() >= config.min_branch_size)
                .map(|mut scores| {
                    scores.sort_by(f64::total_cmp);
                    match config.value {
                        BranchValue::Mean => scores.iter().sum::<f64>() / scores.len() as f64,
                        BranchValue::Median => scores[(scores.len() - 1) / 2],
                        _ => panic!("no textbook version of this variant"),
                    }
                })
                .collect();
            values.sort_by(f64::total_cmp);
            if values.len() < 2 {
                continue;
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            out[slot] = match config.spread {
                BranchSpread::Variance => {
                    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64
                }
                BranchSpread::InterQuartileRange => quantile(&values, 0.75) - quantile(&values, 0.25),
                BranchSpread::Range => values[values.len() - 1] - values[0],
                _ => panic!("no textbook version of this variant"),
            };
        }
    }
    out
}

/// A clipped surrogate whose advantages include the price of entropy and of the KL to the reference.
pub(crate) fn dual_game(
    tokens: Tokens<'_>,
    input: DualGameInput<'_, f64>,
    config: &DualGameConfig<'_>,
) -> (DualGameLoss, Vec<f64>) {
    let policy = input.policy;
    let weighing = TokenWeightInput {
        log_probs: policy.log_probs,
        ref_log_probs: input.ref_log_probs,
        advantages: policy.advantages,
        weight: input.weight,
    };
    // the modified advantage, its slope, the ratio, and the ratio within the clip
    let parts = |slot: usize| {
        let (l, a) = (policy.log_probs[slot], policy.advantages[slot]);
        let (w, slope) = weight(&weighing, slot);
        let d = input.ref_log_probs.map(|reference| l - reference[slot]);
        let modified =
            a.max(0.0) + config.gamma * a.min(0.0) - config.lambda * w * (-l - 1.0) - config.beta * d.unwrap_or(0.0);
        let slope = config.lambda * (slope * (l + 1.0) + w) - if d.is_some() { config.beta } else { 0.0 };
        let x = l - policy.old_log_probs[slot];
        let bounded = config.log_ratio_bound.map_or(x, |bound| x.clamp(-bound, bound));
        let ratio = bounded.exp();
        (modified, slope, x == bounded, ratio, ratio.max(1.0 - config.clip_low).min(1.0 + config.clip_high), bounded)
    };
    let held = |slot: usize| {
        let (modified, _, _, ratio, inside, _) = parts(slot);
        -modified * inside > -modified * ratio
    };
    let omega = |slot: usize| policy.weights.map_or(1.0, |weights| weights[slot]);
    let losses = tokens.fill(|slot| {
        let (modified, _, _, ratio, inside, _) = parts(slot);
        omega(slot) * (-modified * ratio).max(-modified * inside)
    });
    let (loss, weights) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| {
        let (modified, slope, free, ratio, inside, _) = parts(slot);
        let direct = if held(slot) || !free { 0.0 } else { -modified * ratio };
        let through = match config.gradient {
            DualGradient::Detached => 0.0,
            DualGradient::Through => -slope * if held(slot) { inside } else { ratio },
            _ => panic!("no textbook version of this variant"),
        };
        weights[slot] * omega(slot) * (direct + through)
    });
    let share = |side: f64| {
        mean_or_zero(tokens, config.divisor, |slot| f64::from(u8::from(held(slot) && parts(slot).0 * side > 0.0)))
    };
    let mut result = DualGameLoss::default();
    result.loss = loss;
    result.clip_fraction = share(1.0) + share(-1.0);
    result.clip_fraction_upper = share(1.0);
    result.clip_fraction_lower = share(-1.0);
    result.kl = mean_or_zero(tokens, config.divisor, |slot| -parts(slot).5);
    (result, grad)
}
