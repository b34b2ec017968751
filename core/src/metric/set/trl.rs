use super::{
    summary::check_optional,
    trl_rewards::{of_lengths, of_rewards},
    trl_walk::walk,
    RewardSource, TrlMetrics,
};
use crate::{
    error::{check_finite, check_len, checked_size, Result},
    groups::{group_scratch_len, Groups},
    layout::Batch,
    loss::{Clip, DualClip, PolicyLoss, VespoLoss},
    real::Real,
    statistics::Moments,
};

/// Whether there is one importance ratio per token or per sequence.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TrlLevel {
    /// One per token.
    #[default]
    Token,
    /// One per sequence: for the clip the geometric mean of its tokens' ratios, for the sampler the weight of its first
    /// kept token.
    Sequence,
}

/// Which standard deviation `frac_reward_zero_std` tests.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TrlScale {
    /// That of the completion's group. `scale_rewards` "group" and "none".
    #[default]
    Group,
    /// That of the whole batch. `scale_rewards` "batch".
    Batch,
}

/// What the loss returned, by the kind of loss.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrlLoss {
    /// A loss with a clip: `grpo`, `bnpo`, `dr_grpo`, `dapo`, `luspo`.
    Clipped(PolicyLoss),
    /// `cispo`: its clip fraction is `cispo_clip_ratio`.
    Cispo(PolicyLoss),
    /// `sapo`, which has no clip.
    Sapo(PolicyLoss),
    /// `vespo`: its mean weight is `vespo/phi_seq_mean`.
    Vespo(VespoLoss),
}

/// The scores of the completions, by reward function.
#[derive(Clone, Copy, Debug)]
pub struct TrlRewards<'a, R> {
    /// Which completions answer the same prompt.
    pub groups: Groups<'a>,
    /// One row per reward function, one entry per sequence; NaN where the function gave none.
    pub sources: &'a [R],
    /// The weight of each function.
    pub source_weights: &'a [f64],
}

/// What [`trl_metrics`] reads. Fields that are `None` leave out their keys.
#[derive(Clone, Copy, Debug)]
pub struct TrlInput<'a, R> {
    /// Log-probabilities of the policy being trained; all token slices are action-aligned.
    pub log_probs: Option<&'a [R]>,
    /// Those of the trainer when the batch was collected; if `None`, the clip uses `log_probs` in their place.
    pub old_log_probs: Option<&'a [R]>,
    /// Those of the reference.
    pub ref_log_probs: Option<&'a [R]>,
    /// Those of the sampler; NaN where it gave none.
    pub rollout_log_probs: Option<&'a [R]>,
    /// The importance weights between sampler and trainer, as the loss used them.
    pub weights: Option<&'a [R]>,
    /// Advantages; at sequence level, that of the first kept token is used.
    pub advantages: Option<&'a [R]>,
    /// The entropies of the policy of `log_probs`.
    pub entropies: Option<&'a [R]>,
    /// What the loss returned.
    pub loss: Option<TrlLoss>,
    /// The scores.
    pub rewards: Option<TrlRewards<'a, R>>,
    /// Number of tokens of each completion that the model generated.
    pub completion_lengths: Option<&'a [u32]>,
    /// Which completions end in neither an end-of-sequence nor a padding token. Used only with `completion_lengths`.
    pub truncated: Option<&'a [bool]>,
    /// Number of tokens of each prompt. Used only with `completion_lengths`.
    pub prompt_lengths: Option<&'a [u32]>,
}

impl<R> Default for TrlInput<'_, R> {
    /// Every field `None`.
    fn default() -> Self {
        Self {
            log_probs: None,
            old_log_probs: None,
            ref_log_probs: None,
            rollout_log_probs: None,
            weights: None,
            advantages: None,
            entropies: None,
            loss: None,
            rewards: None,
            completion_lengths: None,
            truncated: None,
            prompt_lengths: None,
        }
    }
}

/// The conventions of [`trl_metrics`]; by default those of TRL 1.16.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct TrlConfig {
    /// ε⁻; default 0.2.
    pub clip_low: f64,
    /// ε⁺; default 0.2.
    pub clip_high: f64,
    /// TRL's `delta` is [`DualClip::BothSigns`]; default off.
    pub dual_clip: DualClip,
    /// `importance_sampling_level`; default the token.
    pub level: TrlLevel,
    /// Whether `weights` are one per token or per sequence (`vllm_importance_sampling_mode`); default the token.
    pub weight_level: TrlLevel,
    /// Default the group.
    pub scale: TrlScale,
    /// The coefficient of the entropy bonus, if there is one.
    pub entropy_coefficient: Option<f64>,
    /// Tokens seen before this batch; default 0.
    pub tokens_seen: u64,
}

impl Default for TrlConfig {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.2,
            dual_clip: DualClip::Off,
            level: TrlLevel::Token,
            weight_level: TrlLevel::Token,
            scale: TrlScale::Group,
            entropy_coefficient: None,
            tokens_seen: 0,
        }
    }
}

/// The outputs of [`trl_metrics`] whose number depends on the input.
#[derive(Debug, Default)]
pub struct TrlOutput<'a> {
    /// One per reward function.
    pub per_source: &'a mut [RewardSource],
    /// Scratch, [`trl_scratch_len`] entries.
    pub scratch: &'a mut [Moments],
}

/// Entries of [`TrlOutput::scratch`]: one per group of the rewards, none without rewards.
pub fn trl_scratch_len<R>(input: &TrlInput<'_, R>) -> usize {
    input.rewards.as_ref().map_or(0, |rewards| group_scratch_len(&rewards.groups))
}

/// Everything that the GRPO trainer of TRL logs about the tokens of a batch, under its keys.
///
/// ```text
/// R_i = Σ_k w_k s_ki over the functions that scored i      reward = mean_i R
/// frac_reward_zero_std = share of σ_group ≤ 1e-8
/// kl = mean (e^{−d} − 1 + d), d = log π − log π_ref
/// clip_ratio/low = A < 0 ∧ ρ < 1 − ε⁻      high = A > 0 ∧ ρ > 1 + ε⁺
/// clip_ratio/low_min = min_i mean_t low      high_max = max_i mean_t high
/// sampling_logp_difference: |log π_old − log π_rollout|
/// ```
///
/// `policy_loss` is logged by TRL only with an entropy bonus, and includes β times the KL term if there is one. `kl` is
/// before `use_bias_correction_kl`. `clip_ratio/*` need log-probabilities and advantages, and are left out for losses
/// without that clip.
///
/// Not included: `step_time` (a clock), `tools/*` (conversations), `aux_loss` (of the router), the keys of the
/// trainer's base class (`loss`, `grad_norm`, `learning_rate`, `epoch`), and `frac_reward_zero_std` of
/// `normalize_then_sum`, where it is the spread of advantages.
///
/// **Alignment.** Token slices are action-aligned; scores, lengths and flags have one entry per sequence.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens has no share at token level; at sequence
/// level its ratio is 1 and counts, but it has no weight.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice or the groups do not fit;
/// [`Error::Config`](crate::Error::Config) as for [`clip_fractions`](crate::metric::clip_fractions), or if a weight or
/// the entropy coefficient is not finite.
///
/// **Reference.** TRL 1.16 `GRPOTrainer`: `_compute_loss`, `_generate_and_score_completions`, `_generate`.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Groups, Layout, Mask, Moments};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let input = TrlInput {
///     entropies: Some(&[1.0, 2.0, 3.0, f64::NAN]),
///     rewards: Some(TrlRewards { groups: Groups::contiguous(&[2])?, sources: &[1.0, 0.0], source_weights: &[1.0] }),
///     completion_lengths: Some(&[2, 1]),
///     ..Default::default()
/// };
/// let output = TrlOutput { per_source: &mut [RewardSource::default()], scratch: &mut [Moments::default()] };
/// let metrics = trl_metrics(&batch, input, &TrlConfig::default(), output)?;
/// let value = |wanted| metrics.entries().find(|&(key, _)| key == wanted).map(|(_, value)| value);
/// assert_eq!((value("entropy"), value("reward"), value("kl")), (Some(2.0), Some(0.5), None));
/// assert_eq!((value("completions/mean_length"), metrics.sources[0].mean), (Some(1.5), 0.5));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn trl_metrics<'o, R: Real>(
    batch: &Batch<'_>,
    input: TrlInput<'_, R>,
    config: &TrlConfig,
    output: TrlOutput<'o>,
) -> Result<TrlMetrics<'o>> {
    check_trl(batch, &input, config)?;
    check_len("per_source", output.per_source, input.rewards.map_or(0, |rewards| rewards.source_weights.len()))?;
    check_len("scratch", output.scratch, trl_scratch_len(&input))?;
    let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
    let mut found = of_lengths(&input, config);
    found.policy_loss = input.loss.map(|loss| match loss {
        TrlLoss::Clipped(loss) | TrlLoss::Cispo(loss) | TrlLoss::Sapo(loss) => loss.loss,
        TrlLoss::Vespo(loss) => loss.loss,
    });
    match input.loss {
        Some(TrlLoss::Cispo(loss)) => found.cispo_clip_ratio = Some(loss.clip_fraction),
        Some(TrlLoss::Vespo(loss)) => found.vespo_phi = Some(loss.phi_mean),
        _ => {}
    }
    found.entropy_coef = config.entropy_coefficient;
    walk(batch, &input, config, &clip, &mut found);
    if let Some(rewards) = &input.rewards {
        found.rewards = Some(of_rewards(rewards, config.scale, output.per_source, output.scratch));
        found.sources = output.per_source;
    }
    Ok(found)
}

pub(crate) fn check_trl<R>(batch: &Batch<'_>, input: &TrlInput<'_, R>, config: &TrlConfig) -> Result<()> {
    for (what, slice) in [
        ("log_probs", input.log_probs),
        ("old_log_probs", input.old_log_probs),
        ("ref_log_probs", input.ref_log_probs),
        ("rollout_log_probs", input.rollout_log_probs),
        ("weights", input.weights),
        ("advantages", input.advantages),
        ("entropies", input.entropies),
    ] {
        check_optional(what, slice, batch.tokens())?;
    }
    let sequences = batch.sequences();
    check_optional("completion_lengths", input.completion_lengths, sequences)?;
    check_optional("truncated", input.truncated, sequences)?;
    check_optional("prompt_lengths", input.prompt_lengths, sequences)?;
    if let Some(rewards) = &input.rewards {
        let expected = checked_size("source_weights × sequences", rewards.source_weights.len(), sequences)?;
        check_len("sources", rewards.sources, expected)?;
        if rewards.groups.sequences() != sequences {
            let got = rewards.groups.sequences();
            return Err(crate::Error::Length { what: "groups", expected: sequences, got });
        }
        rewards.source_weights.iter().try_for_each(|&weight| check_finite::<f64>("source_weights", weight))?;
    }
    config.entropy_coefficient.map_or(Ok(()), |c| check_finite::<f64>("entropy_coefficient", c))
}
