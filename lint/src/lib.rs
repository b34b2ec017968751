//! The usual faults of logged rollouts.
//!
//! A sequence is handed over as slices and judged by itself ([`check`]); the samples of one prompt are collected in a [`Group`] and
//! judged together. What is found is told in numbers, not in words: the command and the page write their own sentences. No files, no
//! allocation, no printing.
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

/// What the rules are told beside the numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How far two numbers may differ and still count as equal.
    pub tolerance: f64,
    /// Nothing was learned yet: every ratio must be 1.
    pub first_update: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { tolerance: 1e-4, first_update: false }
    }
}

/// What is known of one response.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    keep: &'a [bool],
    columns: [Option<&'a [f64]>; COLUMNS],
    /// Its task score.
    pub score: Option<f64>,
    /// Whether it comes from the first update after sampling.
    pub first_update: bool,
}

impl<'a> Sequence<'a> {
    /// A response of which only the mask is known: which of its tokens take part.
    #[must_use]
    pub const fn new(keep: &'a [bool]) -> Self {
        Self { keep, columns: [None; COLUMNS], score: None, first_update: false }
    }

    /// Adds a column. One that has not as many entries as the mask counts as missing.
    pub fn set(&mut self, column: Column, numbers: Option<&'a [f64]>) {
        self.columns[column as usize] = numbers.filter(|numbers| numbers.len() == self.keep.len());
    }

    /// The numbers of a column, if it is there.
    #[must_use]
    pub fn column(&self, column: Column) -> Option<&'a [f64]> {
        self.columns[column as usize]
    }

    /// A number, 0 where there is no such column.
    fn at(&self, column: Column, token: usize) -> f64 {
        self.column(column).and_then(|numbers| numbers.get(token)).copied().unwrap_or(0.0)
    }

    /// Hands over the numbers of a column on kept tokens, each with its token. A loop that exists once: in a browser every copy is
    /// paid for.
    fn each_kept(&self, column: Column, work: &mut dyn FnMut(usize, f64)) {
        let Some(numbers) = self.column(column) else { return };
        for (token, keep) in self.keep.iter().enumerate() {
            if let (true, Some(x)) = (*keep, numbers.get(token)) {
                work(token, *x);
            }
        }
    }
}

/// |x|: `core` has had it since Rust 1.85 only.
fn size(x: f64) -> f64 {
    if x < 0.0 {
        -x
    } else {
        x
    }
}
