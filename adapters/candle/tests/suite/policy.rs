//! Log-probabilities and entropies, and their gradient to the logits.

use candle_core::{DType, Device, Tensor, Var, D};
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};
use tokenwise::policy::PolicyConfig;
use tokenwise_candle::{log_probs_and_entropy, token_log_probs, LogProbInput};

use crate::{
    plain::{KEEP, LEN, SEQUENCES},
    tape::{assert_near, flat, with_batch},
};

const VOCAB: usize = 37;

/// Logits with NaN in dropped slots, tokens, and a weight for each result.
fn random(dtype: DType, nan: bool) -> (Var, Tensor, [Tensor; 2]) {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut numbers = |len: usize, scale: f64| {
        (0..len).map(|_| scale * (f64::from(random.next_u32()) / 2_f64.powi(31) - 1.0)).collect()
    };
    let (mut logits, weights): (Vec<f64>, [Vec<f64>; 2]) =
        (numbers(KEEP.len() * VOCAB, 4.0), [numbers(KEEP.len(), 1.0), numbers(KEEP.len(), 1.0)]);
    if nan {
        logits.chunks_mut(VOCAB).zip(KEEP).filter(|(_, keep)| !keep).for_each(|(row, _)| row.fill(f64::NAN));
    }
    let logits = Tensor::from_vec(logits, (SEQUENCES, LEN, VOCAB), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
    let tokens: Vec<u32> = (0..KEEP.len()).map(|_| random.next_u32() % VOCAB as u32).collect();
    let tokens = Tensor::from_vec(tokens, (SEQUENCES, LEN), &Device::Cpu).unwrap();
    let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let weights = weights
        .map(|weights| Tensor::from_vec(weights, (SEQUENCES, LEN), &Device::Cpu).unwrap().to_dtype(computed).unwrap());
    (Var::from_tensor(&logits).unwrap(), tokens, weights)
}

fn adapted(dtype: DType, nan: bool, temperature: f64) -> (Vec<f64>, Vec<f64>) {
    let (logits, tokens, [a, b]) = random(dtype, nan);
    let input = LogProbInput { logits: &logits, tokens: &tokens };
    let config = PolicyConfig { temperature };
    let policy = with_batch(|batch, _| log_probs_and_entropy(batch, input, &config)).unwrap();
    let sum = ((&policy.log_probs * a).unwrap() + (&policy.entropy * b).unwrap()).unwrap().sum_all().unwrap();
    let results = Tensor::stack(&[&policy.log_probs, &policy.entropy], 0).unwrap();
    (flat(Some(&results), &results), flat(sum.backward().unwrap().get(&logits), &logits))
}

fn autodiff(dtype: DType, temperature: f64) -> (Vec<f64>, Vec<f64>) {
    let (logits, tokens, [a, b]) = random(dtype, false);
    let mask = Tensor::new(&KEEP.map(u8::from), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
    let mask = mask.reshape((SEQUENCES, LEN)).unwrap();
    let scaled = (logits.as_tensor() / temperature).unwrap();
    let log_sum = scaled.exp().unwrap().sum_keepdim(D::Minus1).unwrap().log().unwrap();
    let all = scaled.broadcast_sub(&log_sum).unwrap();
    let log_probs = all.gather(&tokens.unsqueeze(2).unwrap(), 2).unwrap().squeeze(2).unwrap();
    let log_probs = (log_probs * &mask).unwrap();
    let entropy = ((all.exp().unwrap() * &all).unwrap().sum(D::Minus1).unwrap().neg().unwrap() * mask).unwrap();
    let results = Tensor::stack(&[&log_probs, &entropy], 0).unwrap();
    let sum = ((log_probs * a).unwrap() + (entropy * b).unwrap()).unwrap().sum_all().unwrap();
    (flat(Some(&results), &results), flat(sum.backward().unwrap().get(&logits), &logits))
}

#[test]
fn gradients_are_those_of_autodiff() {
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-12)] {
        for temperature in [1.0, 0.7] {
            let (expected, got) = (autodiff(dtype, temperature), adapted(dtype, true, temperature));
            assert_near("results", &expected.0, &got.0, tolerance);
            assert_near("gradient", &expected.1, &got.1, tolerance);
        }
    }
}

#[test]
fn dropped_slots_change_nothing() {
    assert_eq!(adapted(DType::F32, true, 1.0), adapted(DType::F32, false, 1.0));
}

#[test]
fn half_precision_logits_are_read_as_they_are() {
    for dtype in [DType::BF16, DType::F16] {
        let (results, gradient) = adapted(dtype, true, 1.0);
        let (logits, tokens, [a, b]) = random(dtype, true);
        let wide = Var::from_tensor(&logits.to_dtype(DType::F32).unwrap()).unwrap();
        let input = LogProbInput { logits: &wide, tokens: &tokens };
        let policy = with_batch(|batch, _| log_probs_and_entropy(batch, input, &PolicyConfig::default())).unwrap();
        let both = Tensor::stack(&[&policy.log_probs, &policy.entropy], 0).unwrap();
        assert_eq!(flat(Some(&both), &both), results);
        let sum = ((policy.log_probs * a).unwrap() + (policy.entropy * b).unwrap()).unwrap().sum_all().unwrap();
        let expected = sum.backward().unwrap().get(&wide).unwrap().to_dtype(dtype).unwrap();
        assert_eq!(flat(Some(&expected), &expected), gradient);
    }
}

#[test]
fn log_probs_alone_have_the_same_bits() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let (logits, tokens, [weights, _]) = random(dtype, true);
        let input = LogProbInput { logits: &logits, tokens: &tokens };
        let config = PolicyConfig { temperature: 0.7 };
        let both = with_batch(|batch, _| log_probs_and_entropy(batch, input, &config)).unwrap().log_probs;
        let alone = with_batch(|batch, _| token_log_probs(batch, input, &config)).unwrap();
        assert_eq!((alone.dims(), flat(Some(&alone), &alone)), (both.dims(), flat(Some(&both), &both)));
        let gradient = |log_probs: &Tensor| {
            let gradients = (log_probs * &weights).unwrap().sum_all().unwrap().backward().unwrap();
            flat(gradients.get(&logits), &logits)
        };
        assert_eq!(gradient(&alone), gradient(&both));
    }
    let scalar = Tensor::new(0.0_f32, &Device::Cpu).unwrap();
    let input = LogProbInput { logits: &scalar, tokens: &scalar };
    assert!(with_batch(|batch, _| token_log_probs(batch, input, &PolicyConfig::default())).is_err());
}

#[test]
fn layouts_do_not_matter() {
    let (logits, tokens, _) = random(DType::F32, true);
    let run = |logits: &Tensor, tokens: &Tensor, leaf: &Var| {
        let input = LogProbInput { logits, tokens };
        let policy = with_batch(|batch, _| log_probs_and_entropy(batch, input, &PolicyConfig::default())).unwrap();
        let gradients = (policy.log_probs + policy.entropy).unwrap().sum_all().unwrap().backward().unwrap();
        gradients.get(leaf).unwrap().clone()
    };
    let expected = run(&logits, &tokens, &logits);
    let expected = flat(Some(&expected), &expected);

    let strided = Var::from_tensor(&logits.transpose(0, 1).unwrap().contiguous().unwrap()).unwrap();
    let view = strided.transpose(0, 1).unwrap();
    assert!(!view.is_contiguous());
    let ids = tokens.to_dtype(DType::I64).unwrap().t().unwrap().contiguous().unwrap().t().unwrap();
    let got = run(&view, &ids, &strided).transpose(0, 1).unwrap();
    assert_eq!(flat(Some(&got), &got), expected);

    // a view that does not start at the beginning of its storage
    let longer = Tensor::cat(&[&logits.ones_like().unwrap(), logits.as_tensor()], 0).unwrap();
    let longer = Var::from_tensor(&longer).unwrap();
    let got = run(&longer.narrow(0, SEQUENCES, SEQUENCES).unwrap(), &tokens, &longer);
    let got = got.narrow(0, SEQUENCES, SEQUENCES).unwrap();
    assert_eq!(flat(Some(&got), &got), expected);
}
