use super::*;
use crate::{Layout, Mask};

#[test]
fn gradients_are_the_slopes() {
    let keep = [true, true, false, true];
    let batch = Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&keep)).unwrap();
    let (new, reference) = ([-0.4, -1.1, f64::NAN, -0.8], [-0.6, -1.0, f64::NAN, -1.4]);
    let (old, grad_kl) = ([-0.5, -1.3, f64::NAN, -0.7], [1.0, 0.5, f64::NAN, -2.0]);
    for weight in [KlWeight::Token, KlWeight::Sequence, KlWeight::TokenBounded, KlWeight::TokenFinite] {
        let config = KlWeightedConfig { weight, ..Default::default() };
        let loss = |log_probs: &[f64; 4]| {
            let mut kl = [0.0; 4];
            let input = KlWeightedInput { log_probs, ref_log_probs: &reference, old_log_probs: &old };
            kl_importance_weighted(&batch, input, &config, &mut kl).unwrap();
            kl[0] * grad_kl[0] + kl[1] * grad_kl[1] + kl[3] * grad_kl[3]
        };
        let mut grad = [9.0; 4];
        let input = KlWeightedGradientInput {
            log_probs: &new,
            ref_log_probs: &reference,
            old_log_probs: &old,
            grad_kl: &grad_kl,
        };
        kl_importance_weighted_gradient(&batch, input, &config, &mut grad).unwrap();
        for slot in [0, 1, 3] {
            let (mut up, mut down) = (new, new);
            up[slot] += 1e-6;
            down[slot] -= 1e-6;
            let slope = (loss(&up) - loss(&down)) / 2e-6;
            assert!(
                approx::abs_diff_eq!(slope, grad[slot], epsilon = 1e-8),
                "{weight:?} {slot}: {slope} {}",
                grad[slot]
            );
        }
        assert_eq!(grad[2], 0.0);
    }
}

#[test]
fn the_mean_of_trl() {
    // the batch of `rollout::fixture`, without its dropped slots
    let new = [-0.45, -1.3, -0.2, -0.2, -0.6, -1.2, -0.65, -0.95, -1.0, -0.15, -0.9, -0.7, -1.1, -0.06, -0.2];
    let old = [-0.5, -1.0, -0.2, -0.7, -0.3, -2.0, -0.6, -0.9, -1.2, -0.1, -0.4, -0.8, -1.5, -0.05, -0.25];
    let reference = [-0.6, -1.1, -0.3, -0.9, -0.2, -2.2, -0.5, -1.0, -1.5, -0.2, -0.5, -0.9, -1.2, -0.1, -0.4];
    let batch = Batch::new(Layout::packed(&[0, 4, 8, 10, 15]).unwrap(), Mask::new(&[true; 15])).unwrap();
    let mut kl = [9.0; 15];
    let input = KlWeightedInput { log_probs: &new, ref_log_probs: &reference, old_log_probs: &old };
    kl_importance_weighted(&batch, input, &KlWeightedConfig::default(), &mut kl).unwrap();
    let mean: f64 = kl.iter().fold(0.0, |sum, kl| sum + kl) / 15.0;
    approx::assert_abs_diff_eq!(mean, 0.099375, epsilon = 1e-6);
}
