use super::{
    limbs::{self, special},
    natural::Whole,
    partial::{state, Partial as _},
    row::{add_numbers, add_sums},
};
use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    real::Real,
    statistics::MeanConfig,
};

state! {
    /// A sum of numbers that has not been rounded, and how many there are.
    ///
    /// The first limb is the count. The next 67 limbs are the sum as a whole number of units of 2⁻¹⁰⁷⁴, 32 bits in
    /// each, lowest first; the last of them has the sign. Then follow the numbers of +inf, −inf and NaN.
    ExactSum, kind: 1, pieces: [Count COUNT, Sum VALUES], peaks: 0
}

impl ExactSum {
    /// Adds one number.
    pub fn add(&mut self, x: f64) {
        self.add_count(Self::COUNT, 1);
        let sum = self.piece_mut(Self::VALUES);
        limbs::add(sum, 0, x, 1);
        limbs::carry(sum);
    }

    /// Adds the sums of the sequences, each rounded as in the plain functions: the same for any split by sequences.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, values: &[R]) -> Result<()> {
        check_len("values", values, batch.tokens())?;
        self.add_count(Self::COUNT, batch.kept());
        add_sums(batch, values, self.piece_mut(Self::VALUES));
        self.canonical();
        Ok(())
    }

    /// Adds every kept entry by itself, without rounding: the same for any split, also in the middle of a sequence.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`.
    pub fn update_by_number<R: Real>(&mut self, batch: &Batch<'_>, values: &[R]) -> Result<()> {
        check_len("values", values, batch.tokens())?;
        self.add_count(Self::COUNT, batch.kept());
        for row in batch.token_rows() {
            add_numbers(&row, values, self.piece_mut(Self::VALUES));
        }
        self.canonical();
        Ok(())
    }

    /// How many numbers were added.
    pub fn len(&self) -> u64 {
        self.count(Self::COUNT)
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum, rounded once; +0 for no numbers.
    pub fn value(&self) -> f64 {
        rounded(self.piece(Self::VALUES))
    }

    /// The mean, rounded once for [`Divisor::Count`](crate::Divisor::Count).
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no number was added.
    pub fn mean(&self, config: &MeanConfig) -> Result<f64> {
        if self.is_empty() {
            return Err(Error::EmptyMask);
        }
        Ok(mean_by(self.piece(Self::VALUES), self.len(), config))
    }
}

/// A sum, rounded once.
pub(super) fn rounded(sum: &[i64]) -> f64 {
    special(sum).unwrap_or_else(|| Whole::of(sum, 0).round(1074, false))
}

/// A sum divided by a count, rounded once; NaN for a count of 0.
pub(super) fn mean(sum: &[i64], count: u64) -> f64 {
    if count == 0 {
        return f64::NAN;
    }
    special(sum).unwrap_or_else(|| {
        // two more digits, so that what is left of a division is below half of the lowest bit of any result
        let (quotient, left) = Whole::of(sum, 2).divided(count);
        quotient.round(1074 + 64, left)
    })
}

/// The mean by a named divisor.
pub(super) fn mean_by(sum: &[i64], count: u64, config: &MeanConfig) -> f64 {
    match config.divisor {
        crate::Divisor::Count => mean(sum, count),
        // like `Moments::mean_by`
        divisor => mean(sum, count) * count as f64 / divisor.of(count as f64),
    }
}
