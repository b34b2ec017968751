//! The kernels whose instructions are counted.

#![allow(missing_docs, unused_qualifications, reason = "in what the macros of gungraun write")]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main, Callgrind, EventKind, LibraryBenchmarkConfig};
use tokenwise::{advantage::*, divergence::*, loss::*, metric::*, policy::*, *};
use tokenwise_guards::{ENTRIES, KERNELS, LOGITS, SHAPE, TOKENS};

/// A call of a kernel, with its data.
type Call = Box<dyn FnMut()>;

/// Fails above the limit of the kernel.
fn limit(name: &str) -> LibraryBenchmarkConfig {
    // a benchmark without an entry in the table may take no instruction at all
    let most =
        KERNELS.iter().find(|kernel| kernel.name == name).map_or(0.0, |kernel| kernel.limit * kernel.slots as f64);
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.hard_limits([(EventKind::Ir, most as u64)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

/// The first call, not counted, finds out what the processor can do.
fn warm(mut call: Call) -> Call {
    call();
    call
}

#[library_benchmark]
#[bench::gae_f32(args = (warm(gae_of::<f32>())), config = limit("gae_f32"))]
#[bench::gae_f64(args = (warm(gae_of::<f64>())), config = limit("gae_f64"))]
#[bench::discounted_returns_f32(args = (warm(returns::<f32>())), config = limit("discounted_returns_f32"))]
#[bench::whiten_f32(args = (warm(whitened::<f32>())), config = limit("whiten_f32"))]
#[bench::whiten_f64(args = (warm(whitened::<f64>())), config = limit("whiten_f64"))]
#[bench::group_advantages_f32(args = (warm(grouped::<f32>())), config = limit("group_advantages_f32"))]
#[bench::ppo_clip_f32(args = (warm(ppo::<f32>())), config = limit("ppo_clip_f32"))]
#[bench::ppo_clip_f64(args = (warm(ppo::<f64>())), config = limit("ppo_clip_f64"))]
#[bench::value_loss_f32(args = (warm(value::<f32>())), config = limit("value_loss_f32"))]
#[bench::analysis_f32(args = (warm(analysed::<f32>())), config = limit("analysis_f32"))]
#[bench::analysis_f64(args = (warm(analysed::<f64>())), config = limit("analysis_f64"))]
#[bench::kl_estimate_k1_f32(args = (warm(kl::<f32>(KlEstimator::K1))), config = limit("kl_estimate_k1_f32"))]
#[bench::kl_estimate_k3_f32(args = (warm(kl::<f32>(KlEstimator::K3))), config = limit("kl_estimate_k3_f32"))]
#[bench::kl_gradient_k3_f32(args = (warm(kl_slope::<f32>())), config = limit("kl_gradient_k3_f32"))]
#[bench::logits_f32(args = (warm(logits(|x| x as f32))), config = limit("logits_f32"))]
#[bench::logits_f64(args = (warm(logits(|x| x))), config = limit("logits_f64"))]
#[bench::logits_bf16(args = (warm(logits(half::bf16::from_f64))), config = limit("logits_bf16"))]
#[bench::logits_f16(args = (warm(logits(half::f16::from_f64))), config = limit("logits_f16"))]
#[bench::logits_gradient_f32(args = (warm(slopes(|x| x as f32))), config = limit("logits_gradient_f32"))]
#[bench::logits_gradient_f64(args = (warm(slopes(|x| x))), config = limit("logits_gradient_f64"))]
fn kernel(mut call: Call) -> Call {
    call();
    // returned, so that freeing the data is not counted
    call
}

library_benchmark_group!(name = kernels, benchmarks = kernel);
main!(library_benchmark_groups = kernels);

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

/// The data live as long as the process, which runs one kernel.
fn on_batch(mut call: impl FnMut(&Batch<'_>) -> Result<()> + 'static) -> Call {
    let length = |row: usize| SHAPE.1 / 8 + row * 37 % (SHAPE.1 * 7 / 8);
    let keep: Vec<bool> = (0..TOKENS).map(|slot| slot % SHAPE.1 < length(slot / SHAPE.1)).collect();
    let batch = Layout::padded(SHAPE.0, SHAPE.1).and_then(|layout| Batch::new(layout, Mask::new(keep.leak())));
    Box::new(move || {
        let result = batch.as_ref().map_err(Clone::clone).and_then(|batch| call(black_box(batch)));
        assert_eq!(result, Ok(()), "a kernel refused its input");
    })
}

fn gae_of<R: Real + 'static>() -> Call {
    let (rewards, values) = (numbers::<R>(-1.0, 1.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let (mut advantages, mut returns) = (rewards.clone(), rewards.clone());
    let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() };
    on_batch(move |batch| {
        let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &[R::zero(); SHAPE.0] };
        gae(batch, input, &config, GaeOutput { advantages: &mut advantages, returns: &mut returns })
    })
}

fn returns<R: Real + 'static>() -> Call {
    let rewards = numbers::<R>(-1.0, 1.0, 1);
    let mut out = rewards.clone();
    let config = ReturnsConfig { gamma: 0.99, ..Default::default() };
    on_batch(move |batch| {
        let input = ReturnsInput { rewards: &rewards, bootstrap: &[R::zero(); SHAPE.0] };
        discounted_returns(batch, input, &config, &mut out)
    })
}

fn whitened<R: Real + 'static>() -> Call {
    let values = numbers::<R>(-1.0, 1.0, 1);
    let mut out = values.clone();
    on_batch(move |batch| whiten(batch, &values, &WhitenConfig::default(), &mut out))
}

fn grouped<R: Real + 'static>() -> Call {
    let rewards = numbers::<R>(-1.0, 1.0, 1);
    let mut out = rewards.clone();
    let (mut scores, mut advantages) = ([R::zero(); SHAPE.0], [R::zero(); SHAPE.0]);
    let mut scratch = [Moments::default(); SHAPE.0 / 8];
    on_batch(move |batch| {
        let groups = Groups::contiguous(&[8; SHAPE.0 / 8])?;
        sequence_sums(batch, &rewards, &mut scores)?;
        group_relative(&groups, &scores, &GroupConfig::default(), &mut scratch, &mut advantages)?;
        broadcast(batch, &advantages, &mut out)
    })
}

fn ppo<R: Real + 'static>() -> Call {
    let (new, old) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let advantages = numbers::<R>(-2.0, 2.0, 3);
    let mut grad = new.clone();
    let config = PpoConfig { dual_clip: DualClip::NegativeOnly(3.0), ..Default::default() };
    on_batch(move |batch| {
        let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: None };
        ppo_clip(batch, input, &config, &mut grad).map(|loss| {
            black_box(loss);
        })
    })
}

fn value<R: Real + 'static>() -> Call {
    let (predictions, values) = (numbers::<R>(-1.0, 1.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let returns = numbers::<R>(-1.0, 1.0, 3);
    let mut grad = values.clone();
    on_batch(move |batch| {
        let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
        value_loss(batch, input, &ValueConfig::default(), &mut grad).map(|loss| {
            black_box(loss);
        })
    })
}

fn analysed<R: Real + 'static>() -> Call {
    let (old, rewards) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-1.0, 1.0, 2));
    let advantages = numbers::<R>(-2.0, 2.0, 3);
    on_batch(move |batch| {
        let input = AnalysisInput { old_log_probs: &old, advantages: &advantages, rewards: &rewards };
        analysis(batch, input).map(|result| {
            black_box(result);
        })
    })
}

fn kl<R: Real + 'static>(estimator: KlEstimator) -> Call {
    let (new, reference) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let mut out = new.clone();
    let config = KlConfig { estimator, ..Default::default() };
    on_batch(move |batch| kl_estimate(batch, KlInput { log_probs: &new, ref_log_probs: &reference }, &config, &mut out))
}

fn kl_slope<R: Real + 'static>() -> Call {
    let (new, reference) = (numbers::<R>(-3.0, 0.0, 1), numbers::<R>(-3.0, 0.0, 2));
    let mut out = new.clone();
    let config = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
    on_batch(move |batch| kl_gradient(batch, KlInput { log_probs: &new, ref_log_probs: &reference }, &config, &mut out))
}

fn on_logits<L: Logit + 'static>(
    of: fn(f64) -> L,
    mut call: impl FnMut(&Batch<'_>, &[L]) -> Result<()> + 'static,
) -> Call {
    let logits: Vec<L> = noise(ENTRIES, 5).map(|x| of(20.0 * x - 10.0)).collect();
    let batch = Layout::padded(1, LOGITS.0).and_then(|layout| Batch::new(layout, Mask::new(&[true; LOGITS.0])));
    Box::new(move || {
        let result = batch.as_ref().map_err(Clone::clone).and_then(|batch| call(batch, black_box(&logits)));
        assert_eq!(result, Ok(()), "a kernel refused its input");
    })
}

fn logits<L: Logit + 'static>(of: fn(f64) -> L) -> Call {
    let (mut log_probs, mut entropy) = ([L::Compute::default(); LOGITS.0], [L::Compute::default(); LOGITS.0]);
    on_logits(of, move |batch, logits| {
        let input = LogProbInput { logits, vocab: LOGITS.1, tokens: &[7; LOGITS.0] };
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        log_probs_and_entropy(batch, input, &PolicyConfig::default(), output)
    })
}

fn slopes<L: Logit + 'static>(of: fn(f64) -> L) -> Call {
    let grads = [L::Compute::narrow(0.5); LOGITS.0];
    let mut out = vec![L::Compute::default(); ENTRIES];
    on_logits(of, move |batch, logits| {
        let input = LogitsGradientInput {
            logits,
            vocab: LOGITS.1,
            tokens: &[7; LOGITS.0],
            grad_log_probs: &grads,
            grad_entropy: &grads,
        };
        logits_gradient(batch, input, &PolicyConfig::default(), &mut out)
    })
}
