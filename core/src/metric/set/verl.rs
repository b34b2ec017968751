use super::{
    summary::{check_optional, Weighing},
    verl_walk::{aggregated, of_lengths, walk},
    Lengths, RewardKl, VerlMetrics,
};
use crate::{
    divergence::{KlBounds, KlConfig, KlEstimator},
    error::{check_finite, check_len, Result},
    layout::{Batch, Mask},
    loss::{Aggregate, PolicyLoss, ValueLoss},
    metric::{variance_proxy, VarianceProxyConfig, VarianceProxyInput},
    real::Real,
    rollout::{
        probability_difference, rollout_mismatch, rollout_rejection_metrics, rollout_weight_metrics, CriterionMetrics,
        RejectionConfig, RolloutConfig, RolloutInput,
    },
    statistics::{Divisor, MeanConfig},
};

/// What [`verl_metrics`] reads. Fields that are `None` leave out their keys.
#[derive(Clone, Copy, Debug)]
pub struct VerlInput<'a, R> {
    /// Token-level scores, before any KL penalty; action-aligned. Used only with `response_lengths`.
    pub scores: Option<&'a [R]>,
    /// Token-level rewards, after it; action-aligned. Used only with `response_lengths`.
    pub rewards: Option<&'a [R]>,
    /// Advantages, action-aligned.
    pub advantages: Option<&'a [R]>,
    /// Returns, state-aligned.
    pub returns: Option<&'a [R]>,
    /// The critic's values when the batch was collected, state-aligned.
    pub values: Option<&'a [R]>,
    /// The critic's new values, state-aligned.
    pub predictions: Option<&'a [R]>,
    /// The token count of each response (by the attention mask, not the loss mask), and its maximum.
    pub response_lengths: Option<Lengths<'a>>,
    /// The same for the prompts.
    pub prompt_lengths: Option<Lengths<'a>>,
    /// Log-probabilities of the policy being trained, action-aligned; for the KL loss only.
    pub log_probs: Option<&'a [R]>,
    /// Those of the reference.
    pub ref_log_probs: Option<&'a [R]>,
    /// Those of the trainer when the batch was collected.
    pub old_log_probs: Option<&'a [R]>,
    /// Those of the sampler.
    pub rollout_log_probs: Option<&'a [R]>,
    /// The entropies of the policy of `old_log_probs`.
    pub old_entropies: Option<&'a [R]>,
    /// The entropies of the policy of `log_probs`.
    pub entropies: Option<&'a [R]>,
    /// `Σ_v π_v²` of the policy of `old_log_probs`. Used only with these, `advantages` and `gradient_norm`.
    pub sum_pi_squared: Option<&'a [R]>,
    /// The importance weights that the loss used, for the variance proxies.
    pub weights: Option<&'a [R]>,
    /// The norm of the whole batch's gradient, for the variance proxies.
    pub gradient_norm: Option<f64>,
    /// What the policy loss returned.
    pub policy_loss: Option<PolicyLoss>,
    /// What the value loss returned.
    pub value_loss: Option<ValueLoss>,
    /// What the KL penalty in the reward returned.
    pub reward_kl: Option<RewardKl>,
    /// The mask before rejection, if rejection changed it: entropies of the old policy and all metrics of the sampler
    /// use it.
    pub mask_before_rejection: Option<Mask<'a>>,
}

impl<R> Default for VerlInput<'_, R> {
    /// Every field `None`.
    fn default() -> Self {
        Self {
            scores: None,
            rewards: None,
            advantages: None,
            returns: None,
            values: None,
            predictions: None,
            response_lengths: None,
            prompt_lengths: None,
            log_probs: None,
            ref_log_probs: None,
            old_log_probs: None,
            rollout_log_probs: None,
            old_entropies: None,
            entropies: None,
            sum_pi_squared: None,
            weights: None,
            gradient_norm: None,
            policy_loss: None,
            value_loss: None,
            reward_kl: None,
            mask_before_rejection: None,
        }
    }
}

/// The conventions of [`verl_metrics`]; by default those of verl 0.9.1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VerlConfig<'a> {
    /// How entropies and KL are aggregated, as in the policy loss; default the token mean.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_aggregate"))]
    pub aggregate: Aggregate<'a>,
    /// Divisor of means over tokens; default `n + 1e-8`.
    pub divisor: Divisor,
    /// The estimate of the KL loss; default k3, bounded.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_kl"))]
    pub kl: KlConfig,
    /// Its coefficient; default 1e-3.
    pub kl_coefficient: f64,
    /// The coefficient of the entropy; default 0.
    pub entropy_coefficient: f64,
    /// The importance weights whose metrics are reported; default none.
    pub rollout_weights: Option<RolloutConfig>,
    /// The rejection whose metrics are reported; default none.
    pub rejection: Option<RejectionConfig<'a>>,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! {
    read_aggregate: VerlConfig.aggregate as Aggregate<'static>,
    read_kl: VerlConfig.kl as KlConfig,
}

impl Default for VerlConfig<'_> {
    fn default() -> Self {
        Self {
            aggregate: Aggregate { divisor: Divisor::CountPlusEpsilon, ..Default::default() },
            divisor: Divisor::CountPlusEpsilon,
            kl: KlConfig { estimator: KlEstimator::K3, bounds: KlBounds::K3Only, ..Default::default() },
            kl_coefficient: 1e-3,
            entropy_coefficient: 0.0,
            rollout_weights: None,
            rejection: None,
        }
    }
}

/// Everything that verl logs about the tokens of a batch, under its keys.
///
/// ```text
/// critic/{score, rewards}: Σ_t of responses with length > 0
/// critic/{advantages, returns, values}: over kept tokens
/// vf_explained_var = 1 − Var(G − V) / (Var(G) + 1e-5)
/// clip_ratio = share of length = limit      aborted = share of length = 0
/// actor/{entropy, entropy_loss, kl_loss} = Agg_t      actor/loss = pg_loss − c_H entropy_loss + c_KL kl_loss
/// vpred_mean = mean v
/// ```
///
/// Mean, largest and smallest of an empty selection are NaN. The rest are the numbers of [`probability_difference`],
/// [`rollout_mismatch`], [`rollout_weight_metrics`], [`rollout_rejection_metrics`] and [`variance_proxy`], and of the
/// losses as they returned them. [`Reduction`](super::Reduction) combines the values of micro-batches.
///
/// Not included, because they are not about tokens: `timing_*` and the other `perf/*` (clocks and devices),
/// `actor/grad_norm`, `actor/lr`, `critic/grad_norm`, `critic/lr` (the optimiser), `global_seqlen/*` (how sequences are
/// spread over ranks), `num_turns/*` and `tool_call_counts/*` (conversations), `training/*` counters, `rollout/*` (of
/// the sampler itself), `val-*` (other data).
///
/// **Alignment.** As documented at each field of [`VerlInput`]. `per_criterion` has one entry per rejection criterion;
/// it is empty without rejection.
///
/// **Mask.** Dropped slots are never read: a score on a dropped token does not count (verl adds up all slots).
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`, or `per_criterion` the
/// criteria; [`Error::Config`](crate::Error::Config) if a coefficient is not finite; the errors of the functions named
/// above and of [`aggregate`](crate::loss::aggregate), except that an empty mask is an error only where verl rejects it
/// too: with the sampler's log-probabilities.
///
/// **Reference.** verl 0.9.1 `compute_data_metrics`, `calculate_debug_metrics`,
/// `compute_rollout_corr_metrics_from_logprobs`, `compute_variance_proxy_metrics`, `ppo_loss`, `value_loss`.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let input = VerlInput {
///     scores: Some(&[0.0, 1.0, 3.0, f64::NAN]),
///     advantages: Some(&[1.0, -2.0, 4.0, f64::NAN]),
///     response_lengths: Some(Lengths { tokens: &[2, 1], limit: 2 }),
///     ..Default::default()
/// };
/// let metrics = verl_metrics(&batch, input, &VerlConfig::default(), &mut [])?;
/// let value = |wanted| metrics.entries().find(|&(key, _)| key == wanted).map(|(_, value)| value);
/// assert_eq!((value("critic/score/mean"), value("critic/advantages/min")), (Some(2.0), Some(-2.0)));
/// assert_eq!((value("response_length/clip_ratio"), value("critic/values/mean")), (Some(0.5), None));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn verl_metrics<'o, R: Real>(
    batch: &Batch<'_>,
    input: VerlInput<'_, R>,
    config: &VerlConfig<'_>,
    per_criterion: &'o mut [CriterionMetrics],
) -> Result<VerlMetrics<'o>> {
    check_verl(batch, &input, config)?;
    let criteria = config.rejection.map_or(0, |rejection| rejection.criteria.len());
    check_len("per_criterion", per_criterion, criteria)?;
    let sampled = match input.mask_before_rejection {
        Some(mask) => Batch::new(batch.layout(), mask)?,
        None => *batch,
    };
    let mut found = VerlMetrics {
        policy_loss: input.policy_loss,
        value_loss: input.value_loss,
        reward_kl: input.reward_kl,
        ..of_lengths(&input)
    };
    let aggregates = input.entropies.is_some() || input.log_probs.and(input.ref_log_probs).is_some();
    walk(batch, &input, config, &Weighing::new(batch, &config.aggregate, aggregates)?, &mut found);
    if let Some(entropies) = input.old_entropies {
        found.old_entropy = Some(aggregated(&sampled, entropies, &Weighing::new(&sampled, &config.aggregate, true)?));
    }
    found.actor_loss = input.policy_loss.map(|policy| {
        let entropy = found.entropy_loss.map_or(0.0, |entropy| config.entropy_coefficient * entropy);
        policy.loss - entropy + found.kl_loss.map_or(0.0, |kl| config.kl_coefficient * kl)
    });
    if let (Some(old_log_probs), Some(sum_pi_squared), Some(advantages), Some(gradient_norm)) =
        (input.old_log_probs, input.sum_pi_squared, input.advantages, input.gradient_norm)
    {
        let input = VarianceProxyInput { old_log_probs, sum_pi_squared, advantages, weights: input.weights };
        let config = VarianceProxyConfig { gradient_norm, divisor: config.divisor };
        found.variance_proxy = Some(variance_proxy(batch, input, &config)?);
    }
    if let (Some(old_log_probs), Some(rollout_log_probs)) = (input.old_log_probs, input.rollout_log_probs) {
        let input = RolloutInput { old_log_probs, rollout_log_probs };
        found.probability_difference = Some(probability_difference(&sampled, input)?);
        found.mismatch = Some(rollout_mismatch(&sampled, input, &MeanConfig { divisor: config.divisor })?);
        if let Some(weights) = &config.rollout_weights {
            found.rollout_weights = Some(rollout_weight_metrics(&sampled, input, weights)?);
        }
        if let Some(rejection) = &config.rejection {
            found.rejection = Some(rollout_rejection_metrics(&sampled, input, rejection, per_criterion)?);
            found.criteria = per_criterion;
        }
    }
    Ok(found)
}

/// The errors that do not depend on the mask.
pub(crate) fn check_verl<R>(batch: &Batch<'_>, input: &VerlInput<'_, R>, config: &VerlConfig<'_>) -> Result<()> {
    let tokens = batch.tokens();
    for (what, slice) in [
        ("scores", input.scores),
        ("rewards", input.rewards),
        ("advantages", input.advantages),
        ("returns", input.returns),
        ("values", input.values),
        ("predictions", input.predictions),
        ("log_probs", input.log_probs),
        ("ref_log_probs", input.ref_log_probs),
        ("old_log_probs", input.old_log_probs),
        ("rollout_log_probs", input.rollout_log_probs),
        ("old_entropies", input.old_entropies),
        ("entropies", input.entropies),
        ("sum_pi_squared", input.sum_pi_squared),
        ("weights", input.weights),
    ] {
        check_optional(what, slice, tokens)?;
    }
    let sequences = batch.sequences();
    check_optional("response_lengths", input.response_lengths.map(|lengths| lengths.tokens), sequences)?;
    check_optional("prompt_lengths", input.prompt_lengths.map(|lengths| lengths.tokens), sequences)?;
    check_optional("mask_before_rejection", input.mask_before_rejection.map(|mask| mask.as_slice()), tokens)?;
    check_finite::<f64>("kl_coefficient", config.kl_coefficient)?;
    check_finite::<f64>("entropy_coefficient", config.entropy_coefficient)
}
