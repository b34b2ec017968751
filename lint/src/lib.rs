//! Checks for common faults in logged rollouts.
//!
//! Each sequence is passed as slices and checked on its own ([`check`]); the samples of one prompt are collected in a
//! [`Group`] and checked together. Findings are numbers, not sentences: the command and the page word them. No files,
//! no allocation, no printing.
//!
//! ```
//! use tokenwise_lint::{check, Column, Finding, Options, Sequence};
//!
//! let mut sequence = Sequence::new(&[true, true, false]);
//! sequence.set(Column::Rewards, Some(&[0.0, 0.0, 1.0]));
//! check(&sequence, &Options::default(), &mut |finding| {
//!     assert_eq!(finding, Finding::RewardOnDroppedSlot { column: Column::Rewards, token: 2, value: 1.0 });
//!     assert_eq!(finding.rule().name(), "reward-on-dropped-slot");
//! });
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod column;
mod finding;
mod group;
mod rules;

pub use column::{Column, COLUMNS};
pub use finding::{Finding, Rule};
pub use group::Group;
pub use rules::check;

/// Options of the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How far two numbers may differ and still count as equal.
    pub tolerance: f64,
    /// No update has happened yet: every ratio must be 1.
    pub first_update: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { tolerance: 1e-4, first_update: false }
    }
}

/// One response.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    keep: &'a [bool],
    columns: [Option<&'a [f64]>; COLUMNS],
    /// Its task score.
    pub score: Option<f64>,
    /// Whether it comes from the first update after sampling.
    pub first_update: bool,
    /// Tokens of the response, if that is known; the rest of the slots is padding.
    pub length: Option<usize>,
    /// Other sequences have tokens.
    pub expects_tokens: bool,
    /// Other sequences have a score.
    pub expects_score: bool,
}

impl<'a> Sequence<'a> {
    /// A response with a mask and no columns.
    #[must_use]
    pub const fn new(keep: &'a [bool]) -> Self {
        Self {
            keep,
            columns: [None; COLUMNS],
            score: None,
            first_update: false,
            length: None,
            expects_tokens: false,
            expects_score: false,
        }
    }

    /// Adds a column. A column whose length differs from the mask counts as missing.
    pub fn set(&mut self, column: Column, numbers: Option<&'a [f64]>) {
        self.columns[column as usize] = numbers.filter(|numbers| numbers.len() == self.keep.len());
    }

    /// A column, if present.
    #[must_use]
    pub fn column(&self, column: Column) -> Option<&'a [f64]> {
        self.columns[column as usize]
    }

    /// An entry of a column; 0 if the column is missing.
    fn at(&self, column: Column, token: usize) -> f64 {
        self.column(column).and_then(|numbers| numbers.get(token)).copied().unwrap_or(0.0)
    }

    /// Calls `work` for every kept token of a column. Takes a `dyn` closure so that the loop is compiled only once.
    fn each_kept(&self, column: Column, work: &mut dyn FnMut(usize, f64)) {
        let Some(numbers) = self.column(column) else { return };
        for (token, keep) in self.keep.iter().enumerate() {
            if let (true, Some(x)) = (*keep, numbers.get(token)) {
                work(token, *x);
            }
        }
    }
}

/// |x|: `core` has `abs` only since Rust 1.85.
fn size(x: f64) -> f64 {
    if x < 0.0 {
        -x
    } else {
        x
    }
}
