use crate::{
    divergence::{kl_value, KlConfig, KlEstimator, KlInput},
    error::{check_len, Error, Result},
    layout::{Batch, Row},
    loss::{Clip, DualClip},
    math::exp,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::{Divisor, MeanConfig},
};

/// The mean of each KL estimate over the kept tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KlMeans {
    /// Mean of `d`.
    pub k1: f64,
    /// Mean of `|d|`.
    pub abs: f64,
    /// Mean of `d²/2`.
    pub k2: f64,
    /// Mean of `e^{−d} − 1 + d`.
    pub k3: f64,
}

/// Every KL estimate, averaged over the kept tokens in one pass.
///
/// ```text
/// d = log π − log π_ref      k1: mean d      abs: mean |d|      k2: mean d²/2      k3: mean (e^{−d} − 1 + d)
/// ```
///
/// If they disagree widely, the sample is too small or the policies too far apart for any of them.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** The estimators of [`kl_estimate`](crate::divergence::kl_estimate), unbounded.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::KlInput, metric::*, Batch, Layout, Mask, MeanConfig};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = KlInput { log_probs: &[-1.0, f64::NAN, -1.0], ref_log_probs: &[-1.5, f64::NAN, -1.0] };
/// let means = kl_means(&batch, input, &MeanConfig::default())?;
/// assert_eq!((means.k1, means.abs, means.k2), (0.25, 0.25, 0.0625));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_means<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, config: &MeanConfig) -> Result<KlMeans> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let n = config.divisor.of(batch.kept() as f64);
    let [k1, abs, k2, k3] = kl_sums(batch, input).map(|sum| sum / n);
    Ok(KlMeans { k1, abs, k2, k3 })
}

fn kl_sums<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>) -> [f64; 4] {
    let mut sums = [Sum::default(); 4];
    kl_of_rows(batch, input, &mut |parts| Sum::add_each(&mut sums, &parts));
    Sum::values(&sums)
}

/// The sum of every estimate over each sequence.
#[multiversion]
pub(crate) fn kl_of_rows<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, report: &mut dyn FnMut([f64; 4])) {
    for row in batch.token_rows() {
        report(fold_row(&row, [input.log_probs, input.ref_log_probs], [], |[p, q]| {
            let value = |estimator| kl_value(&KlConfig { estimator, ..Default::default() }, p - q).widen();
            ([], [value(KlEstimator::K1), value(KlEstimator::Abs), value(KlEstimator::K2), value(KlEstimator::K3)])
        }));
    }
}

/// What [`clip_fractions`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct RatioInput<'a, R> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: &'a [R],
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
}

/// The clip whose effect [`clip_fractions`] counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ClipConfig {
    /// ε⁻; default 0.2.
    pub clip_low: f64,
    /// ε⁺; default 0.2.
    pub clip_high: f64,
    /// Default off.
    pub dual_clip: DualClip,
    /// Divisor of the shares; default the exact count.
    pub divisor: Divisor,
}

impl Default for ClipConfig {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.2, dual_clip: DualClip::Off, divisor: Divisor::Count }
    }
}

/// Shares of the kept tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClipFractions {
    /// Held by the clip on either side.
    pub clipped: f64,
    /// Held below: `A < 0`, `ρ < 1 − ε⁻`.
    pub low: f64,
    /// Held above: `A > 0`, `ρ > 1 + ε⁺`.
    pub high: f64,
    /// Held by the dual clip.
    pub dual: f64,
}

/// How many tokens the clip holds, and on which side.
///
/// ```text
/// low: share of A < 0 ∧ ρ < 1 − ε⁻      high: share of A > 0 ∧ ρ > 1 + ε⁺      clipped = low + high
/// ```
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] as for
/// [`ppo_clip`](crate::loss::ppo_clip); [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** verl 0.9.1 `actor/pg_clipfrac` (`clipped`) and `actor/pg_clipfrac_lower` (`dual`); TRL 1.16
/// `clip_ratio/low_mean`, `high_mean`, `region_mean`.
///
/// # Example
///
/// ```
/// use tokenwise::{math, metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = RatioInput {
///     log_probs: &[math::ln(2.0), math::ln(0.5), f64::NAN, 0.0],
///     old_log_probs: &[0.0, 0.0, f64::NAN, 0.0],
///     advantages: &[1.0, -1.0, f64::NAN, 1.0],
/// };
/// let shares = clip_fractions(&batch, input, &ClipConfig::default())?;
/// assert_eq!((shares.low, shares.high, shares.dual), (1.0 / 3.0, 1.0 / 3.0, 0.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn clip_fractions<R: Real>(
    batch: &Batch<'_>,
    input: RatioInput<'_, R>,
    config: &ClipConfig,
) -> Result<ClipFractions> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("advantages", input.advantages, batch.tokens())?;
    let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let n = config.divisor.of(batch.kept() as f64);
    let [low, high, dual] = held(batch, input, &clip).map(|count| count / n);
    Ok(ClipFractions { clipped: low + high, low, high, dual })
}

#[multiversion]
fn held<R: Real>(batch: &Batch<'_>, input: RatioInput<'_, R>, clip: &Clip<R>) -> [f64; 3] {
    let mut counts = [Sum::default(); 3];
    for row in batch.token_rows() {
        for (count, part) in counts.iter_mut().zip(held_of_row(&row, input, clip)) {
            count.add(part);
        }
    }
    Sum::values(&counts)
}

/// The number of tokens of a sequence that the clip holds below, above, and by its second bound.
#[inline(always)]
pub(crate) fn held_of_row<R: Real>(row: &Row<'_>, input: RatioInput<'_, R>, clip: &Clip<R>) -> [f64; 3] {
    fold_row(row, [input.log_probs, input.old_log_probs, input.advantages], [], |[new, old, advantage]| {
        ([], held_token(exp(new - old), advantage, clip))
    })
}

/// The same for one ratio, as 0 or 1.
#[inline(always)]
pub(crate) fn held_token<R: Real>(ratio: R, advantage: R, clip: &Clip<R>) -> [f64; 3] {
    let token = clip.token(ratio, advantage);
    let count = |yes: bool| if yes { 1.0 } else { 0.0 };
    let negative = advantage < R::zero();
    [count(token.held && negative), count(token.held && !negative), count(token.held_by_dual)]
}
