use super::{
    summary::{check_optional, tally, Weighing},
    Lengths, OpenRlhfMetrics,
};
use crate::{
    divergence::{kl_value, KlBounds, KlConfig},
    error::{check_len, Error, Result},
    groups::{group_scratch_len, Groups},
    layout::{Batch, Row},
    loss::{Aggregate, PolicyLoss, ValueLoss},
    math::sqrt,
    real::Real,
    reduce::{count, fold_row, row_total, Sum},
    rollout::GateReport,
    simd::multiversion,
    statistics::{Divisor, Moments, Spread},
};

/// Where the KL to the reference is used, which decides how it is averaged.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum KlUse {
    /// Into the reward: the mean over sequences of their means.
    #[default]
    Reward,
    /// Into the loss: aggregated as the loss is; the difference of log-probabilities as the mean over tokens.
    Loss,
}

/// What [`openrlhf_metrics`] reads. Fields that are `None` leave out their keys.
#[derive(Clone, Copy, Debug)]
pub struct OpenRlhfInput<'a, R> {
    /// Log-probabilities of the policy, action-aligned: the trained one for a KL in the loss, the old one for a KL in
    /// the reward.
    pub log_probs: Option<&'a [R]>,
    /// Those of the reference.
    pub ref_log_probs: Option<&'a [R]>,
    /// The entropies of the trained policy.
    pub entropies: Option<&'a [R]>,
    /// The shaped rewards, action-aligned.
    pub rewards: Option<&'a [R]>,
    /// The critic's new values, state-aligned.
    pub predictions: Option<&'a [R]>,
    /// The scores, one per sequence.
    pub scores: Option<&'a [R]>,
    /// Which sequences answer the same prompt; `None` if each has its own.
    pub groups: Option<Groups<'a>>,
    /// Tokens of prompt and response together, and the length from which on a sequence counts as truncated.
    pub total_lengths: Option<Lengths<'a>>,
    /// Which responses the sampler truncated.
    pub truncated: Option<&'a [bool]>,
    /// What the policy loss returned.
    pub policy_loss: Option<PolicyLoss>,
    /// What the gate between trainer and sampler reported.
    pub gate: Option<GateReport>,
    /// What the value loss returned.
    pub value_loss: Option<ValueLoss>,
}

impl<R> Default for OpenRlhfInput<'_, R> {
    /// Every field `None`.
    fn default() -> Self {
        Self {
            log_probs: None,
            ref_log_probs: None,
            entropies: None,
            rewards: None,
            predictions: None,
            scores: None,
            groups: None,
            total_lengths: None,
            truncated: None,
            policy_loss: None,
            gate: None,
            value_loss: None,
        }
    }
}

/// The conventions of [`openrlhf_metrics`]; by default those of OpenRLHF 0.11.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OpenRlhfConfig<'a> {
    /// How entropies and the KL of a loss are aggregated; default the token mean.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_aggregate"))]
    pub aggregate: Aggregate<'a>,
    /// The estimate; default k1, bounded.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_kl"))]
    pub kl: KlConfig,
    /// Default the reward.
    pub kl_use: KlUse,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! {
    read_aggregate: OpenRlhfConfig.aggregate as Aggregate<'static>,
    read_kl: OpenRlhfConfig.kl as KlConfig,
}

impl Default for OpenRlhfConfig<'_> {
    fn default() -> Self {
        Self {
            aggregate: Aggregate { divisor: Divisor::CountPlusEpsilon, ..Default::default() },
            kl: KlConfig { bounds: KlBounds::Every, ..Default::default() },
            kl_use: KlUse::Reward,
        }
    }
}

/// Entries of the scratch of [`openrlhf_metrics`]: one per group, none without groups.
pub fn openrlhf_scratch_len<R>(input: &OpenRlhfInput<'_, R>) -> usize {
    input.groups.map_or(0, |groups| group_scratch_len(&groups))
}

/// Everything that OpenRLHF logs about the tokens of a batch, under its keys.
///
/// ```text
/// kl, logprobs_diff = mean_i mean_t (KlUse::Reward), or Agg_t and mean over tokens (KlUse::Loss)
/// entropy_loss = Agg_t H
/// reward = mean_i s_i      return = mean_i Σ_t r_t      group_reward_std = mean_i std_{j of i's prompt} s_j (n − 1)
/// response_length = mean_i (last kept − first kept + 1)      response_clip_ratio = share of length ≥ limit
/// values = mean_t v
/// ```
///
/// An empty mean is NaN, including that of a sequence without kept tokens; the mean over sequences is then NaN too.
///
/// Not included: `actor_lr`, `actor_grad_norm`, `critic_lr`, `critic_grad_norm` (the optimiser), `timing/*` (clocks),
/// `dynamic_filtering_pass_rate` (about batches that were never formed), `generated_samples` (text), `eval_*` (other
/// data). OpenRLHF weights micro-batches by their tokens if a key is a mean over tokens, by their sequences if it is a
/// mean over sequences.
///
/// **Alignment.** As documented at each field of [`OpenRlhfInput`]; `scratch` has [`openrlhf_scratch_len`] entries.
///
/// **Mask.** Dropped slots are never read.
///
/// **Errors.** [`Error::Length`] if a slice or the groups do not fit; the errors of
/// [`aggregate`](crate::loss::aggregate) except for the empty mask, which gives NaN.
///
/// **Reference.** OpenRLHF 0.11 `ActorPPOTrainer.training_step`, `CriticPPOTrainer.training_step`,
/// `RemoteExperienceMaker`; its loggers put `train/` before the keys.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Groups, Layout, Mask, Moments};
///
/// let batch = Batch::new(Layout::padded(2, 3)?, Mask::new(&[true, false, true, true, false, false]))?;
/// let input = OpenRlhfInput {
///     rewards: Some(&[0.5, f64::NAN, 1.0, -0.5, f64::NAN, f64::NAN]),
///     scores: Some(&[1.0, 1.0]),
///     groups: Some(Groups::contiguous(&[2])?),
///     ..Default::default()
/// };
/// let metrics = openrlhf_metrics(&batch, input, &OpenRlhfConfig::default(), &mut [Moments::default()])?;
/// let value = |wanted| metrics.entries().find(|&(key, _)| key == wanted).map(|(_, value)| value);
/// let rewards = (value("train/reward"), value("train/return"), value("train/group_reward_std"));
/// assert_eq!(rewards, (Some(1.0), Some(0.5), Some(0.0)));
/// assert_eq!((value("train/response_length"), value("train/kl")), (Some(2.0), None));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn openrlhf_metrics<R: Real>(
    batch: &Batch<'_>,
    input: OpenRlhfInput<'_, R>,
    config: &OpenRlhfConfig<'_>,
    scratch: &mut [Moments],
) -> Result<OpenRlhfMetrics> {
    check_openrlhf(batch, &input, scratch)?;
    let kl_in_loss = input.log_probs.and(input.ref_log_probs).is_some() && config.kl_use == KlUse::Loss;
    let weighing = Weighing::new(batch, &config.aggregate, input.entropies.is_some() || kl_in_loss)?;
    let mut found = walk(batch, &input, config, &weighing);
    found.policy_loss = input.policy_loss;
    found.gate = input.gate;
    found.value_loss = input.value_loss;
    found.reward = input.scores.map(|scores| tally(scores.iter().map(|score| score.widen())).mean());
    found.total_length = input.total_lengths.map(|lengths| tally(lengths.tokens.iter().map(|&n| f64::from(n))).mean());
    found.response_clip_ratio =
        input.total_lengths.map(|lengths| tally(lengths.tokens.iter().map(|&n| count(n >= lengths.limit))).mean());
    found.truncated = input.truncated.map(|flags| tally(flags.iter().map(|&flag| count(flag))).mean());
    found.group_reward_std = input
        .scores
        .zip(input.groups)
        .map(|(scores, groups)| tally(deviations_of_prompts(groups, scores, scratch)).mean());
    Ok(found)
}

/// For each sequence the deviation of the scores of its prompt; NaN for a prompt with one sequence.
pub(crate) fn deviations_of_prompts<'a, R: Real>(
    groups: Groups<'a>,
    scores: &[R],
    scratch: &'a mut [Moments],
) -> impl Iterator<Item = f64> + 'a {
    scratch.fill(Moments::default());
    for (group, score) in groups.ids().zip(scores) {
        scratch[group].merge(&Moments { count: 1, mean: score.widen(), m2: 0.0 });
    }
    groups.ids().map(|group| scratch[group].variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt))
}

/// The sums over a sequence of the KL and of the difference of log-probabilities.
#[inline(always)]
pub(crate) fn kl_and_difference<R: Real>(row: &Row<'_>, inputs: [&[R]; 2], config: &KlConfig) -> [f64; 2] {
    fold_row(row, inputs, [], |[p, q]| ([], [kl_value(config, p - q).widen(), (p - q).widen()]))
}

/// Slots from the first to the last kept one.
pub(crate) fn span(row: &Row<'_>) -> usize {
    let ends = row.keep.iter().position(|&keep| keep).zip(row.last_kept());
    ends.map_or(0, |(first, last)| last - first + 1)
}

pub(crate) fn check_openrlhf<R>(batch: &Batch<'_>, input: &OpenRlhfInput<'_, R>, scratch: &[Moments]) -> Result<()> {
    for (what, slice) in [
        ("log_probs", input.log_probs),
        ("ref_log_probs", input.ref_log_probs),
        ("entropies", input.entropies),
        ("rewards", input.rewards),
        ("predictions", input.predictions),
    ] {
        check_optional(what, slice, batch.tokens())?;
    }
    let sequences = batch.sequences();
    check_optional("scores", input.scores, sequences)?;
    check_optional("total_lengths", input.total_lengths.map(|lengths| lengths.tokens), sequences)?;
    check_optional("truncated", input.truncated, sequences)?;
    match input.groups {
        Some(groups) if groups.sequences() != sequences => {
            Err(Error::Length { what: "groups", expected: sequences, got: groups.sequences() })
        }
        _ => check_len("scratch", scratch, openrlhf_scratch_len(input)),
    }
}

/// Each sequence is read once for all of its numbers.
#[multiversion]
fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &OpenRlhfInput<'_, R>,
    config: &OpenRlhfConfig<'_>,
    weighing: &Weighing<'_>,
) -> OpenRlhfMetrics {
    // entropy, kl in the loss, differences, values; by sequence: kl, differences, returns, lengths
    let [mut entropy, mut kl, mut differences, mut values] = [Sum::default(); 4];
    let [mut kl_means, mut difference_means, mut returns, mut lengths] = [Sum::default(); 4];
    for (row, weight) in weighing.plan.all_rows(batch) {
        let sum = |slice: &[R]| row_total(&row, slice);
        if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
            let [of_kl, difference] = kl_and_difference(&row, [policy, reference], &config.kl);
            kl.add(weight * of_kl);
            differences.add(difference);
            kl_means.add(of_kl / row.kept() as f64);
            difference_means.add(difference / row.kept() as f64);
        }
        input.entropies.into_iter().for_each(|slice| entropy.add(weight * sum(slice)));
        input.rewards.into_iter().for_each(|slice| returns.add(sum(slice)));
        input.predictions.into_iter().for_each(|slice| values.add(sum(slice)));
        lengths.add(span(&row) as f64);
    }
    let (kept, rows) = (batch.kept() as f64, batch.sequences() as f64);
    let reference = input.log_probs.and(input.ref_log_probs);
    let in_reward = config.kl_use == KlUse::Reward;
    OpenRlhfMetrics {
        kl: reference.map(|_| if in_reward { kl_means.value() / rows } else { weighing.total(kl) }),
        logprobs_diff: reference.map(|_| {
            if in_reward {
                difference_means.value() / rows
            } else {
                differences.value() / kept
            }
        }),
        entropy_loss: input.entropies.map(|_| weighing.total(entropy)),
        episode_return: input.rewards.map(|_| returns.value() / rows),
        values: input.predictions.map(|_| values.value() / kept),
        response_length: lengths.value() / rows,
        ..Default::default()
    }
}
