//! KL, estimated from one token or summed over the vocabulary.

use tokenwise::divergence::{KlBounds, KlConfig, KlEstimator, KlGradient, KlWeight, KlWeightedConfig};

use super::{policy::log_softmax, Tokens};

fn clamp(x: f64, low: f64, high: f64) -> f64 {
    x.max(low).min(high)
}

/// The estimate for `d = log π − log π_ref`.
pub(crate) fn kl_value(config: &KlConfig, d: f64) -> f64 {
    let k3 = |u: f64| u.exp_m1() - u;
    match (config.estimator, config.bounds) {
        (KlEstimator::K3, KlBounds::K3Only) => clamp(k3(clamp(-d, -20.0, 20.0)), -10.0, 10.0),
        (KlEstimator::K3, KlBounds::Every) => clamp(k3((-d).min(10.0)), -10.0, 10.0),
        (KlEstimator::K3, KlBounds::Unbounded) => k3(-d),
        (estimator, bounds) => {
            let value = match estimator {
                KlEstimator::Abs => d.abs(),
                KlEstimator::K2 => d * d / 2.0,
                _ => d,
            };
            if bounds == KlBounds::Every {
                clamp(value, -10.0, 10.0)
            } else {
                value
            }
        }
    }
}

/// The derivative that goes with the estimate.
pub(crate) fn kl_slope(config: &KlConfig, d: f64) -> f64 {
    if config.gradient == KlGradient::StraightThrough {
        return d;
    }
    // where a bound holds the value, it no longer depends on d
    let free = KlConfig { bounds: KlBounds::Unbounded, ..*config };
    if kl_value(config, d) != kl_value(&free, d) {
        return 0.0;
    }
    match config.estimator {
        KlEstimator::K1 => 1.0,
        KlEstimator::Abs if d == 0.0 => 0.0,
        KlEstimator::Abs => d.signum(),
        KlEstimator::K2 => d,
        KlEstimator::K3 => 1.0 - (-d).exp(),
        _ => panic!("no textbook version of this variant"),
    }
}

/// The estimate of each token.
pub(crate) fn kl_estimate(tokens: Tokens<'_>, log_probs: &[f64], ref_log_probs: &[f64], config: &KlConfig) -> Vec<f64> {
    tokens.fill(|slot| kl_value(config, log_probs[slot] - ref_log_probs[slot]))
}

/// The derivative of each token's estimate.
pub(crate) fn kl_gradient(tokens: Tokens<'_>, log_probs: &[f64], ref_log_probs: &[f64], config: &KlConfig) -> Vec<f64> {
    tokens.fill(|slot| kl_slope(config, log_probs[slot] - ref_log_probs[slot]))
}

/// Σ p (ln p − ln q) of two rows of logits.
pub(crate) fn kl_of_rows(logits: &[f64], ref_logits: &[f64], temperature: f64) -> f64 {
    let (p, q) = (log_softmax(logits, temperature), log_softmax(ref_logits, temperature));
    p.iter().zip(&q).filter(|(p, _)| p.is_finite()).map(|(p, q)| p.exp() * (p - q)).sum()
}

/// The divergence of each token's distribution.
pub(crate) fn kl_exact(
    tokens: Tokens<'_>,
    logits: &[f64],
    ref_logits: &[f64],
    vocab: usize,
    temperature: f64,
) -> Vec<f64> {
    tokens.fill(|slot| {
        let row = slot * vocab..(slot + 1) * vocab;
        kl_of_rows(&logits[row.clone()], &ref_logits[row], temperature)
    })
}

/// ∂loss/∂logits through the exact divergence.
pub(crate) fn kl_exact_gradient(
    tokens: Tokens<'_>,
    logits: &[f64],
    ref_logits: &[f64],
    vocab: usize,
    grad_kl: &[f64],
    temperature: f64,
) -> Vec<f64> {
    let mut out = vec![0.0; logits.len()];
    for slot in tokens.kept() {
        let row = slot * vocab..(slot + 1) * vocab;
        let (p, q) =
            (log_softmax(&logits[row.clone()], temperature), log_softmax(&ref_logits[row.clone()], temperature));
        let kl = kl_of_rows(&logits[row.clone()], &ref_logits[row.clone()], temperature);
        for v in 0..vocab {
            out[slot * vocab + v] = grad_kl[slot] * p[v].exp() * (p[v] - q[v] - kl) / temperature;
        }
    }
    out
}

/// The weight of each token's estimate.
fn weights(tokens: Tokens<'_>, log_probs: &[f64], old: &[f64], weight: KlWeight) -> Vec<f64> {
    let mut out = tokens.fill(|slot| (log_probs[slot] - old[slot]).exp());
    match weight {
        KlWeight::Token | KlWeight::TokenBounded => {}
        KlWeight::ScoreFunction => out = tokens.fill(|_| 1.0),
        KlWeight::TokenFinite => out.iter_mut().filter(|w| !w.is_finite()).for_each(|w| *w = 0.0),
        KlWeight::Sequence => {
            for row in tokens.rows {
                let slots = tokens.kept_of(row);
                let sum: f64 = slots.iter().map(|&slot| log_probs[slot] - old[slot]).sum();
                for &slot in &slots {
                    out[slot] = (sum / slots.len() as f64).exp();
                }
            }
        }
        _ => panic!("no textbook version of this variant"),
    }
    out
}

/// w k(d).
pub(crate) fn kl_importance_weighted(
    tokens: Tokens<'_>,
    [log_probs, ref_log_probs, old]: [&[f64]; 3],
    config: &KlWeightedConfig,
) -> Vec<f64> {
    let weights = weights(tokens, log_probs, old, config.weight);
    tokens.fill(|slot| {
        let product = weights[slot] * kl_value(&config.kl, log_probs[slot] - ref_log_probs[slot]);
        if config.weight == KlWeight::TokenBounded {
            clamp(product, -10.0, 10.0)
        } else {
            product
        }
    })
}

/// g w k' plus the term through the weight.
pub(crate) fn kl_importance_weighted_gradient(
    tokens: Tokens<'_>,
    [log_probs, ref_log_probs, old]: [&[f64]; 3],
    grad_kl: &[f64],
    config: &KlWeightedConfig,
) -> Vec<f64> {
    let weights = weights(tokens, log_probs, old, config.weight);
    let d = |slot: usize| log_probs[slot] - ref_log_probs[slot];
    let mut out = tokens.fill(|slot| grad_kl[slot] * weights[slot] * kl_slope(&config.kl, d(slot)));
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        let through = |slot: usize| grad_kl[slot] * weights[slot] * kl_value(&config.kl, d(slot));
        let shared = slots.iter().map(|&slot| through(slot)).sum::<f64>() / slots.len() as f64;
        for &slot in &slots {
            out[slot] += if config.weight == KlWeight::Sequence { shared } else { through(slot) };
            let beyond = (weights[slot] * kl_value(&config.kl, d(slot))).abs() > 10.0;
            if config.weight == KlWeight::TokenBounded && beyond {
                out[slot] = 0.0;
            }
        }
    }
    out
}
