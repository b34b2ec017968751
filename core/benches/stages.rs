//! Times formulas of every stage in `f32`: `cargo bench --package tokenwise`, with a part of a name to choose. Every
//! benchmark checks what it computed. `cargo xtask bench` compares the formulas with other implementations.

#![allow(clippy::unwrap_used, reason = "a benchmark that is refused its input has to fail")]

use std::hint::black_box;

use divan::{counter::ItemsCount, Bencher};
use tokenwise::{Batch, Layout, Mask, MeanConfig};

/// Sequences, and slots of each.
const SHAPE: (usize, usize) = (64, 1024);
const TOKENS: usize = SHAPE.0 * SHAPE.1;
/// Rows of logits, and entries of each.
const LOGITS: (usize, usize) = (4, 32_768);
/// The largest entropy of a row of logits: ln 32768.
const MOST_ENTROPY: f32 = 10.398;

fn main() {
    divan::main();
}

/// Uniform numbers between `low` and `high`, the same in every run.
fn uniform(len: usize, low: f32, high: f32, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..len).map(next).collect()
}

fn log_probs(seed: u64) -> Vec<f32> {
    uniform(TOKENS, -3.0, 0.0, seed)
}

/// Hands a padded batch with every sixteenth slot dropped to `use_batch`.
fn with_batch(use_batch: impl FnOnce(&Batch<'_>)) {
    let keep: Vec<bool> = (0..TOKENS).map(|slot| slot % 16 != 5).collect();
    let layout = Layout::padded(SHAPE.0, SHAPE.1).unwrap();
    use_batch(&Batch::new(layout, Mask::new(&keep)).unwrap());
}

/// Times `run` and returns what it last returned.
fn time<T>(bencher: Bencher<'_, '_>, items: usize, mut run: impl FnMut() -> tokenwise::Result<T>) -> T {
    let mut last = None;
    bencher.counter(ItemsCount::new(items)).bench_local(|| last = Some(black_box(run().unwrap())));
    last.unwrap()
}

mod policy {
    use tokenwise::policy::*;

    use super::*;

    #[divan::bench(name = "log_probs_and_entropy")]
    fn of_logits(bencher: Bencher<'_, '_>) {
        let logits = uniform(LOGITS.0 * LOGITS.1, -10.0, 10.0, 1);
        let batch = Batch::new(Layout::padded(1, LOGITS.0).unwrap(), Mask::new(&[true; LOGITS.0])).unwrap();
        let (mut log_probs, mut entropy) = ([0.0; LOGITS.0], [0.0; LOGITS.0]);
        time(bencher, logits.len(), || {
            let input = LogProbInput { logits: black_box(&logits), vocab: LOGITS.1, tokens: &[7; LOGITS.0] };
            let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
            log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output)
        });
        assert!(log_probs.iter().all(|x| *x < 0.0));
        assert!(entropy.iter().all(|x| *x > 0.0 && *x < MOST_ENTROPY));
    }
}

mod divergence {
    use tokenwise::divergence::*;

    use super::*;

    #[divan::bench(name = "kl_estimate k3")]
    fn k3(bencher: Bencher<'_, '_>) {
        let (new, reference, mut out) = (log_probs(1), log_probs(2), vec![0.0; TOKENS]);
        let config = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
        let input = KlInput { log_probs: &new, ref_log_probs: &reference };
        with_batch(|batch| time(bencher, TOKENS, || kl_estimate(batch, black_box(input), &config, &mut out)));
        assert!(out.iter().all(|kl| *kl >= 0.0) && out.iter().any(|kl| *kl > 0.0));
    }
}

mod reward {
    use tokenwise::reward::*;

    use super::*;

    #[divan::bench(name = "kl_in_reward")]
    fn with_kl(bencher: Bencher<'_, '_>) {
        let (old, reference, scores) = (log_probs(1), log_probs(2), uniform(TOKENS, -1.0, 1.0, 3));
        let (mut out, config) = (vec![0.0; TOKENS], KlRewardConfig::default());
        let input = KlInRewardInput { scores: &scores, old_log_probs: &old, ref_log_probs: &reference };
        with_batch(|batch| {
            let kl = time(bencher, TOKENS, || kl_in_reward(batch, black_box(input), &config, &mut out));
            assert!(kl.is_finite());
        });
        assert!(out.iter().all(|x| x.is_finite()) && out.iter().any(|x| *x != 0.0));
    }
}

mod advantage {
    use tokenwise::{advantage::*, metric::mean};

    use super::*;

    #[divan::bench(name = "gae")]
    fn of_rewards(bencher: Bencher<'_, '_>) {
        let (rewards, values) = (uniform(TOKENS, -1.0, 1.0, 1), uniform(TOKENS, -1.0, 1.0, 2));
        let (mut advantages, mut returns) = (vec![0.0; TOKENS], vec![0.0; TOKENS]);
        let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() };
        let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &[0.0; SHAPE.0] };
        with_batch(|batch| {
            time(bencher, TOKENS, || {
                let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
                gae(batch, black_box(input), &config, output)
            })
        });
        approx::assert_abs_diff_eq!(returns[0], advantages[0] + values[0], epsilon = 1e-5);
    }

    #[divan::bench(name = "whiten")]
    fn to_mean_zero(bencher: Bencher<'_, '_>) {
        let (values, mut out) = (uniform(TOKENS, -1.0, 3.0, 1), vec![0.0; TOKENS]);
        with_batch(|batch| {
            time(bencher, TOKENS, || whiten(batch, black_box(&values), &WhitenConfig::default(), &mut out));
            approx::assert_abs_diff_eq!(mean(batch, &out, &MeanConfig::default()).unwrap(), 0.0, epsilon = 1e-6);
        });
    }
}

mod rollout {
    use tokenwise::rollout::*;

    use super::*;

    #[divan::bench(name = "rollout_weights")]
    fn of_both_log_probs(bencher: Bencher<'_, '_>) {
        let (old, sampler, mut out) = (log_probs(1), log_probs(2), vec![0.0; TOKENS]);
        let (input, config) =
            (RolloutInput { old_log_probs: &old, rollout_log_probs: &sampler }, RolloutConfig::default());
        with_batch(|batch| {
            let kept = time(bencher, TOKENS, || rollout_weights(batch, black_box(input), &config, &mut out));
            assert!(kept.is_finite());
        });
        assert!(out.iter().all(|weight| *weight >= 0.0) && out.iter().any(|weight| *weight > 0.0));
    }
}

mod loss {
    use tokenwise::loss::*;

    use super::*;

    #[divan::bench(name = "ppo_clip")]
    fn of_advantages(bencher: Bencher<'_, '_>) {
        let (new, old, advantages) = (log_probs(1), log_probs(2), uniform(TOKENS, -2.0, 2.0, 3));
        let (mut grad, config) = (vec![0.0; TOKENS], PpoConfig::default());
        let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: None };
        with_batch(|batch| {
            let found = time(bencher, TOKENS, || ppo_clip(batch, black_box(input), &config, &mut grad));
            assert!(found.loss.is_finite());
        });
        assert!(grad.iter().all(|x| x.is_finite()) && grad.iter().any(|x| *x != 0.0));
    }

    #[divan::bench(name = "value_loss")]
    fn of_returns(bencher: Bencher<'_, '_>) {
        let numbers = |seed| uniform(TOKENS, -1.0, 1.0, seed);
        let (predictions, values, returns) = (numbers(1), numbers(2), numbers(3));
        let (mut grad, config) = (vec![0.0; TOKENS], ValueConfig::default());
        let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
        with_batch(|batch| {
            let found = time(bencher, TOKENS, || value_loss(batch, black_box(input), &config, &mut grad));
            assert!(found.loss > 0.0);
        });
    }
}

mod metric {
    use tokenwise::metric::*;

    use super::*;

    #[divan::bench(name = "mean")]
    fn of_kept(bencher: Bencher<'_, '_>) {
        let values = uniform(TOKENS, 0.0, 1.0, 1);
        with_batch(|batch| {
            let found = time(bencher, TOKENS, || mean(batch, black_box(&values), &MeanConfig::default()));
            approx::assert_abs_diff_eq!(found, 0.5, epsilon = 0.01);
        });
    }
}

mod control {
    use tokenwise::control::*;

    use super::*;

    #[divan::bench(name = "AdaptiveKl::update")]
    fn one_step(bencher: Bencher<'_, '_>) {
        let mut kl = AdaptiveKl::new(&AdaptiveKlConfig { beta: 0.2, target: 6.0, ..Default::default() }).unwrap();
        // on target: the coefficient stays
        assert_eq!(time(bencher, 1, || kl.update(black_box(6.0), 256)), 0.2);
    }
}
