use super::{
    limbs::special,
    natural::Whole,
    partial::{state, Partial as _},
    row::{add_ones, add_products, add_squares, add_twos},
    sum::{mean, rounded},
};
use crate::{
    advantage::{whiten_by, WhitenConfig},
    error::{check_len, Error, Result},
    layout::Batch,
    metric::{explained_by, ExplainedVarianceConfig},
    real::Real,
    statistics::{CoMoments, Moments, PairInput},
};

state! {
    /// Count, sum and sum of squares of some numbers, not rounded.
    ExactMoments, kind: 2, pieces: [Count COUNT, Sum VALUES, Products SQUARES], peaks: 0
}

impl ExactMoments {
    /// Adds the sums of the sequences: the same for any split by sequences.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, values: &[R]) -> Result<()> {
        check_len("values", values, batch.tokens())?;
        self.add_count(Self::COUNT, batch.kept());
        add_ones(batch, values, self.pieces_mut(Self::VALUES));
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
            add_squares(&row, [values], |[x]| x, self.pieces_mut(Self::VALUES));
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

    /// The mean and the sum of squared deviations, each rounded once from what was added: everything that [`Moments`]
    /// can tell.
    ///
    /// An infinite or NaN entry makes the sum of squared deviations NaN.
    pub fn moments(&self) -> Moments {
        let (count, sum) = (self.len(), self.piece(Self::VALUES));
        if count == 0 {
            return Moments::default();
        }
        Moments { count, mean: mean(sum, count), m2: deviations(count, self.piece(Self::SQUARES), sum, sum) }
    }

    /// [`effective_sample_size`](crate::metric::effective_sample_size) of the numbers as weights.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no number was added.
    pub fn effective_sample_size(&self) -> Result<f64> {
        if self.is_empty() {
            return Err(Error::EmptyMask);
        }
        let (sum, squares) = (rounded(self.piece(Self::VALUES)), rounded_products(self.piece(Self::SQUARES)));
        Ok(if squares == 0.0 { 0.0 } else { sum * sum / squares })
    }

    /// [`whiten`](crate::advantage::whiten) by the mean and the spread of this state instead of those of the batch:
    /// after a merge, those of the batches of all ranks.
    ///
    /// # Errors
    ///
    /// Those of [`whiten`](crate::advantage::whiten), by the count of the state: a batch without kept tokens is not an
    /// error, a state without any is.
    pub fn whiten<R: Real>(&self, batch: &Batch<'_>, values: &[R], config: &WhitenConfig, out: &mut [R]) -> Result<()> {
        whiten_by(batch, values, &self.moments(), config, out)
    }
}

state! {
    /// Count, sums, and sums of squares and products of pairs of numbers, not rounded.
    ExactCoMoments, kind: 3,
    pieces: [Count COUNT, Sum X, Sum Y, Products XX, Products YY, Products XY], peaks: 0
}

impl ExactCoMoments {
    /// Adds the sums of the sequences: the same for any split by sequences.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, input: PairInput<'_, R>) -> Result<()> {
        check_len("x", input.x, batch.tokens())?;
        check_len("y", input.y, batch.tokens())?;
        self.add_count(Self::COUNT, batch.kept());
        add_twos(batch, input.x, input.y, self.pieces_mut(Self::X));
        self.canonical();
        Ok(())
    }

    /// Adds every kept pair by itself, without rounding: the same for any split, also in the middle of a sequence.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`.
    pub fn update_by_number<R: Real>(&mut self, batch: &Batch<'_>, input: PairInput<'_, R>) -> Result<()> {
        check_len("x", input.x, batch.tokens())?;
        check_len("y", input.y, batch.tokens())?;
        self.add_count(Self::COUNT, batch.kept());
        for row in batch.token_rows() {
            add_products(&row, [input.x, input.y], |pair| pair, self.pieces_mut(Self::X));
        }
        self.canonical();
        Ok(())
    }

    /// How many pairs were added.
    pub fn len(&self) -> u64 {
        self.count(Self::COUNT)
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Means, sums of squared deviations and the sum of their products, each rounded once from what was added:
    /// covariance and correlation are methods of [`CoMoments`].
    pub fn co_moments(&self) -> CoMoments {
        let [x, y, xx, yy, xy] = [Self::X, Self::Y, Self::XX, Self::YY, Self::XY].map(|index| self.piece(index));
        co_moments(self.len(), [x, y], [xx, yy, xy])
    }

    /// [`explained_variance`](crate::metric::explained_variance) with the returns as `x` and the values as `y`.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no pair was added, [`Error::TooFew`] for the sample variance of one.
    pub fn explained_variance(&self, config: &ExplainedVarianceConfig) -> Result<f64> {
        explained_by(&self.co_moments(), config)
    }
}

/// The rounded moments of two exact sums and three exact sums of products.
pub(super) fn co_moments(count: u64, [x, y]: [&[i64]; 2], [xx, yy, xy]: [&[i64]; 3]) -> CoMoments {
    if count == 0 {
        return CoMoments::default();
    }
    CoMoments {
        count,
        mean_x: mean(x, count),
        mean_y: mean(y, count),
        m2_x: deviations(count, xx, x, x),
        m2_y: deviations(count, yy, y, y),
        co_moment: deviations(count, xy, x, y),
    }
}

/// `Σ xy − Σx Σy / n`, rounded once; NaN if a number is infinite or NaN.
pub(super) fn deviations(count: u64, products: &[i64], x: &[i64], y: &[i64]) -> f64 {
    if [products, x, y].into_iter().any(|sum| special(sum).is_some()) {
        return f64::NAN;
    }
    let all = Whole::of(products, 0).times(count).minus(&Whole::of(x, 0).product(&Whole::of(y, 0)));
    let (quotient, left) = all.divided(count);
    quotient.round(2148, left)
}

fn rounded_products(sum: &[i64]) -> f64 {
    special(sum).unwrap_or_else(|| Whole::of(sum, 0).round(2148, false))
}
