//! **Stage 1 of 7 — policy.** Reads logits and tokens, writes log-probabilities and entropy.

use std::borrow::Cow;

use tokenwise::{
    policy::{
        check_log_probs, check_tokens, check_vocab, log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig,
    },
    Batch, Layout, Mask,
};

use crate::{
    batch::{GpuBatch, Segmented},
    column::{Column, Input},
    context::Gpu,
    error::GpuError,
    kernel::{Access, Kernel, THREADS},
    pool::WORD,
    recording::Recording,
    report::{Clock, Reason, Report},
};

/// Words read back per row.
const RESULTS: u64 = 2;
/// Words per slot of what the gradient needs of a row: `Row` in the shader.
const ROW_WORDS: u64 = 4;

const PRELUDE: &str = concat!(
    include_str!("../shaders/prelude/grid.wgsl"),
    include_str!("../shaders/prelude/slots.wgsl"),
    include_str!("../shaders/prelude/special.wgsl"),
    include_str!("../shaders/prelude/math.wgsl"),
    include_str!("../shaders/prelude/vocab.wgsl"),
);

/// Logits of a whole batch, `tokens × vocab`, and the tokens that were drawn from them.
#[derive(Clone, Debug)]
pub struct LogitColumns<'a> {
    /// One row per slot, dropped slots included; those are not read.
    pub logits: Input<'a>,
    /// Entries per row.
    pub vocab: usize,
    /// One id per slot.
    pub tokens: Input<'a>,
}

/// What [`Recording::log_probs`] wrote.
#[derive(Clone, Debug)]
pub struct LogProbColumns {
    /// Log-probability of each token.
    pub log_probs: Column,
    /// Entropy of each row.
    pub entropy: Column,
    /// Σ p² of each row.
    pub sum_squared_probs: Column,
    /// The logits, as they were given.
    logits: Column,
    tokens: Column,
    /// Maximum, 1/Σ and mean distance of each row.
    rows: Column,
    vocab: u64,
    scale: f32,
}

/// Whole rows, or some entries of one row, that fit a binding.
struct Piece {
    first: u64,
    rows: u64,
    first_entry: u64,
    entries: u64,
    /// Which piece it is.
    index: u64,
}

impl Piece {
    /// The words of this piece, from an aligned offset on, and how many words are before the first entry.
    fn part(&self, column: &Column, vocab: u64) -> (Column, u64) {
        let first = self.first * vocab + self.first_entry;
        let shift = first % ALIGNED_WORDS;
        let len = if self.rows == 1 { self.entries } else { self.rows * vocab };
        (column.part(first - shift, len + shift), shift)
    }
}

/// 256 bytes: the largest alignment that a device may ask for.
const ALIGNED_WORDS: u64 = 64;
/// Words of the statistics of a piece: two `Row`s.
const PIECE_WORDS: u64 = 2 * ROW_WORDS;

impl Recording<'_> {
    /// Log-probabilities, entropy and Σ p² of resident logits, in one pass over them: the core's
    /// [`log_probs_and_entropy`] and [`sum_squared_probs`](tokenwise::policy::sum_squared_probs).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Unsupported`] if 1/τ is not a normal `f32`;
    /// [`GpuError::Limit`]. An id on the device that is not in the vocabulary gives NaN and sets
    /// [`Report::special`](crate::Report::special).
    pub fn log_probs(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &LogitColumns<'_>,
        config: &PolicyConfig,
    ) -> Result<LogProbColumns, GpuError> {
        let host = batch.host();
        check_vocab(host, "logits", input.logits.len() as usize, input.vocab, config.temperature)?;
        match input.tokens {
            Input::Words(tokens) => check_tokens(host, tokens, input.vocab)?,
            _ => input.tokens.check_len("tokens", host.tokens())?,
        }
        let scale = (1.0 / config.temperature) as f32;
        if !scale.is_normal() {
            return Err(GpuError::Unsupported("1/τ is not a normal f32, and shaders may flush it to 0"));
        }
        let (tokens, vocab) = (host.tokens() as u64, input.vocab as u64);
        let pieces = self.pieces(tokens, vocab);
        let out = LogProbColumns {
            log_probs: self.scratch(tokens)?,
            entropy: self.scratch(tokens)?,
            sum_squared_probs: self.scratch(tokens)?,
            logits: self.column(&input.logits)?,
            tokens: self.column(&input.tokens)?,
            rows: self.scratch(tokens * ROW_WORDS)?,
            vocab,
            scale,
        };
        let slots = batch.slots(self)?;
        let record = self.record(0, 0)?;
        let pipelines = self.pipelines("policy/log_probs", || Kernel {
            label: "policy/log_probs".into(),
            wgsl: [PRELUDE, include_str!("../shaders/policy/log_probs.wgsl")].concat(),
            bindings: [[Access::Read, Access::Write, Access::Read, Access::Read], [Access::Write; 4]].concat(),
            passes: &["log_probs_and_entropy", "piece", "merge"],
        })?;
        // pieces per row, if rows are split
        let split = pieces.first().filter(|piece| piece.entries < vocab).map(|piece| vocab.div_ceil(piece.entries));
        let statistics = split.map(|split| self.scratch(tokens * split * PIECE_WORDS)).transpose()?;
        let per_row = split.unwrap_or(1);
        for piece in &pieces {
            let (logits, shift) = piece.part(&out.logits, vocab);
            let rows = statistics.as_ref().unwrap_or(&out.rows);
            let bound = [
                &slots,
                &record.column,
                &logits,
                &out.tokens,
                &out.log_probs,
                &out.entropy,
                &out.sum_squared_probs,
                rows,
            ];
            let pass = usize::from(split.is_some());
            self.dispatch(&pipelines, pass, &out.params(piece, shift, per_row), &bound, piece.rows)?;
        }
        if let Some(statistics) = &statistics {
            let bound = [
                &slots,
                &record.column,
                statistics,
                &out.tokens,
                &out.log_probs,
                &out.entropy,
                &out.sum_squared_probs,
                &out.rows,
            ];
            let all = Piece { first: 0, rows: tokens, first_entry: 0, entries: vocab, index: 0 };
            self.dispatch(&pipelines, 2, &out.params(&all, 0, per_row), &bound, tokens.div_ceil(THREADS.into()))?;
        }
        Ok(out)
    }

    /// The gradient down to the logits of [`Self::log_probs`]: the core's
    /// [`logits_gradient`](tokenwise::policy::logits_gradient). Reads each logit once more and writes one gradient per
    /// logit; dropped rows get 0.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if a gradient does not fit the batch; [`GpuError::Limit`].
    pub fn logits_gradient(
        &mut self,
        batch: &GpuBatch<'_>,
        of: &LogProbColumns,
        grad_log_probs: &Input<'_>,
        grad_entropy: Option<&Input<'_>>,
    ) -> Result<Column, GpuError> {
        grad_log_probs.check_len("grad_log_probs", batch.tokens())?;
        if let Some(grad) = grad_entropy {
            grad.check_len("grad_entropy", batch.tokens())?;
        }
        let pieces = self.pieces(batch.tokens() as u64, of.vocab);
        let slots = batch.slots(self)?;
        let record = self.record(0, 0)?;
        let grad_log_probs = self.column(grad_log_probs)?;
        let grad_entropy = grad_entropy.map(|grad| self.column(grad)).transpose()?;
        let grad_logits = self.scratch(of.logits.len())?;
        let (label, load) = match grad_entropy {
            Some(_) => ("policy/logits_gradient", WITH_ENTROPY),
            None => ("policy/logits_gradient without entropy", WITHOUT_ENTROPY),
        };
        let pipelines = self.pipelines(label, || {
            let mut bindings = vec![Access::Read, Access::Write];
            bindings.extend([Access::Read; 4]);
            bindings.push(Access::Write);
            bindings.extend(grad_entropy.iter().map(|_| Access::Read));
            let gradient = include_str!("../shaders/policy/logits_gradient.wgsl").replace("//GRAD_ENTROPY", load);
            Kernel { label: label.into(), wgsl: [PRELUDE, &gradient].concat(), bindings, passes: &["logits_gradient"] }
        })?;
        for piece in pieces {
            let (logits, shift) = piece.part(&of.logits, of.vocab);
            let (grad, _) = piece.part(&grad_logits, of.vocab);
            let mut bound = vec![&slots, &record.column, &logits, &of.tokens, &of.rows, &grad_log_probs, &grad];
            bound.extend(&grad_entropy);
            self.dispatch(&pipelines, 0, &of.params(&piece, shift, 1), &bound, piece.rows)?;
        }
        Ok(grad_logits)
    }

    /// Pieces that fit a binding: whole rows, or some entries of one row if a row is larger than a binding.
    fn pieces(&self, rows: u64, vocab: u64) -> Vec<Piece> {
        // less the words before an aligned offset; at least some
        let words = self.gpu.max_buffer_bytes() / WORD;
        let most = words.max(4 * ALIGNED_WORDS) - ALIGNED_WORDS;
        let whole = if rows * vocab <= words { rows } else { most / vocab };
        let mut pieces = Vec::new();
        let (mut first, mut first_entry) = (0, 0);
        while first < rows {
            let (rows, entries) = match whole {
                0 => (1, most.min(vocab - first_entry)),
                _ => (whole.min(rows - first), vocab),
            };
            pieces.push(Piece { first, rows, first_entry, entries, index: pieces.len() as u64 });
            first_entry += entries;
            if first_entry == vocab {
                (first, first_entry) = (first + rows, 0);
            }
        }
        pieces
    }
}

const WITH_ENTROPY: &str = "@group(0) @binding(8) var<storage, read> grad_entropy: array<u32>;
fn load_grad_entropy(slot: u32) -> u32 { return grad_entropy[slot]; }";
const WITHOUT_ENTROPY: &str = "fn load_grad_entropy(slot: u32) -> u32 { return 0u; }";

impl LogProbColumns {
    fn params(&self, piece: &Piece, shift: u64, pieces: u64) -> [u32; 10] {
        // all are at most the number of words of a buffer, which fits into u32
        [
            piece.rows as u32,
            self.vocab as u32,
            self.scale.to_bits(),
            largest_logit(self.scale).to_bits(),
            piece.first as u32,
            shift as u32,
            piece.first_entry as u32,
            piece.entries as u32,
            piece.index as u32,
            pieces as u32,
        ]
    }
}

impl Gpu {
    /// Log-probability of each token, and the entropy of the distribution it was drawn from: the core's
    /// [`log_probs_and_entropy`] on the GPU.
    ///
    /// ```text
    /// z = logits / τ      log_probs_i = z[a_i] − m − ln Σ_v e^{z_v − m}      entropy_i = ln Σ_v e^{z_v − m} − Σ_v p_v (z_v − m)
    /// ```
    ///
    /// with `m = max z`. An entry of −inf has probability 0 and contributes 0; a row of only −inf, or with +inf or NaN,
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
    pub async fn log_probs_and_entropy(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<'_, f32>,
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
        let rows_at_once = self.max_buffer_bytes() / (input.vocab as u64 * WORD);
        let mut found: Vec<(f32, f32)> = Vec::with_capacity(kept.len());
        let rows_at_once = usize::try_from(rows_at_once.min(self.most_entries(RESULTS))).unwrap_or(usize::MAX);
        let mut report = Report::gpu();
        for rows in kept.chunks(rows_at_once.max(1)) {
            let (logits, keep) = (gathered_rows(&input, rows), vec![true; rows.len()]);
            let tokens: Vec<u32> = rows.iter().map(|&slot| input.tokens[slot]).collect();
            let batch = GpuBatch::new(Batch::new(Layout::padded(1, rows.len())?, Mask::new(&keep))?);
            let mut recording = self.record();
            let logits =
                LogitColumns { logits: Input::Host(&logits), vocab: input.vocab, tokens: Input::Words(&tokens) };
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

/// The largest logit whose product with `scale` is finite, so that the shader can detect overflow without computing it.
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
