use super::{
    chain::{Chain, Workspace},
    difference::{bit, difference},
    results::Results,
    Convention, Conventions, Difference, Estimator, ProfileInput, Quantity, QuantityShape,
};
use crate::{
    advantage::WeightedSum,
    error::{check_config, check_count, check_finite, check_len, check_not_negative, check_unit, checked_size, Result},
    groups::Groups,
    layout::Batch,
    loss::AggregateMode,
    real::Real,
    statistics::Moments,
};

/// The settings that [`compare`] uses for both sides. `None` leaves a number to each side's conventions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct CompareConfig<'a> {
    /// Discount γ, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// λ of the generalized advantage estimate, in `[0, 1]`.
    pub lambda: Option<f64>,
    /// The coefficient β of the KL in the reward.
    pub beta: Option<f64>,
    /// ε⁻ of the clipped surrogate; default 0.2.
    pub clip_low: f64,
    /// ε⁺ of the clipped surrogate; default 0.2.
    pub clip_high: f64,
    /// The bound of its second clip, above 1.
    pub dual_clip: Option<f64>,
    /// How far from the old values the critic's predictions are held.
    pub value_clip: Option<f64>,
    /// Which advantages the losses use; default the group-relative ones.
    pub estimator: Estimator,
    /// How the clipped surrogate, CISPO, the KL loss and the value loss aggregate; default the token mean.
    pub mode: AggregateMode<'a>,
}

impl Default for CompareConfig<'_> {
    fn default() -> Self {
        Self {
            gamma: 1.0,
            lambda: None,
            beta: None,
            clip_low: 0.2,
            clip_high: 0.2,
            dual_clip: None,
            value_clip: None,
            estimator: Estimator::GroupRelative,
            mode: AggregateMode::TokenMean,
        }
    }
}

impl CompareConfig<'_> {
    fn check(&self) -> Result<()> {
        check_unit("gamma", self.gamma)?;
        check_unit("lambda", self.lambda.unwrap_or(1.0))?;
        check_finite::<f64>("beta", self.beta.unwrap_or(0.0))?;
        check_not_negative::<f64>("clip_low", self.clip_low)?;
        check_not_negative::<f64>("clip_high", self.clip_high)?;
        let dual_clip = self.dual_clip.unwrap_or(2.0);
        check_config("dual_clip", "above 1 and finite", dual_clip, dual_clip > 1.0 && dual_clip.is_finite())?;
        check_not_negative::<f64>("value_clip", self.value_clip.unwrap_or(0.0))
    }

    /// The conventions with the numbers that are set for both sides.
    fn given(&self, mut conventions: Conventions) -> Conventions {
        conventions.lambda = self.lambda.unwrap_or(conventions.lambda);
        conventions.kl_reward_beta = self.beta.unwrap_or(conventions.kl_reward_beta);
        conventions.dual_clip_bound = self.dual_clip.or(conventions.dual_clip_bound);
        conventions.value_clip = self.value_clip.or(conventions.value_clip);
        conventions
    }
}

/// The required lengths of the slices of a [`CompareScratch`], returned by [`compare_scratch_len`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompareSizes {
    /// Entries of `tokens`.
    pub tokens: usize,
    /// Entries of `sequences`.
    pub sequences: usize,
    /// Entries of `moments` and of `sums`.
    pub groups: usize,
    /// Entries of `keep`.
    pub keep: usize,
}

/// The required lengths of the slices of a [`CompareScratch`] for a batch and its groups.
///
/// # Errors
///
/// [`Error::Overflow`](crate::Error::Overflow) if one does not fit into a machine word.
pub fn compare_scratch_len(batch: &Batch<'_>, groups: &Groups<'_>) -> Result<CompareSizes> {
    // every result twice, and once the scratch of the chain
    let times = |shape| 2 * Quantity::with_shape(shape) + 1;
    Ok(CompareSizes {
        tokens: checked_size("results × tokens", times(QuantityShape::Tokens), batch.tokens())?,
        sequences: checked_size("results × sequences", times(QuantityShape::Sequences), batch.sequences())?,
        groups: groups.count(),
        keep: batch.tokens(),
    })
}

/// Scratch of [`compare`], with the lengths from [`compare_scratch_len`]. The content before a call does not matter.
#[derive(Debug)]
pub struct CompareScratch<'a, R> {
    /// Results per token.
    pub tokens: &'a mut [R],
    /// Results per sequence.
    pub sequences: &'a mut [R],
    /// One per group.
    pub moments: &'a mut [Moments],
    /// One per group.
    pub sums: &'a mut [WeightedSum],
    /// One per token.
    pub keep: &'a mut [bool],
}

impl<R> CompareScratch<'_, R> {
    fn check(&self, sizes: CompareSizes) -> Result<()> {
        check_len("tokens", self.tokens, sizes.tokens)?;
        check_len("sequences", self.sequences, sizes.sequences)?;
        check_len("moments", self.moments, sizes.groups)?;
        check_len("sums", self.sums, sizes.groups)?;
        check_len("keep", self.keep, sizes.keep)
    }
}

/// Runs one batch under two sets of conventions and reports which results differ, by how much, and which conventions
/// cause it.
///
/// The chain: KL in the reward, returns, generalized advantage estimates, whitening, scores, group and leave-one-out
/// advantages, the correction for the sampler, the KL loss, and the losses PPO, GSPO, GMPO, CISPO, SAPO and the
/// critic's; [`Quantity`] lists its results. A cause is found by computation:
///
/// ```text
/// convention c is a cause of a difference in result q        if        q(A with c of B) ≠ q(A)
/// ```
///
/// If no convention alone makes a difference, A is turned into B one convention at a time, and the causes are those at
/// which the result changes. A result differs if any of its numbers does, however little; NaN equals NaN. Returns how
/// many results differ.
///
/// **Alignment.** As documented at each input. A reported index is a token slot or a sequence.
///
/// **Mask.** Dropped slots are never read, except `rewards` where scores are summed and a side uses
/// [`ScoreSlots::All`].
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if an input, the groups or a scratch slice does not fit;
/// [`Error::Config`](crate::Error::Config) if a number is outside its domain; the errors of the aggregation. A result
/// that one side rejects because the batch has too few kept tokens is not an error but a difference.
///
/// **Reference.** The conventions of verl 0.9.1, TRL 1.16.0 and OpenRLHF 0.11.2, as defined by
/// [`Profile`](crate::Profile).
///
/// [`ScoreSlots::All`]: super::ScoreSlots::All
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::WeightedSum, profile::*, Batch, Groups, Layout, Mask, Moments, Profile};
///
/// // one answer to each of two prompts
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let groups = Groups::contiguous(&[1, 1])?;
/// let log_probs = [-0.5, -1.0, -0.2, f64::NAN];
/// let input = ProfileInput::new(&[0.0, 1.0, 2.0, 0.0], &log_probs, &log_probs);
/// let sizes = compare_scratch_len(&batch, &groups)?;
/// let scratch = CompareScratch {
///     tokens: &mut vec![0.0; sizes.tokens],
///     sequences: &mut vec![0.0; sizes.sequences],
///     moments: &mut vec![Moments::default(); sizes.groups],
///     sums: &mut vec![WeightedSum::default(); sizes.groups],
///     keep: &mut vec![false; sizes.keep],
/// };
/// let sides = [Profile::Verl0_9_1.conventions(), Profile::Trl1_16.conventions()];
/// compare(&batch, &groups, input, sides, &CompareConfig::default(), scratch, |difference| {
///     if difference.quantity == Quantity::LeaveOneOut {
///         assert_eq!((difference.index, difference.values), (Some(1), [Ok(2.0), Ok(0.0)]));
///         let causes: Vec<&str> = difference.causes().map(|cause| cause.convention.name()).collect();
///         assert_eq!(causes, ["singleton"]);
///     }
/// })?;
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn compare<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: ProfileInput<'_, R>,
    conventions: [Conventions; 2],
    config: &CompareConfig<'_>,
    scratch: CompareScratch<'_, R>,
    mut tell: impl FnMut(&Difference<'_>),
) -> Result<usize> {
    check_count("groups", groups.sequences(), batch.sequences())?;
    input.check(batch)?;
    config.check()?;
    scratch.check(compare_scratch_len(batch, groups)?)?;
    let sides = conventions.map(|side| config.given(side));
    scratch.keep.fill(true);
    let (first_tokens, rest) =
        scratch.tokens.split_at_mut(Quantity::with_shape(QuantityShape::Tokens) * batch.tokens());
    let (second_tokens, spare) = rest.split_at_mut(first_tokens.len());
    let (first_sequences, rest) =
        scratch.sequences.split_at_mut(Quantity::with_shape(QuantityShape::Sequences) * batch.sequences());
    let (second_sequences, bootstrap) = rest.split_at_mut(first_sequences.len());
    bootstrap.fill(R::zero());
    let chain = Chain { batch: *batch, groups: *groups, input, config: *config };
    let mut work =
        Workspace { moments: scratch.moments, sums: scratch.sums, every_slot: scratch.keep, bootstrap, spare };
    let mut first = Results::new(batch, first_tokens, first_sequences);
    let mut second = Results::new(batch, second_tokens, second_sequences);

    chain.run(&sides[0], &mut work, &mut first)?;
    chain.run(&sides[1], &mut work, &mut second)?;
    let mut found = [None; Quantity::COUNT];
    for (found, &quantity) in found.iter_mut().zip(Quantity::ALL) {
        *found = difference(quantity, [&first, &second], &sides);
    }
    let differing = || Convention::ALL.iter().copied().filter(|&c| !sides[0].agree(&sides[1], c));
    for convention in differing() {
        chain.run(&sides[0].exchanged(convention, &sides[1]), &mut work, &mut second)?;
        for found in found.iter_mut().flatten() {
            if difference(found.quantity, [&first, &second], &sides).is_some() {
                found.causes |= bit(convention);
            }
        }
    }
    if found.iter().flatten().any(|found| found.causes == 0) {
        // none alone: going from one side to the other changes the result somewhere
        let mut together = [0; Quantity::COUNT];
        let mut walker = sides[0];
        for convention in differing() {
            walker = walker.exchanged(convention, &sides[1]);
            chain.run(&walker, &mut work, &mut second)?;
            for (together, &quantity) in together.iter_mut().zip(Quantity::ALL) {
                if difference(quantity, [&first, &second], &sides).is_some() {
                    *together |= bit(convention);
                }
            }
            core::mem::swap(&mut first, &mut second);
        }
        for (found, together) in found.iter_mut().zip(together) {
            if let Some(found) = found.as_mut().filter(|found| found.causes == 0) {
                found.causes = together;
            }
        }
    }
    let told = found.iter().flatten().inspect(|found| tell(found)).count();
    Ok(told)
}
