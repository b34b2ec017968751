//! Log-probabilities and entropies from logits on the device, in value and gradient.

use burn::tensor::{DType, Device, Int, Tensor};
use tokenwise::policy::{self, LogitsGradientInput, PolicyConfig};
use tokenwise_burn::{log_probs_and_entropy, LogProbInput};
use tokenwise_gpu::tolerance::{ENTROPY, LOG_PROB, TOKEN};

use super::{assert_within, batch, device, floats, host, ids, mask, on_device, random};

const VOCAB: usize = 1003;
const CONFIG: PolicyConfig = PolicyConfig { temperature: 0.8 };

struct Rows {
    keep: Vec<bool>,
    logits: Vec<f32>,
    tokens: Vec<u32>,
    /// Gradients of a later loss.
    slopes: [Vec<f32>; 2],
}

impl Rows {
    fn new() -> Self {
        let keep = mask(4 * 9);
        let mut logits: Vec<f32> = random(5, keep.len() * VOCAB).into_iter().map(|number| 8.0 * number).collect();
        // an excluded entry, and rows that are never read
        logits[1] = f32::NEG_INFINITY;
        let dropped = logits.chunks_mut(VOCAB).zip(&keep).filter(|(_, keep)| !**keep);
        dropped.for_each(|(row, _)| row.fill(f32::NAN));
        let id = |(slot, &keep): (usize, &bool)| if keep { (slot * 31 % VOCAB) as u32 } else { 99_999 };
        let tokens = keep.iter().enumerate().map(id).collect();
        let slopes = [6, 7].map(|seed| random(seed, keep.len()));
        Self { keep, logits, tokens, slopes }
    }

    /// Log-probabilities, entropies and the gradient of the logits, by the core in f64.
    fn exact(&self) -> [Vec<f64>; 3] {
        let wide = |numbers: &[f32]| numbers.iter().map(|&number| f64::from(number)).collect::<Vec<f64>>();
        let (logits, [a, b]) = (wide(&self.logits), [0, 1].map(|i| wide(&self.slopes[i])));
        let batch = batch(4, &self.keep);
        let [mut log_probs, mut entropy] = [vec![0.0; self.keep.len()], vec![0.0; self.keep.len()]];
        let mut gradient = vec![0.0; logits.len()];
        let input = policy::LogProbInput { logits: &logits, vocab: VOCAB, tokens: &self.tokens };
        let output = policy::LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        policy::log_probs_and_entropy(&batch, input, &CONFIG, output).unwrap();
        let input = LogitsGradientInput {
            logits: &logits,
            vocab: VOCAB,
            tokens: &self.tokens,
            grad_log_probs: &a,
            grad_entropy: &b,
        };
        policy::logits_gradient(&batch, input, &CONFIG, &mut gradient).unwrap();
        [log_probs, entropy, gradient]
    }

    fn input(&self, logits: Tensor<1>) -> LogProbInput<3, 2> {
        let logits = logits.reshape([4, 9, VOCAB]);
        LogProbInput { logits, tokens: ids(&self.tokens).reshape([4, 9]) }
    }

    /// The three on the device, from this leaf.
    fn on_device(&self, leaf: &Tensor<1>) -> [Vec<f32>; 3] {
        let input = self.input(leaf.clone());
        let policy = on_device().log_probs_and_entropy(&batch(4, &self.keep), input, &CONFIG).unwrap();
        let weigh = |x: &Tensor<2>, by: &[f32]| x.clone() * floats(by).inner().reshape([4, 9]);
        let sum = weigh(&policy.log_probs, &self.slopes[0]) + weigh(&policy.entropy, &self.slopes[1]);
        let gradient = leaf.grad(&sum.sum().backward()).unwrap();
        [host(&policy.log_probs), host(&policy.entropy), host(&gradient)]
    }

    fn check(&self, got: &[Vec<f32>; 3]) {
        let [log_probs, entropy, gradient] = self.exact();
        assert_within("log_probs", LOG_PROB, &log_probs, &got[0], 10.0);
        assert_within("entropy", ENTROPY, &entropy, &got[1], 0.0);
        assert_within("gradient", TOKEN, &gradient, &got[2], 0.0);
        let dropped = got[2].chunks(VOCAB).zip(&self.keep).filter(|(_, keep)| !**keep);
        assert!(dropped.into_iter().all(|(row, _)| row.iter().all(|&slope| slope == 0.0)));
    }
}

#[test]
fn results_and_gradients_are_those_of_the_core() {
    let rows = Rows::new();
    rows.check(&rows.on_device(&floats(&rows.logits).require_grad()));
}

#[test]
fn gradient_checkpointing_changes_nothing() {
    let rows = Rows::new();
    let device: Device = device().gradient_checkpointing();
    let leaf = Tensor::<1>::from_floats(rows.logits.as_slice(), &device).require_grad();
    rows.check(&rows.on_device(&leaf));
}

/// A layer below and a loss above: the gradient goes through.
#[test]
fn the_operation_is_part_of_the_graph() {
    let rows = Rows::new();
    let leaf = floats(&rows.logits).require_grad();
    let policy =
        on_device().log_probs_and_entropy(&batch(4, &rows.keep), rows.input(leaf.clone() * 0.5), &CONFIG).unwrap();
    let gradient = leaf.grad(&policy.log_probs.sum().backward()).unwrap();
    let peer = floats(&rows.logits).require_grad();
    let expected = log_probs_and_entropy(&batch(4, &rows.keep), rows.input(peer.clone() * 0.5), &CONFIG).unwrap();
    let expected = peer.grad(&expected.log_probs.sum().backward()).unwrap();
    let expected: Vec<f64> = host(&expected).into_iter().map(f64::from).collect();
    assert_within("gradient", TOKEN, &expected, &host(&gradient), 0.0);

    // without autodiff there is no graph
    let plain = on_device().log_probs_and_entropy(&batch(4, &rows.keep), rows.input(leaf.inner()), &CONFIG).unwrap();
    assert!(!plain.log_probs.is_autodiff());
}

#[test]
fn logits_in_half_precision_are_read_as_they_are() {
    let mut rows = Rows::new();
    let half = floats(&rows.logits).cast(DType::F16);
    // what the core sees
    rows.logits = host(&half);
    let leaf = half.require_grad();
    let input = rows.input(leaf.clone());
    let policy = on_device().log_probs_and_entropy(&batch(4, &rows.keep), input, &CONFIG).unwrap();
    let gradient = leaf.grad(&policy.log_probs.clone().sum().backward()).unwrap();
    assert_eq!(gradient.dtype(), DType::F16);
    let [log_probs, ..] = rows.exact();
    assert_within("log_probs", LOG_PROB, &log_probs, &host(&policy.log_probs), 10.0);
}

/// What the device cannot answer, burn's operations do.
#[test]
fn a_row_that_is_not_finite_is_computed_by_burn() {
    let mut rows = Rows::new();
    rows.logits[VOCAB + 2] = f32::NAN;
    let got = rows.on_device(&floats(&rows.logits).require_grad());
    assert!(got[0][1].is_nan() && got[0][2].is_finite());
}

#[test]
fn ids_of_another_type_are_sent() {
    let rows = Rows::new();
    let wide: Vec<i64> = rows.tokens.iter().map(|&id| i64::from(id)).collect();
    let tokens = Tensor::<1, Int>::from_data(wide.as_slice(), (&device(), DType::I64)).reshape([4, 9]);
    let input = LogProbInput { tokens, ..rows.input(floats(&rows.logits)) };
    let policy = on_device().log_probs_and_entropy(&batch(4, &rows.keep), input, &CONFIG).unwrap();
    assert_within("log_probs", LOG_PROB, &rows.exact()[0], &host(&policy.log_probs), 10.0);
}
