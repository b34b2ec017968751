//! The chain as tensor operations, one kernel each.

use std::error::Error;

use tokenwise_gpu::Gpu;

use crate::{
    data::{Answer, Data, BETA, CLIP, EPSILON, LAMBDA, LOG_RATIO_BOUND},
    tensor::{Each, Fold, Tensor, Tensors},
};

/// A batch on the device.
pub struct Operations<'a> {
    on: Tensors<'a>,
    data: &'a Data,
    /// Rows of logits in pieces that fit a binding, with the first row of each.
    logits: Vec<(usize, Tensor)>,
    ids: Tensor,
    mask: Tensor,
    log_probs: Tensor,
    old: Tensor,
    reference: Tensor,
    values: Tensor,
    scores: Tensor,
}

/// Softmax of a piece of logits.
struct Policy {
    first: usize,
    log_probs: Tensor,
    probs: Tensor,
    /// Only computed.
    _entropy: Tensor,
}

impl<'a> Operations<'a> {
    pub fn new(gpu: &'a Gpu, data: &'a Data) -> Self {
        let on = Tensors::new(gpu);
        let logits = if data.vocab == 0 { Vec::new() } else { data.pieces(gpu.max_buffer_bytes()) };
        let of = |rows: std::ops::Range<usize>| &data.logits[rows.start * data.vocab..rows.end * data.vocab];
        Self {
            logits: logits.into_iter().map(|rows| (rows.start, on.floats(of(rows)))).collect(),
            ids: on.upload(&data.ids),
            mask: on.floats(&data.mask()),
            log_probs: on.floats(&data.log_probs),
            old: on.floats(&data.old),
            reference: on.floats(&data.reference),
            values: on.floats(&data.values),
            scores: on.floats(&data.placed_scores()),
            on,
            data,
        }
    }

    /// Reads back the loss only.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        let (loss, grads) = self.chain();
        self.on.read(&[&loss])?;
        drop(grads);
        Ok(())
    }

    pub fn answer(&self) -> Result<Answer, Box<dyn Error>> {
        let (loss, grads) = self.chain();
        let mut all = vec![&loss];
        all.extend(&grads);
        let read = self.on.read(&all)?;
        Ok(Answer { loss: read[0][0].into(), grad: read[1..].concat() })
    }

    fn chain(&self) -> (Tensor, Vec<Tensor>) {
        let vocab = self.data.vocab;
        if vocab == 0 {
            let (loss, grad) = self.losses(&self.log_probs);
            return (loss, vec![grad]);
        }
        let on = &self.on;
        let pieces: Vec<Policy> = self.logits.iter().map(|(first, logits)| self.policy(*first, logits)).collect();
        let log_probs: Vec<Tensor> = pieces.iter().map(|piece| piece.log_probs.clone()).collect();
        let (loss, grad) = self.losses(&on.concatenated(&log_probs));
        let minus = on.map(grad.len(), "-a", &[(&grad, Each::Entry)]);
        let gradient = |piece: Policy| {
            // the rows of the gradient that belong to this piece
            let formula = format!("a * in_b[i / {vocab}u + {}u]", piece.first);
            let to = on.map(piece.probs.len(), &formula, &[(&piece.probs, Each::Entry), (&minus, Each::All)]);
            on.scatter_add(&to, &grad, &self.ids, piece.first, vocab);
            to
        };
        (loss, pieces.into_iter().map(gradient).collect())
    }

    fn policy(&self, first: usize, logits: &Tensor) -> Policy {
        let (on, vocab, len) = (&self.on, self.data.vocab, logits.len());
        let row = Each::Row(vocab);
        let most = on.fold(logits, vocab, Fold::Max);
        let shifted = on.map(len, "a - b", &[(logits, Each::Entry), (&most, row)]);
        let powers = on.map(len, "exp(a)", &[(&shifted, Each::Entry)]);
        let sum = on.fold(&powers, vocab, Fold::Sum);
        let log_sum = on.map(sum.len(), "log(a)", &[(&sum, Each::Entry)]);
        let log_softmax = on.map(len, "a - b", &[(&shifted, Each::Entry), (&log_sum, row)]);
        let log_probs = on.gather(&log_softmax, &self.ids, first, vocab);
        let probs = on.map(len, "exp(a)", &[(&log_softmax, Each::Entry)]);
        let product = on.map(len, "a * b", &[(&probs, Each::Entry), (&log_softmax, Each::Entry)]);
        let sum = on.fold(&product, vocab, Fold::Sum);
        let entropy = on.map(sum.len(), "-a", &[(&sum, Each::Entry)]);
        Policy { first, log_probs, probs, _entropy: entropy }
    }

    /// The sum of all entries.
    fn sum(&self, of: &Tensor) -> Tensor {
        let rows = self.on.fold(of, self.data.width, Fold::Sum);
        self.on.fold(&rows, self.data.rows, Fold::Sum)
    }

    /// Everything after the log-probabilities: the loss and its gradient.
    fn losses(&self, log_probs: &Tensor) -> (Tensor, Tensor) {
        let (on, len, width) = (&self.on, self.data.tokens(), self.data.width);
        let one = |formula: &str, a: &Tensor| on.map(len, formula, &[(a, Each::Entry)]);
        let two = |formula: &str, a: &Tensor, b: &Tensor| on.map(len, formula, &[(a, Each::Entry), (b, Each::Entry)]);
        let scaled = |formula: &str, a: &Tensor, b: &Tensor| on.map(len, formula, &[(a, Each::Entry), (b, Each::All)]);

        // KL and rewards
        let distance = two("a - b", log_probs, &self.reference);
        let minus = one("-a", &distance);
        let power = one("exp(a)", &minus);
        let less = one("a - 1.0", &power);
        let kl = two("a + b", &less, &distance);
        let penalty = one(&format!("a * {BETA:?}"), &kl);
        let rewards = two("a - b", &self.scores, &penalty);
        // advantages, by doubling the number of steps that a sum includes
        let values = two("a * b", &self.values, &self.mask);
        let next = on.shifted(&values, width, 1);
        let target = two("a + b", &rewards, &next);
        let delta = two("a - b", &target, &values);
        let mut advantages = two("a * b", &delta, &self.mask);
        let (mut by, mut decay) = (1, LAMBDA);
        while by < width {
            let ahead = on.shifted(&advantages, width, by);
            let part = one(&format!("a * {:?}", decay as f32), &ahead);
            advantages = two("a + b", &advantages, &part);
            (by, decay) = (2 * by, decay * decay);
        }
        // whitening
        let count = self.data.keep.iter().filter(|&&keep| keep).count() as f64;
        let scalar = |formula: String, a: &Tensor| on.map(1, &formula, &[(a, Each::All)]);
        let mean = scalar(format!("a / {count:?}"), &self.sum(&advantages));
        let centred = scaled("a - b", &advantages, &mean);
        let kept = two("a * b", &centred, &self.mask);
        let squares = two("a * b", &kept, &kept);
        let variance = scalar(format!("a / {:?}", count - 1.0), &self.sum(&squares));
        let more = scalar(format!("a + {EPSILON:?}"), &variance);
        let deviation = scalar("sqrt(a)".into(), &more);
        let white = scaled("a / b", &kept, &deviation);
        // loss
        let change = two("a - b", log_probs, &self.old);
        let bounded = one(&format!("clamp(a, -{LOG_RATIO_BOUND:?}, {LOG_RATIO_BOUND:?})"), &change);
        let ratio = one("exp(a)", &bounded);
        let plain = two("a * b", &ratio, &white);
        let clipped = one(&format!("clamp(a, {:?}, {:?})", 1.0 - CLIP, 1.0 + CLIP), &ratio);
        let clipped = two("a * b", &clipped, &white);
        let least = two("min(a, b)", &plain, &clipped);
        let kept = two("a * b", &least, &self.mask);
        let loss = scalar(format!("a / -{count:?}"), &self.sum(&kept));
        // gradient of the log-probabilities
        let active = two("select(0.0, 1.0, a <= b)", &plain, &clipped);
        let grad = two("a * b", &plain, &active);
        let grad = two("a * b", &grad, &self.mask);
        let grad = one(&format!("a / -{count:?}"), &grad);
        (loss, grad)
    }
}
