//! **Stage 1 of 7 — policy.** Reads logits and tokens, writes log-probabilities and entropy.

use tokenwise::policy::{check_tokens, check_vocab, PolicyConfig};

use crate::{
    batch::{GpuBatch, Segmented},
    column::{Column, Format, Input},
    error::GpuError,
    kernel::{Access, Kernel, MOST_THREADS},
    pool::WORD,
    recording::Recording,
};

mod host;
mod piece;

use piece::Piece;

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
    /// One row per slot, dropped slots included; those are not read. `f32`, `f16` or `bf16`.
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

/// Words of the statistics of a piece: two `Row`s.
const PIECE_WORDS: u64 = 2 * ROW_WORDS;

impl Recording<'_> {
    /// Log-probabilities, entropy and Σ p² of resident logits, in one pass over them: the core's
    /// [`log_probs_and_entropy`](tokenwise::policy::log_probs_and_entropy) and
    /// [`sum_squared_probs`](tokenwise::policy::sum_squared_probs).
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
        check_vocab::<f32>(host, "logits", input.logits.len() as usize, input.vocab, config.temperature)?;
        match input.tokens {
            Input::Words(tokens) => check_tokens(host, tokens, input.vocab)?,
            _ => input.tokens.check_len("tokens", host.tokens())?,
        }
        let scale = (1.0 / config.temperature) as f32;
        if !scale.is_normal() {
            return Err(GpuError::Unsupported("1/τ is not a normal f32, and shaders may flush it to 0"));
        }
        let (tokens, vocab) = (host.tokens() as u64, input.vocab as u64);
        let out = LogProbColumns {
            log_probs: self.scratch(tokens)?,
            entropy: self.scratch(tokens)?,
            sum_squared_probs: self.scratch(tokens)?,
            logits: self.logits(&input.logits)?,
            tokens: self.column(&input.tokens)?,
            rows: self.scratch(tokens * ROW_WORDS)?,
            vocab,
            scale,
        };
        let format = out.logits.format();
        let pieces = Piece::all(format, self.gpu.max_buffer_bytes() / format.bytes(), tokens, vocab);
        let slots = batch.slots(self)?;
        let record = self.record(0, 0)?;
        let load = Load::of(&pieces, vocab, &[&out.logits]);
        let label = format!("policy/log_probs of {format:?} by {load:?}");
        let pipelines = self.pipelines(&label, || Kernel {
            label: label.clone(),
            wgsl: [PRELUDE, &load.wgsl(format), include_str!("../shaders/policy/log_probs.wgsl")].concat(),
            bindings: [[Access::Read, Access::Write, Access::Read, Access::Read], [Access::Write; 4]].concat(),
            passes: &["log_probs_and_entropy", "piece", "merge"],
        })?;
        // pieces per row, if rows are split
        let split = pieces.first().filter(|piece| piece.entries < vocab).map(|piece| vocab.div_ceil(piece.entries));
        let statistics = split.map(|split| self.scratch(tokens * split * PIECE_WORDS)).transpose()?;
        let per_row = split.unwrap_or(1);
        for piece in &pieces {
            let (logits, shift) = piece.part(format, &out.logits, vocab);
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
            let all = Piece::whole(tokens, vocab);
            self.dispatch(&pipelines, 2, &out.params(&all, 0, per_row), &bound, tokens.div_ceil(MOST_THREADS.into()))?;
        }
        Ok(out)
    }

    /// The gradient down to the logits of [`Self::log_probs`]: the core's
    /// [`logits_gradient`](tokenwise::policy::logits_gradient). Reads each logit once more and writes one gradient per
    /// logit, an `f32` whatever the logits are; dropped rows get 0.
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
        let grad_logits = self.scratch(of.logits.len())?;
        self.logits_gradient_to(batch, of, grad_log_probs, grad_entropy, &grad_logits)?;
        Ok(grad_logits)
    }

    /// As [`Self::logits_gradient`], written straight into `grad_logits`, such as a range of the caller's own buffer
    /// ([`Column::from_buffer`]), which must not be that of the logits. If [`Self::submit`] fails, its contents are
    /// unknown.
    ///
    /// # Errors
    ///
    /// As [`Self::logits_gradient`]; [`GpuError::Unsupported`] unless `grad_logits` holds `f32`.
    pub fn logits_gradient_to(
        &mut self,
        batch: &GpuBatch<'_>,
        of: &LogProbColumns,
        grad_log_probs: &Input<'_>,
        grad_entropy: Option<&Input<'_>>,
        grad_logits: &Column,
    ) -> Result<(), GpuError> {
        let format = of.logits.format();
        Input::from(grad_logits).check_len("grad_logits", of.logits.len() as usize)?;
        if grad_logits.format() != Format::Word {
            return Err(GpuError::Unsupported("the gradient of the logits is f32"));
        }
        grad_log_probs.check_len("grad_log_probs", batch.tokens())?;
        if let Some(grad) = grad_entropy {
            grad.check_len("grad_entropy", batch.tokens())?;
        }
        // a gradient is a word, whatever a logit is
        let most = self.gpu.max_buffer_bytes() / WORD;
        let pieces = Piece::all(format, most, batch.tokens() as u64, of.vocab);
        let slots = batch.slots(self)?;
        let record = self.record(0, 0)?;
        let grad_log_probs = self.column(grad_log_probs)?;
        let grad_entropy = grad_entropy.map(|grad| self.column(grad)).transpose()?;
        let (with, entropy) = match grad_entropy {
            Some(_) => ("with", include_str!("../shaders/policy/with_entropy.wgsl")),
            None => ("without", include_str!("../shaders/policy/without_entropy.wgsl")),
        };
        let load = Load::of(&pieces, of.vocab, &[&of.logits, grad_logits]);
        let label = format!("policy/logits_gradient of {format:?} by {load:?} {with} entropy");
        let pipelines = self.pipelines(&label, || {
            let mut bindings = vec![Access::Read, Access::Write];
            bindings.extend([Access::Read; 4]);
            bindings.push(Access::Write);
            bindings.extend(grad_entropy.iter().map(|_| Access::Read));
            let gradient = include_str!("../shaders/policy/logits_gradient.wgsl");
            let wgsl = [PRELUDE, &load.wgsl(format), entropy, load.store(), gradient].concat();
            Kernel { label: label.clone(), wgsl, bindings, passes: &["logits_gradient"] }
        })?;
        for piece in pieces {
            let (logits, shift) = piece.part(format, &of.logits, of.vocab);
            let (grad, _) = piece.part(format, grad_logits, of.vocab);
            let mut bound = vec![&slots, &record.column, &logits, &of.tokens, &of.rows, &grad_log_probs, &grad];
            bound.extend(&grad_entropy);
            self.dispatch(&pipelines, 0, &of.params(&piece, shift, 1), &bound, piece.rows)?;
        }
        Ok(())
    }
}

/// How many entries a shader reads and writes at once.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Any rows.
    One,
    /// Rows that begin and end at multiples of four entries, in columns that begin at a multiple of 16 bytes.
    Four,
}

impl Load {
    fn of(pieces: &[Piece], vocab: u64, columns: &[&Column]) -> Self {
        let fours = |entries: u64| entries.is_multiple_of(4);
        let whole = pieces.iter().all(|piece| fours(piece.first_entry) && fours(piece.entries));
        let aligned = columns.iter().all(|column| column.buffer().1.is_multiple_of(4 * WORD));
        if fours(vocab) && whole && aligned {
            Self::Four
        } else {
            Self::One
        }
    }

    fn wgsl(self, format: Format) -> String {
        let words = match (self, format) {
            (Self::One, _) => include_str!("../shaders/policy/one_word.wgsl"),
            (Self::Four, Format::Word) => include_str!("../shaders/policy/four_words.wgsl"),
            (Self::Four, Format::F16 | Format::Bf16) => include_str!("../shaders/policy/four_halves.wgsl"),
        };
        let (entry, widened) = match format {
            Format::Word => (include_str!("../shaders/policy/f32.wgsl"), ""),
            Format::F16 => (include_str!("../shaders/policy/half.wgsl"), include_str!("../shaders/policy/f16.wgsl")),
            Format::Bf16 => (include_str!("../shaders/policy/half.wgsl"), include_str!("../shaders/policy/bf16.wgsl")),
        };
        [words, entry, widened].concat()
    }

    const fn store(self) -> &'static str {
        match self {
            Self::One => include_str!("../shaders/policy/store_one.wgsl"),
            Self::Four => include_str!("../shaders/policy/store_four.wgsl"),
        }
    }
}

impl LogProbColumns {
    /// The logits, as they were given.
    pub const fn logits(&self) -> &Column {
        &self.logits
    }

    /// The tokens, as they were given.
    pub const fn tokens(&self) -> &Column {
        &self.tokens
    }

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
