//! Policy losses that single out tokens by the covariance of advantage and log-probability.

use tokenwise::{
    loss::{self, ClipCovConfig, ClipCovSelectionConfig, KlCovConfig, PolicyLoss, PolicyLossInput},
    Divisor, Result,
};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use super::{
    token_loss::{log_ratio, total, Term},
    Tokens,
};
use crate::{
    case::{tokens, Case, Outcome},
    errors::domains::*,
    loss::{losses, weighed_input, Choice, Numbers as _, POLICY},
    reward::DIVISORS,
};

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
pub(crate) fn clip_cov(
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
pub(crate) fn candidates(tokens: Tokens<'_>, input: &Input<'_>, config: &ClipCovConfig<'_>) -> Vec<usize> {
    let cov = covariances(tokens, input, config.divisor);
    let may = |&slot: &usize| {
        let (plain, held) = clipped(input, slot, config);
        held <= plain && cov[slot] > config.lower && cov[slot] < config.upper
    };
    tokens.kept().into_iter().filter(may).collect()
}

/// How many of the candidates are selected.
pub(crate) fn selected_count(tokens: Tokens<'_>, input: &Input<'_>, config: &ClipCovConfig<'_>) -> usize {
    wanted(tokens, config.ratio).min(candidates(tokens, input, config).len())
}

/// Selection sampling: one candidate after the other, each with probability missing / left.
pub(crate) fn clip_cov_selection(
    tokens: Tokens<'_>,
    input: Input<'_>,
    config: &ClipCovConfig<'_>,
    seed: u64,
) -> Vec<bool> {
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
pub(crate) fn kl_cov(tokens: Tokens<'_>, input: Input<'_>, config: &KlCovConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    let cov = covariances(tokens, &input, Divisor::Count);
    let mut largest = tokens.kept();
    // stable: among equals the earlier first
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

losses! {
    KlCov: kl_cov [40.0, 8.0], &[needs_one().numbers(&[key("ratio", UNIT), key("kl_coef", NOT_NEGATIVE)])], KlCovConfig,
        |random| KlCovConfig {
            ratio: random.pick(&[2e-4, 0.125, 0.5, 1.0]),
            kl_coef: random.pick(&[0.0, 0.125, 1.0]),
            divisor: random.pick(&DIVISORS),
            ..Default::default()
        },
        |flat, input, config| kl_cov(tokens(flat), input, config);
}

pub(crate) fn clip_cov_config(random: &mut Random) -> ClipCovConfig<'static> {
    ClipCovConfig {
        clip_low: random.pick(&[0.25, 0.0625]),
        clip_high: random.pick(&[0.25, 0.3125]),
        lower: random.pick(&[-0.5, 0.125, 1.0]),
        upper: random.pick(&[2.0, 5.0]),
        ratio: random.pick(&[2e-4, 0.125, 0.5, 1.0]),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    }
}

pub(crate) struct ClipCov;
impl ClipCov {
    /// A selection that is any column's: only that of kept slots matters.
    pub(crate) fn selected<R: Number>(flat: &Flat<R>) -> Vec<bool> {
        flat.column(Column::Kl).iter().map(|&x| x > R::narrow(0.5)).collect()
    }
}
impl Case for ClipCov {
    const NAME: &'static str = "clip_cov";
    const UNITS: [f64; 2] = [60.0, 40.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(CLIP)];
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<ClipCovConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let config = clip_cov_config(random);
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, choice: Self::Config) -> Result<Outcome<R>> {
        choice.call(Self::NAME, flat, |column| (column == "selected").then(|| Array::Flag(Self::selected(flat))))
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            let config = ClipCovConfig { aggregate, ..config };
            clip_cov(tokens(flat), weighed_input(flat, weighed), &config, &Self::selected(flat))
        });
        Outcome::tokens([grad]).and(result.numbers())
    }
}

pub(crate) struct ClipCovSelection;
impl Case for ClipCovSelection {
    const NAME: &'static str = "clip_cov_selection";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[
        inside("clip.clip_low", "clip_low", NOT_NEGATIVE),
        inside("clip.clip_high", "clip_high", NOT_NEGATIVE),
        inside("clip.lower", "lower", AT_MOST_UPPER),
        inside("clip.ratio", "ratio", UNIT),
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (ClipCovConfig<'static>, u64);
    fn config(random: &mut Random) -> Self::Config {
        (clip_cov_config(random), random.bits())
    }
    fn run<R: Number>(flat: &Flat<R>, (config, seed): Self::Config) -> Result<Outcome<R>> {
        let mut selected = vec![true; flat.tokens()];
        let input = weighed_input(flat, false);
        let chosen = loss::clip_cov_selection(
            &flat.batch(),
            input,
            &ClipCovSelectionConfig { clip: config, seed },
            &mut selected,
        )?;
        let selected = selected.iter().map(|&yes| if yes { R::one() } else { R::zero() }).collect();
        Ok(Outcome::tokens([selected]).and([chosen as f64]))
    }
    fn naive(flat: &Flat<f64>, (config, seed): Self::Config) -> Outcome<f64> {
        let input = weighed_input(flat, false);
        let selected = clip_cov_selection(tokens(flat), input, &config, seed);
        let selected: Vec<f64> = selected.iter().map(|&yes| if yes { 1.0 } else { 0.0 }).collect();
        let chosen = selected.iter().sum();
        Outcome::tokens([selected]).and([chosen])
    }
}

crate::case::tests! {
    clip_cov: ClipCov {
        slope(|choice| {
        vec![(1.0 - choice.config.clip_low).ln(), (1.0 + choice.config.clip_high).ln()]
    });
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
    },
    clip_cov_selection: ClipCovSelection,
    kl_cov: KlCov {
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
        is_another_loss(&[(r#"{ "kl_coef": 0.0 }"#, None, "surrogate", "{}")]);
    },
}
