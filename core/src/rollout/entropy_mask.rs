use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    order::quantile,
    real::Real,
};

/// How many tokens [`high_entropy_mask`] keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct HighEntropyConfig {
    /// The share of the kept tokens to keep, in `[0, 1]`; default 0.2.
    pub share: f64,
}

impl Default for HighEntropyConfig {
    fn default() -> Self {
        Self { share: 0.2 }
    }
}

/// Keeps the tokens with the highest entropy: the forks, where the policy was least certain.
///
/// ```text
/// q = quantile of the kept entropies at level 1 − share, linear between neighbours      keep = H ≥ q
/// ```
///
/// `share = 1` keeps everything.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped. If a kept entropy is NaN, nothing is kept.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if `share` is outside `[0, 1]`.
///
/// **Reference.** Wang et al. 2025, arXiv:2506.01939; TRL 1.16 `get_high_entropy_mask` (`top_entropy_quantile`), in
/// single precision and over all processes.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 6)?, Mask::new(&[true, true, false, true, true, true]))?;
/// let mut keep = [true; 6];
/// let entropies = [0.5, 2.0, f64::NAN, 1.0, 0.25, 0.0];
/// high_entropy_mask(&batch, &entropies, &HighEntropyConfig { share: 0.25 }, &mut keep)?;
/// assert_eq!(keep, [false, true, false, true, false, false]);        // q = 1
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn high_entropy_mask<R: Real>(
    batch: &Batch<'_>,
    entropies: &[R],
    config: &HighEntropyConfig,
    keep: &mut [bool],
) -> Result<()> {
    check_len("entropies", entropies, batch.tokens())?;
    check_len("keep", keep, batch.tokens())?;
    check_unit("share", config.share)?;
    let bound = if batch.kept() == 0 { 0.0 } else { quantile(batch, entropies, 1.0 - config.share) };
    for ((keep, &kept), &entropy) in keep.iter_mut().zip(batch.mask().as_slice()).zip(entropies) {
        *keep = kept && entropy.widen() >= bound;
    }
    Ok(())
}
