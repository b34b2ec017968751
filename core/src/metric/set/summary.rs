use crate::{
    error::{check_len, Error, Result},
    layout::{Batch, Row},
    loss::{Aggregate, AggregateMode, Plan},
    real::Real,
    reduce::{row_total, Sum},
    statistics::Extremes,
};

/// Mean, largest and smallest number; NaN if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
}

/// How long each sequence is, and how long it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths<'a> {
    /// One per sequence, in tokens. Counts what the model processed, not what the loss mask keeps.
    pub tokens: &'a [u32],
    /// The maximum length: a sequence of exactly this length was truncated.
    pub limit: u32,
}

/// The accumulator of a [`Summary`].
#[derive(Clone, Copy)]
pub(super) struct Tally {
    pub(super) sum: Sum,
    pub(super) extremes: Extremes,
    pub(super) count: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { sum: Sum::default(), extremes: Extremes::NONE, count: 0 }
    }

    pub(super) fn add(&mut self, x: f64) {
        self.sum.add(x);
        self.extremes.add(x);
        self.count += 1;
    }

    /// Adds the kept tokens of a sequence and returns their sum.
    #[inline(always)]
    pub(super) fn add_row<R: Real>(&mut self, row: &Row<'_>, values: &[R]) -> f64 {
        let sum = row_total(row, values);
        for (x, _) in row.of(values).iter().zip(row.keep).filter(|(_, &keep)| keep) {
            self.extremes.add(x.widen());
        }
        self.sum.add(sum);
        self.count += row.kept() as u64;
        sum
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum.value() / self.count as f64
    }

    pub(super) fn summary(&self) -> Summary {
        let of = |x: f64| if self.count == 0 { f64::NAN } else { x };
        Summary { mean: self.mean(), max: of(self.extremes.max), min: of(self.extremes.min) }
    }

    /// Like [`Self::summary`], but 0 if there are no numbers.
    pub(super) fn or_zero(&self) -> Summary {
        if self.count == 0 {
            return Summary { mean: 0.0, max: 0.0, min: 0.0 };
        }
        self.summary()
    }
}

/// Accumulates one number per sequence, in order.
pub(super) fn tally(numbers: impl Iterator<Item = f64>) -> Tally {
    let mut all = Tally::new();
    numbers.for_each(|x| all.add(x));
    all
}

pub(super) fn check_optional<T>(what: &'static str, slice: Option<&[T]>, expected: usize) -> Result<()> {
    slice.map_or(Ok(()), |slice| check_len(what, slice, expected))
}

/// How entropies and KL are aggregated.
pub(super) struct Weighing<'a> {
    pub(super) plan: Plan<'a>,
    /// The mean is empty: every total is NaN.
    pub(super) undefined: bool,
}

impl<'a> Weighing<'a> {
    pub(super) fn new(batch: &Batch<'_>, aggregate: &Aggregate<'a>, wanted: bool) -> Result<Self> {
        let nothing = Aggregate { mode: AggregateMode::TokenSum, ..Default::default() };
        let (plan, undefined) = match aggregate.plan(batch) {
            _ if !wanted => (nothing.plan(batch)?, false),
            Err(Error::EmptyMask) => (nothing.plan(batch)?, true),
            Err(error) => return Err(error),
            Ok(plan) => (plan, false),
        };
        Ok(Self { plan, undefined })
    }

    pub(super) fn total(&self, sum: Sum) -> f64 {
        if self.undefined {
            f64::NAN
        } else {
            sum.value()
        }
    }
}
