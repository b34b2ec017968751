//! The numbers a trainer logs.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    loss::DualClip,
    metric::{ClipConfig, ClipFractions, ExplainedVarianceConfig, KlMeans},
    Divisor, Spread,
};

use super::{advantage::sequence_sums, count, divergence::kl_value, loss::held_ratio, mean_and_variance, Tokens};

fn kept(tokens: Tokens<'_>, values: &[f64]) -> Vec<f64> {
    tokens.kept().iter().map(|&slot| values[slot]).collect()
}

/// Mean over the kept tokens.
pub(crate) fn mean(tokens: Tokens<'_>, values: &[f64], divisor: Divisor) -> f64 {
    tokens.mean(divisor, |slot| values[slot])
}

/// Variance over the kept tokens.
pub(crate) fn variance(tokens: Tokens<'_>, values: &[f64], spread: Spread, divisor: Divisor) -> f64 {
    mean_and_variance(&kept(tokens, values), spread, divisor).1
}

/// Mean of `(x − x̄)(y − ȳ)`.
pub(crate) fn covariance(tokens: Tokens<'_>, x: &[f64], y: &[f64]) -> f64 {
    let (mean_x, mean_y) = (mean(tokens, x, Divisor::Count), mean(tokens, y, Divisor::Count));
    tokens.mean(Divisor::Count, |slot| (x[slot] - mean_x) * (y[slot] - mean_y))
}

/// Pearson's correlation.
pub(crate) fn correlation(tokens: Tokens<'_>, x: &[f64], y: &[f64]) -> f64 {
    covariance(tokens, x, y) / (covariance(tokens, x, x) * covariance(tokens, y, y)).sqrt()
}

/// 1 − Var(G − V) / (Var(G) + ε).
pub(crate) fn explained_variance(
    tokens: Tokens<'_>,
    values: &[f64],
    returns: &[f64],
    config: &ExplainedVarianceConfig,
) -> f64 {
    let residuals = tokens.fill(|slot| returns[slot] - values[slot]);
    let var = |x: &[f64]| variance(tokens, x, config.spread, Divisor::Count);
    1.0 - var(&residuals) / (var(returns) + config.epsilon)
}

/// The mean of each estimate.
pub(crate) fn kl_means(tokens: Tokens<'_>, log_probs: &[f64], ref_log_probs: &[f64], divisor: Divisor) -> KlMeans {
    let mean = |estimator| {
        let config = KlConfig { estimator, ..KlConfig::default() };
        tokens.mean(divisor, |slot| kl_value(&config, log_probs[slot] - ref_log_probs[slot]))
    };
    let (k1, abs) = (mean(KlEstimator::K1), mean(KlEstimator::Abs));
    let mut result = KlMeans::default();
    result.k1 = k1;
    result.abs = abs;
    result.k2 = mean(KlEstimator::K2);
    result.k3 = mean(KlEstimator::K3);
    result
}

/// Shares of tokens held by the clip.
pub(crate) fn clip_fractions(
    tokens: Tokens<'_>,
    log_probs: &[f64],
    old_log_probs: &[f64],
    advantages: &[f64],
    config: &ClipConfig,
) -> ClipFractions {
    let share = |yes: &dyn Fn(f64, f64) -> bool| {
        tokens.mean(config.divisor, |slot| {
            let ratio = (log_probs[slot] - old_log_probs[slot]).exp();
            if yes(ratio, advantages[slot]) {
                1.0
            } else {
                0.0
            }
        })
    };
    let held = |ratio: f64| held_ratio(ratio, config.dual_clip);
    let low = share(&|ratio, a| a < 0.0 && held(ratio) < 1.0 - config.clip_low);
    let high = share(&|ratio, a| a > 0.0 && held(ratio) > 1.0 + config.clip_high);
    let dual = share(&|ratio, a| match config.dual_clip {
        DualClip::Off => false,
        DualClip::NegativeOnly(c) => a < 0.0 && ratio > c,
        DualClip::BothSigns(delta) => ratio > delta,
        _ => panic!("no textbook version of this variant"),
    });
    let mut result = ClipFractions::default();
    result.clipped = low + high;
    result.low = low;
    result.high = high;
    result.dual = dual;
    result
}

/// The five numbers under the `analysis/` keys, in their order.
pub(crate) fn analysis(tokens: Tokens<'_>, old_log_probs: &[f64], advantages: &[f64], rewards: &[f64]) -> [f64; 5] {
    let p = |slot: usize| old_log_probs[slot].exp();
    let h = |slot: usize| if p(slot) == 0.0 { 0.0 } else { -p(slot) * old_log_probs[slot] };
    let w = |slot: usize| p(slot) * (1.0 - p(slot)) * advantages[slot].abs();
    [
        tokens.mean(Divisor::Count, h),
        covariance(tokens, advantages, old_log_probs),
        tokens.sum(|slot| w(slot) * h(slot)),
        tokens.mean(Divisor::Count, |slot| w(slot) * h(slot)),
        tokens.sum(|slot| rewards[slot]) / tokens.rows.len() as f64,
    ]
}

/// Mean of each sequence, 0 for an empty one.
pub(crate) fn row_means(tokens: Tokens<'_>, values: &[f64], divisor: Divisor) -> Vec<f64> {
    let sums = tokens.rows.iter().zip(sequence_sums(tokens, values));
    let means = sums.map(|(row, sum)| match tokens.kept_of(row).len() {
        0 => 0.0,
        kept => sum / count(kept, divisor),
    });
    means.collect()
}

/// Each sequence minus its mean, divided by its deviation.
pub(crate) fn row_normalize(tokens: Tokens<'_>, values: &[f64], floor: f64) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        let numbers: Vec<f64> = slots.iter().map(|&slot| values[slot]).collect();
        let (mean, variance) = mean_and_variance(&numbers, Spread::Population, Divisor::Count);
        for slot in slots {
            out[slot] = (values[slot] - mean) / variance.max(floor).sqrt();
        }
    }
    out
}

/// From the sorted numbers, interpolated between neighbours.
pub(crate) fn quantile(tokens: Tokens<'_>, values: &[f64], level: f64) -> f64 {
    let mut sorted = kept(tokens, values);
    sorted.sort_by(f64::total_cmp);
    let place = level * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// (Σ w)² / Σ w².
pub(crate) fn effective_sample_size(tokens: Tokens<'_>, weights: &[f64]) -> f64 {
    tokens.sum(|slot| weights[slot]).powi(2) / tokens.sum(|slot| weights[slot] * weights[slot])
}

/// The five numbers under verl's keys, in their order.
pub(crate) fn variance_proxy(
    tokens: Tokens<'_>,
    [old, squares, advantages]: [&[f64]; 3],
    weights: Option<&[f64]>,
    norm: f64,
    divisor: Divisor,
) -> [f64; 5] {
    let b = tokens.rows.len() as f64;
    let w = |slot: usize| weights.map_or(1.0, |weights| weights[slot]);
    let s = |slot: usize| 1.0 - 2.0 * old[slot].exp() + squares[slot];
    let (mut power, mut a_squared, mut expected_w) = (0.0, 0.0, 0.0);
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        if slots.is_empty() {
            continue;
        }
        let sum = |f: &dyn Fn(usize) -> f64| slots.iter().map(|&slot| f(slot)).sum::<f64>();
        let n = count(slots.len(), divisor);
        let a = sum(&|slot| advantages[slot]) / n;
        let mean_weight = if weights.is_some() { sum(&w) / n } else { 1.0 };
        let size = sum(&|slot| s(slot) * w(slot).powi(2) / w(slot).powi(2).max(1e-10)).max(0.0);
        power += (mean_weight * a).powi(2) * size / b;
        a_squared += a * a / b;
        expected_w += sum(&|slot| w(slot).powi(2) * s(slot)) / b;
    }
    let noise = if b > 1.0 { ((power - norm * norm) / (b - 1.0)).max(0.0) } else { 0.0 };
    [norm * norm, power, noise, a_squared, expected_w]
}
