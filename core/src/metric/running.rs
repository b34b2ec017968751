use crate::{
    error::{Error, Result},
    math::sqrt,
    real::Real,
    statistics::{Divisor, Moments, Spread},
};

/// Mean and spread of all scores so far, to normalise rewards across batches.
///
/// ```text
/// Δ = x̄ − μ      n' = n + c      M2 = σ² n + var_x c + Δ² n c / n'      μ ← μ + Δ c / n'      σ² ← M2 / n'
/// std = √(σ² n' / (n' − 1))
/// ```
///
/// It starts with a count of 1e-24, mean 0 and deviation 1.
///
/// **Alignment.** None: one entry per sequence, or per normalised quantity.
///
/// **Mask.** None.
///
/// **Errors.** [`Error::EmptyMask`] if a batch is empty; the state is then unchanged.
///
/// **Reference.** ROLL `RunningMoments` (as in TRL before 1.0), which gives NaN for the deviation of a batch of one.
///
/// # Example
///
/// ```
/// use tokenwise::metric::*;
///
/// let mut running = RunningMoments::default();
/// running.update(&[1.0, 3.0])?;
/// running.update(&[5.0, 7.0])?;
/// assert_eq!((running.mean(), running.variance()), (4.0, 5.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningMoments {
    count: f64,
    mean: f64,
    variance: f64,
    std: f64,
}

impl Default for RunningMoments {
    fn default() -> Self {
        Self { count: 1e-24, mean: 0.0, variance: 1.0, std: 1.0 }
    }
}

impl RunningMoments {
    /// Adds a batch; returns the mean and deviation of this batch alone (divided by `n − 1`; NaN for a batch of one).
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if there are no values.
    pub fn update<R: Real>(&mut self, values: &[R]) -> Result<(f64, f64)> {
        let mut batch = Moments::default();
        for value in values {
            batch.merge(&Moments { count: 1, mean: value.widen(), m2: 0.0 });
        }
        if batch.count == 0 {
            return Err(Error::EmptyMask);
        }
        let size = batch.count as f64;
        let (delta, total) = (batch.mean - self.mean, self.count + size);
        let m2 = self.variance * self.count + batch.m2 + delta * delta * self.count * size / total;
        self.mean += delta * size / total;
        self.variance = m2 / total;
        self.count = total;
        self.std = sqrt(m2 / (total - 1.0));
        Ok((batch.mean, batch.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt)))
    }

    /// The number of values added so far.
    pub const fn count(&self) -> f64 {
        self.count
    }

    /// Their mean.
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Their variance, divided by `n`.
    pub const fn variance(&self) -> f64 {
        self.variance
    }

    /// Their standard deviation, divided by `n − 1`; 1 at the start, NaN or +inf after a single number.
    pub const fn std(&self) -> f64 {
        self.std
    }
}
