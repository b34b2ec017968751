use crate::{
    error::{check_config, check_len, check_not_negative, check_range, Result},
    layout::Batch,
    math::exp,
    real::Real,
    rollout::RolloutInput,
};

/// The band of ratios outside of which a token drops its whole sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VetoConfig {
    /// Lower end of the band; not negative, default 1e-4. 0 for no lower end.
    pub lower: f64,
    /// Upper end of the band; not below `lower`, default +inf: no upper end.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub upper: f64,
}

impl Default for VetoConfig {
    fn default() -> Self {
        Self { lower: 1e-4, upper: f64::INFINITY }
    }
}

/// Drops every sequence in which trainer and sampler disagree extremely on a token: the tokens that follow it are then
/// suspect too.
///
/// ```text
/// ρ_t = e^{log π_old − log π_rollout}      keep_t = lower ≤ ρ_s ≤ upper for all s of the sequence
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, have no veto and stay dropped. NaN is outside every band: it drops its
/// sequence.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if `lower` is negative or not finite, or `upper` below it.
///
/// **Reference.** slime (2026-08) `veto`: a lower end alone. SkyRL 0.3 `outlier_token_is_threshold_low` and `…_high`,
/// where a NaN has no veto and the log-ratio is first clamped to ±20.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-20.0, -1.0, -1.0, f64::NAN],
///     rollout_log_probs: &[-1.0, -1.0, -1.5, f64::NAN],
/// };
/// let mut keep = [true; 4];
/// sequence_veto(&batch, input, &VetoConfig::default(), &mut keep)?;
/// assert_eq!(keep, [false, false, true, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn sequence_veto<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &VetoConfig,
    keep: &mut [bool],
) -> Result<()> {
    input.check(batch)?;
    check_len("keep", keep, batch.tokens())?;
    let VetoConfig { lower, upper } = *config;
    check_not_negative::<R>("lower", lower)?;
    check_config("upper", "not below lower", upper, upper >= lower)?;
    check_range::<R>("upper", upper)?;
    let (lower, upper) = (R::narrow(lower), R::narrow(upper));
    for row in batch.token_rows() {
        let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
        let believed = pairs.zip(row.keep).filter(|(_, &kept)| kept).all(|((&old, &rollout), _)| {
            let ratio = exp(old - rollout);
            ratio >= lower && ratio <= upper
        });
        for (keep, &kept) in row.of_mut(keep).iter_mut().zip(row.keep) {
            *keep = kept && believed;
        }
    }
    Ok(())
}
