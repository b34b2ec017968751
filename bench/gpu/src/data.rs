//! The batch that every way computes: the same numbers on every run.

use tokenwise::{
    policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};

/// λ of the advantages; γ is 1.
pub const LAMBDA: f64 = 0.95;
/// Weight of the KL in the rewards.
pub const BETA: f64 = 1e-3;
/// Half width of the clip range.
pub const CLIP: f64 = 0.2;
/// Bound on the logarithm of the ratio.
pub const LOG_RATIO_BOUND: f64 = 20.0;
/// Under the root of the whitening.
pub const EPSILON: f64 = 1e-8;

/// Responses padded on the right, with everything that the chain reads.
pub struct Data {
    pub rows: usize,
    pub width: usize,
    /// Entries of a row of logits; 0 if the chain starts at the log-probabilities.
    pub vocab: usize,
    pub keep: Vec<bool>,
    pub logits: Vec<f32>,
    pub ids: Vec<u32>,
    pub log_probs: Vec<f32>,
    pub old: Vec<f32>,
    pub reference: Vec<f32>,
    pub values: Vec<f32>,
    /// One per response.
    pub scores: Vec<f32>,
}

struct Numbers(u64);

impl Numbers {
    /// In [−1, 1).
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}

impl Data {
    /// About 60 % of the slots of `rows` × `width` are kept; all of them if there are logits, since a trainer does not
    /// compute logits of padding.
    pub fn new(rows: usize, width: usize, vocab: usize) -> Result<Self, tokenwise::Error> {
        Self::with(rows, width, vocab, vocab > 0)
    }

    /// Every slot is kept.
    pub fn full(rows: usize, width: usize) -> Result<Self, tokenwise::Error> {
        Self::with(rows, width, 0, true)
    }

    fn with(rows: usize, width: usize, vocab: usize, full: bool) -> Result<Self, tokenwise::Error> {
        let (tokens, mut numbers) = (rows * width, Numbers(7));
        let mut keep = Vec::with_capacity(tokens);
        for _ in 0..rows {
            let share = if full { 1.0 } else { 0.6 + 0.4 * f64::from(numbers.next()) };
            let kept = ((share * width as f64) as usize).clamp(1, width);
            keep.extend((0..width).map(|at| at < kept));
        }
        let logits: Vec<f32> = (0..tokens * vocab).map(|_| 4.0 * numbers.next()).collect();
        let ids: Vec<u32> = (0..tokens).map(|token| (token * 7919 % vocab.max(1)) as u32).collect();
        let mut log_probs: Vec<f32> = (0..tokens).map(|_| numbers.next() - 1.5).collect();
        if vocab > 0 {
            let batch = Batch::new(Layout::padded(rows, width)?, Mask::new(&keep))?;
            let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut vec![0.0; tokens] };
            let input = LogProbInput { logits: &logits, vocab, tokens: &ids };
            log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output)?;
        }
        let mut near = |scale: f32| log_probs.iter().map(|log_prob| log_prob + scale * numbers.next()).collect();
        let (old, reference) = (near(0.3), near(0.5));
        let values = (0..tokens).map(|_| numbers.next()).collect();
        let scores = (0..rows).map(|_| numbers.next()).collect();
        Ok(Self { rows, width, vocab, keep, logits, ids, log_probs, old, reference, values, scores })
    }

    pub fn tokens(&self) -> usize {
        self.rows * self.width
    }

    pub fn batch(&self) -> Result<Batch<'_>, tokenwise::Error> {
        Batch::new(Layout::padded(self.rows, self.width)?, Mask::new(&self.keep))
    }

    /// 1 for kept slots, 0 for the others: what masks are in tensor code.
    pub fn mask(&self) -> Vec<f32> {
        self.keep.iter().map(|&keep| f32::from(u8::from(keep))).collect()
    }

    /// The scores on the last kept slot of each response. Tensor code gets them placed, as by a trainer on the host.
    pub fn placed_scores(&self) -> Vec<f32> {
        let mut placed = vec![0.0; self.tokens()];
        for (row, &score) in self.scores.iter().enumerate() {
            let kept = self.keep[row * self.width..(row + 1) * self.width].iter().filter(|&&keep| keep).count();
            placed[row * self.width + kept - 1] = score;
        }
        placed
    }

    /// Ranges of rows of logits of at most `bytes`.
    pub fn pieces(&self, bytes: u64) -> Vec<std::ops::Range<usize>> {
        let tokens = self.tokens();
        let most = (bytes / 4 / self.vocab.max(1) as u64) as usize;
        let count = tokens.div_ceil(most.clamp(1, tokens));
        let each = tokens.div_ceil(count);
        (0..count).map(|piece| piece * each..((piece + 1) * each).min(tokens)).collect()
    }
}

/// What a way computed: the loss, and the gradient of the logits or, without logits, of the log-probabilities.
pub struct Answer {
    pub loss: f64,
    pub grad: Vec<f32>,
}
