//! Log-probabilities and entropies against the core, in value and gradient.

use burn::tensor::{DType, Int, Tensor, TensorData};
use tokenwise::policy::{self, LogitsGradientInput, PolicyConfig};
use tokenwise_burn::{log_probs_and_entropy, LogProbInput};

use crate::{
    plain::{KEEP, LEN, SEQUENCES, SLOTS, VOCAB},
    tape::{assert_near, device, host, tensor, with_batch},
};

#[test]
fn results_and_gradients_are_those_of_the_core() {
    let mut logits: Vec<f64> = (0..SLOTS * VOCAB).map(|i| ((i * i * 37 + i * 11) % 257) as f64 / 32.0 - 4.0).collect();
    // an excluded entry, and rows that are never read
    logits[1] = f64::NEG_INFINITY;
    logits.chunks_mut(VOCAB).zip(KEEP).filter(|(_, keep)| !keep).for_each(|(row, _)| row.fill(f64::NAN));
    let tokens: Vec<u32> = (0..SLOTS as u32).map(|slot| if KEEP[slot as usize] { slot * 3 % 5 } else { 999 }).collect();
    let (a, b): (Vec<f64>, Vec<f64>) = (0..SLOTS).map(|i| (i as f64 / 8.0 - 1.0, 0.5 - i as f64 / 16.0)).unzip();

    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-12)] {
        let config = PolicyConfig { temperature: 0.8 };
        let leaf = tensor(&logits, dtype).reshape([SEQUENCES, LEN, VOCAB]).require_grad();
        let ids = tokens.iter().map(|&id| i64::from(id)).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new::<i64, _>(ids, [SEQUENCES, LEN]), &device());
        let input = LogProbInput { logits: leaf.clone(), tokens: ids };
        let policy = with_batch(|batch, _| log_probs_and_entropy(batch, input, &config)).unwrap();
        let weigh = |x: &Tensor<2>, by: &[f64]| x.clone() * tensor(by, dtype).reshape([SEQUENCES, LEN]);
        let sum = (weigh(&policy.log_probs, &a) + weigh(&policy.entropy, &b)).sum();
        let gradient = host(&leaf.grad(&sum.backward()).unwrap());

        let (mut log_probs, mut entropy, mut expected) = (vec![0.0; SLOTS], vec![0.0; SLOTS], vec![0.0; logits.len()]);
        let input = policy::LogProbInput { logits: &logits, vocab: VOCAB, tokens: &tokens };
        let output = policy::LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        with_batch(|batch, _| policy::log_probs_and_entropy(batch, input, &config, output)).unwrap();
        let input = LogitsGradientInput {
            logits: &logits,
            vocab: VOCAB,
            tokens: &tokens,
            grad_log_probs: &a,
            grad_entropy: &b,
        };
        with_batch(|batch, _| policy::logits_gradient(batch, input, &config, &mut expected)).unwrap();
        assert_near("log_probs", &log_probs, &host(&policy.log_probs), tolerance);
        assert_near("entropy", &entropy, &host(&policy.entropy), tolerance);
        assert_near("gradient", &expected, &gradient, tolerance);
    }
}
