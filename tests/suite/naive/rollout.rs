//! Weights and rejections where trainer and sampler disagree.

use tokenwise::{
    rollout::{
        BatchNormalize, Criterion, LogBound, RejectionOption, RolloutConfig, RolloutLevel, Unscored, WeightBound,
    },
    Divisor, Spread,
};

use super::{count, mean_and_variance, Tokens};

fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b))
}

fn smallest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(f64::INFINITY, |a, &b| a.min(b))
}

fn share(numbers: &[f64], yes: impl Fn(f64) -> bool, of: f64) -> f64 {
    numbers.iter().filter(|&&x| yes(x)).count() as f64 / of
}

fn average(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn sample_std(numbers: &[f64]) -> f64 {
    if numbers.len() < 2 {
        return 0.0;
    }
    mean_and_variance(numbers, Spread::Sample, Divisor::Count).1.sqrt()
}

/// The variance of numbers held to a band, divided by the count.
fn held_variance(numbers: &[f64], low: f64, high: f64, n: f64) -> f64 {
    let held: Vec<f64> = numbers.iter().map(|x| x.max(low).min(high)).collect();
    let mean = held.iter().sum::<f64>() / n;
    let square = held.iter().map(|x| x * x).sum::<f64>() / n;
    if numbers.len() > 1 {
        (square - mean * mean).max(0.0)
    } else {
        0.0
    }
}

fn bounded(bound: WeightBound, w: f64) -> f64 {
    match bound {
        WeightBound::Unbounded => w,
        WeightBound::Truncate { upper } => w.min(upper),
        WeightBound::Clamp { lower, upper } => w.max(lower).min(upper),
        WeightBound::Zero { lower, upper } => {
            if (lower..=upper).contains(&w) {
                w
            } else {
                0.0
            }
        }
        _ => panic!("no textbook version of this variant"),
    }
}

fn band(bound: WeightBound) -> (f64, f64) {
    match bound {
        WeightBound::Unbounded => (0.0, f64::INFINITY),
        WeightBound::Truncate { upper } => (1.0 / upper, upper),
        WeightBound::Zero { lower, upper } | WeightBound::Clamp { lower, upper } => (lower, upper),
        _ => panic!("no textbook version of this variant"),
    }
}

/// The log-ratio of a sequence, and the raw weight of each of its kept tokens.
fn raw_weights(slots: &[usize], old: &[f64], rollout: &[f64], config: &RolloutConfig) -> (f64, Vec<f64>) {
    let delta: Vec<f64> = slots.iter().map(|&slot| old[slot] - rollout[slot]).collect();
    let delta: Vec<f64> =
        delta.iter().map(|d| if d.is_nan() && config.unscored == Unscored::Ignore { 0.0 } else { *d }).collect();
    let ratio = |d: f64| match config.log_bound {
        LogBound::Unbounded => d.exp(),
        LogBound::At(bound) => d.max(-bound).min(bound).exp(),
        _ => panic!("no textbook version of this variant"),
    };
    let sum: f64 = delta.iter().sum();
    match config.level {
        RolloutLevel::Token => (sum, delta.into_iter().map(ratio).collect()),
        RolloutLevel::Sequence => (sum, vec![ratio(sum); slots.len()]),
        RolloutLevel::Geometric if slots.is_empty() => (sum, Vec::new()),
        RolloutLevel::Geometric => {
            let mean = sum / count(slots.len(), config.divisor);
            (mean, vec![ratio(mean); slots.len()])
        }
        _ => panic!("no textbook version of this variant"),
    }
}

/// The mean weight as configured, from the applied weights of each sequence.
fn mean_weight(applied: &[Vec<f64>], config: &RolloutConfig) -> f64 {
    if config.normalize == BatchNormalize::ByLevel && config.level != RolloutLevel::Token {
        let of_rows = applied.iter().filter(|row| !row.is_empty());
        let means: Vec<f64> = of_rows.map(|row| row.iter().sum::<f64>() / count(row.len(), config.divisor)).collect();
        return average(&means);
    }
    let all = applied.concat();
    all.iter().sum::<f64>() / count(all.len(), config.divisor)
}

/// The weight of each token, and their divisor.
pub(crate) fn rollout_weights(
    tokens: Tokens<'_>,
    old: &[f64],
    rollout: &[f64],
    config: &RolloutConfig,
) -> (Vec<f64>, f64) {
    let applied: Vec<Vec<f64>> = tokens
        .rows
        .iter()
        .map(|row| raw_weights(&tokens.kept_of(row), old, rollout, config).1)
        .map(|row| row.into_iter().map(|w| bounded(config.bound, w)).collect())
        .collect();
    let mean = mean_weight(&applied, config);
    let factor = if config.normalize == BatchNormalize::Off || mean <= 1e-8 { 1.0 } else { mean };
    let mut out = vec![0.0; tokens.keep.len()];
    for (slot, weight) in tokens.kept().into_iter().zip(applied.concat()) {
        out[slot] = weight / factor;
    }
    (out, factor)
}

/// The numbers under verl's keys, in their order; the second is the square of what verl logs.
pub(crate) fn rollout_weight_metrics(
    tokens: Tokens<'_>,
    old: &[f64],
    rollout: &[f64],
    config: &RolloutConfig,
) -> Vec<f64> {
    let (lower, upper) = band(config.bound);
    let rows: Vec<(f64, Vec<f64>)> =
        tokens.rows.iter().map(|row| raw_weights(&tokens.kept_of(row), old, rollout, config)).collect();
    let logs: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let raw: Vec<Vec<f64>> = rows.into_iter().map(|row| row.1).collect();
    let applied: Vec<Vec<f64>> =
        raw.iter().map(|row| row.iter().map(|&w| bounded(config.bound, w)).collect()).collect();
    let (all_raw, all) = (raw.concat(), applied.concat());
    let (n, b) = (count(all.len(), config.divisor), raw.len() as f64);
    let mean_of = |row: &Vec<f64>| match row.len() {
        0 => 0.0,
        kept => row.iter().sum::<f64>() / count(kept, config.divisor),
    };
    let means: Vec<f64> = applied.iter().map(mean_of).collect();
    let raw_means: Vec<f64> = raw.iter().map(mean_of).collect();
    let distances: Vec<f64> = means.iter().map(|mean| (mean - 1.0).abs()).collect();
    let held: Vec<f64> = all.iter().map(|w| w.max(0.0).min(upper)).collect();
    let held_mean = held.iter().sum::<f64>() / n;
    let mean_square = held.iter().map(|w| w * w).sum::<f64>() / n;
    let token = config.level == RolloutLevel::Token;
    let (high, low) = (share(&all_raw, |w| w > upper, n), share(&all_raw, |w| w < lower, n));
    let mut out = vec![
        all.iter().sum::<f64>() / n,
        held_variance(&all, 0.0, upper, n),
        if token { largest(&all) } else { largest(&logs).min(20.0).exp() },
        if token { smallest(&all) } else { smallest(&logs).exp() },
        if mean_square == 0.0 { 0.0 } else { (held_mean + 1e-8).powi(2) / mean_square },
        if token { high } else { share(&logs, |l| l > upper.ln(), b) },
        if token { low } else { share(&logs, |l| l < lower.ln(), b) },
        average(&means),
        sample_std(&means),
        largest(&means),
        smallest(&means),
        largest(&distances),
        share(&raw_means, |w| w > upper, b),
        share(&raw_means, |w| w < lower, b),
    ];
    if let WeightBound::Zero { .. } = config.bound {
        out.push(high + low);
    }
    if config.normalize != BatchNormalize::Off {
        let mean = mean_weight(&applied, config);
        out.push(if mean > 1e-8 { mean } else { 1.0 });
    }
    out
}

/// The parts of an option: the scope (token, sum, mean, max) and the statistic (1, 2, 3).
fn parts(option: RejectionOption) -> (&'static str, u8) {
    let name = option.name();
    let statistic = name.as_bytes()[name.len() - 1] - b'0';
    let scope = ["sum", "mean", "max"].into_iter().find(|scope| name.contains(scope)).unwrap_or("token");
    (scope, statistic)
}

/// The statistics of the kept tokens of one sequence, and that of the sequence.
fn statistics(
    slots: &[usize],
    old: &[f64],
    rollout: &[f64],
    criterion: &Criterion,
    divisor: Divisor,
) -> (Vec<f64>, f64) {
    let (scope, statistic) = parts(criterion.option);
    let of_tokens: Vec<f64> = slots
        .iter()
        .map(|&slot| {
            let d = (old[slot] - rollout[slot]).clamp(-20.0, 20.0);
            match statistic {
                1 => -d,
                2 => d * d / 2.0,
                _ => d.exp_m1() - d,
            }
        })
        .collect();
    let sum: f64 = of_tokens.iter().sum();
    let of_sequence = match scope {
        _ if slots.is_empty() => 0.0,
        "sum" => sum,
        "max" => largest(&of_tokens),
        _ => sum / count(slots.len(), divisor),
    };
    (of_tokens, of_sequence)
}

fn bounds(criterion: &Criterion) -> (f64, f64) {
    match parts(criterion.option).1 {
        1 => (criterion.lower.ln(), criterion.upper.ln()),
        _ => (f64::NEG_INFINITY, criterion.upper),
    }
}

/// 1 where every criterion is met.
pub(crate) fn rollout_rejection(
    tokens: Tokens<'_>,
    old: &[f64],
    rollout: &[f64],
    criteria: &[Criterion],
    divisor: Divisor,
) -> Vec<f64> {
    let mut out = tokens.fill(|_| 1.0);
    for criterion in criteria {
        let (low, high) = bounds(criterion);
        for row in tokens.rows {
            let slots = tokens.kept_of(row);
            let (of_tokens, of_sequence) = statistics(&slots, old, rollout, criterion, divisor);
            for (&slot, s) in slots.iter().zip(of_tokens) {
                let s = if parts(criterion.option).0 == "token" { s } else { of_sequence };
                if !(low <= s && s <= high) {
                    out[slot] = 0.0;
                }
            }
        }
    }
    out
}

/// The numbers under verl's keys for each criterion, the sixth of each squared, then both totals.
pub(crate) fn rollout_rejection_metrics(
    tokens: Tokens<'_>,
    old: &[f64],
    rollout: &[f64],
    criteria: &[Criterion],
    divisor: Divisor,
) -> Vec<f64> {
    let n = count(tokens.kept().len(), divisor);
    let mut out = Vec::new();
    for criterion in criteria {
        let (low, high) = bounds(criterion);
        let (token, ratios) = (parts(criterion.option).0 == "token", parts(criterion.option).1 == 1);
        let (mut all, mut sequences, mut touched) = (Vec::new(), Vec::new(), 0.0);
        for row in tokens.rows {
            let slots = tokens.kept_of(row);
            if slots.is_empty() {
                continue;
            }
            let (of_tokens, of_sequence) = statistics(&slots, old, rollout, criterion, divisor);
            let of_tokens = if token { of_tokens } else { vec![of_sequence; slots.len()] };
            touched += f64::from(u8::from(of_tokens.iter().any(|&s| s < low || s > high)));
            all.extend(of_tokens);
            sequences.push(of_sequence);
        }
        let b = sequences.len() as f64;
        let (units, of) = if token { (&all, n) } else { (&sequences, b) };
        let magnitudes: Vec<f64> = sequences.iter().map(|s| s.abs()).collect();
        out.extend([
            all.iter().sum::<f64>() / n,
            largest(units),
            smallest(units),
            share(units, |s| s > high, of),
            share(units, |s| s < low, of),
            held_variance(&all, if ratios { low } else { 0.0 }, high, n),
            average(&sequences),
            sample_std(&sequences),
            largest(&sequences),
            smallest(&sequences),
            largest(&magnitudes),
            share(&sequences, |s| s > high, b),
        ]);
        if ratios {
            out.push(share(&sequences, |s| s < low, b));
        }
        out.extend([share(&all, |s| s < low || s > high, n), touched / b]);
    }
    let kept = rollout_rejection(tokens, old, rollout, criteria, divisor);
    let dropped = |row: &std::ops::Range<usize>| tokens.kept_of(row).iter().any(|&slot| kept[slot] == 0.0);
    out.push(tokens.sum(|slot| 1.0 - kept[slot]) / n);
    out.push(tokens.rows.iter().filter(|row| dropped(row)).count() as f64 / tokens.rows.len() as f64);
    out
}
