//! Values on which drivers disagree: the result is the core's for each of them.

use tokenwise::{
    policy::{logits_gradient, LogitsGradientInput, PolicyConfig},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{Gpu, GpuBatch, Input, LogitColumns};

use crate::{adapter::gpu, gae::Sequences, log_probs::Rows, random::Random};

fn same(got: &[f32], core: &[f32], case: &str) {
    for (slot, (got, core)) in got.iter().zip(core).enumerate() {
        let both = got == core || (got.is_nan() && core.is_nan());
        let near = approx::relative_eq!(got, core, epsilon = 1e-5, max_relative = 1e-5);
        assert!(both || near, "slot {slot} of {case}: got {got}, core {core}");
    }
}

fn check_row(gpu: &Gpu, logits: &[f32], temperature: f64) {
    let rows = Rows {
        keep: vec![true; logits.len()],
        logits: logits.repeat(logits.len()),
        tokens: (0..logits.len() as u32).collect(),
        vocab: logits.len(),
    };
    let (log_probs, entropy) = rows.on(gpu, temperature).unwrap();
    let (core_log_probs, core_entropy) = rows.on_core(temperature);
    let case = format!("logits {logits:?} at temperature {temperature}");
    same(&log_probs, &core_log_probs, &case);
    same(&entropy, &core_entropy, &case);
}

#[test]
fn special_logits_are_the_cores() {
    let Some(gpu) = gpu() else { return };
    const INF: f32 = f32::INFINITY;
    let tiny = f32::from_bits(1);
    for logits in [
        vec![f32::NAN],
        vec![1.0, f32::NAN, 2.0],
        vec![1.0, -f32::NAN],
        vec![f32::from_bits(0x7f80_0001), 1.0],
        vec![1.0, INF, 2.0],
        vec![-INF, -INF, -INF],
        vec![-INF],
        vec![INF, -INF],
        vec![1.0, -INF, 2.0, -INF],
        vec![-INF, 0.0],
        vec![f32::MAX, f32::MIN],
        vec![f32::MIN, f32::MIN],
        vec![f32::MAX, f32::MAX],
        vec![f32::MIN, 0.0, 1.0],
        vec![tiny, -tiny, 0.0, -0.0],
        vec![-87.0, -88.0, -103.0, -104.0, -105.0, 0.0],
        vec![1e5, 1e5 + 1.0, 1e5 - 1.0],
    ] {
        // 3e38 has no normal reciprocal in f32
        for temperature in [1.0, 0.5, 4.0, 2e-38, 3e38] {
            check_row(gpu, &logits, temperature);
        }
    }
}

/// One special logit in each row, wherever a thread reads it: alone, among four, among sixteen. A vocabulary that is not
/// a multiple of four is read word by word.
#[test]
fn special_logits_at_any_place_are_the_cores() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(21);
    // at temperature ½ the last is infinite
    let poisons = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MAX];
    for vocab in [4, 5, 1027, 4096, 4100, 4103, 9216] {
        let places: Vec<usize> = [0, 1, 1026, 4095, 4099, vocab - 1].into_iter().filter(|&at| at < vocab).collect();
        let count = places.len() * poisons.len();
        let mut rows = Rows::random(&mut random, count, vocab, 3.0);
        rows.keep.fill(true);
        for (row, logits) in rows.logits.chunks_exact_mut(vocab).enumerate() {
            logits[places[row / poisons.len()]] = poisons[row % poisons.len()];
        }
        let layout = Layout::padded(1, count).unwrap();
        let batch = Batch::new(layout, Mask::new(&rows.keep)).unwrap();
        let (grad_log_probs, grad_entropy) = (random.normals(count, 1.0), random.normals(count, 0.1));
        for temperature in [1.0, 0.5] {
            let case = format!("vocabulary {vocab} at temperature {temperature}");
            let (log_probs, entropy) = rows.on(gpu, temperature).unwrap();
            let (core_log_probs, core_entropy) = rows.on_core(temperature);
            same(&log_probs, &core_log_probs, &case);
            same(&entropy, &core_entropy, &case);
            for with_entropy in [false, true] {
                let zeros = vec![0.0; count];
                let grad_entropy = if with_entropy { &grad_entropy } else { &zeros };
                let config = PolicyConfig { temperature };
                let (logits, tokens) = (Input::from(&rows.logits), Input::from(&rows.tokens));
                let mut recording = gpu.record();
                let batch = GpuBatch::new(batch);
                let found = recording.log_probs(&batch, &LogitColumns { logits, vocab, tokens }, &config).unwrap();
                let entropy = with_entropy.then(|| Input::from(grad_entropy));
                let grad = Input::from(&grad_log_probs);
                let grad = recording.logits_gradient(&batch, &found, &grad, entropy.as_ref()).unwrap();
                let grad = recording.download(&grad);
                let done = pollster::block_on(recording.submit()).unwrap();
                let input = LogitsGradientInput {
                    logits: &rows.logits,
                    vocab,
                    tokens: &rows.tokens,
                    grad_log_probs: &grad_log_probs,
                    grad_entropy,
                };
                let mut core = vec![9.0; rows.logits.len()];
                logits_gradient(batch.host(), input, &config, &mut core).unwrap();
                same(done.floats(grad), &core, &format!("gradient of {case}, entropy {with_entropy}"));
            }
        }
    }
}

#[test]
fn special_rewards_are_the_cores() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(20);
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e30] {
        for place in 0..3 {
            let mut sequences = Sequences::random(&mut random, &[5, 40, 0, 3000, 1], 70);
            let slot = (5..45).find(|&slot| sequences.keep[slot]).unwrap();
            match place {
                0 => sequences.rewards[slot] = poison,
                1 => sequences.values[slot] = poison,
                _ => sequences.bootstrap[3] = poison,
            }
            sequences.gamma_lambda = (0.99, 0.95);
            let (advantages, returns) = sequences.on(gpu).unwrap();
            let (core_advantages, core_returns) = sequences.on_core();
            // computed by the core, so bits must match
            let sequence = if place == 2 { 45..3045 } else { 5..45 };
            for slot in sequence {
                let (got, core) = (advantages[slot], core_advantages[slot]);
                assert!(got.to_bits() == core.to_bits() || (got.is_nan() && core.is_nan()));
            }
            same(&advantages, &core_advantages, &format!("{poison} at place {place}"));
            same(&returns, &core_returns, &format!("{poison} at place {place}"));
        }
    }
}
