//! Policy losses of one token at a time.

use tokenwise::{
    loss::{
        Aggregate, CispoBounds, CispoConfig, DppoConfig, DroConfig, PolicyLoss, PolicyLossInput, PositiveNllConfig,
        ReinforceConfig, SapoConfig, ToprConfig,
    },
    Divisor,
};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use super::{loss::aggregate, Tokens};
use crate::{
    case::{by_name, tokens, Case, Outcome},
    errors::domains::*,
    loss::{losses, weighed_input, Choice, Numbers as _, POLICY},
    reward::DIVISORS,
};

type Input<'a> = PolicyLossInput<'a, f64>;

/// The result of a formula for one token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// Its loss.
    pub(crate) loss: f64,
    /// The slope of its loss.
    pub(crate) slope: f64,
    /// Counts in `clip_fraction`.
    pub(crate) held: bool,
    /// Counts in `clip_fraction_lower`.
    pub(crate) held_below: bool,
    /// The term of the mean `kl`.
    pub(crate) kl: f64,
}

/// The rollout weight of a slot.
pub(crate) fn omega(input: &Input<'_>, slot: usize) -> f64 {
    input.weights.map_or(1.0, |weights| weights[slot])
}

/// The log-ratio of a slot.
pub(crate) fn log_ratio(input: &Input<'_>, slot: usize) -> f64 {
    input.log_probs[slot] - input.old_log_probs[slot]
}

/// A mean over the kept tokens; 0 if there are none.
pub(crate) fn mean_or_zero(tokens: Tokens<'_>, divisor: Divisor, value: impl Fn(usize) -> f64) -> f64 {
    if tokens.kept().is_empty() {
        0.0
    } else {
        tokens.mean(divisor, value)
    }
}

/// The terms weighted by the rollout weights, aggregated, and their metrics.
pub(crate) fn total(
    tokens: Tokens<'_>,
    input: &Input<'_>,
    config: &Aggregate<'_>,
    divisor: Divisor,
    term: impl Fn(usize) -> Term,
) -> (PolicyLoss, Vec<f64>) {
    let losses = tokens.fill(|slot| term(slot).loss * omega(input, slot));
    let (loss, weights) = aggregate(tokens, &losses, config);
    let grad = tokens.fill(|slot| weights[slot] * omega(input, slot) * term(slot).slope);
    let mut result = PolicyLoss::default();
    result.loss = loss;
    result.clip_fraction = mean_or_zero(tokens, divisor, |slot| f64::from(u8::from(term(slot).held)));
    result.clip_fraction_lower = mean_or_zero(tokens, divisor, |slot| f64::from(u8::from(term(slot).held_below)));
    result.kl = mean_or_zero(tokens, divisor, |slot| term(slot).kl);
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
pub(crate) fn reinforce(tokens: Tokens<'_>, input: Input<'_>, config: &ReinforceConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| detached(&input, slot, 1.0))
}

/// −sg(clip(ρ)) A log π.
pub(crate) fn cispo(tokens: Tokens<'_>, input: Input<'_>, config: &CispoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let d = bounded(log_ratio(&input, slot), config.log_ratio_bound);
        let ratio = d.exp();
        let (factor, counts) = match config.bounds {
            CispoBounds::Relative { low, high } => (ratio.max(1.0 - low).min(1.0 + high), true),
            CispoBounds::Absolute { high } => (ratio.min(high), input.advantages[slot] > 0.0),
            _ => panic!("no textbook version of this variant"),
        };
        Term { held: factor != ratio && counts, kl: -d, ..detached(&input, slot, factor) }
    })
}

/// −sg(min(ρ, 1)) A log π.
pub(crate) fn tis_loss(tokens: Tokens<'_>, input: Input<'_>, config: &ReinforceConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let ratio = log_ratio(&input, slot).exp();
        Term { held: ratio > 1.0, ..detached(&input, slot, ratio.min(1.0)) }
    })
}

/// −(4/τ) σ(τ (ρ − 1)) A.
pub(crate) fn sapo(tokens: Tokens<'_>, input: Input<'_>, config: &SapoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    total(tokens, &input, &config.aggregate, config.divisor, |slot| {
        let (d, a) = (log_ratio(&input, slot), input.advantages[slot]);
        let ratio = bounded(d, config.log_ratio_bound).exp();
        let tau = if a > 0.0 { config.tau_positive } else { config.tau_negative };
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (sigma, rest) = (logistic(tau * (ratio - 1.0)), logistic(-tau * (ratio - 1.0)));
        let free = config.log_ratio_bound.map_or(true, |bound| d.abs() <= bound);
        Term {
            loss: -4.0 / tau * sigma * a,
            slope: if free { -4.0 * sigma * rest * ratio * a } else { 0.0 },
            held: false,
            held_below: false,
            kl: -bounded(d, config.log_ratio_bound),
        }
    })
}

/// −(A log π − ½ β d²).
pub(crate) fn dro(tokens: Tokens<'_>, input: Input<'_>, config: &DroConfig<'_>) -> (PolicyLoss, Vec<f64>) {
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
pub(crate) fn dppo_tv(tokens: Tokens<'_>, input: Input<'_>, config: &DppoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
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
pub(crate) fn dppo_kl(tokens: Tokens<'_>, input: Input<'_>, config: &DppoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
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

/// Good responses imitated, bad ones weighted by min(ρ, 1).
pub(crate) fn topr(tokens: Tokens<'_>, input: Input<'_>, scores: &[f64], config: &ToprConfig<'_>) -> (f64, Vec<f64>) {
    let scores = of_slots(tokens, scores);
    let (result, grad) = total(tokens, &input, &config.aggregate, Divisor::Count, |slot| {
        let taper = log_ratio(&input, slot).exp().min(1.0);
        let factor = if scores[slot] > 0.0 { config.positive } else { config.negative * taper };
        detached(&input, slot, factor)
    });
    (result.loss, grad)
}

/// The mean of −log π over the tokens of good responses, times μ.
pub(crate) fn positive_nll(tokens: Tokens<'_>, log_probs: &[f64], scores: &[f64], mu: f64) -> (f64, Vec<f64>) {
    let scores = of_slots(tokens, scores);
    let good = tokens.sum(|slot| if scores[slot] > 0.0 { 1.0 } else { 0.0 });
    let share = |slot: usize| if scores[slot] > 0.0 { mu / good } else { 0.0 };
    (tokens.sum(|slot| -share(slot) * log_probs[slot]), tokens.fill(|slot| -share(slot)))
}

const BOUNDS: [Option<f64>; 3] = [None, Some(0.5), Some(20.0)];

fn random_dppo(random: &mut Random) -> DppoConfig<'static> {
    DppoConfig {
        // not 0: whether a divergence is above it would be decided by rounding
        clip_low: random.pick(&[0.125, 0.03125, 0.0078125]),
        clip_high: random.pick(&[0.125, 0.0625, 0.0078125]),
        ratio_cap: random.pick(&[1.25, 3.0]),
        log_ratio_bound: random.pick(&BOUNDS),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    }
}

losses! {
    Reinforce: reinforce [60.0, 6.0], &[needs_one()], ReinforceConfig,
        |random| ReinforceConfig { divisor: random.pick(&DIVISORS), ..Default::default() },
        |flat, input, config| reinforce(tokens(flat), input, config);
    Cispo: cispo [20.0, 10.0], &[needs_one().with(r#"{ "bounds": { "kind": "relative" } }"#).numbers(&[
        inside("bounds.low", "low", NOT_NEGATIVE),
        inside("bounds.high", "high", NOT_NEGATIVE),
        LOG_RATIO_BOUND,
    ]), needs_one()
        .with(r#"{ "bounds": { "kind": "absolute" } }"#)
        .numbers(&[inside("bounds.high", "high", POSITIVE), LOG_RATIO_BOUND])], CispoConfig,
        |random| CispoConfig {
            bounds: random.pick(&[
                CispoBounds::Relative { low: 0.25, high: 0.3125 },
                CispoBounds::Relative { low: 1.0, high: 0.0 },
                CispoBounds::Absolute { high: 1.25 },
                CispoBounds::Absolute { high: 5.0 },
            ]),
            log_ratio_bound: random.pick(&BOUNDS),
            divisor: random.pick(&DIVISORS),
            ..Default::default()
        },
        |flat, input, config| cispo(tokens(flat), input, config);
    TisLoss: tis_loss [50.0, 20.0], &[needs_one()], ReinforceConfig,
        |random| ReinforceConfig { divisor: random.pick(&DIVISORS), ..Default::default() },
        |flat, input, config| tis_loss(tokens(flat), input, config);
    Sapo: sapo [10.0, 20.0], &[needs_one().numbers(&[key("tau_positive", POSITIVE), key("tau_negative", POSITIVE), LOG_RATIO_BOUND])], SapoConfig,
        |random| SapoConfig {
            tau_positive: random.pick(&[1.0, 0.5]),
            tau_negative: random.pick(&[1.0625, 4.0]),
            log_ratio_bound: random.pick(&BOUNDS),
            divisor: random.pick(&DIVISORS),
            ..Default::default()
        },
        |flat, input, config| sapo(tokens(flat), input, config);
    Dro: dro [40.0, 10.0], &[needs_one().numbers(&[key("beta", POSITIVE)])], DroConfig,
        |random| {
            let (beta, divisor) = (random.pick(&[0.125, 1.0, 2.5]), random.pick(&DIVISORS));
            DroConfig { beta, divisor, aggregate: Aggregate::default() }
        },
        |flat, input, config| dro(tokens(flat), input, config);
    DppoTv: dppo_tv [20.0, 8.0], &[needs_one().numbers(DPPO)], DppoConfig, random_dppo,
        |flat, input, config| dppo_tv(tokens(flat), input, config);
    DppoKl: dppo_kl [20.0, 8.0], &[needs_one().numbers(DPPO)], DppoConfig, random_dppo,
        |flat, input, config| dppo_kl(tokens(flat), input, config);
    Topr: topr [60.0, 6.0], &[needs_one().numbers(&[key("positive", NOT_NEGATIVE), key("negative", NOT_NEGATIVE)])], ToprConfig,
        |random| ToprConfig {
            positive: random.pick(&[1.0, 0.5]),
            negative: random.pick(&[1.0, 0.25]),
            aggregate: Aggregate::default(),
        },
        |flat, input, config| topr(tokens(flat), input, &flat.scores, config);
}

pub(crate) struct PositiveNll;
impl Case for PositiveNll {
    const NAME: &'static str = "positive_nll";
    const UNITS: [f64; 2] = [4.0, 0.2];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("mu", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = PositiveNllConfig;
    fn config(random: &mut Random) -> PositiveNllConfig {
        PositiveNllConfig { mu: random.pick(&[0.0, 0.125, 1.0]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PositiveNllConfig { mu }: PositiveNllConfig) -> Outcome<f64> {
        let (loss, grad) = positive_nll(tokens(flat), flat.column(Column::LogProbs), &flat.scores, mu);
        Outcome::tokens([grad]).and([loss])
    }
}

crate::case::tests! {
    reinforce: Reinforce {
        slope(|_| vec![]);
        nan_stays(&[Column::LogProbs, Column::Advantages]);
        nan_stays_in_sums(&[(Column::OldLogProbs, &[3])]);
        nan_stays_in_weights(|choice| choice.weighed);
    },
    cispo: Cispo {
        slope_with_the_old();
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        shares_do_not_count_nan();
    },
    tis_loss: TisLoss {
        slope_with_the_old();
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        shares_do_not_count_nan();
        is_another_loss(&[(
            "{}",
            None,
            "cispo",
            r#"{ "bounds": { "kind": "absolute", "high": 1.0 }, "log_ratio_bound": null }"#,
        )]);
    },
    sapo: Sapo {
        slope(|choice| choice.config.log_ratio_bound.map_or(vec![], |bound| vec![bound, -bound]));
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
    },
    dro: Dro {
        slope(|_| vec![]);
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        is_another_loss(&[(r#"{ "beta": 1e-300 }"#, None, "reinforce", "{}")]);
    },
    dppo_tv: DppoTv {
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        shares_do_not_count_nan();
        is_another_loss(&[(
            // it drops nothing
            r#"{ "clip_low": 1e9, "clip_high": 1e9, "ratio_cap": 1.5 }"#,
            None,
            "cispo",
            r#"{ "bounds": { "kind": "absolute", "high": 1.5 } }"#,
        )]);
    },
    dppo_kl: DppoKl {
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        shares_do_not_count_nan();
    },
    topr: Topr {
        slope_with_the_old();
        nan_stays(&[Column::LogProbs, Column::Advantages]);
        nan_stays_in_weights(|choice| choice.weighed);
        nan_counts_by_score(Column::OldLogProbs, false, false);
        is_another_loss(&[("{}", Some(-1.0), "tis_loss", "{}"), ("{}", Some(1.0), "reinforce", "{}")]);
    },
    positive_nll: PositiveNll {
        slope(|_| vec![]);
        nan_counts_by_score(Column::LogProbs, true, true);
    },
}
