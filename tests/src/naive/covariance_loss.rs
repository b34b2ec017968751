//! Policy losses that single out tokens by the covariance of advantage and log-probability.

use tokenwise::{
    loss::{ClipCovConfig, KlCovConfig, PolicyLoss, PolicyLossInput},
    Divisor,
};

use super::{
    token_loss::{log_ratio, total, Term},
    Tokens,
};
use crate::generate::Random;

type Input<'a> = PolicyLossInput<'a, f64>;

/// (A − Ā)(log π − mean log π) of every kept token.
fn covariances(tokens: Tokens<'_>, input: &Input<'_>, divisor: Divisor) -> Vec<f64> {
    let advantage = tokens.mean(divisor, |slot| input.advantages[slot]);
    let log_prob = tokens.mean(divisor, |slot| input.log_probs[slot]);
    tokens.fill(|slot| (input.advantages[slot] - advantage) * (input.log_probs[slot] - log_prob))
}

fn wanted(tokens: Tokens<'_>, ratio: f64) -> usize {
    ((ratio * tokens.kept().len() as f64).floor() as usize).max(1)
}

fn clipped(input: &Input<'_>, slot: usize, config: &ClipCovConfig<'_>) -> (f64, f64) {
    let (ratio, a) = (log_ratio(input, slot).exp(), input.advantages[slot]);
    (-a * ratio, -a * ratio.max(1.0 - config.clip_low).min(1.0 + config.clip_high))
}

/// The clipped surrogate, 0 on the selected tokens.
pub fn clip_cov(
    tokens: Tokens<'_>,
    input: Input<'_>,
    config: &ClipCovConfig<'_>,
    selected: &[bool],
) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let (plain, held) = clipped(&input, slot, config);
        let corr = if selected[slot] { 0.0 } else { 1.0 };
        Term {
            loss: plain.max(held) * corr,
            slope: if held > plain { 0.0 } else { plain * corr },
            held: selected[slot],
            held_below: false,
            kl: -log_ratio(&input, slot),
        }
    })
}

/// The tokens that may be selected, in order.
pub fn candidates(tokens: Tokens<'_>, input: &Input<'_>, config: &ClipCovConfig<'_>) -> Vec<usize> {
    let cov = covariances(tokens, input, config.divisor);
    let may = |&slot: &usize| {
        let (plain, held) = clipped(input, slot, config);
        held <= plain && cov[slot] > config.lower && cov[slot] < config.upper
    };
    tokens.kept().into_iter().filter(may).collect()
}

/// How many of the candidates are selected.
pub fn selected_count(tokens: Tokens<'_>, input: &Input<'_>, config: &ClipCovConfig<'_>) -> usize {
    wanted(tokens, config.ratio).min(candidates(tokens, input, config).len())
}

/// Selection sampling: one after the other, each with the chance that is left for it.
pub fn clip_cov_selection(tokens: Tokens<'_>, input: Input<'_>, config: &ClipCovConfig<'_>, seed: u64) -> Vec<bool> {
    let mut random = Random::new(seed);
    let candidates = candidates(tokens, &input, config);
    let mut missing = selected_count(tokens, &input, config);
    let mut selected = vec![false; tokens.keep.len()];
    for (index, &slot) in candidates.iter().enumerate() {
        let left = (candidates.len() - index) as u128;
        let draw = (u128::from(random.bits()) * left) >> 64;
        if draw < missing as u128 {
            selected[slot] = true;
            missing -= 1;
        }
    }
    selected
}

/// −ρ A, and κ |d| on the tokens of largest covariance.
pub fn kl_cov(tokens: Tokens<'_>, input: Input<'_>, config: &KlCovConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    let cov = covariances(tokens, &input, Divisor::Count);
    let mut largest = tokens.kept();
    // stable: of equal ones the earlier first
    largest.sort_by(|&a, &b| cov[b].total_cmp(&cov[a]));
    largest.truncate(wanted(tokens, config.ratio));
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let d = log_ratio(&input, slot);
        let plain = -input.advantages[slot] * d.exp();
        let chosen = largest.contains(&slot);
        let price = if chosen { config.kl_coef } else { 0.0 };
        let sign = if d == 0.0 { 0.0 } else { d.signum() };
        Term {
            loss: plain + price * d.abs(),
            slope: plain + price * sign,
            held: chosen,
            held_below: false,
            kl: d.abs(),
        }
    })
}
