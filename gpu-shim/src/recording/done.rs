//! [`Done`]: what a submission gave.

use std::ops::Range;

use crate::{column::Column, report::Report};

/// A column that [`Recording::download`](crate::Recording::download) asked for; [`Done`] has its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download(pub(super) usize);

/// Words of a record's header before its sums: flags of the tokens, flags of the sums. Must match the shaders.
pub(crate) const RECORD_FLAGS: u64 = 2;

/// A number that [`Done::get`] computes from what kernels summed.
pub struct Pending<T>(pub(crate) Box<dyn Fn(&Done) -> T + Send + Sync>);

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}

impl<T> Pending<T> {
    pub(crate) fn new(finish: impl Fn(&Done) -> T + Send + Sync + 'static) -> Self {
        Self(Box::new(finish))
    }
}

/// What a submission gave.
#[derive(Debug)]
pub struct Done {
    words: Vec<u32>,
    ranges: Vec<Range<usize>>,
    pub(super) report: Report,
}

impl Done {
    /// The words that were read back, in the order of the downloads.
    pub(super) fn new(words: Vec<u32>, downloads: &[Column], report: Report) -> Self {
        Self { words, ranges: ranges(downloads), report }
    }

    /// What it cost.
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The words of a download; of a column in half precision, two entries each.
    pub fn words(&self, download: Download) -> &[u32] {
        self.ranges.get(download.0).and_then(|range| self.words.get(range.clone())).unwrap_or_default()
    }

    /// The numbers of a download.
    pub fn floats(&self, download: Download) -> &[f32] {
        bytemuck::cast_slice(self.words(download))
    }

    /// Copies the numbers of a download.
    pub(crate) fn copy_to(&self, download: Download, out: &mut [f32]) {
        for (out, &number) in out.iter_mut().zip(self.floats(download)) {
            *out = number;
        }
    }

    /// A number computed from what kernels summed.
    pub fn get<T>(&self, pending: &Pending<T>) -> T {
        (pending.0)(self)
    }

    /// The sums of a record. Infinite and NaN terms are known by their flags.
    pub(crate) fn sums<const N: usize>(&self, header: Download) -> [f64; N] {
        let words = self.words(header);
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        std::array::from_fn(|sum| {
            match word(1) >> (3 * sum) & 7 {
                0 => {
                    let [high, low] = [0, 1].map(|half| f32::from_bits(word(RECORD_FLAGS as usize + 2 * sum + half)));
                    f64::from(high) + f64::from(low)
                }
                2 => f64::INFINITY,
                4 => f64::NEG_INFINITY,
                // NaN, or infinities of both signs
                _ => f64::NAN,
            }
        })
    }
}

/// Where each download is in the words read back.
fn ranges(downloads: &[Column]) -> Vec<Range<usize>> {
    let mut at = 0;
    let range = |column: &Column| {
        let start = at;
        at += column.words() as usize;
        start..at
    };
    downloads.iter().map(range).collect()
}
