//! The kernels that are guarded, each with what it may cost.

use std::hint::black_box;

use tokenwise::{advantage::*, divergence::*, loss::*, metric::*, policy::*, *};

/// Sequences of a batch, and slots of each: 9/16 of them kept, as in a padded batch of answers.
const SHAPE: (usize, usize) = (32, 512);
/// Rows of logits, and entries of each.
const LOGITS: (usize, usize) = (8, 4096);

/// One kernel.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// Instructions per slot (per logit) with AVX2; about a fifth above what it takes. Code that is no longer vectorised takes a
    /// multiple of it.
    pub(crate) limit: f64,
    /// Slots (logits) of one call.
    pub(crate) slots: usize,
    /// Calls it so many times.
    pub(crate) run: fn(usize),
}

const TOKENS: usize = SHAPE.0 * SHAPE.1;
const ENTRIES: usize = LOGITS.0 * LOGITS.1;

pub(crate) const KERNELS: [Kernel; 20] = [
    Kernel { name: "gae/f32", limit: 7.0, slots: TOKENS, run: gae_of::<f32> },
    Kernel { name: "gae/f64", limit: 19.0, slots: TOKENS, run: gae_of::<f64> },
    Kernel { name: "discounted_returns/f32", limit: 4.6, slots: TOKENS, run: returns::<f32> },
    Kernel { name: "whiten/f32", limit: 10.5, slots: TOKENS, run: whitened::<f32> },
    Kernel { name: "whiten/f64", limit: 12.7, slots: TOKENS, run: whitened::<f64> },
    Kernel { name: "group advantages/f32", limit: 5.6, slots: TOKENS, run: grouped::<f32> },
    Kernel { name: "ppo_clip/f32", limit: 18.0, slots: TOKENS, run: ppo::<f32> },
    Kernel { name: "ppo_clip/f64", limit: 32.0, slots: TOKENS, run: ppo::<f64> },
    Kernel { name: "value_loss/f32", limit: 10.6, slots: TOKENS, run: value::<f32> },
    Kernel { name: "analysis/f32", limit: 22.0, slots: TOKENS, run: analysed::<f32> },
    Kernel { name: "analysis/f64", limit: 37.0, slots: TOKENS, run: analysed::<f64> },
    Kernel { name: "kl_estimate k1/f32", limit: 3.3, slots: TOKENS, run: |calls| kl::<f32>(KlEstimator::K1, calls) },
    Kernel { name: "kl_estimate k3/f32", limit: 12.0, slots: TOKENS, run: |calls| kl::<f32>(KlEstimator::K3, calls) },
    Kernel { name: "kl_gradient k3/f32", limit: 13.0, slots: TOKENS, run: kl_slope::<f32> },
    Kernel { name: "logits/f32", limit: 8.6, slots: ENTRIES, run: |calls| logits(|x| x as f32, calls) },
    Kernel { name: "logits/f64", limit: 22.7, slots: ENTRIES, run: |calls| logits(|x| x, calls) },
    Kernel { name: "logits/bf16", limit: 8.9, slots: ENTRIES, run: |calls| logits(half::bf16::from_f64, calls) },
    Kernel { name: "logits/f16", limit: 10.7, slots: ENTRIES, run: |calls| logits(half::f16::from_f64, calls) },
    Kernel { name: "logits_gradient/f32", limit: 16.0, slots: ENTRIES, run: |calls| slopes(|x| x as f32, calls) },
    Kernel { name: "logits_gradient/f64", limit: 41.5, slots: ENTRIES, run: |calls| slopes(|x| x, calls) },
];

/// Numbers without a pattern, between `low` and `high`.
fn numbers<R: Real>(low: f64, high: f64, seed: u64) -> Vec<R> {
    noise(TOKENS, seed).map(|x| R::narrow(low + (high - low) * x)).collect()
}

fn noise(len: usize, seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    (0..len).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    })
}

fn on_batch(calls: usize, mut call: impl FnMut(&Batch<'_>) -> Result<()>) {
    let length = |row: usize| SHAPE.1 / 8 + row * 37 % (SHAPE.1 * 7 / 8);
    let keep: Vec<bool> = (0..TOKENS).map(|slot| slot % SHAPE.1 < length(slot / SHAPE.1)).collect();
    let result = Layout::padded(SHAPE.0, SHAPE.1)
        .and_then(|layout| Batch::new(layout, Mask::new(&keep)))
        .and_then(|batch| (0..calls).try_for_each(|_| call(black_box(&batch))));
    assert_eq!(result, Ok(()), "a kernel refused its input");
}

fn gae_of<R: Real>(calls: usize) {
    let (rewards, values) = (numbers::<R>(-1.0, 1.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let (mut advantages, mut returns) = (rewards.clone(), rewards.clone());
    let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() };
    on_batch(calls, |batch| {
        let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &[R::zero(); SHAPE.0] };
        gae(batch, input, &config, GaeOutput { advantages: &mut advantages, returns: &mut returns })
    });
}

fn returns<R: Real>(calls: usize) {
    let rewards = numbers::<R>(-1.0, 1.0, 1);
    let mut out = rewards.clone();
    let config = ReturnsConfig { gamma: 0.99, ..Default::default() };
    on_batch(calls, |batch| {
        let input = ReturnsInput { rewards: &rewards, bootstrap: &[R::zero(); SHAPE.0] };
        discounted_returns(batch, input, &config, &mut out)
    });
}

fn whitened<R: Real>(calls: usize) {
    let values = numbers::<R>(-1.0, 1.0, 1);
    let mut out = values.clone();
    on_batch(calls, |batch| whiten(batch, &values, &WhitenConfig::default(), &mut out));
}

fn grouped<R: Real>(calls: usize) {
    let rewards = numbers::<R>(-1.0, 1.0, 1);
    let mut out = rewards.clone();
    let (mut scores, mut advantages) = ([R::zero(); SHAPE.0], [R::zero(); SHAPE.0]);
    let mut scratch = [Moments::default(); SHAPE.0 / 8];
    on_batch(calls, |batch| {
        let groups = Groups::contiguous(&[8; SHAPE.0 / 8])?;
        sequence_sums(batch, &rewards, &mut scores)?;
        group_relative(&groups, &scores, &GroupConfig::default(), &mut scratch, &mut advantages)?;
        broadcast(batch, &advantages, &mut out)
    });
}

fn ppo<R: Real>(calls: usize) {
    let (new, old) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let advantages = numbers::<R>(-2.0, 2.0, 3);
    let mut grad = new.clone();
    let config = PpoConfig { dual_clip: DualClip::NegativeOnly(3.0), ..Default::default() };
    on_batch(calls, |batch| {
        let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: None };
        ppo_clip(batch, input, &config, &mut grad).map(|loss| {
            black_box(loss);
        })
    });
}

fn value<R: Real>(calls: usize) {
    let (predictions, values) = (numbers::<R>(-1.0, 1.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let returns = numbers::<R>(-1.0, 1.0, 3);
    let mut grad = values.clone();
    on_batch(calls, |batch| {
        let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
        value_loss(batch, input, &ValueConfig::default(), &mut grad).map(|loss| {
            black_box(loss);
        })
    });
}

fn analysed<R: Real>(calls: usize) {
    let (old, rewards) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let advantages = numbers::<R>(-2.0, 2.0, 3);
    on_batch(calls, |batch| {
        let input = AnalysisInput { old_log_probs: &old, advantages: &advantages, rewards: &rewards };
        analysis(batch, input).map(|result| {
            black_box(result);
        })
    });
}

fn kl<R: Real>(estimator: KlEstimator, calls: usize) {
    let (new, reference) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let mut out = new.clone();
    let config = KlConfig { estimator, ..Default::default() };
    on_batch(calls, |batch| {
        kl_estimate(batch, KlInput { log_probs: &new, ref_log_probs: &reference }, &config, &mut out)
    });
}

fn kl_slope<R: Real>(calls: usize) {
    let (new, reference) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let mut out = new.clone();
    let config = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
    on_batch(calls, |batch| {
        kl_gradient(batch, KlInput { log_probs: &new, ref_log_probs: &reference }, &config, &mut out)
    });
}

fn on_logits<L: Logit>(of: fn(f64) -> L, calls: usize, mut call: impl FnMut(&Batch<'_>, &[L]) -> Result<()>) {
    let logits: Vec<L> = noise(ENTRIES, 5).map(|x| of(20.0 * x - 10.0)).collect();
    let keep = [true; LOGITS.0];
    let result = Layout::padded(1, LOGITS.0)
        .and_then(|layout| Batch::new(layout, Mask::new(&keep)))
        .and_then(|batch| (0..calls).try_for_each(|_| call(&batch, black_box(&logits))));
    assert_eq!(result, Ok(()), "a kernel refused its input");
}

fn logits<L: Logit>(of: fn(f64) -> L, calls: usize) {
    let (mut log_probs, mut entropy) = ([L::Compute::default(); LOGITS.0], [L::Compute::default(); LOGITS.0]);
    on_logits(of, calls, |batch, logits| {
        let input = LogProbInput { logits, vocab: LOGITS.1, tokens: &[7; LOGITS.0] };
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        log_probs_and_entropy(batch, input, &PolicyConfig::default(), output)
    });
}

fn slopes<L: Logit>(of: fn(f64) -> L, calls: usize) {
    let grads = [L::Compute::narrow(0.5); LOGITS.0];
    let mut out = vec![L::Compute::default(); ENTRIES];
    on_logits(of, calls, |batch, logits| {
        let input = LogitsGradientInput {
            logits,
            vocab: LOGITS.1,
            tokens: &[7; LOGITS.0],
            grad_log_probs: &grads,
            grad_entropy: &grads,
        };
        logits_gradient(batch, input, &PolicyConfig::default(), &mut out)
    });
}
