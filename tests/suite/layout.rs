//! The shift of raw model output, laid out as a model returns it: a prompt before each response.

use std::ops::Range;

use tokenwise::{shift, Layout, Result};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::naive;

use crate::case::{unwritten, Case, Outcome};

pub(crate) struct Shift;

/// The logits of each response as the rows before the last position of a longer sequence; everything else is not
/// defined.
fn raw<R: Number>(flat: &Flat<R>, prompt: usize) -> (Vec<u32>, Vec<Range<usize>>, Vec<R>) {
    let (mut offsets, mut rows, mut raw) = (vec![0], Vec::new(), Vec::new());
    let logits = flat.column(Column::Logits);
    let starts = (0..flat.rows.len()).map(|i| flat.rows[i].start);
    let ends = (1..=flat.rows.len()).map(|i| flat.rows.get(i).map_or(flat.tokens(), |row| row.start));
    for (start, end) in starts.zip(ends) {
        let first = raw.len() / flat.vocab;
        raw.extend(vec![R::nan(); prompt * flat.vocab]);
        raw.extend(&logits[start * flat.vocab..end * flat.vocab]);
        raw.extend(vec![R::nan(); flat.vocab]);
        rows.push(first..raw.len() / flat.vocab);
        offsets.push((raw.len() / flat.vocab) as u32);
    }
    (offsets, rows, raw)
}

impl Case for Shift {
    const NAME: &'static str = "shift";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    const DROPPED_GET_ZERO: bool = false;
    type Config = usize;
    fn config(random: &mut Random) -> usize {
        random.below(4)
    }
    fn run<R: Number>(flat: &Flat<R>, prompt: usize) -> Result<Outcome<R>> {
        let (offsets, _, raw) = raw(flat, prompt);
        let mut out = unwritten(flat.tokens() * flat.vocab);
        shift(&flat.layout(), &Layout::packed(&offsets)?, &raw, flat.vocab, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, prompt: usize) -> Outcome<f64> {
        let (_, rows, raw) = raw(flat, prompt);
        Outcome::tokens([naive::shift(&flat.rows, &rows, &raw, flat.vocab, flat.tokens() * flat.vocab)])
    }
}

crate::case::tests! {
    shift: Shift,
}
