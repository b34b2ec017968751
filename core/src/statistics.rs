//! Count, mean and spread of the kept tokens, in `f64`, mergeable across shards; and the two conventions about them.

use crate::{
    error::{check_len, Error, Result},
    layout::{Batch, Row},
    math::sqrt,
    parallel::{in_order, Part, Work},
    real::Real,
    reduce::{fold_row, row_total, sum_row, Sum},
    simd::multiversion,
};

mod extremes;
#[cfg(test)]
mod tests;

pub(crate) use extremes::Extremes;

/// What a mean divides its sum by.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Divisor {
    /// The number of kept entries, `n`.
    #[default]
    Count,
    /// `n + 1e-8`, as verl's `masked_mean` does: the mean of one entry is then off by 1e-8 of itself.
    CountPlusEpsilon,
}

impl Divisor {
    #[doc(hidden)]
    #[inline]
    pub fn of(self, count: f64) -> f64 {
        match self {
            Self::Count => count,
            Self::CountPlusEpsilon => count + 1e-8,
        }
    }
}

/// How a mean over kept entries is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct MeanConfig {
    /// What the mean divides by; default the exact count.
    pub divisor: Divisor,
}

/// Which variance: divided by `n` or by `n − 1`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Spread {
    /// Divided by `n` (ddof 0).
    Population,
    /// Divided by `n − 1` (ddof 1); needs two entries.
    #[default]
    Sample,
}

impl Spread {
    /// Entries a variance of this kind needs.
    pub(crate) const fn needs(self) -> u64 {
        match self {
            Self::Population => 1,
            Self::Sample => 2,
        }
    }
}

/// Count, mean and sum of squared deviations of some numbers.
///
/// Shards are joined by [`Moments::merge`]; merging in another order changes the result by rounding only
/// (relative to the largest deviation, a few units of 2⁻⁵² per merge).
///
/// Nothing is scaled, so `f64` numbers near the largest ones overflow: the mean is ±inf once the sum exceeds 1.8·10³⁰⁸
/// (four times 10³⁰⁸), the spread once the squared deviations do (deviations beyond about 10¹⁵⁴). No finite `f32`
/// overflows, because sums are `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many numbers.
    pub count: u64,
    /// Their mean; 0 if there are none.
    pub mean: f64,
    /// The sum of their squared deviations from the mean.
    pub m2: f64,
}

impl Moments {
    /// The moments of the kept entries.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`. An empty mask is not an error: the count is 0.
    pub fn of<R: Real>(batch: &Batch<'_>, values: &[R]) -> Result<Self> {
        check_len("values", values, batch.tokens())?;
        let joint = joined::<R>(batch, |part, report| moments(&part.batch, part.of(values), report));
        Ok(Self { count: joint.count, mean: joint.mean_x, m2: joint.m2_x })
    }

    /// Joins the moments of two disjoint sets of numbers.
    pub fn merge(&mut self, other: &Self) {
        let mut joint = self.as_joint();
        joint.merge(&other.as_joint());
        *self = Self { count: joint.count, mean: joint.mean_x, m2: joint.m2_x };
    }

    /// The mean by a named divisor.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if there are no numbers.
    pub fn mean_by(&self, divisor: Divisor) -> Result<f64> {
        if self.count == 0 {
            return Err(Error::EmptyMask);
        }
        Ok(match divisor {
            Divisor::Count => self.mean,
            Divisor::CountPlusEpsilon => {
                let n = self.count as f64;
                self.mean * n / divisor.of(n)
            }
        })
    }

    /// The variance by named conventions.
    ///
    /// [`Divisor::CountPlusEpsilon`] deviates from *its* mean, as verl's `masked_var` does.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if there are no numbers, [`Error::TooFew`] if [`Spread::Sample`] meets a single one.
    pub fn variance(&self, spread: Spread, divisor: Divisor) -> Result<f64> {
        let shift = self.mean_by(divisor)? - self.mean;
        if self.count < spread.needs() {
            return Err(Error::TooFew { what: "variance", needed: spread.needs() as usize, got: self.count as usize });
        }
        let n = self.count as f64;
        let mean_square = (self.m2 + n * shift * shift) / divisor.of(n);
        Ok(match spread {
            Spread::Population => mean_square,
            Spread::Sample => mean_square * (n / (n - 1.0)),
        })
    }

    fn as_joint(&self) -> CoMoments {
        CoMoments {
            count: self.count,
            mean_x: self.mean,
            mean_y: self.mean,
            m2_x: self.m2,
            m2_y: self.m2,
            co_moment: self.m2,
        }
    }
}

/// Two quantities of each token, for [`CoMoments::of`] and [`correlation`](crate::metric::correlation).
#[derive(Clone, Copy, Debug)]
pub struct PairInput<'a, R> {
    /// The first quantity.
    pub x: &'a [R],
    /// The second.
    pub y: &'a [R],
}

/// The moments of two quantities together: what covariance and correlation need, mergeable. They overflow where
/// [`Moments`] do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoMoments {
    /// How many pairs.
    pub count: u64,
    /// Mean of the first quantity.
    pub mean_x: f64,
    /// Mean of the second quantity.
    pub mean_y: f64,
    /// Sum of squared deviations of the first.
    pub m2_x: f64,
    /// Sum of squared deviations of the second.
    pub m2_y: f64,
    /// Sum of the products of the deviations.
    pub co_moment: f64,
}

impl CoMoments {
    /// The moments of the kept pairs.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`. An empty mask is not an error: the count is 0.
    pub fn of<R: Real>(batch: &Batch<'_>, input: PairInput<'_, R>) -> Result<Self> {
        check_len("x", input.x, batch.tokens())?;
        check_len("y", input.y, batch.tokens())?;
        Ok(Self::of_two(batch, input.x, input.y))
    }

    /// [`Self::of`] for slices already checked.
    pub(crate) fn of_two<R: Real>(batch: &Batch<'_>, x: &[R], y: &[R]) -> Self {
        joined::<R>(batch, |part, report| {
            co_moments(&part.batch, part.of(x), part.of(y), report);
        })
    }

    /// The moments of one sequence whose sums are known.
    #[inline(always)]
    pub(crate) fn of_row<R: Real>(row: &Row<'_>, x: &[R], y: &[R], sum_x: f64, sum_y: f64) -> Self {
        let count = row.kept();
        if count == 0 {
            return Self::default();
        }
        let (mean_x, mean_y) = (sum_x / count as f64, sum_y / count as f64);
        let [m2_x, m2_y, co_moment] = fold_row(row, [x, y], [], |[x, y]| {
            let (dx, dy) = (x.widen() - mean_x, y.widen() - mean_y);
            ([], [dx * dx, dy * dy, dx * dy])
        });
        Self { count: count as u64, mean_x, mean_y, m2_x, m2_y, co_moment }
    }

    /// Joins the moments of two disjoint sets of pairs.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let all = mine + theirs;
        let (dx, dy) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let between = mine * (theirs / all);
        self.m2_x += other.m2_x + dx * dx * between;
        self.m2_y += other.m2_y + dy * dy * between;
        self.co_moment += other.co_moment + dx * dy * between;
        self.mean_x += dx * (theirs / all);
        self.mean_y += dy * (theirs / all);
        self.count += other.count;
    }

    /// The covariance.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if there are no pairs, [`Error::TooFew`] if [`Spread::Sample`] meets a single one.
    pub fn covariance(&self, spread: Spread) -> Result<f64> {
        if self.count == 0 {
            return Err(Error::EmptyMask);
        }
        if self.count < spread.needs() {
            return Err(Error::TooFew { what: "covariance", needed: 2, got: 1 });
        }
        let n = self.count as f64;
        Ok(self.co_moment / if spread == Spread::Sample { n - 1.0 } else { n })
    }

    /// Pearson's correlation; NaN where one of the two quantities is constant.
    ///
    /// # Errors
    ///
    /// [`Error::TooFew`] with fewer than two pairs.
    pub fn correlation(&self) -> Result<f64> {
        if self.count < 2 {
            return Err(Error::TooFew { what: "correlation", needed: 2, got: self.count as usize });
        }
        // a constant quantity: both roots at once could underflow, each by itself cannot
        Ok(self.co_moment / (sqrt(self.m2_x) * sqrt(self.m2_y)))
    }
}

/// Merges the moments of the sequences. The means are taken from the plain sums instead, which are closer to the true
/// mean than merged ones.
fn joined<R: Real>(
    batch: &Batch<'_>,
    run: impl Fn(&Part<'_>, &mut dyn FnMut((CoMoments, [f64; 2]))) + Sync,
) -> CoMoments {
    let (mut all, mut sums) = (CoMoments::default(), [Sum::default(); 2]);
    in_order::<R, _, 0>(
        batch,
        Work::ONE,
        [],
        |part, [], report| run(part, report),
        |(row, row_sums)| {
            all.merge(&row);
            Sum::add_each(&mut sums, &row_sums);
        },
    );
    if all.count > 0 {
        [all.mean_x, all.mean_y] = Sum::means(&sums, all.count as f64);
    }
    all
}

/// Like [`co_moments`] with `y = x`.
#[multiversion(avx512)]
fn moments<R: Real>(batch: &Batch<'_>, x: &[R], report: &mut dyn FnMut((CoMoments, [f64; 2]))) {
    for row in batch.token_rows() {
        let sum = row_total(&row, x);
        let count = row.kept();
        let mean = sum / count.max(1) as f64;
        let m2 = sum_row(&row, x, |x| (x.widen() - mean) * (x.widen() - mean));
        report((Moments { count: count as u64, mean, m2 }.as_joint(), [sum; 2]));
    }
}

/// Sequence by sequence: the means, then the deviations from them.
#[multiversion]
fn co_moments<R: Real>(batch: &Batch<'_>, x: &[R], y: &[R], report: &mut dyn FnMut((CoMoments, [f64; 2]))) {
    for row in batch.token_rows() {
        let sums = fold_row(&row, [x, y], [], |[x, y]| ([], [x, y]));
        report((CoMoments::of_row(&row, x, y, sums[0], sums[1]), sums));
    }
}
