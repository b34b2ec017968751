use crate::{
    error::{check_len, check_unit, Error, Result},
    layout::Batch,
    math::clamp,
    real::Real,
};

/// log₂ of the number of buckets per factor of two, which is the number of mantissa bits that select one.
const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
/// Magnitudes below 2^LOWEST count as 0; those of 2^HIGHEST and above count in the last bucket.
const LOWEST: i32 = -24;
const HIGHEST: i32 = 16;
const SIDE: usize = (HIGHEST - LOWEST) as usize * STEPS;

/// Counts of numbers in logarithmic buckets: quantiles of a stream in one pass, mergeable exactly.
///
/// ```text
/// bucket = sign, ⌊log₂ |x|⌋ and 4 bits of the mantissa
/// 2⁻²⁴ ≤ |x| < 2¹⁶; smaller counts as 0, larger as the last bucket
/// ```
///
/// A quantile has a relative error of at most 1/32 (3.2 %) within that range, and lies between the smallest and the
/// largest number seen. Counts are integers: shards merged in any order give the same histogram. 10 KiB, no allocation.
///
/// **Alignment.** Any; that of the values.
///
/// **Mask.** Dropped slots are never read and not counted. NaN is counted separately and makes every quantile NaN.
///
/// **Errors.** [`Error::Length`] if `values` does not fit `batch`; [`Error::Config`] if a level is outside `[0, 1]`;
/// [`Error::EmptyMask`] for a quantile of an empty histogram.
///
/// **Reference.** Log-linear buckets as in HdrHistogram; for exact quantiles see [`quantile`](crate::metric::quantile).
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let mut histogram = Histogram::default();
/// histogram.add(&batch, &[1.0, 2.0, f64::NAN, 4.0])?;
/// assert_eq!(histogram.count(), 3);
/// approx::assert_relative_eq!(histogram.p50()?, 2.0, max_relative = 1.0 / 32.0);
/// assert_eq!(histogram.quantile(1.0)?, 4.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    negative: [u64; SIDE],
    positive: [u64; SIDE],
    zero: u64,
    nan: u64,
    min: f64,
    max: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { negative: [0; SIDE], positive: [0; SIDE], zero: 0, nan: 0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Histogram {
    /// Counts the kept values.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`.
    pub fn add<R: Real>(&mut self, batch: &Batch<'_>, values: &[R]) -> Result<()> {
        check_len("values", values, batch.tokens())?;
        for (value, _) in values.iter().zip(batch.mask().as_slice()).filter(|(_, &keep)| keep) {
            self.count_one(value.widen());
        }
        Ok(())
    }

    fn count_one(&mut self, x: f64) {
        if x.is_nan() {
            self.nan += 1;
            return;
        }
        if x < self.min {
            self.min = x;
        }
        if x > self.max {
            self.max = x;
        }
        let bits = x.to_bits() & (u64::MAX >> 1);
        let exponent = (bits >> 52) as i32 - 1023;
        if exponent < LOWEST {
            self.zero += 1;
            return;
        }
        let step = (bits >> (52 - STEPS_LOG2)) as usize % STEPS;
        let bucket = ((exponent - LOWEST) as usize * STEPS + step).min(SIDE - 1);
        let side = if x < 0.0 { &mut self.negative } else { &mut self.positive };
        side[bucket] += 1;
    }

    /// Adds the counts of a disjoint set of numbers; exact, in any order.
    pub fn merge(&mut self, other: &Self) {
        let both = self.negative.iter_mut().zip(&other.negative).chain(self.positive.iter_mut().zip(&other.positive));
        for (mine, theirs) in both {
            *mine += theirs;
        }
        self.zero += other.zero;
        self.nan += other.nan;
        self.min = if other.min < self.min { other.min } else { self.min };
        self.max = if other.max > self.max { other.max } else { self.max };
    }

    /// How many numbers were counted, NaN included.
    pub fn count(&self) -> u64 {
        let mut count = self.zero + self.nan;
        for part in self.negative.iter().chain(&self.positive) {
            count += part;
        }
        count
    }

    /// The quantile at `level`, as the middle of its bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `level` is outside `[0, 1]`; [`Error::EmptyMask`] if nothing was counted.
    pub fn quantile(&self, level: f64) -> Result<f64> {
        check_unit("level", level)?;
        let count = self.count();
        if count == 0 {
            return Err(Error::EmptyMask);
        }
        if self.nan > 0 {
            return Ok(f64::NAN);
        }
        // the nearest rank, halves rounded up
        let rank = (level * (count - 1) as f64 + 0.5) as u64;
        let mut passed = 0;
        let below = self.negative.iter().enumerate().rev().map(|(bucket, &count)| (-middle(bucket), count));
        let above = self.positive.iter().enumerate().map(|(bucket, &count)| (middle(bucket), count));
        for (value, count) in below.chain([(0.0, self.zero)]).chain(above) {
            passed += count;
            if passed > rank {
                return Ok(clamp(value, self.min, self.max));
            }
        }
        Ok(self.max)
    }

    /// The median.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if nothing was counted.
    pub fn p50(&self) -> Result<f64> {
        self.quantile(0.5)
    }

    /// The 0.9 quantile.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if nothing was counted.
    pub fn p90(&self) -> Result<f64> {
        self.quantile(0.9)
    }
}

/// The midpoint of a bucket of magnitudes: its error is at most half the bucket's width, which is at most 1/32 of the
/// lower end.
fn middle(bucket: usize) -> f64 {
    let exponent = (bucket / STEPS) as i32 + LOWEST;
    let power = f64::from_bits(((exponent + 1023) as u64) << 52);
    power * (1.0 + ((bucket % STEPS) as f64 + 0.5) / STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    fn of(values: &[f64]) -> Histogram {
        let keep = vec![true; values.len()];
        let batch = Batch::new(Layout::padded(1, values.len()).unwrap(), Mask::new(&keep)).unwrap();
        let mut histogram = Histogram::default();
        histogram.add(&batch, values).unwrap();
        histogram
    }

    #[test]
    fn quantiles_hold_their_error_and_merging_is_exact() {
        let values: Vec<f64> = (0..1001).map(|i| f64::from(i * 613 % 1001) * 0.37 - 100.0).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let whole = of(&values);
        for (level, index) in [(0.0, 0), (0.1, 100), (0.5, 500), (0.9, 900), (1.0, 1000)] {
            let (got, exact) = (whole.quantile(level).unwrap(), sorted[index]);
            assert!(approx::relative_eq!(got, exact, max_relative = 1.0 / 32.0), "{level}: {got} {exact}");
        }
        let mut merged = of(&values[500..]);
        merged.merge(&of(&values[..500]));
        assert_eq!(merged, whole);
    }

    #[test]
    fn edges() {
        assert_eq!(Histogram::default().p50(), Err(Error::EmptyMask));
        assert!(of(&[1.0, f64::NAN]).p90().unwrap().is_nan());
        assert_eq!(of(&[0.0, -0.0, 1e-300]).p50(), Ok(0.0));
        let wide = of(&[f64::NEG_INFINITY, 1e300, f64::INFINITY]);
        assert_eq!(wide.count(), 3);
        assert!(of(&[5.0; 3]).p50() == Ok(5.0));
    }
}
