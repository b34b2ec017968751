use super::{
    covariance::{walk, wanted, Center},
    ppo_clip::{Clip, DualClip},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_config, check_len, check_range, check_unit, Result},
    layout::Batch,
    math::exp,
    real::Real,
    statistics::Divisor,
};

/// How [`clip_cov`] clips, and which tokens [`clip_cov_selection`] may choose.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ClipCovConfig<'a> {
    /// ε⁻; not negative, default 0.2.
    pub clip_low: f64,
    /// ε⁺; not negative, default 0.2.
    pub clip_high: f64,
    /// Candidates have a covariance above this; default 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub lower: f64,
    /// Candidates have a covariance below this; default 5.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub upper: f64,
    /// Share of the kept tokens to choose, at least one; in `[0, 1]`, default 2e-4.
    pub ratio: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of means; default the exact count.
    pub divisor: Divisor,
}

impl Default for ClipCovConfig<'_> {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.2,
            lower: 1.0,
            upper: 5.0,
            ratio: 2e-4,
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
        }
    }
}

/// What [`clip_cov`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct ClipCovInput<'a, R> {
    /// The inputs common to all policy losses.
    pub policy: PolicyLossInput<'a, R>,
    /// Tokens whose gradient is detached.
    pub selected: &'a [bool],
}

/// How [`clip_cov_selection`] chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ClipCovSelectionConfig<'a> {
    /// The settings of the loss that uses the selection; the aggregation is ignored.
    pub clip: ClipCovConfig<'a>,
    /// Seed of the random generator; default 0.
    pub seed: u64,
}

/// The clipped surrogate without the selected tokens: their gradient is detached, so that entropy does not collapse.
///
/// ```text
/// L_t = [t not selected] · max(−ρ_t A_t, −clip(ρ_t, 1 − ε⁻, 1 + ε⁺) A_t)        ∂loss/∂log π_t = −W_t ρ_t A_t, or 0
/// ```
///
/// `clip_fraction` is the share of selected tokens. Select them with [`clip_cov_selection`] or in any other way.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, whether selected or not, and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a clip width is negative; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** Cui et al. 2025, arXiv:2505.22617, §4.2; verl 0.9.1 `clip_cov`. Log-ratios are not bounded.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let policy = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, 3.0]);
/// let input = ClipCovInput { policy, selected: &[false, true, true] };
/// let mut grad = [9.0; 3];
/// let result = clip_cov(&batch, input, &ClipCovConfig::default(), &mut grad)?;
/// assert_eq!((result.loss, result.clip_fraction), (-0.5, 0.5));
/// assert_eq!(grad, [-0.5, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn clip_cov<R: Real>(
    batch: &Batch<'_>,
    input: ClipCovInput<'_, R>,
    config: &ClipCovConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    let ClipCovInput { policy: input, selected } = input;
    input.check(batch, grad)?;
    check_len("selected", selected, batch.tokens())?;
    let clip = Clip::new(config.clip_low, config.clip_high, DualClip::Off)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(walk(batch, &input, &plan, config.divisor, grad, |slot, log_ratio, advantage| {
        let ratio = exp(log_ratio);
        let token = clip.token(ratio, advantage);
        let slope = if token.flat { R::zero() } else { -advantage * ratio };
        // a NaN loss has a NaN gradient, selected or not
        let slope = if token.loss.is_nan() { token.loss } else { slope };
        let pick = |x: R| if selected[slot] & !x.is_nan() { R::zero() } else { x };
        (pick(token.loss), pick(slope), selected[slot], -log_ratio)
    }))
}

/// Selects the tokens whose gradient [`clip_cov`] detaches: some of those with a high covariance of advantage and
/// log-probability.
///
/// ```text
/// cov_t = (A_t − Ā)(log π_t − mean log π)        candidates: lower < cov_t < upper, and not held by the clip
/// max(⌊ratio · N⌋, 1) of them, uniformly at random
/// ```
///
/// The same seed chooses the same tokens on every machine. Returns how many were chosen.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and never chosen.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a clip width is negative, `ratio` outside `[0, 1]`, or `lower` above
/// `upper` or NaN.
///
/// **Reference.** verl 0.9.1 `clip_cov`, which draws with torch's generator.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let log_probs = [-4.0, -1.0, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[-2.0, 1.0, f64::NAN, 1.0]);
/// let mut selected = [false; 4];
/// let config = ClipCovSelectionConfig { seed: 7, ..Default::default() };
/// assert_eq!(clip_cov_selection(&batch, input, &config, &mut selected)?, 1);
/// // covariance 4; that of the others is 1, not above the lower bound
/// assert_eq!(selected, [true, false, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn clip_cov_selection<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &ClipCovSelectionConfig<'_>,
    selected: &mut [bool],
) -> Result<usize> {
    let ClipCovSelectionConfig { clip: config, seed } = *config;
    input.check(batch, input.log_probs)?;
    check_len("selected", selected, batch.tokens())?;
    let clip = clip_of_selection(&config)?;
    let candidates = Candidates { clip, config, center: Center::of(batch, &input, config.divisor) };
    let all = candidates.count(batch, &input) as u64;
    let wanted = wanted(config.ratio, batch.kept()) as u64;
    Ok(candidates.choose(batch, &input, Draw::new(seed, wanted, all), selected))
}

/// The clip, if the settings of a selection can be used.
pub(crate) fn clip_of_selection<R: Real>(config: &ClipCovConfig<'_>) -> Result<Clip<R>> {
    let clip = Clip::new(config.clip_low, config.clip_high, DualClip::Off)?;
    check_config("lower", "at most upper", config.lower, config.lower <= config.upper)?;
    check_range::<R>("lower", config.lower)?;
    check_range::<R>("upper", config.upper)?;
    check_unit("ratio", config.ratio)?;
    Ok(clip)
}

/// Which tokens may be chosen: those with a covariance between the bounds that the clip does not hold.
pub(crate) struct Candidates<'a, R> {
    pub(crate) clip: Clip<R>,
    pub(crate) config: ClipCovConfig<'a>,
    pub(crate) center: Center,
}

impl<R: Real> Candidates<'_, R> {
    fn has(&self, batch: &Batch<'_>, input: &PolicyLossInput<'_, R>, slot: usize) -> bool {
        let advantage = input.advantages[slot];
        let cov = self.center.covariance(input, slot);
        let held = self.clip.token(exp(input.log_probs[slot] - input.old_log_probs[slot]), advantage).held;
        batch.mask().as_slice()[slot] && !held && cov > self.config.lower && cov < self.config.upper
    }

    pub(crate) fn count(&self, batch: &Batch<'_>, input: &PolicyLossInput<'_, R>) -> usize {
        (0..batch.tokens()).filter(|&slot| self.has(batch, input, slot)).count()
    }

    /// Draws for each candidate, in order. Returns how many were chosen.
    pub(crate) fn choose(
        &self,
        batch: &Batch<'_>,
        input: &PolicyLossInput<'_, R>,
        mut draw: Draw,
        selected: &mut [bool],
    ) -> usize {
        for (slot, selected) in selected.iter_mut().enumerate() {
            *selected = self.has(batch, input, slot) && draw.next();
        }
        selected.iter().filter(|&&chosen| chosen).count()
    }
}

/// So many of some candidates, uniformly: each of those that are left is chosen with probability wanted / left.
pub(crate) struct Draw {
    random: SplitMix64,
    wanted: u64,
    left: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64, wanted: u64, left: u64) -> Self {
        Self { random: SplitMix64(seed), wanted: wanted.min(left), left }
    }

    /// Whether the next candidate is chosen.
    pub(crate) fn next(&mut self) -> bool {
        let chosen = self.random.below(self.left) < self.wanted;
        self.left = self.left.saturating_sub(1);
        self.wanted -= u64::from(chosen);
        chosen
    }
}

/// A small random generator with the same sequence on every target.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound` (at least 1), from the high half of a product; the bias is below bound / 2⁶⁴.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Mask};

    #[test]
    fn a_covariance_on_a_bound_is_no_candidate() {
        let batch = Batch::new(Layout::padded(1, 3).unwrap(), Mask::new(&[true; 3])).unwrap();
        let log_probs = [-4.0, -1.0, -1.0];
        // covariances 4, 1 and 1
        let input = PolicyLossInput::new(&log_probs, &log_probs, &[-2.0, 1.0, 1.0]);
        for (lower, upper, expected) in
            [(1.0, 4.0, [false; 3]), (0.5, 4.0, [false, true, true]), (1.0, 4.5, [true, false, false])]
        {
            let clip = ClipCovConfig { lower, upper, ratio: 1.0, ..Default::default() };
            let mut selected = [true; 3];
            let config = ClipCovSelectionConfig { clip, seed: 0 };
            let chosen = clip_cov_selection(&batch, input, &config, &mut selected).unwrap();
            assert_eq!(selected, expected, "{lower} {upper}");
            assert_eq!(chosen, expected.iter().filter(|&&chosen| chosen).count());
        }
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // Steele, Lea and Flood 2014; numbers of the reference implementation for this seed
        let mut random = SplitMix64(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423_u64];
        assert_eq!(numbers.map(|_| random.next()), numbers);
    }
}
