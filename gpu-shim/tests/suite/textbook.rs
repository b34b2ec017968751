//! The formulas as the papers write them, in `f64`, with the scale each tolerance refers to.

use tokenwise::{advantage::Across, math};

/// Log-probability of `token`, entropy, and the largest finite |z|.
pub(crate) fn row(logits: &[f32], token: usize, temperature: f64) -> (f64, f64, f64) {
    let scale = f64::from((1.0 / temperature) as f32);
    let z: Vec<f64> = logits.iter().map(|&logit| f64::from(logit) * scale).collect();
    let max = z.iter().fold(f64::NEG_INFINITY, |max, &z| max.max(z));
    let largest = z.iter().filter(|z| z.is_finite()).fold(0.0_f64, |largest, z| largest.max(z.abs()));
    let mut sum = 0.0;
    for z in &z {
        sum += math::exp(z - max);
    }
    let log_sum = math::ln(sum);
    let mut entropy = 0.0;
    for z in z.iter().filter(|z| z.is_finite()) {
        let log_prob = z - max - log_sum;
        entropy -= math::exp(log_prob) * log_prob;
    }
    (z[token] - max - log_sum, entropy, largest)
}

/// Advantages, returns and the sum of the magnitudes, one sequence.
pub(crate) fn gae(
    keep: &[bool],
    (rewards, values): (&[f32], &[f32]),
    bootstrap: f32,
    (gamma, lambda): (f64, f64),
    across: Across,
) -> Vec<(f64, f64, f64)> {
    // config numbers are rounded once, on entry
    let decay = f64::from((gamma * lambda) as f32);
    let gamma = f64::from(gamma as f32);
    let mut out = vec![(0.0, 0.0, 0.0); keep.len()];
    let Some(last) = keep.iter().rposition(|&keep| keep) else { return out };
    let (mut next_value, mut advantage, mut magnitude) = (f64::from(bootstrap), 0.0, 0.0);
    for t in (0..=last).rev() {
        let (reward, value) = match (keep[t], across) {
            (true, _) => (f64::from(rewards[t]), f64::from(values[t])),
            (false, Across::ZeroStep) => (0.0, 0.0),
            (false, _) => continue,
        };
        advantage = reward + gamma * next_value - value + decay * advantage;
        magnitude = reward.abs() + gamma * next_value.abs() + value.abs() + decay * magnitude;
        next_value = value;
        if keep[t] {
            out[t] = (advantage, advantage + value, magnitude);
        }
    }
    out
}
