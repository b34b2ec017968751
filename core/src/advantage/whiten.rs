use crate::{
    error::{check_len, check_not_negative, Error, Result},
    layout::Batch,
    math::sqrt,
    parallel::{in_order, Work},
    real::Real,
    reduce::map_row,
    simd::multiversion,
    statistics::{Divisor, Moments, Spread},
};

/// Where ε, which keeps a division by the standard deviation finite, is added.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
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
    /// The divisor: the standard deviation with ε.
    pub(crate) fn deviation(self, variance: f64, epsilon: f64) -> f64 {
        match self {
            Self::InsideRoot => sqrt(variance + epsilon),
            Self::Outside => sqrt(variance) + epsilon,
            // written so that a NaN variance propagates
            Self::FloorVariance => sqrt(if variance < epsilon { epsilon } else { variance }),
        }
    }
}

/// Whether the result is centred.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Center {
    /// The result has mean 0.
    #[default]
    Shift,
    /// The mean is added back after scaling (`shift_mean=False`).
    KeepMean,
}

/// Whether values are divided by their spread.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Scale {
    /// Divided by the standard deviation.
    #[default]
    StandardDeviation,
    /// Not divided: only the mean is subtracted (OpenRLHF's `no_std_norm`).
    Unit,
}

/// The conventions of [`whiten`]; the default is verl's and TRL's rule with an exact mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct WhitenConfig {
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// The small number ε ≥ 0; default 1e-8.
    pub epsilon: f64,
    /// Where ε is added; default inside the root.
    pub place: EpsilonPlace,
    /// Whether the mean is subtracted; default yes.
    pub center: Center,
    /// Whether values are divided by their spread; default yes.
    pub scale: Scale,
    /// What means divide by; default the exact count. In `f32` both options give the exact count, because verl's 1e-8
    /// is rounded away.
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
/// A constant input gives zeros. ε may be added elsewhere ([`EpsilonPlace`]). `f64` values beyond about 10¹⁵⁴ give 0 or
/// NaN, because their squares or their sum overflow ([`Moments`]); any finite `f32` values are whitened.
///
/// **Alignment.** Input and output have the same alignment, whichever it is; usually advantages (action-aligned).
///
/// **Mask.** Dropped slots enter neither μ nor σ², are never read, and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite;
/// [`Error::EmptyMask`](crate::Error::EmptyMask) without kept tokens; [`Error::TooFew`](crate::Error::TooFew) if
/// [`Spread::Sample`] is used with a single one.
///
/// **Reference.** `Sample`, 1e-8 `InsideRoot`: verl 0.9.1 `masked_whiten` (with [`Divisor::CountPlusEpsilon`]), TRL
/// 1.16. `Population`, 1e-8 `FloorVariance`: OpenRLHF 0.11. Those leave unscaled values in dropped slots; here they are
/// 0.
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
    check_whiten(batch, config)?;
    let by = Rescale::new::<R>(&Moments::of(batch, values)?, config)?;
    in_order(batch, Work::ONE, [out], |part, [out], _| rescale(&part.batch, part.of(values), by, out), |()| ());
    Ok(())
}

/// [`whiten`] by moments that are known: those of a larger set of tokens.
pub(crate) fn whiten_by<R: Real>(
    batch: &Batch<'_>,
    values: &[R],
    moments: &Moments,
    config: &WhitenConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_not_negative::<f64>("epsilon", config.epsilon)?;
    let by = Rescale::new::<R>(moments, config)?;
    in_order(batch, Work::ONE, [out], |part, [out], _| rescale(&part.batch, part.of(values), by, out), |()| ());
    Ok(())
}

/// The errors of whitening that do not depend on the values, so that estimators can reject a call before they write.
#[doc(hidden)]
pub fn check_whiten(batch: &Batch<'_>, config: &WhitenConfig) -> Result<()> {
    check_not_negative::<f64>("epsilon", config.epsilon)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let needed = config.spread.needs() as usize;
    if config.scale == Scale::StandardDeviation && batch.kept() < needed {
        return Err(Error::TooFew { what: "variance", needed, got: batch.kept() });
    }
    Ok(())
}

/// Like [`whiten`], but overwrites the values, with the same bits: for a trainer that needs only the whitened
/// advantages.
///
/// # Errors
///
/// Those of [`whiten`]; `values` are then unchanged.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let mut values = [2.0, f64::NAN, 4.0];
/// whiten_in_place(&batch, &mut values, &WhitenConfig { scale: Scale::Unit, ..Default::default() })?;
/// assert_eq!(values, [-1.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn whiten_in_place<R: Real>(batch: &Batch<'_>, values: &mut [R], config: &WhitenConfig) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_whiten(batch, config)?;
    let by = Rescale::new::<R>(&Moments::of(batch, values)?, config)?;
    in_order(
        batch,
        Work::ONE,
        [values],
        |part, [values], _| rescale_in_place(part.batch.mask().as_slice(), by, values),
        |()| (),
    );
    Ok(())
}

/// The affine map that whitening applies to each value.
#[derive(Clone, Copy)]
struct Rescale {
    mean: f64,
    inverse: f64,
    back: f64,
}

impl Rescale {
    fn new<R: Real>(moments: &Moments, config: &WhitenConfig) -> Result<Self> {
        // n + 1e-8 in single precision is n; if it were kept in f64, the error of the mean would be divided by √ε, and
        // constants would not become 0
        let vanishes = R::narrow(1.0 + 1e-8) == R::one();
        let divisor = if vanishes { Divisor::Count } else { config.divisor };
        let mean = moments.mean_by(divisor)?;
        let inverse = match config.scale {
            Scale::StandardDeviation => {
                let variance = moments.variance(config.spread, divisor)?;
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
        Ok(Self { mean, inverse, back: if config.center == Center::KeepMean { mean } else { 0.0 } })
    }

    /// In f64: a mean far from 0 would cost f32 the digits that matter.
    #[inline(always)]
    fn of<R: Real>(self, x: R) -> R {
        R::narrow((x.widen() - self.mean) * self.inverse + self.back)
    }
}

#[multiversion(avx512)]
fn rescale<R: Real>(batch: &Batch<'_>, values: &[R], rescale: Rescale, out: &mut [R]) {
    for row in batch.token_rows() {
        map_row(&row, [values], out, |[x]| rescale.of(x));
    }
}

#[multiversion(avx512)]
fn rescale_in_place<R: Real>(keep: &[bool], rescale: Rescale, values: &mut [R]) {
    for (value, &keep) in values.iter_mut().zip(keep) {
        *value = if keep { rescale.of(*value) } else { R::zero() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    #[test]
    fn numbers_near_the_largest_float_overflow_as_documented() {
        let batch = Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&[true; 4])).unwrap();
        let config = WhitenConfig { spread: Spread::Population, ..Default::default() };
        let mut out = [9.0; 4];
        whiten(&batch, &[1e308; 4], &config, &mut out).unwrap();
        assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
        whiten(&batch, &[1e160, -1e160, 1e160, -1e160], &config, &mut out).unwrap();
        assert_eq!(out, [0.0, -0.0, 0.0, -0.0]);
        whiten(&batch, &[1e153, -1e153, 1e153, -1e153], &config, &mut out).unwrap();
        out.iter().for_each(|x| approx::assert_relative_eq!(x.abs(), 1.0, max_relative = 1e-15));
        let mut single = [9.0_f32; 4];
        whiten(&batch, &[f32::MAX, -f32::MAX, f32::MAX, -f32::MAX], &config, &mut single).unwrap();
        single.iter().for_each(|x| approx::assert_relative_eq!(x.abs(), 1.0, max_relative = 1e-6));
    }

    #[test]
    fn a_constant_gives_zeros_in_single_precision_whatever_the_divisor() {
        let batch = Batch::new(Layout::padded(1, 7).unwrap(), Mask::new(&[true; 7])).unwrap();
        let config = WhitenConfig { divisor: Divisor::CountPlusEpsilon, ..Default::default() };
        let mut out = [9.0_f32; 7];
        whiten(&batch, &[0.8863_f32; 7], &config, &mut out).unwrap();
        out.iter().for_each(|x| approx::assert_abs_diff_eq!(*x, 0.0, epsilon = 2e-6));
        // in double precision verl's 1e-8 has an effect
        let mut out = [9.0_f64; 7];
        whiten(&batch, &[0.8863; 7], &config, &mut out).unwrap();
        assert!(out.iter().all(|x| x.abs() > 1e-6));
    }

    #[test]
    fn in_place_refuses_before_it_writes() {
        let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, false])).unwrap();
        let mut values = [5.0, 7.0];
        let too_few = Err(Error::TooFew { what: "variance", needed: 2, got: 1 });
        assert_eq!(whiten_in_place(&batch, &mut values, &WhitenConfig::default()), too_few);
        let config = WhitenConfig { epsilon: -1.0, ..Default::default() };
        assert!(matches!(whiten_in_place(&batch, &mut values, &config), Err(Error::Config { .. })));
        let longer = whiten_in_place(&batch, &mut [5.0; 3], &WhitenConfig::default());
        assert_eq!(longer, Err(Error::Length { what: "values", expected: 2, got: 3 }));
        assert_eq!(values, [5.0, 7.0]);
    }

    #[test]
    fn in_place_has_the_same_bits() {
        let keep: Vec<bool> = (0..40).map(|i| i % 7 != 3).collect();
        let batch = Batch::new(Layout::padded(2, 20).unwrap(), Mask::new(&keep)).unwrap();
        let mut values: Vec<f32> = (0..40).map(|i| if i % 7 == 3 { f32::NAN } else { (i * i % 11) as f32 }).collect();
        let mut out = vec![9.0; 40];
        whiten(&batch, &values, &WhitenConfig::default(), &mut out).unwrap();
        whiten_in_place(&batch, &mut values, &WhitenConfig::default()).unwrap();
        assert_eq!(out, values);
    }
}
