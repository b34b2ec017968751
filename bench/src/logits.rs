//! Rows of logits, and the formulas over them.

use half::bf16;
use tokenwise::{
    policy::{
        log_probs_and_entropy, logits_gradient, LogProbInput, LogProbOutput, Logit, LogitsGradientInput, PolicyConfig,
    },
    Batch, Layout, Mask, Result,
};

use crate::{hash, item::LogitsItem, random::Random};

/// Logits of either type.
pub enum Values {
    /// f32.
    F32(Vec<f32>),
    /// bf16, computed in f32.
    Bf16(Vec<bf16>),
}

/// The type of [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Values::F32`].
    F32,
    /// [`Values::Bf16`].
    Bf16,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    /// Bytes of one logit.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }
}

/// One row of logits per token, all kept.
pub struct Logits {
    batch: Batch<'static>,
    vocab: usize,
    /// `[rows, vocab]`.
    pub values: Values,
    /// The chosen tokens.
    pub tokens: Vec<u32>,
    /// ∂loss/∂log_probs.
    pub grad_log_probs: Vec<f32>,
    /// ∂loss/∂entropy.
    pub grad_entropy: Vec<f32>,
    /// Result.
    pub log_probs: Vec<f32>,
    /// Result.
    pub entropy: Vec<f32>,
    /// Result of [`LogitsItem::Gradient`], `[rows, vocab]`; empty until then.
    pub grad_logits: Vec<f32>,
}

impl Logits {
    /// Filled rows.
    ///
    /// # Errors
    ///
    /// See [`Layout`].
    pub fn new(rows: usize, vocab: usize, kind: Kind) -> Result<Self> {
        let mut random = Random::new(2);
        let keep: &'static [bool] = vec![true; rows].leak();
        let mut logit = || 2.5 * random.bell();
        let values = match kind {
            Kind::F32 => Values::F32((0..rows * vocab).map(|_| logit()).collect()),
            Kind::Bf16 => Values::Bf16((0..rows * vocab).map(|_| bf16::from_f32(logit())).collect()),
        };
        let tokens = (0..rows).map(|_| (random.bits() % vocab.max(1) as u64) as u32).collect();
        let mut gradient = || (0..rows).map(|_| 0.01 * random.bell()).collect();
        Ok(Self {
            batch: Batch::new(Layout::padded(1, rows)?, Mask::new(keep))?,
            vocab,
            values,
            tokens,
            grad_log_probs: gradient(),
            grad_entropy: gradient(),
            log_probs: vec![1.0; rows],
            entropy: vec![1.0; rows],
            grad_logits: Vec::new(),
        })
    }

    /// Computes one item.
    ///
    /// # Errors
    ///
    /// See the formulas; valid inputs never fail.
    pub fn run(&mut self, item: LogitsItem) -> Result<()> {
        let Self { batch, vocab, tokens, grad_log_probs, grad_entropy, log_probs, entropy, grad_logits, .. } = self;
        let chosen = Chosen { vocab: *vocab, tokens, grad_log_probs, grad_entropy };
        let grad_logits = if item == LogitsItem::Gradient {
            grad_logits.resize(batch.tokens() * *vocab, 1.0);
            Some(&mut grad_logits[..])
        } else {
            None
        };
        let output = LogProbOutput { log_probs, entropy };
        match &self.values {
            Values::F32(values) => chosen.run(batch, values, output, grad_logits),
            Values::Bf16(values) => chosen.run(batch, values, output, grad_logits),
        }
    }

    /// Computes one item and returns a hash of the bits it wrote.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn fingerprint(&mut self, item: LogitsItem) -> Result<u64> {
        self.run(item)?;
        let gradient: &[f32] = if item == LogitsItem::Gradient { &self.grad_logits } else { &[] };
        let values = self.log_probs.iter().chain(&self.entropy).chain(gradient);
        Ok(hash(values.flat_map(|value| value.to_bits().to_le_bytes())))
    }
}

/// The config for both types.
struct Chosen<'a> {
    vocab: usize,
    tokens: &'a [u32],
    grad_log_probs: &'a [f32],
    grad_entropy: &'a [f32],
}

impl Chosen<'_> {
    fn run<L: Logit<Compute = f32>>(
        &self,
        batch: &Batch<'_>,
        logits: &[L],
        output: LogProbOutput<'_, f32>,
        grad_logits: Option<&mut [f32]>,
    ) -> Result<()> {
        let (config, vocab, tokens) = (PolicyConfig::default(), self.vocab, self.tokens);
        log_probs_and_entropy(batch, LogProbInput { logits, vocab, tokens }, &config, output)?;
        let Some(grad_logits) = grad_logits else { return Ok(()) };
        let (grad_log_probs, grad_entropy) = (self.grad_log_probs, self.grad_entropy);
        let input = LogitsGradientInput { logits, vocab, tokens, grad_log_probs, grad_entropy };
        logits_gradient(batch, input, &config, grad_logits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_near_the_same_rows() {
        let [mut single, mut half] = Kind::ALL.map(|kind| Logits::new(3, 1000, kind).unwrap());
        for item in LogitsItem::ALL {
            assert_ne!(single.fingerprint(item).unwrap(), half.fingerprint(item).unwrap());
            for (a, b) in single.entropy.iter().zip(&half.entropy) {
                assert!(approx::abs_diff_eq!(a, b, epsilon = 0.01) && *a > 0.0, "{a} {b}");
            }
        }
        assert_eq!(single.grad_logits.len(), 3000);
    }
}
