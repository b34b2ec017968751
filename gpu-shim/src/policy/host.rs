//! Logits of the host: only the rows of kept slots are sent.

use std::borrow::Cow;

use tokenwise::{
    policy::{check_log_probs, log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};

use super::LogitColumns;
use crate::{
    batch::GpuBatch,
    column::Input,
    context::Gpu,
    error::GpuError,
    logit::GpuLogit,
    report::{Clock, Reason, Report},
};

/// Words read back per row.
const RESULTS: u64 = 2;

impl Gpu {
    /// Log-probability of each token, and the entropy of the distribution it was drawn from: the core's
    /// [`log_probs_and_entropy`] on the GPU.
    ///
    /// ```text
    /// z = logits / τ      log_probs_i = z[a_i] − m − ln Σ_v e^{z_v − m}      entropy_i = ln Σ_v e^{z_v − m} − Σ_v p_v (z_v − m)
    /// ```
    ///
    /// with `m = max z`. The logits are `f32`, `f16` or `bf16`. An entry of −inf has probability 0 and contributes 0; a row of only −inf, or with +inf or NaN,
    /// gives NaN. If 1/τ is not a normal `f32`, the core computes instead. Results agree within
    /// [`tolerance`](crate::tolerance), not to the bit.
    ///
    /// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
    ///
    /// **Mask.** Rows and ids of dropped slots are never sent; dropped slots get 0.
    ///
    /// **Errors.** [`GpuError::Core`] with the core's error, before any transfer; [`GpuError::Limit`] if one row is
    /// larger than a buffer of the device (batches of several rows are split); [`GpuError::OutOfMemory`],
    /// [`GpuError::Lost`], [`GpuError::Device`]. Nothing is written on an error.
    ///
    /// **Reference.** Milakov and Gimelshein 2018, arXiv:1805.02867: softmax in one pass. Conventions of the core.
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
    pub async fn log_probs_and_entropy<L: GpuLogit>(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<'_, L>,
        config: &PolicyConfig,
        output: LogProbOutput<'_, f32>,
    ) -> Result<Report, GpuError> {
        let clock = Clock::start();
        let scale = check_log_probs(batch, &input, config, &output)?;
        // a shader may flush a subnormal scale to 0, and with 0 or infinity every row is a special case
        if !scale.is_normal() {
            log_probs_and_entropy(batch, input, config, output)?;
            return Ok(Report::core(Reason::Special, clock.elapsed()));
        }
        let kept: Vec<usize> =
            (0..).zip(batch.mask().as_slice()).filter(|(_, &keep)| keep).map(|(slot, _)| slot).collect();
        let rows_at_once = self.max_buffer_bytes() / (input.vocab as u64 * L::FORMAT.bytes());
        let mut found: Vec<(f32, f32)> = Vec::with_capacity(kept.len());
        let rows_at_once = usize::try_from(rows_at_once.min(self.most_entries(RESULTS))).unwrap_or(usize::MAX);
        let mut report = Report::gpu();
        for rows in kept.chunks(rows_at_once.max(1)) {
            let (logits, keep) = (gathered_rows(&input, rows), vec![true; rows.len()]);
            let tokens: Vec<u32> = rows.iter().map(|&slot| input.tokens[slot]).collect();
            let batch = GpuBatch::new(Batch::new(Layout::padded(1, rows.len())?, Mask::new(&keep))?);
            let mut recording = self.record();
            let logits = LogitColumns { logits: L::input(&logits), vocab: input.vocab, tokens: Input::Words(&tokens) };
            let columns = recording.log_probs(&batch, &logits, config)?;
            let (log_probs, entropy) = (recording.download(&columns.log_probs), recording.download(&columns.entropy));
            let done = recording.submit().await?;
            report.add(done.report());
            found.extend(done.floats(log_probs).iter().copied().zip(done.floats(entropy).iter().copied()));
        }
        let LogProbOutput { log_probs, entropy } = output;
        log_probs.fill(0.0);
        entropy.fill(0.0);
        for (&slot, row) in kept.iter().zip(found) {
            (log_probs[slot], entropy[slot]) = row;
        }
        report.host = clock.elapsed();
        Ok(report)
    }
}

/// The rows of these slots, contiguous; borrowed if they already are.
fn gathered_rows<'a, L: GpuLogit>(input: &LogProbInput<'a, L>, slots: &[usize]) -> Cow<'a, [L]> {
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
