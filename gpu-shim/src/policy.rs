//! **Stage 1 of 7 — policy.** Reads logits and tokens, writes log-probabilities and entropy.

use std::borrow::Cow;

use tokenwise::{
    policy::{check_log_probs, log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch,
};

use crate::{buffers::WORD, context::Gpu, error::GpuError, pipeline::Grid};

/// Numbers per row that come back.
const RESULTS: u64 = 3;
// as in the shader
const STATUS_NUMBER: u32 = 0;
const STATUS_NAN: u32 = 1;

impl Gpu {
    /// Log-probability of each token, and the entropy of the distribution it was drawn from: the core's
    /// [`log_probs_and_entropy`] on the GPU.
    ///
    /// ```text
    /// z = logits / τ      log_probs_i = z[a_i] − m − ln Σ_v e^{z_v − m}      entropy_i = ln Σ_v e^{z_v − m} − Σ_v p_v (z_v − m)
    /// ```
    ///
    /// with `m = max z`. An entry of −inf has probability 0 and counts 0; a row of nothing else, or with +inf or NaN, gives NaN.
    /// Where 1/τ is not a normal `f32` the core computes instead. Numbers agree within [`tolerance`](crate::tolerance), not to
    /// the bit.
    ///
    /// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
    ///
    /// **Mask.** Rows and ids of dropped slots are never sent; dropped slots get 0.
    ///
    /// **Errors.** [`GpuError::Core`] with the core's own error, before a byte moves; [`GpuError::Limit`] if one row is larger than
    /// [`Gpu::max_buffer_bytes`] (more rows go in several steps); [`GpuError::OutOfMemory`], [`GpuError::Lost`],
    /// [`GpuError::Device`]. Nothing was written then.
    ///
    /// **Reference.** Milakov and Gimelshein 2018, arXiv:1805.02867: the soft-max in one reading. Conventions as the core's.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use tokenwise::{policy::*, Batch, Layout, Mask};
    ///
    /// # async fn example() -> Result<(), tokenwise_gpu::GpuError> {
    /// let gpu = tokenwise_gpu::Gpu::new().await?;
    /// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
    /// let logits = [0.0, f32::NEG_INFINITY, f32::NAN, f32::NAN];      // certain of token 0; the second slot is dropped
    /// let (mut log_probs, mut entropy) = ([9.0; 2], [9.0; 2]);
    /// gpu.log_probs_and_entropy(
    ///     &batch,
    ///     LogProbInput { logits: &logits, vocab: 2, tokens: &[0, 99] },
    ///     &PolicyConfig::default(),
    ///     LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
    /// )
    /// .await?;
    /// assert_eq!((log_probs, entropy), ([0.0, 0.0], [0.0, 0.0]));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn log_probs_and_entropy(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<'_, f32>,
        config: &PolicyConfig,
        output: LogProbOutput<'_, f32>,
    ) -> Result<(), GpuError> {
        let scale = check_log_probs(batch, &input, config, &output)?;
        // a shader may flush a subnormal scale to 0, and with 0 or infinity every row is a special case
        if !scale.is_normal() {
            return Ok(log_probs_and_entropy(batch, input, config, output)?);
        }
        let kept: Vec<usize> =
            (0..).zip(batch.mask().as_slice()).filter(|(_, &keep)| keep).map(|(slot, _)| slot).collect();
        let row_bytes = input.vocab as u64 * WORD;
        let rows_at_once = self.max_buffer_bytes() / row_bytes;
        if rows_at_once == 0 && !kept.is_empty() {
            return Err(GpuError::Limit {
                what: "one row of logits, in bytes",
                needed: row_bytes,
                limit: self.max_buffer_bytes(),
            });
        }
        let mut found = Vec::with_capacity(kept.len());
        let rows_at_once = usize::try_from(rows_at_once.min(self.most_entries(RESULTS))).unwrap_or(usize::MAX);
        for rows in kept.chunks(rows_at_once.max(1)) {
            self.rows(&input, scale, rows, &mut found).await?;
        }
        let LogProbOutput { log_probs, entropy } = output;
        log_probs.fill(0.0);
        entropy.fill(0.0);
        for (&slot, row) in kept.iter().zip(found) {
            (log_probs[slot], entropy[slot]) = row;
        }
        Ok(())
    }

    /// Log-probability and entropy of these slots, appended to `found`.
    async fn rows(
        &self,
        input: &LogProbInput<'_, f32>,
        scale: f32,
        slots: &[usize],
        found: &mut Vec<(f32, f32)>,
    ) -> Result<(), GpuError> {
        let kernel = &self.kernels.log_probs;
        let count = slots.len();
        let rows = count as u64;
        let grid = Grid::of(rows, self.limits().max_compute_workgroups_per_dimension)?;
        let logits = gathered_rows(input, slots);
        let tokens: Vec<u32> = slots.iter().map(|&slot| input.tokens[slot]).collect();
        // both are at most the entries of a buffer, which are counted in u32
        let params = [count as u32, input.vocab as u32, scale.to_bits(), largest_logit(scale).to_bits()];
        let staging = self
            .caught(|| {
                let params = self.params("params", params);
                let logits = self.upload("logits", &logits);
                let tokens = self.upload("tokens", &tokens);
                let log_probs = self.scratch("log_probs", rows);
                let entropy = self.scratch("entropy", rows);
                let status = self.scratch("status", rows);
                let buffers = [&params, &logits, &tokens, &log_probs, &entropy, &status];
                let bound = kernel.bind(&self.device, &buffers);
                let mut encoder = self.encoder(kernel.label);
                kernel.record(&mut encoder, &bound, &[grid]);
                let staging = self.gather(&mut encoder, "log_probs staging", &[&log_probs, &entropy, &status]);
                self.queue.submit([encoder.finish()]);
                staging
            })
            .await?;
        let words = self.read_back(&staging).await?;
        let (log_probs, rest) = words.split_at(count.min(words.len()));
        let (entropy, status) = rest.split_at(count.min(rest.len()));
        for ((&log_prob, &entropy), &status) in log_probs.iter().zip(entropy).zip(status) {
            found.push(match status {
                STATUS_NUMBER => (f32::from_bits(log_prob), f32::from_bits(entropy)),
                STATUS_NAN => (f32::NAN, f32::NAN),
                // the token itself has probability 0
                _ => (f32::NEG_INFINITY, f32::from_bits(entropy)),
            });
        }
        Ok(())
    }
}

/// The rows of these slots back to back; without a copy where they already are.
fn gathered_rows<'a>(input: &LogProbInput<'a, f32>, slots: &[usize]) -> Cow<'a, [f32]> {
    let vocab = input.vocab;
    if let (Some(first), Some(last)) = (slots.first(), slots.last()) {
        if last - first + 1 == slots.len() {
            return Cow::Borrowed(&input.logits[first * vocab..(last + 1) * vocab]);
        }
    }
    let mut rows = Vec::with_capacity(slots.len() * vocab);
    for slot in slots {
        rows.extend_from_slice(&input.logits[slot * vocab..(slot + 1) * vocab]);
    }
    Cow::Owned(rows)
}

/// The largest logit whose product with `scale` is finite, so that the shader need not compute an infinity to see it.
fn largest_logit(scale: f32) -> f32 {
    if scale <= 1.0 {
        return f32::MAX;
    }
    // the quotient may be rounded either way
    let mut largest = (f32::MAX / scale).next_up();
    while (largest * scale).is_infinite() {
        largest = largest.next_down();
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_logit_is_the_last_that_stays_finite() {
        for scale in [1.0, 1.000_000_1, 1.5, 3.0, 10.0, 1e30_f32] {
            let largest = largest_logit(scale);
            assert!((largest * scale).is_finite());
            assert!(largest == f32::MAX || (largest.next_up() * scale).is_infinite());
        }
        assert_eq!(largest_logit(0.1), f32::MAX);
    }
}
