//! Batches that are too large for the device, in parts.

use std::ops::Range;

use tokenwise::{Batch, Layout, Mask};
use tokenwise_catalogue::{Array, Call, Columns, Entry, Kind};

use crate::{
    column::Input,
    context::Gpu,
    error::GpuError,
    logit::GpuLogit,
    report::{Clock, Reason, Report},
    thresholds::Family,
};

/// Formulas over batches whose sequences do not depend on each other, so that a batch may be computed in parts.
/// Those of [`Family::Logits`] may even be split within a sequence.
const BY_SEQUENCE: &[&str] = &[
    "log_probs_and_entropy",
    "token_log_probs",
    "entropy",
    "sum_squared_probs",
    "logits_gradient",
    "kl_estimate",
    "kl_gradient",
    "place_scores",
    "shape_rewards",
    "discounted_returns",
    "gae",
    "monte_carlo_advantage",
    "td_lambda",
    "n_step_returns",
    "broadcast",
    "sequence_sums",
];

/// Whether half of the work may succeed where all of it failed.
pub(crate) const fn is_too_much(error: &GpuError) -> bool {
    matches!(error, GpuError::Limit { .. } | GpuError::OutOfMemory)
}

/// What the entries of a slice belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Token,
    Sequence,
    /// A token and an entry of a vocabulary of this size.
    Logit(usize),
}

/// What a batch is split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Sequence,
    Token,
    Nothing,
}

/// The parts of a batch, from first to last; at the start, one.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    batch: Batch<'a>,
    by: By,
    /// Sequences or tokens, the last part first.
    left: Vec<Range<usize>>,
}

impl<'a> Parts<'a> {
    fn new(batch: &Batch<'a>, by: By, units: usize) -> Self {
        Self { batch: *batch, by, left: std::iter::once(0..units).collect() }
    }

    pub(crate) fn by_sequence(batch: &Batch<'a>) -> Self {
        Self::new(batch, By::Sequence, batch.sequences())
    }

    /// For formulas that do not look at the neighbours of a token: its sequences may be split.
    pub(crate) fn by_token(batch: &Batch<'a>) -> Self {
        Self::new(batch, By::Token, batch.tokens())
    }

    /// For formulas of the whole batch.
    pub(crate) fn whole(batch: &Batch<'a>) -> Self {
        Self::new(batch, By::Nothing, batch.sequences())
    }

    /// The next part.
    pub(crate) fn next(&mut self) -> Option<Part<'a>> {
        let range = self.left.pop()?;
        if self.by == By::Token {
            let offsets = u32::try_from(range.len()).ok().map(|len| vec![0, len]);
            let whole = range == (0..self.batch.tokens());
            return Some(Part { batch: self.batch, whole, sequences: 0..1, tokens: range, offsets });
        }
        let layout = self.batch.layout();
        let start = |sequence| layout.slots(sequence).map_or(self.batch.tokens(), |slots| slots.start);
        let tokens = start(range.start)..start(range.end);
        let whole = range == (0..self.batch.sequences());
        let offset = |sequence| u32::try_from(start(sequence) - tokens.start).ok();
        let offsets = if whole { None } else { (range.start..=range.end).map(offset).collect() };
        Some(Part { batch: self.batch, whole, sequences: range, tokens, offsets })
    }

    /// Puts both halves of a part that was too large back; `false` if it cannot be halved.
    pub(crate) fn halve(&mut self, part: &Part<'_>) -> bool {
        let range = match self.by {
            By::Sequence => &part.sequences,
            By::Token => &part.tokens,
            By::Nothing => return false,
        };
        if range.len() < 2 {
            return false;
        }
        let middle = range.start + range.len() / 2;
        self.left.extend([middle..range.end, range.start..middle]);
        true
    }
}

/// Some sequences of a batch, or some tokens of [`Parts::by_token`].
#[derive(Debug)]
pub(crate) struct Part<'a> {
    batch: Batch<'a>,
    /// Whether this is the batch itself.
    whole: bool,
    sequences: Range<usize>,
    tokens: Range<usize>,
    /// The layout of a part; `None` if it has 2³² slots or more.
    offsets: Option<Vec<u32>>,
}

impl Part<'_> {
    pub(crate) fn batch(&self) -> Result<Batch<'_>, GpuError> {
        if self.whole {
            return Ok(self.batch);
        }
        let Some(offsets) = &self.offsets else {
            return Err(too_many(self.tokens.len() as u64));
        };
        Ok(Batch::new(Layout::packed(offsets)?, Mask::new(&self.batch.mask().as_slice()[self.tokens.clone()]))?)
    }

    /// Where the entries of this part are.
    pub(crate) fn range(&self, unit: Unit) -> Range<usize> {
        match unit {
            Unit::Token => self.tokens.clone(),
            Unit::Sequence => self.sequences.clone(),
            Unit::Logit(vocab) => self.tokens.start * vocab..self.tokens.end * vocab,
        }
    }

    /// The entries of this part. A slice that does not fit stays as it is, and is refused.
    pub(crate) fn of<'s, T>(&self, unit: Unit, slice: &'s [T]) -> &'s [T] {
        slice.get(self.range(unit)).unwrap_or(slice)
    }

    pub(crate) fn tokens<'s>(&self, slice: &'s [f32]) -> Input<'s> {
        Input::Host(self.of(Unit::Token, slice))
    }

    pub(crate) fn logits<'s, L: GpuLogit>(&self, slice: &'s [L], vocab: usize) -> Input<'s> {
        L::input(self.of(Unit::Logit(vocab), slice))
    }
}

/// The error of a batch whose slots a `u32` cannot count.
pub(crate) const fn too_many(tokens: u64) -> GpuError {
    GpuError::Limit { what: "token slots", needed: tokens, limit: u32::MAX as u64 }
}

/// What the entries of a column belong to, if the column can be split.
fn unit(kind: Kind, inputs: &Columns<f32>) -> Option<Unit> {
    match kind {
        Kind::Token => Some(Unit::Token),
        Kind::Sequence => Some(Unit::Sequence),
        Kind::Logit => Some(Unit::Logit(inputs.size("vocab").ok()?)),
        _ => None,
    }
}

fn part_of<T: Clone>(array: &[T], range: Range<usize>) -> Option<Vec<T>> {
    array.get(range).map(<[T]>::to_vec)
}

/// The columns of a part.
fn inputs_of(entry: &Entry, inputs: &Columns<f32>, part: &Part<'_>) -> Option<Columns<f32>> {
    let mut found = Columns::new();
    for column in entry.inputs {
        let Some(array) = inputs.get(column.name) else { continue };
        let range = || unit(column.kind, inputs).map(|unit| part.range(unit));
        let array = match array {
            Array::Real(numbers) => Array::Real(part_of(numbers, range()?)?),
            Array::Index(numbers) => Array::Index(part_of(numbers, range()?)?),
            Array::Flag(flags) => Array::Flag(part_of(flags, range()?)?),
            Array::Size(size) => Array::Size(*size),
            Array::Number(number) => Array::Number(*number),
            _ => return None,
        };
        found.set(column.name, array);
    }
    Some(found)
}

/// Copies the output of a part to its place.
fn put(out: Option<&mut Array<f32>>, range: Range<usize>, found: &Array<f32>) {
    match (out, found) {
        (Some(Array::Real(out)), Array::Real(found)) => out[range].copy_from_slice(found),
        (Some(Array::Index(out)), Array::Index(found)) => out[range].copy_from_slice(found),
        (Some(Array::Flag(out)), Array::Flag(found)) => out[range].copy_from_slice(found),
        _ => {}
    }
}

impl Gpu {
    /// A call that was too large for the device, in parts, if its formula allows it. Nothing is written before the last
    /// part is done.
    pub(crate) async fn call_in_parts(
        &self,
        entry: &Entry,
        call: &mut Call<'_, f32>,
        error: GpuError,
    ) -> Result<Report, Reason> {
        let clock = Clock::start();
        let failed = || Reason::Failed(error.clone());
        let Some(batch) = call.batch.filter(|_| BY_SEQUENCE.contains(&entry.name)) else { return Err(failed()) };
        let mut parts = match Family::of(entry) {
            Family::Logits => Parts::by_token(&batch),
            _ => Parts::by_sequence(&batch),
        };
        // the whole was tried
        let whole = parts.next().ok_or_else(failed)?;
        if !parts.halve(&whole) {
            return Err(failed());
        }
        let mut report = Report::gpu();
        let mut found = Vec::new();
        while let Some(part) = parts.next() {
            let inputs = inputs_of(entry, call.inputs, &part).ok_or_else(failed)?;
            let batch = part.batch().map_err(Reason::Failed)?;
            let mut outputs = entry.outputs_for(Some(&batch), None, &inputs);
            let mut part_call = Call::new(Some(batch), None, &inputs, call.config, &mut outputs);
            match self.try_call(entry, &mut part_call).await {
                Ok(done) => {
                    report.add(&done);
                    found.push((part, outputs));
                }
                Err(Reason::Failed(error)) if is_too_much(&error) && parts.halve(&part) => {}
                Err(reason) => return Err(reason),
            }
        }
        for (part, outputs) in found {
            for column in entry.outputs {
                if let (Some(unit), Some(array)) = (unit(column.kind, call.inputs), outputs.get(column.name)) {
                    put(call.outputs.get_mut(column.name), part.range(unit), array);
                }
            }
        }
        report.host = clock.elapsed();
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_cover_a_batch_in_order() {
        let keep = [true, false, true, true, false, true, true];
        let batch = Batch::new(Layout::packed(&[0, 0, 3, 5, 7]).unwrap(), Mask::new(&keep)).unwrap();
        for (mut parts, units) in [(Parts::by_sequence(&batch), 4), (Parts::by_token(&batch), 7)] {
            let (mut tokens, mut found) = (0, 0);
            while let Some(part) = parts.next() {
                if !parts.halve(&part) {
                    let range = part.range(Unit::Token);
                    assert_eq!(range.start, tokens);
                    assert_eq!(part.batch().unwrap().mask().as_slice(), &keep[range.clone()]);
                    (tokens, found) = (range.end, found + 1);
                }
            }
            assert_eq!((tokens, found), (7, units));
        }
        let mut whole = Parts::whole(&batch);
        let part = whole.next().unwrap();
        assert!(!whole.halve(&part) && part.batch().unwrap().sequences() == 4);
    }
}
