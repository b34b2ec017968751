use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    math::sqrt,
    real::Real,
    reduce::map_row,
    simd::multiversion,
    statistics::{Divisor, Moments, Spread},
};

/// Where the small number stands that keeps a division by the standard deviation finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EpsilonPlace {
    /// `√(variance + ε)`.
    #[default]
    InsideRoot,
    /// `√variance + ε`.
    Outside,
    /// `√max(variance, ε)`.
    FloorVariance,
}

impl EpsilonPlace {
    /// The divisor that stands for the standard deviation.
    pub(crate) fn deviation(self, variance: f64, epsilon: f64) -> f64 {
        match self {
            Self::InsideRoot => sqrt(variance + epsilon),
            Self::Outside => sqrt(variance) + epsilon,
            // written so that a NaN variance stays NaN
            Self::FloorVariance => sqrt(if variance < epsilon { epsilon } else { variance }),
        }
    }
}

/// Whether the mean is taken away for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Center {
    /// The result has mean 0.
    #[default]
    Shift,
    /// The mean is added back after scaling (`shift_mean=False`).
    KeepMean,
}

/// Whether values are divided by their spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Divided by the standard deviation.
    #[default]
    StandardDeviation,
    /// Not divided: only the mean is taken away (OpenRLHF's `no_std_norm`).
    Unit,
}

/// The conventions of [`whiten`]; the default is verl's and TRL's rule with an exact mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhitenConfig {
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// The small number ε ≥ 0; default 1e-8.
    pub epsilon: f64,
    /// Where ε stands; default inside the root.
    pub place: EpsilonPlace,
    /// Whether the mean is taken away; default yes.
    pub center: Center,
    /// Whether values are divided by their spread; default yes.
    pub scale: Scale,
    /// What means divide by; default the exact count.
    pub divisor: Divisor,
}

impl Default for WhitenConfig {
    fn default() -> Self {
        Self {
            spread: Spread::Sample,
            epsilon: 1e-8,
            place: EpsilonPlace::InsideRoot,
            center: Center::Shift,
            scale: Scale::StandardDeviation,
            divisor: Divisor::Count,
        }
    }
}

/// Values shifted to mean 0 and scaled to standard deviation 1 over the kept tokens of the whole batch.
///
/// ```text
/// y_t = (x_t − μ) / √(σ² + ε)      μ, σ² over all kept tokens      (+ μ with Center::KeepMean)
/// ```
///
/// A constant input gives zeros. ε may stand elsewhere ([`EpsilonPlace`]).
///
/// **Alignment.** In and out have the same alignment, whichever it is; usually advantages (action-aligned).
///
/// **Mask.** Dropped slots enter neither μ nor σ², are never read, and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite; [`Error::EmptyMask`](crate::Error::EmptyMask)
/// without kept tokens; [`Error::TooFew`](crate::Error::TooFew) if [`Spread::Sample`] meets a single one.
///
/// **Reference.** `Sample`, 1e-8 `InsideRoot`: verl 0.9.1 `masked_whiten` (with [`Divisor::CountPlusEpsilon`]), TRL 1.16.
/// `Population`, 1e-8 `FloorVariance`: OpenRLHF 0.11. Those leave unscaled leftovers in dropped slots; here they are 0.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask, Spread};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let config = WhitenConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() };
/// let mut out = [9.0; 4];
/// whiten(&batch, &[-3.0, 0.0, f64::NAN, 3.0], &WhitenConfig { scale: Scale::Unit, ..config }, &mut out)?;
/// assert_eq!(out, [-3.0, 0.0, 0.0, 3.0]);
/// whiten(&batch, &[5.0, 5.0, f64::NAN, 5.0], &WhitenConfig::default(), &mut out)?;
/// assert_eq!(out, [0.0; 4]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn whiten<R: Real>(batch: &Batch<'_>, values: &[R], config: &WhitenConfig, out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_not_negative("epsilon", config.epsilon)?;
    let moments = Moments::of(batch, values)?;
    let mean = moments.mean_by(config.divisor)?;
    let inverse = match config.scale {
        Scale::StandardDeviation => {
            let variance = moments.variance(config.spread, config.divisor)?;
            let deviation = config.place.deviation(variance, config.epsilon);
            // a constant input with ε = 0: 0 · 0 rather than 0 / 0
            if deviation == 0.0 {
                0.0
            } else {
                1.0 / deviation
            }
        }
        Scale::Unit => 1.0,
    };
    let back = if config.center == Center::KeepMean { mean } else { 0.0 };
    rescale(batch, values, mean, inverse, back, out);
    Ok(())
}

multiversion! {
    fn rescale<R: Real>(batch: &Batch<'_>, values: &[R], mean: f64, inverse: f64, back: f64, out: &mut [R]) -> () {
        for row in batch.rows() {
            // in f64: a mean far from 0 would cost f32 the digits that matter
            map_row(&row, [values], [&mut *out], |[x]| ([R::narrow((x.widen() - mean) * inverse + back)], []));
        }
    }
}
