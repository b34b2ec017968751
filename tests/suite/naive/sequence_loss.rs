//! Policy losses whose tokens share one ratio.

use tokenwise::{
    loss::{
        Aggregate, AggregateMode, Counts, EmptyRows, GlobalCounts, GmpoConfig, GspoConfig, GspoForm, GvpoConfig,
        LuspoConfig, PolicyLoss, PolicyLossInput, VespoConfig, VespoLoss,
    },
    Divisor, Groups, Result,
};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use super::{
    count,
    loss::weights,
    token_loss::{log_ratio, mean_or_zero, omega, total, Term},
    Tokens,
};
use crate::{
    case::{call, tokens, Case, Outcome},
    errors::domains::*,
    loss::{losses, weighed_input, Choice, Numbers as _, POLICY},
    reward::DIVISORS,
};

type Input<'a> = PolicyLossInput<'a, f64>;

/// A number for each sequence, repeated at each of its kept slots.
fn per_sequence(tokens: Tokens<'_>, of: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        let value = of(&kept);
        for slot in kept {
            out[slot] = value;
        }
    }
    out
}

/// The clipped surrogate with s = exp(mean d).
pub(crate) fn gspo(tokens: Tokens<'_>, input: Input<'_>, config: &GspoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    let mean =
        per_sequence(tokens, |kept| kept.iter().map(|&slot| log_ratio(&input, slot)).sum::<f64>() / kept.len() as f64);
    let cap = config.log_ratio_cap.unwrap_or(f64::INFINITY);
    let term = |slot: usize| {
        let (s, a) = (mean[slot].min(cap).exp(), input.advantages[slot]);
        let (plain, clipped) = (-a * s, -a * s.max(1.0 - config.clip_low).min(1.0 + config.clip_high));
        Term {
            loss: plain.max(clipped),
            slope: if clipped > plain || mean[slot] > cap { 0.0 } else { plain },
            held: clipped > plain,
            held_below: false,
            kl: -log_ratio(&input, slot),
        }
    };
    let (result, grad) = total(tokens, &input, &config.aggregate, config.divisor, term);
    match config.form {
        GspoForm::Token => (result, grad),
        // ∂s/∂log π_t = s / n: every token contributes to the slope of every other
        GspoForm::Sequence => {
            let shared =
                per_sequence(tokens, |kept| kept.iter().map(|&slot| grad[slot]).sum::<f64>() / kept.len() as f64);
            (result, shared)
        }
        _ => panic!("no textbook version of this variant"),
    }
}

/// gspo, sequences weighted by their length.
pub(crate) fn luspo(tokens: Tokens<'_>, input: Input<'_>, config: &LuspoConfig) -> (PolicyLoss, Vec<f64>) {
    let config = GspoConfig {
        clip_low: config.clip_low,
        clip_high: config.clip_high,
        form: GspoForm::Sequence,
        log_ratio_cap: None,
        aggregate: Aggregate {
            mode: AggregateMode::SequenceMeanTokenSum,
            empty_rows: EmptyRows::Counted,
            ..Default::default()
        },
        divisor: Divisor::Count,
    };
    gspo(tokens, input, &config)
}

/// −A_i exp(mean d*), d* clipped in log space.
pub(crate) fn gmpo(tokens: Tokens<'_>, input: Input<'_>, config: &GmpoConfig) -> (PolicyLoss, Vec<f64>) {
    let share = match config.counts {
        Counts::Local => 1.0 / tokens.rows.len() as f64,
        Counts::Global(counts) => counts.ranks as f64 / counts.sequences as f64,
        _ => panic!("no textbook version of this variant"),
    };
    let clip = |d: f64| d.max(-config.clip_low).min(config.clip_high);
    let held = |slot: usize| {
        let (d, a) = (log_ratio(&input, slot), input.advantages[slot]);
        let sign = if a == 0.0 { 0.0 } else { a.signum() };
        sign * (sign * d).min(sign * clip(d))
    };
    let mut loss = 0.0;
    let mut grad = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        if kept.is_empty() {
            continue;
        }
        let n = count(kept.len(), config.divisor);
        let mean = |value: &dyn Fn(usize) -> f64| kept.iter().map(|&slot| value(slot)).sum::<f64>() / n;
        let weight = if input.weights.is_some() { mean(&|slot| (omega(&input, slot) + 1e-10).ln()).exp() } else { 1.0 };
        let value = -mean(&|slot| input.advantages[slot]) * mean(&held).exp() * weight * share;
        loss += value;
        for &slot in &kept {
            let free = held(slot) == log_ratio(&input, slot) && input.advantages[slot] != 0.0;
            grad[slot] = if free { value / n } else { 0.0 };
        }
    }
    let outside = |slot: usize| clip(log_ratio(&input, slot)) != log_ratio(&input, slot);
    let fraction = |yes: &dyn Fn(f64) -> bool| {
        mean_or_zero(tokens, config.divisor, |slot| f64::from(u8::from(outside(slot) && yes(input.advantages[slot]))))
    };
    let mut result = PolicyLoss::default();
    result.loss = loss;
    result.clip_fraction = fraction(&|a| a > 0.0);
    result.clip_fraction_lower = fraction(&|a| a < 0.0);
    result.kl = mean_or_zero(tokens, config.divisor, |slot| -log_ratio(&input, slot));
    (result, grad)
}

/// −sg(φ(w)) A log π with w the ratio of the whole sequence.
pub(crate) fn vespo(tokens: Tokens<'_>, input: Input<'_>, config: &VespoConfig<'_>) -> (VespoLoss, Vec<f64>) {
    let least = 1e-8_f64.ln();
    let logs = per_sequence(tokens, |kept| {
        let ratios: f64 = kept.iter().map(|&slot| log_ratio(&input, slot).clamp(-20.0, 20.0)).sum();
        let rollout: f64 = kept.iter().map(|&slot| omega(&input, slot).ln().clamp(least, 20.0)).sum();
        (ratios + rollout).clamp(least, 20.0)
    });
    let phi = |slot: usize| {
        let positive = input.advantages[slot] >= 0.0;
        let (k, lambda) = match positive {
            true => (config.k_positive, config.lambda_positive),
            false => (config.k_negative, config.lambda_negative),
        };
        (lambda + k * logs[slot] - lambda * logs[slot].exp()).exp()
    };
    let weights = weights(tokens, &config.aggregate);
    let slope = |slot: usize| -phi(slot) * input.advantages[slot];
    let firsts: Vec<usize> = tokens.rows.iter().filter_map(|row| tokens.kept_of(row).first().copied()).collect();
    let phis: f64 = firsts.iter().map(|&slot| phi(slot)).sum();
    let mut result = VespoLoss::default();
    result.loss = tokens.sum(|slot| weights[slot] * slope(slot) * input.log_probs[slot]);
    result.phi_mean = if firsts.is_empty() { 0.0 } else { phis / firsts.len() as f64 };
    (result, tokens.fill(|slot| weights[slot] * slope(slot)))
}

/// ½ ((u − sg ū) − Ā)² / (K − 1), summed.
pub(crate) fn gvpo(tokens: Tokens<'_>, groups: &Groups<'_>, input: Input<'_>, config: &GvpoConfig) -> (f64, Vec<f64>) {
    let ids: Vec<usize> = groups.ids().collect();
    let u = |i: usize| {
        config.beta * tokens.kept_of(&tokens.rows[i]).iter().map(|&slot| log_ratio(&input, slot)).sum::<f64>()
    };
    let mean_advantage = |i: usize| {
        let kept = tokens.kept_of(&tokens.rows[i]);
        kept.iter().map(|&slot| input.advantages[slot]).sum::<f64>() / kept.len().max(1) as f64
    };
    let mut loss = 0.0;
    let mut grad = vec![0.0; tokens.keep.len()];
    for (i, row) in tokens.rows.iter().enumerate() {
        let members: Vec<usize> = (0..ids.len()).filter(|&j| ids[j] == ids[i]).collect();
        let center = members.iter().map(|&j| u(j)).sum::<f64>() / members.len() as f64;
        let error = u(i) - center - mean_advantage(i);
        let others = (members.len() - 1) as f64;
        loss += 0.5 * error * error / others;
        for slot in tokens.kept_of(row) {
            grad[slot] = config.beta * error / others;
        }
    }
    (loss, grad)
}

losses! {
    Gspo: gspo [10.0, 8.0], &[needs_one().numbers(&[
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        key("log_ratio_cap", POSITIVE),
    ])], GspoConfig,
        |random| GspoConfig {
            clip_low: random.pick(&[0.03125, 0.25]),
            clip_high: random.pick(&[0.0625, 0.25]),
            form: random.pick(&[GspoForm::Sequence, GspoForm::Token]),
            log_ratio_cap: random.pick(&[None, Some(0.125), Some(10.0)]),
            divisor: random.pick(&DIVISORS),
            ..Default::default()
        },
        |flat, input, config| gspo(tokens(flat), input, config);
    Vespo: vespo [20.0, 4.0], &[needs_one().numbers(&[
        key("k_positive", POSITIVE),
        key("lambda_positive", POSITIVE),
        key("k_negative", POSITIVE),
        key("lambda_negative", POSITIVE),
    ])], VespoConfig,
        |random| VespoConfig {
            k_positive: random.pick(&[2.0, 1.0]),
            lambda_positive: random.pick(&[3.0, 0.5]),
            k_negative: random.pick(&[3.0, 1.5]),
            lambda_negative: random.pick(&[2.0, 1.0]),
            ..Default::default()
        },
        |flat, input, config| vespo(tokens(flat), input, config);
}

/// Rollout weights, if chosen.
fn rollout_weights<R: Number>(flat: &Flat<R>, weighed: bool) -> impl Fn(&str) -> Option<Array<R>> + '_ {
    move |column| (weighed && column == "weights").then(|| Array::Real(flat.column(Column::Weights).to_vec()))
}

pub(crate) struct Luspo;
impl Case for Luspo {
    const NAME: &'static str = "luspo";
    const UNITS: [f64; 2] = [20.0, 6.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(CLIP)];
    const SEQUENCES_ALONE: bool = false;
    type Config = (LuspoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        let config = LuspoConfig { clip_low: random.pick(&[0.03125, 0.25]), clip_high: random.pick(&[0.0625, 0.25]) };
        (config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        call(Self::NAME, flat, config, rollout_weights(flat, weighed))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let (result, grad) = luspo(tokens(flat), weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and(result.numbers())
    }
}

pub(crate) struct Gmpo;
impl Case for Gmpo {
    const NAME: &'static str = "gmpo";
    const UNITS: [f64; 2] = [2.0, 0.6];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(CLIP)];
    const SEQUENCES_ALONE: bool = false;
    type Config = (GmpoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        let counts = GlobalCounts { sequences: 12, ranks: 4, ..Default::default() };
        let config = GmpoConfig {
            clip_low: random.pick(&[0.375, 0.125]),
            clip_high: random.pick(&[0.375, 0.25]),
            counts: random.pick(&[Counts::Local, Counts::Global(counts)]),
            divisor: random.pick(&DIVISORS),
        };
        (config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        call(Self::NAME, flat, config, rollout_weights(flat, weighed))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let (result, grad) = gmpo(tokens(flat), weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and(result.numbers())
    }
}

/// Two or three samples a prompt, one after the other; a single one is a prompt of its own.
pub(crate) fn pairs(sequences: usize) -> Vec<u32> {
    (0..sequences).map(|i| (i / 2).min((sequences / 2).saturating_sub(1)) as u32).collect()
}

pub(crate) struct Gvpo;
impl Case for Gvpo {
    const NAME: &'static str = "gvpo";
    const UNITS: [f64; 2] = [20.0, 1.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("beta", POSITIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (GvpoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        (GvpoConfig { beta: random.pick(&[0.125, 0.5, 1.0]) }, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        let mut flat = flat.clone();
        flat.group_ids = pairs(flat.rows.len());
        let flat = &flat;
        call(Self::NAME, flat, config, rollout_weights(flat, weighed))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let ids = pairs(flat.rows.len());
        let groups = Groups::from_ids(&ids).unwrap();
        let (loss, grad) = gvpo(tokens(flat), &groups, weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and([loss])
    }
}

crate::case::tests! {
    gspo: Gspo {
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
    },
    luspo: Luspo {
        slope(|_| vec![]);
        nan_stays(&POLICY);
        nan_stays_in_weights(|config| config.1);
    },
    gmpo: Gmpo {
        slope(|(config, _)| vec![-config.clip_low, config.clip_high]);
        nan_stays(&POLICY);
        nan_stays_in_weights(|config| config.1);
        shares_do_not_count_nan();
    },
    vespo: Vespo {
        slope_with_the_old();
        nan_stays(&POLICY);
        nan_stays_in_weights(|choice| choice.weighed);
    },
    gvpo: Gvpo {
        nan_stays(&POLICY);
        nan_stays_in_weights(|_| false);
    },
}
