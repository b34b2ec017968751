//! The formulas as a textbook writes them: `f64`, loops, one token at a time, no regard for speed or cancellation.
//!
//! Nothing here calls the code it is compared with; only the config types are shared.
#![allow(
    clippy::disallowed_methods,
    reason = "the oracle takes exp, ln and sqrt from elsewhere, and adds in plain order"
)]

pub mod advantage;
pub mod baselines;
pub mod covariance_loss;
pub mod distill;
pub mod distill_rows;
pub mod divergence;
pub mod dual_game;
pub mod groups;
pub mod loss;
pub mod masks;
pub mod metric;
pub mod parse;
pub mod policy;
pub mod returns;
pub mod reward;
pub mod rollout;
pub mod sequence_loss;
pub mod sets;
pub mod token_loss;
pub mod trl_set;

use std::ops::Range;

use tokenwise::{Divisor, Spread};

/// Where the tokens lie and which take part.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The slots of each sequence.
    pub rows: &'a [Range<usize>],
    /// One entry per slot.
    pub keep: &'a [bool],
}

impl Tokens<'_> {
    /// The kept slots, in order.
    pub fn kept(&self) -> Vec<usize> {
        self.rows.iter().flat_map(|row| self.kept_of(row)).collect()
    }

    /// The kept slots of one sequence, in order.
    pub fn kept_of(&self, row: &Range<usize>) -> Vec<usize> {
        row.clone().filter(|&slot| self.keep[slot]).collect()
    }

    /// A number for every kept slot, 0 for the others.
    pub fn fill(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.keep.len()];
        for slot in self.kept() {
            out[slot] = value(slot);
        }
        out
    }

    /// The sum over the kept slots.
    pub fn sum(&self, value: impl Fn(usize) -> f64) -> f64 {
        let mut total = 0.0;
        for slot in self.kept() {
            total += value(slot);
        }
        total
    }

    /// The sum over the kept slots, divided by their number.
    pub fn mean(&self, divisor: Divisor, value: impl Fn(usize) -> f64) -> f64 {
        self.sum(value) / count(self.kept().len(), divisor)
    }
}

/// What a mean over `n` numbers divides by.
pub fn count(n: usize, divisor: Divisor) -> f64 {
    match divisor {
        Divisor::Count => n as f64,
        Divisor::CountPlusEpsilon => n as f64 + 1e-8,
    }
}

/// Mean and variance of some numbers.
pub fn mean_and_variance(numbers: &[f64], spread: Spread, divisor: Divisor) -> (f64, f64) {
    let n = count(numbers.len(), divisor);
    let mean = numbers.iter().sum::<f64>() / n;
    let mean_square = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let plain = numbers.len() as f64;
    match spread {
        Spread::Population => (mean, mean_square),
        Spread::Sample => (mean, mean_square * plain / (plain - 1.0)),
    }
}

/// Moves rows of a model's output from the position that predicted a token to the token itself.
pub fn shift(rows: &[Range<usize>], raw_rows: &[Range<usize>], raw: &[f64], width: usize, out_len: usize) -> Vec<f64> {
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
