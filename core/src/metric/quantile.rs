use crate::{
    error::{check_len, check_unit, Error, Result},
    layout::Batch,
    order,
    real::Real,
};

/// Which quantile [`quantile`] takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct QuantileConfig {
    /// The share of values below it, in `[0, 1]`; default 0.5, the median.
    pub level: f64,
}

impl Default for QuantileConfig {
    fn default() -> Self {
        Self { level: 0.5 }
    }
}

/// The value below which a share `level` of the kept tokens lies, interpolated linearly between neighbours.
///
/// ```text
/// place = level · (N − 1)      between the sorted values x_⌊place⌋ and x_⌊place⌋₊₁ in proportion
/// ```
///
/// 0 gives the smallest, ½ the median, 1 the largest. Exact, and without a buffer: at most 64 passes over the values.
/// If only one pass is possible, see [`Histogram`](crate::metric::Histogram).
///
/// **Alignment.** Any; that of the values.
///
/// **Mask.** Dropped slots are never read and not counted. NaN in a kept slot makes the result NaN.
///
/// **Errors.** [`Error::Length`] if `values` does not fit `batch`; [`Error::Config`] if `level` is outside `[0, 1]`;
/// [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** Hyndman & Fan 1996, type 7; `torch.quantile` and `numpy.quantile` by default.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 5)?, Mask::new(&[true, true, false, true, true]))?;
/// let values = [3.0, -1.0, f64::NAN, 0.0, 7.0];
/// assert_eq!(quantile(&batch, &values, &QuantileConfig { level: 0.5 })?, 1.5);
/// assert_eq!(quantile(&batch, &values, &QuantileConfig { level: 1.0 })?, 7.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn quantile<R: Real>(batch: &Batch<'_>, values: &[R], config: &QuantileConfig) -> Result<f64> {
    check_len("values", values, batch.tokens())?;
    check_unit("level", config.level)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(order::quantile(batch, values, config.level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    #[test]
    fn equals_sorting() {
        for len in [1, 2, 7, 16, 33] {
            let values: Vec<f64> = (0..len).map(|i| f64::from(i * 37 % 11) / 4.0 - 1.0).collect();
            let keep = vec![true; values.len()];
            let batch = Batch::new(Layout::padded(1, values.len()).unwrap(), Mask::new(&keep)).unwrap();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            for level in [0.0, 0.1, 0.25, 0.5, 0.9, 1.0] {
                let place = level * (values.len() - 1) as f64;
                let (low, high) = (sorted[place as usize], sorted[(place as usize + 1).min(values.len() - 1)]);
                let expected = low + (high - low) * place.fract();
                let got = quantile(&batch, &values, &QuantileConfig { level }).unwrap();
                assert!(approx::abs_diff_eq!(got, expected, epsilon = 1e-14), "{len} {level}: {got} {expected}");
            }
        }
    }

    #[test]
    fn infinities_zeros_and_signs() {
        let keep = [true; 4];
        let batch = Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&keep)).unwrap();
        let values = [f32::INFINITY, -0.0, 0.0, f32::NEG_INFINITY];
        assert_eq!(quantile(&batch, &values, &QuantileConfig { level: 0.5 }), Ok(0.0));
        assert_eq!(quantile(&batch, &values, &QuantileConfig { level: 0.0 }), Ok(f64::NEG_INFINITY));
        assert!(quantile(&batch, &[1.0, f64::NAN, 1.0, 1.0], &QuantileConfig::default()).unwrap().is_nan());
    }
}
