//! Policy losses of one token at a time.

use tokenwise::{
    loss::{
        Aggregate, CispoBounds, CispoConfig, DppoConfig, DroConfig, PolicyLoss, PolicyLossInput, ReinforceConfig,
        SapoConfig, ToprConfig,
    },
    Divisor,
};

use super::{loss::aggregate, Tokens};

type Input<'a> = PolicyLossInput<'a, f64>;

/// What a formula says about a token.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// Its loss.
    pub loss: f64,
    /// The slope of its loss.
    pub slope: f64,
    /// Counts in `clip_fraction`.
    pub held: bool,
    /// Counts in `clip_fraction_lower`.
    pub held_below: bool,
    /// What `kl` is the mean of.
    pub kl: f64,
}

/// The rollout weight of a slot.
pub fn omega(input: &Input<'_>, slot: usize) -> f64 {
    input.weights.map_or(1.0, |weights| weights[slot])
}

/// The log-ratio of a slot.
pub fn log_ratio(input: &Input<'_>, slot: usize) -> f64 {
    input.log_probs[slot] - input.old_log_probs[slot]
}

/// A mean over the kept tokens that is 0 without any.
pub fn mean_or_zero(tokens: Tokens<'_>, divisor: Divisor, value: impl Fn(usize) -> f64) -> f64 {
    if tokens.kept().is_empty() {
        0.0
    } else {
        tokens.mean(divisor, value)
    }
}

/// The terms weighed by the rollout, aggregated, and their metrics.
pub fn total(
    tokens: Tokens<'_>,
    input: &Input<'_>,
    config: &Aggregate<'_>,
    divisor: Divisor,
    term: impl Fn(usize) -> Term,
) -> (PolicyLoss, Vec<f64>) {
    let losses = tokens.fill(|slot| term(slot).loss * omega(input, slot));
    let (loss, weights) = aggregate(tokens, &losses, config);
    let grad = tokens.fill(|slot| weights[slot] * omega(input, slot) * term(slot).slope);
    let result = PolicyLoss {
        loss,
        clip_fraction: mean_or_zero(tokens, divisor, |slot| f64::from(u8::from(term(slot).held))),
        clip_fraction_lower: mean_or_zero(tokens, divisor, |slot| f64::from(u8::from(term(slot).held_below))),
        kl: mean_or_zero(tokens, divisor, |slot| term(slot).kl),
    };
    (result, grad)
}

/// −A log π times a factor that is held constant.
fn detached(input: &Input<'_>, slot: usize, factor: f64) -> Term {
    let slope = -factor * input.advantages[slot];
    let kl = -log_ratio(input, slot);
    Term { loss: slope * input.log_probs[slot], slope, held: false, held_below: false, kl }
}

fn bounded(d: f64, bound: Option<f64>) -> f64 {
    bound.map_or(d, |bound| d.max(-bound).min(bound))
}

/// −A log π.
pub fn reinforce(tokens: Tokens<'_>, input: Input<'_>, config: &ReinforceConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| detached(&input, slot, 1.0))
}

/// −sg(clip(ρ)) A log π.
pub fn cispo(tokens: Tokens<'_>, input: Input<'_>, config: &CispoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let d = bounded(log_ratio(&input, slot), config.log_ratio_bound);
        let ratio = d.exp();
        let (factor, counts) = match config.bounds {
            CispoBounds::Relative { low, high } => (ratio.max(1.0 - low).min(1.0 + high), true),
            CispoBounds::Absolute { high } => (ratio.min(high), input.advantages[slot] > 0.0),
        };
        Term { held: factor != ratio && counts, kl: -d, ..detached(&input, slot, factor) }
    })
}

/// −sg(min(ρ, 1)) A log π.
pub fn tis_loss(tokens: Tokens<'_>, input: Input<'_>, config: &ReinforceConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let ratio = log_ratio(&input, slot).exp();
        Term { held: ratio > 1.0, ..detached(&input, slot, ratio.min(1.0)) }
    })
}

/// −(4/τ) σ(τ (ρ − 1)) A.
pub fn sapo(tokens: Tokens<'_>, input: Input<'_>, config: &SapoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let (d, a) = (log_ratio(&input, slot), input.advantages[slot]);
        let ratio = bounded(d, config.log_ratio_bound).exp();
        let tau = if a > 0.0 { config.tau_positive } else { config.tau_negative };
        let sigma = 1.0 / (1.0 + (-tau * (ratio - 1.0)).exp());
        let free = config.log_ratio_bound.map_or(true, |bound| d.abs() <= bound);
        Term {
            loss: -4.0 / tau * sigma * a,
            slope: if free { -4.0 * sigma * (1.0 - sigma) * ratio * a } else { 0.0 },
            held: false,
            held_below: false,
            kl: -bounded(d, config.log_ratio_bound),
        }
    })
}

/// −(A log π − ½ β d²).
pub fn dro(tokens: Tokens<'_>, input: Input<'_>, config: &DroConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let (d, a) = (log_ratio(&input, slot), input.advantages[slot]);
        let loss = -(a * input.log_probs[slot] - 0.5 * config.beta * d * d);
        Term { loss, slope: -a + config.beta * d, held: false, held_below: false, kl: -d }
    })
}

/// −sg(min(ρ, cap)) A log π on the tokens that are kept.
fn dppo(
    tokens: Tokens<'_>,
    input: &Input<'_>,
    config: &DppoConfig<'_>,
    keep: impl Fn(f64, f64, f64) -> bool,
) -> (PolicyLoss, Vec<f64>) {
    total(tokens, input, &config.aggregate, config.divisor, |slot| {
        let d = bounded(log_ratio(input, slot), config.log_ratio_bound);
        let keep = keep(input.log_probs[slot], input.old_log_probs[slot], input.advantages[slot]);
        let factor = if keep { d.exp().min(config.ratio_cap) } else { 0.0 };
        let held_below = d.exp() > config.ratio_cap && keep;
        Term { held: !keep, held_below, kl: -d, ..detached(input, slot, factor) }
    })
}

/// Kept by total variation.
pub fn dppo_tv(tokens: Tokens<'_>, input: Input<'_>, config: &DppoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    dppo(tokens, &input, config, |new, old, a| {
        let moved = new.exp() - old.exp();
        if a > 0.0 {
            moved <= config.clip_high
        } else {
            moved >= -config.clip_low
        }
    })
}

/// Kept by binary KL.
pub fn dppo_kl(tokens: Tokens<'_>, input: Input<'_>, config: &DppoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    dppo(tokens, &input, config, |new, old, a| {
        let (p, q) = (new.exp(), old.exp());
        let b = q * (old - new) + (1.0 - q) * ((1.0 - q + 1e-8) / (1.0 - p + 1e-8)).ln();
        if a > 0.0 {
            b <= config.clip_high || p <= q
        } else {
            b <= config.clip_low || p >= q
        }
    })
}

/// The score of each slot's sequence.
fn of_slots(tokens: Tokens<'_>, scores: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, &score) in tokens.rows.iter().zip(scores) {
        out[row.clone()].fill(score);
    }
    out
}

/// Good responses imitated, bad ones weighed by min(ρ, 1).
pub fn topr(tokens: Tokens<'_>, input: Input<'_>, scores: &[f64], config: &ToprConfig<'_>) -> (f64, Vec<f64>) {
    let scores = of_slots(tokens, scores);
    let (result, grad) = total(tokens, &input, &config.aggregate, Divisor::Count, |slot| {
        let taper = log_ratio(&input, slot).exp().min(1.0);
        let factor = if scores[slot] > 0.0 { config.positive } else { config.negative * taper };
        detached(&input, slot, factor)
    });
    (result.loss, grad)
}

/// The mean of −log π over the tokens of good responses, times μ.
pub fn positive_nll(tokens: Tokens<'_>, log_probs: &[f64], scores: &[f64], mu: f64) -> (f64, Vec<f64>) {
    let scores = of_slots(tokens, scores);
    let good = tokens.sum(|slot| if scores[slot] > 0.0 { 1.0 } else { 0.0 });
    let share = |slot: usize| if scores[slot] > 0.0 { mu / good } else { 0.0 };
    (tokens.sum(|slot| -share(slot) * log_probs[slot]), tokens.fill(|slot| -share(slot)))
}
