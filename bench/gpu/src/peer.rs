//! The chain in burn, in two ways.
//!
//! [`Style::Trainer`] is what a trainer would contain: log-softmax and gather, advantages by a loop over time steps,
//! autodiff. [`Style::Tuned`] is what one gets by rewriting that for burn: advantages by doubling (12 steps instead of
//! 4096), the gradient written by hand, which needs neither the graph nor its intermediates. Both run with fusion and
//! autotune.

use burn::tensor::{activation::log_softmax, Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::data::{Answer, Data, BETA, CLIP, EPSILON, LAMBDA, LOG_RATIO_BOUND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Trainer,
    Tuned,
}

/// The loss; the gradients and entropies, in pieces.
type Chain = (Tensor<1>, Vec<Tensor<2>>, Vec<Tensor<2>>);

/// A batch on the device.
pub struct Peer<'a> {
    device: Device,
    data: &'a Data,
    count: f64,
    /// Rows of logits in pieces that fit a binding.
    logits: Vec<Tensor<2>>,
    /// One column each.
    ids: Vec<Tensor<2, Int>>,
    mask: Tensor<2>,
    log_probs: Tensor<2>,
    old: Tensor<2>,
    reference: Tensor<2>,
    values: Tensor<2>,
    scores: Tensor<2>,
}

impl<'a> Peer<'a> {
    pub fn new(device: &Device, data: &'a Data, binding_bytes: u64) -> Self {
        let pieces = if data.vocab == 0 { Vec::new() } else { data.pieces(binding_bytes) };
        let column =
            |numbers: Vec<f32>| Tensor::<2>::from_data(TensorData::new(numbers, [data.rows, data.width]), device);
        let logits = |rows: &std::ops::Range<usize>| {
            let piece = data.logits[rows.start * data.vocab..rows.end * data.vocab].to_vec();
            Tensor::<2>::from_data(TensorData::new(piece, [rows.len(), data.vocab]), device)
        };
        let ids = |rows: &std::ops::Range<usize>| {
            let ids: Vec<i32> = data.ids[rows.clone()].iter().map(|&id| id as i32).collect();
            Tensor::<2, Int>::from_data(TensorData::new(ids, [rows.len(), 1]), device)
        };
        Self {
            device: device.clone(),
            data,
            count: data.keep.iter().filter(|&&keep| keep).count() as f64,
            logits: pieces.iter().map(logits).collect(),
            ids: pieces.iter().map(ids).collect(),
            mask: column(data.mask()),
            log_probs: column(data.log_probs.clone()),
            old: column(data.old.clone()),
            reference: column(data.reference.clone()),
            values: column(data.values.clone()),
            scores: column(data.placed_scores()),
        }
    }

    /// Reads back the loss only, and waits for the gradient.
    pub fn run(&self, style: Style) -> Result<(), Box<dyn std::error::Error>> {
        let (loss, grads, entropies) = self.chain(style);
        loss.into_data();
        self.device.sync()?;
        // a tensor that is dropped before might never be computed
        drop((grads, entropies));
        Ok(())
    }

    pub fn answer(&self, style: Style) -> Result<Answer, Box<dyn std::error::Error>> {
        let (loss, grads, _) = self.chain(style);
        let loss: f32 = loss.into_scalar();
        let mut grad = Vec::new();
        for piece in grads {
            grad.extend(piece.into_data().try_to_vec::<f32>().map_err(|error| format!("{error:?}"))?);
        }
        Ok(Answer { loss: loss.into(), grad })
    }

    fn chain(&self, style: Style) -> Chain {
        match style {
            Style::Trainer => self.trainer(),
            Style::Tuned => self.tuned(),
        }
    }

    fn trainer(&self) -> Chain {
        let shape = [self.data.rows, self.data.width];
        let leaf = |tensor: &Tensor<2>| tensor.clone().autodiff().require_grad();
        let mut entropies = Vec::new();
        let (leaves, log_probs) = if self.data.vocab == 0 {
            let leaf = leaf(&self.log_probs);
            (vec![leaf.clone()], leaf)
        } else {
            let leaves: Vec<Tensor<2>> = self.logits.iter().map(leaf).collect();
            let pieces = leaves.iter().zip(&self.ids).map(|(logits, ids)| {
                let all = log_softmax(logits.clone(), 1);
                // only logged, so that it stays out of the graph
                let detached = all.clone().inner();
                entropies.push((detached.clone().exp() * detached).sum_dim(1).neg());
                self.finished(all.gather(1, ids.clone().autodiff()))
            });
            let log_probs = Tensor::cat(pieces.collect(), 0).reshape(shape);
            (leaves, log_probs)
        };
        let advantages = self.whitened(self.advantages_by_loop(self.rewards(log_probs.clone().inner())));
        let with = |tensor: &Tensor<2>| tensor.clone().autodiff();
        let (advantages, mask) = (advantages.autodiff(), with(&self.mask));
        let ratio = (log_probs - with(&self.old)).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp();
        let clipped = ratio.clone().clamp(1.0 - CLIP, 1.0 + CLIP) * advantages.clone();
        let loss = ((ratio * advantages).min_pair(clipped) * mask).sum().div_scalar(-self.count);
        let mut gradients = loss.backward();
        let grads = leaves.iter().filter_map(|leaf| leaf.grad_remove(&mut gradients)).collect();
        (loss.inner(), grads, entropies)
    }

    fn tuned(&self) -> Chain {
        let shape = [self.data.rows, self.data.width];
        if self.data.vocab == 0 {
            let (loss, grad) = self.loss_and_gradient(self.log_probs.clone());
            return (loss, vec![grad], Vec::new());
        }
        let (mut log_probs, mut probs, mut entropies) = (Vec::new(), Vec::new(), Vec::new());
        for (logits, ids) in self.logits.iter().zip(&self.ids) {
            let all = log_softmax(logits.clone(), 1);
            let p = all.clone().exp();
            entropies.push((p.clone() * all.clone()).sum_dim(1).neg());
            log_probs.push(self.finished(all.gather(1, ids.clone())));
            probs.push(p);
        }
        let (loss, grad) = self.loss_and_gradient(Tensor::cat(log_probs, 0).reshape(shape));
        let grad: Tensor<2> = grad.reshape([self.data.tokens(), 1]);
        let mut first = 0;
        let pieces = probs.into_iter().zip(&self.ids).map(|(p, ids)| {
            let rows = ids.dims()[0];
            let own = grad.clone().slice([first..first + rows, 0..1]);
            first += rows;
            (p * own.clone().neg()).scatter(1, ids.clone(), own, IndexingUpdateOp::Add)
        });
        let pieces = pieces.collect();
        (loss, pieces, entropies)
    }

    /// Waits for the work so far. Without it, burn 0.22.1 gave wrong log-probabilities here for more than one piece of
    /// logits if the pieces together exceed the 128 MiB of a binding.
    fn finished(&self, tensor: Tensor<2>) -> Tensor<2> {
        if let Err(error) = self.device.sync() {
            eprintln!("burn: {error:?}");
        }
        tensor
    }

    fn rewards(&self, log_probs: Tensor<2>) -> Tensor<2> {
        let distance = log_probs - self.reference.clone();
        let kl = distance.clone().neg().exp() - 1.0 + distance;
        self.scores.clone() - kl * BETA
    }

    fn advantages_by_loop(&self, rewards: Tensor<2>) -> Tensor<2> {
        let [rows, width] = self.mask.dims();
        let mut next_value = Tensor::<2>::zeros([rows, 1], &self.device);
        let mut advantage = next_value.clone();
        let mut columns = Vec::with_capacity(width);
        for at in (0..width).rev() {
            let column = |of: &Tensor<2>| of.clone().slice([0..rows, at..at + 1]);
            let (mask, value) = (column(&self.mask), column(&self.values) * column(&self.mask));
            let delta = column(&rewards) + next_value - value.clone();
            advantage = (delta + advantage * LAMBDA) * mask;
            next_value = value;
            columns.push(advantage.clone());
        }
        columns.reverse();
        Tensor::cat(columns, 1)
    }

    fn advantages_by_doubling(&self, rewards: Tensor<2>) -> Tensor<2> {
        let [rows, width] = self.mask.dims();
        let shifted = |of: Tensor<2>, by: usize| {
            let zeros = Tensor::<2>::zeros([rows, by], &self.device);
            Tensor::cat(vec![of.slice([0..rows, by..width]), zeros], 1)
        };
        let values = self.values.clone() * self.mask.clone();
        let mut advantages = (rewards + shifted(values.clone(), 1) - values) * self.mask.clone();
        let (mut by, mut decay) = (1, LAMBDA);
        while by < width {
            advantages = advantages.clone() + shifted(advantages, by) * decay;
            (by, decay) = (2 * by, decay * decay);
        }
        advantages
    }

    fn whitened(&self, advantages: Tensor<2>) -> Tensor<2> {
        let mean = advantages.clone().sum().div_scalar(self.count);
        let centred = (advantages - mean.unsqueeze::<2>()) * self.mask.clone();
        let variance = centred.clone().square().sum().div_scalar(self.count - 1.0);
        centred / (variance + EPSILON).sqrt().unsqueeze::<2>()
    }

    fn loss_and_gradient(&self, log_probs: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let advantages = self.whitened(self.advantages_by_doubling(self.rewards(log_probs.clone())));
        let ratio = (log_probs - self.old.clone()).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp();
        let plain = ratio.clone() * advantages.clone();
        let clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * advantages;
        let active = plain.clone().lower_equal(clipped.clone()).float();
        let loss = (plain.clone().min_pair(clipped) * self.mask.clone()).sum().div_scalar(-self.count);
        let grad = (plain * active * self.mask.clone()).div_scalar(-self.count);
        (loss, grad)
    }
}
