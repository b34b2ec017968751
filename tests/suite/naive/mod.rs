//! The formulas as a textbook writes them: `f64`, loops, one token at a time, no regard for speed or cancellation.
//!
//! Nothing here calls the code it is compared with; only the config types are shared.
#![allow(
    clippy::disallowed_methods,
    reason = "the oracle takes exp, ln and sqrt from elsewhere, and adds in plain order"
)]

pub(crate) mod advantage;
pub(crate) mod baselines;
pub(crate) mod covariance_loss;
pub(crate) mod distill;
pub(crate) mod distill_rows;
pub(crate) mod divergence;
pub(crate) mod dual_game;
pub(crate) mod groups;
pub(crate) mod loss;
pub(crate) mod masks;
pub(crate) mod metric;
pub(crate) mod parse;
pub(crate) mod policy;
pub(crate) mod returns;
pub(crate) mod reward;
pub(crate) mod rollout;
pub(crate) mod sequence_loss;
pub(crate) mod sets;
pub(crate) mod token_loss;
pub(crate) mod trl_set;

use std::ops::Range;

use tokenwise::{Divisor, Spread};

/// The slots of the sequences, and which are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'a> {
    /// The slots of each sequence.
    pub(crate) rows: &'a [Range<usize>],
    /// One entry per slot.
    pub(crate) keep: &'a [bool],
}

impl Tokens<'_> {
    /// The kept slots, in order.
    pub(crate) fn kept(&self) -> Vec<usize> {
        self.rows.iter().flat_map(|row| self.kept_of(row)).collect()
    }

    /// The kept slots of one sequence, in order.
    pub(crate) fn kept_of(&self, row: &Range<usize>) -> Vec<usize> {
        row.clone().filter(|&slot| self.keep[slot]).collect()
    }

    /// A number for every kept slot, 0 for the others.
    pub(crate) fn fill(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.keep.len()];
        for slot in self.kept() {
            out[slot] = value(slot);
        }
        out
    }

    /// The sum over the kept slots.
    pub(crate) fn sum(&self, value: impl Fn(usize) -> f64) -> f64 {
        let mut total = 0.0;
        for slot in self.kept() {
            total += value(slot);
        }
        total
    }

    /// The sum over the kept slots, divided by their number.
    pub(crate) fn mean(&self, divisor: Divisor, value: impl Fn(usize) -> f64) -> f64 {
        self.sum(value) / count(self.kept().len(), divisor)
    }
}

/// The divisor of a mean over `n` numbers.
pub(crate) fn count(n: usize, divisor: Divisor) -> f64 {
    match divisor {
        Divisor::Count => n as f64,
        Divisor::CountPlusEpsilon => n as f64 + 1e-8,
        _ => panic!("no textbook version of this variant"),
    }
}

/// Mean and variance of numbers.
pub(crate) fn mean_and_variance(numbers: &[f64], spread: Spread, divisor: Divisor) -> (f64, f64) {
    let n = count(numbers.len(), divisor);
    let mean = numbers.iter().sum::<f64>() / n;
    let mean_square = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let plain = numbers.len() as f64;
    match spread {
        Spread::Population => (mean, mean_square),
        Spread::Sample => (mean, mean_square * plain / (plain - 1.0)),
        _ => panic!("no textbook version of this variant"),
    }
}

/// Moves rows of a model's output from the position that predicted a token to the token itself.
pub(crate) fn shift(
    rows: &[Range<usize>],
    raw_rows: &[Range<usize>],
    raw: &[f64],
    width: usize,
    out_len: usize,
) -> Vec<f64> {
    let mut out = vec![0.0; out_len];
    for (row, raw_row) in rows.iter().zip(raw_rows) {
        for (t, slot) in row.clone().enumerate() {
            // the response ends where the raw sequence ends; its first token was predicted by the position before it
            let position = raw_row.end - row.len() - 1 + t;
            for entry in 0..width {
                out[slot * width + entry] = raw[position * width + entry];
            }
        }
    }
    out
}
