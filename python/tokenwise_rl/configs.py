# Written by `cargo xtask python --write` from the catalogue; changes here are lost.
"""The settings of the formulas, as types: what each keyword argument may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required, TypeAlias


class GlobalCounts(TypedDict, total=False):
    """Counts over all micro-batches and ranks of a step."""

    #: Kept tokens.
    tokens: int
    #: Sequences.
    sequences: int
    #: Prompts.
    prompts: int
    #: The result is multiplied by this; default 1.
    ranks: int


#: Whose tokens and sequences the denominators count: ``None`` for those of the batch at hand.
Counts: TypeAlias = "GlobalCounts | None"


class Aggregate(TypedDict, total=False):
    """How the losses of the tokens become one number; default the mean over all kept tokens."""

    #: ``prompt-mean`` needs the argument ``groups``, and ``group_tokens`` over several micro-batches.
    mode: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum-norm",
        "prompt-mean",
    ]
    #: The constant length of ``seq-mean-token-sum-norm`` (Dr. GRPO).
    scale: float
    #: Whose tokens and sequences the denominators count; default those of the batch at hand.
    counts: GlobalCounts | None
    #: Whether a sequence without kept tokens counts; default ``excluded``.
    empty_rows: Literal["excluded", "counted"]
    #: What ``seq-mean-token-mean`` divides each sequence by; default ``count``.
    divisor: Divisor


class RejectionConfig(TypedDict, total=False):
    """The conventions of ``rollout_rejection``."""

    #: All must be met; none keeps everything.
    criteria: list[Criterion]
    #: What a mean over a sequence divides by; default ``count``.
    divisor: Divisor


class BypassConfig(TypedDict, total=False):
    """How ``bypass_loss`` corrects for the sampler."""

    #: The importance weights; default none.
    weights: RolloutConfig
    #: Default none is rejected.
    rejection: RejectionConfig
    #: Default ``ppo-clip``.
    form: Literal["ppo-clip", "reinforce"]
    #: The config of that loss.
    policy: PpoConfig
    #: What the means of the mismatch divide by; default ``count``.
    divisor: Divisor


#: λ of the policy's estimate: fixed, or by length, ``1 − 1 / (α · length)``.
PolicyLambda: TypeAlias = "float | dict[str, float]"


class BestOfGroupConfig(TypedDict, total=False):
    """The conventions of `best_of_group`."""

    #: What to divide by; default the group's spread.
    scale: GroupScale
    #: Variance divided by `n − 1` (default) or `n`.
    spread: Spread
    #: The small number ε ≥ 0 added to the deviation; default 1e-6.
    epsilon: float


class CispoConfig(TypedDict, total=False):
    """How `cispo` bounds and aggregates."""

    #: Default `Relative { low: 0.2, high: 0.2 }`.
    bounds: CispoBounds
    #: Log-ratios are bounded to ±this before the exponential; default 20 (verl; TRL has none).
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class ClipConfig(TypedDict, total=False):
    """The clip whose effect `clip_fractions` counts."""

    #: ε⁻; default 0.2.
    clip_low: float
    #: ε⁺; default 0.2.
    clip_high: float
    #: Default off.
    dual_clip: DualClip
    #: Divisor of the shares; default the exact count.
    divisor: Divisor


class ClipCovConfig(TypedDict, total=False):
    """How `clip_cov` clips, and which tokens `clip_cov_selection` may choose."""

    #: ε⁻; not negative, default 0.2.
    clip_low: float
    #: ε⁺; not negative, default 0.2.
    clip_high: float
    #: Candidates have a covariance above this; default 1.
    lower: float
    #: Candidates have a covariance below this; default 5.
    upper: float
    #: Share of the kept tokens to choose, at least one; in `[0, 1]`, default 2e-4.
    ratio: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of means; default the exact count.
    divisor: Divisor


class ClipCovSelectionConfig(TypedDict, total=False):
    """How `clip_cov_selection` chooses."""

    #: The settings of the loss that uses the selection; the aggregation is ignored.
    clip: ClipCovConfig
    #: Seed of the random generator; default 0.
    seed: int


class ClippedRewardsConfig(TypedDict, total=False):
    """The conventions of `clipped_rewards`."""

    #: Coefficient β of the KL; a negative one counts as 0. Default 0.01.
    beta: float
    #: Lower bound of the scores; default −10, −inf for no bound.
    low: float
    #: Upper bound of the scores; default 10, +inf for no bound.
    high: float


class Criterion(TypedDict, total=False):
    """One condition that a token or sequence must meet to be kept."""

    #: The statistic.
    option: RejectionOption
    #: k1 only: `ln lower ≤ k1`; positive. Not used by the others.
    lower: float
    #: k1: `k1 ≤ ln upper`, not below `lower`; the others: statistic ≤ `upper`. Positive.
    upper: float


class DppoConfig(TypedDict, total=False):
    """How far `dppo_tv` and `dppo_kl` let the probability of a token move. The bounds are divergences, not ratio
    widths.
    """

    #: The bound where the advantage is not positive; not negative, default 0.2.
    clip_low: float
    #: The bound where the advantage is positive; not negative, default 0.2.
    clip_high: float
    #: Cap of the ratio; positive, default 3 (verl's code falls back to 20, but its actor config always sets 3).
    ratio_cap: float
    #: Log-ratios are bounded to ±this before the exponential; default 20.
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class DroConfig(TypedDict, total=False):
    """How strongly `dro` keeps the policy near the one that sampled."""

    #: The strength β of the quadratic penalty; positive. There is no customary value: verl requires one.
    beta: Required[float]
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class DualGameConfig(TypedDict, total=False):
    """Prices and clip of `dual_game`."""

    #: γ: negative advantages are multiplied by this; not negative, default 1.2.
    gamma: float
    #: λ: the price of weighted entropy; not negative, default 0.
    lambda_: float
    #: β: the price of the KL to the reference; not negative, default 0.
    beta: float
    #: ε⁻; default 0.2.
    clip_low: float
    #: ε⁺; default 0.2.
    clip_high: float
    #: Default `Detached`.
    gradient: DualGradient
    #: Log-ratios are bounded to ±this; default 20.
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class EntropyBonusConfig(TypedDict, total=False):
    """How `entropy_bonus` weights the entropy."""

    #: The coefficient c; default 0.01. Negative to penalise entropy.
    coefficient: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class ExplainedVarianceConfig(TypedDict, total=False):
    """The conventions of `explained_variance`."""

    #: Added to the variance of the returns; not negative, default 1e-5.
    epsilon: float
    #: Variance divided by `n − 1` (default) or `n`.
    spread: Spread


class ForwardKlTopKConfig(TypedDict, total=False):
    """The bounds of `forward_kl_topk`."""

    #: Lower bound of the log-probabilities, with gradient 0 strictly below; default −10, `None` for no floor.
    log_prob_floor: float | None
    #: Upper bound of a token's loss, with gradient 0 strictly above; default 10, `None` for no bound.
    max_loss: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class GaeConfig(TypedDict, total=False):
    """How `gae` discounts."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: Decay λ of the trace, in `[0, 1]`; default 1.
    lambda_: float
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class GaeDecoupledConfig(TypedDict, total=False):
    """How `gae_decoupled` discounts."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: λ of the critic's returns, in `[0, 1]`; default 1.
    lambda_value: float
    #: λ of the policy's advantages; default fixed at 0.95.
    lambda_policy: PolicyLambda
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class GateConfig(TypedDict, total=False):
    """The conventions of `rollout_gate`."""

    #: Default off.
    level: GateLevel
    #: Default the ratio.
    statistic: GateStatistic
    #: Default mask.
    mode: GateMode
    #: The lower end of the band; default 0.5. Must be 0 (or below) for a divergence.
    lower: float
    #: The upper end; default 5.
    upper: float


class GdpoConfig(TypedDict, total=False):
    """The conventions of `gdpo`."""

    #: How each source is normalised within its prompt; default as in `group_relative`.
    group: GroupConfig
    #: How the weights of the sources and the divisor `1 + ε` of a lone score are rounded; by default they are not.
    factors: FactorPrecision
    #: How the tokens are whitened; default as in `whiten`.
    whiten: WhitenConfig


class GmpoConfig(TypedDict, total=False):
    """How `gmpo` clips."""

    #: Log-ratios are clipped at `−clip_low`, in log space; not negative, default 0.4.
    clip_low: float
    #: Log-ratios are clipped at `clip_high`, in log space; not negative, default 0.4.
    clip_high: float
    #: Which sequences the mean counts; with local counts all rows, including empty ones.
    counts: Counts
    #: Divisor of means: `n_i` (TRL's experimental GMPO), or verl's `n_i + 1e-8`; also for the metrics.
    divisor: Divisor


class GpgConfig(TypedDict, total=False):
    """The conventions of `gpg_advantage`."""

    #: F, the number every advantage is divided by; positive, default 1.
    norm: float
    #: What a group of one gets instead of its difference from the mean; default 0.
    singleton: Singleton
    #: How α is rounded; by default it is not.
    factor: FactorPrecision


class GroupConfig(TypedDict, total=False):
    """The conventions of `group_relative`."""

    #: What to divide by; default the group's standard deviation.
    scale: GroupScale
    #: Variance divided by `n − 1` (default) or `n`.
    spread: Spread
    #: The small number ε ≥ 0 added to the deviation; default 1e-6.
    epsilon: float
    #: What a group of one gets; default 0.
    singleton: Singleton


class GroupLengthConfig(TypedDict, total=False):
    """The weight of each kind of length."""

    #: Of `outputs`; finite, default 0.
    output_weight: float
    #: Of `inputs`; finite, default 0.
    input_weight: float
    #: Of `turns`; finite, default 0.
    turn_weight: float


class GspoConfig(TypedDict, total=False):
    """How `gspo` clips and aggregates."""

    #: ε⁻; not negative, default 3e-4: sequence ratios move far less than token ratios.
    clip_low: float
    #: ε⁺; not negative, default 4e-4.
    clip_high: float
    #: Default `Sequence`.
    form: GspoForm
    #: Cap of the log of the ratio, with gradient 0 strictly above; default none (verl: 10).
    log_ratio_cap: float | None
    #: How token losses are aggregated; default equal weight per sequence.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class GvpoConfig(TypedDict, total=False):
    """The settings of `gvpo`."""

    #: The strength β of the implicit KL to the policy that sampled; positive, default 0.1.
    beta: float


class HighEntropyConfig(TypedDict, total=False):
    """How many tokens `high_entropy_mask` keeps."""

    #: The share of the kept tokens to keep, in `[0, 1]`; default 0.2.
    share: float


class IwOpdConfig(TypedDict, total=False):
    """How `iw_opd` weights the beginning of a response."""

    #: How much more the first token counts than the last, γ; default 0.5.
    gamma: float
    #: ε, the lower bound of the total of absolute advantages; default 1e-8.
    epsilon: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class JsdConfig(TypedDict, total=False):
    """How `generalized_jsd` compares student and teacher."""

    #: 0 forward KL, 1 reverse KL, between them the mixture; default 0.5.
    beta: float
    #: Both rows of logits are divided by this; positive, default 1.
    temperature: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class KlConfig(TypedDict, total=False):
    """Which estimate, with which gradient and bounds."""

    #: Default `K1`.
    estimator: KlEstimator
    #: Default `Own`.
    gradient: KlGradient
    #: Default `Unbounded`.
    bounds: KlBounds


class KlCovConfig(TypedDict, total=False):
    """How `kl_cov` selects and penalises tokens."""

    #: Share of the kept tokens to penalise, at least one; in `[0, 1]`, default 2e-4.
    ratio: float
    #: The coefficient κ of their absolute log-ratio; not negative, default 0.1 (verl's config; its docs say 1).
    kl_coef: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class KlInScoresConfig(TypedDict, total=False):
    """The weight of the KL in `kl_in_scores`."""

    #: Coefficient β of the KL; finite, default 0.05.
    beta: float


class KlLossConfig(TypedDict, total=False):
    """The estimate of `kl_loss` and its coefficient."""

    #: Default K3, its own gradient, unbounded.
    kl: KlConfig
    #: The coefficient β; default 1e-3 (verl).
    coefficient: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class KlMaskConfig(TypedDict, total=False):
    """The threshold of `kl_mask`. There is no default: TorchRL has none either."""

    #: τ, the largest `½ (log π_old − log π_rollout)²`; not negative.
    tau: Required[float]


class KlRewardConfig(TypedDict, total=False):
    """The KL penalty of `kl_in_reward`."""

    #: Coefficient β of the KL; default 0.001.
    beta: float
    #: Which KL estimate; its gradient is not used because rewards are constants.
    kl: KlConfig
    #: Divisor of the mean KL of a sequence; default the exact count.
    divisor: Divisor


class KlWeightedConfig(TypedDict, total=False):
    """Which weight and which estimate."""

    #: Default `Token`.
    weight: KlWeight
    #: Default K3, its own gradient, unbounded.
    kl: KlConfig


class LastKConfig(TypedDict, total=False):
    """How many tokens `last_k_credit` credits. There is no default."""

    #: Number of kept tokens at the end that share the score; at least 1.
    k: Required[int]


class LeaveOneOutConfig(TypedDict, total=False):
    """The conventions of `leave_one_out`."""

    #: What a group of one gets; default 0.
    singleton: Singleton


class LeaveOneOutScaledConfig(TypedDict, total=False):
    """The conventions of `leave_one_out_scaled`."""

    #: The small number ε ≥ 0 added to the deviation; default 1e-6.
    epsilon: float


class LengthWeightedConfig(TypedDict, total=False):
    """The conventions of `length_weighted_baseline`."""

    #: What a group of one gets; default 0.
    singleton: Singleton


class LuspoConfig(TypedDict, total=False):
    """How `luspo` clips."""

    #: ε⁻; not negative, default 0.2.
    clip_low: float
    #: ε⁺; not negative, default 0.2.
    clip_high: float


class M2poConfig(TypedDict, total=False):
    """The threshold of `m2po_mask`. There is no default: the mask is off in AReaL."""

    #: τ, the exclusive upper bound of the mean of `(log π_rollout − log π_old)²`; positive.
    tau: Required[float]


class MaxRlConfig(TypedDict, total=False):
    """The conventions of `max_rl`; the default is SkyRL's rule except for groups of one."""

    #: How the mean is used as a divisor; default with ε.
    divisor: MeanDivisor
    #: The small number ε ≥ 0; default 1e-6. `IfPositive` does not use it.
    epsilon: float
    #: What a group of one gets, undivided; default 0.
    singleton: Singleton


class MeanConfig(TypedDict, total=False):
    """How a mean over kept entries is taken."""

    #: What the mean divides by; default the exact count.
    divisor: Divisor


class MinillmConfig(TypedDict, total=False):
    """The conventions of `minillm_advantage`."""

    #: Discount γ per step, in `[0, 1]`; default 1. 0 gives `ρ` itself.
    gamma: float
    #: Where the powers of γ start; default at the token.
    from_: DiscountFrom
    #: Whether to divide by the remaining length; default `Kept`.
    length: LengthNormalization
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class MissingEosConfig(TypedDict, total=False):
    """What `missing_eos_penalty` subtracts. There is no default: the penalty is off in TRL."""

    #: Penalty for a response without an end-of-sequence token; finite.
    penalty: Required[float]


class MixedKlConfig(TypedDict, total=False):
    """The mixture of `mixed_kl_topk`."""

    #: The share w of forward KL, in `[0, 1]`: 1 forward alone, 0 reverse alone; default 0.5.
    forward: float
    #: Default `Renormalize`.
    outside: OutsideTopK
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class NStepConfig(TypedDict, total=False):
    """How `n_step_returns` looks ahead."""

    #: Number of observed rewards before the critic's value, at least 1; default 1.
    n: int
    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: Share λ of the return, against the next value, at every step except the last, in `[0, 1]`; default 1.
    lambda_: float
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class NormalizeConfig(TypedDict, total=False):
    """The conventions of `normalize_scores`; the default is GRPO's rule with AReaL's ε."""

    #: Which mean is subtracted; default the group's.
    mean: Level
    #: Whether a score counts in its own mean; default yes.
    own: Own
    #: Which deviation to divide by; default the group's.
    deviation: Level
    #: Variance divided by `n − 1` (default) or `n`.
    spread: Spread
    #: The small number ε ≥ 0 added to the deviation; default 1e-5. Not used if there is no deviation.
    epsilon: float


class OffPolicyConfig(TypedDict, total=False):
    """The conventions of `off_policy_sequence_mask`."""

    #: The largest mean KL of a sequence; not negative, default 1e-4 (slime).
    threshold: float
    #: How a token without a log-probability from the sampler is treated; default `Nan`, TRL is `Ignore`.
    unscored: Unscored


class OpdConfig(TypedDict, total=False):
    """The conventions of `opd_advantage`."""

    #: Weight β of the teacher's signal, finite; default 1.
    coefficient: float


class OpdLossConfig(TypedDict, total=False):
    """How `opd_loss` measures the distance and turns it into a loss."""

    #: The estimate; default K1, unbounded.
    kl: KlConfig
    #: Estimates are bounded to ± this, with gradient 0 strictly beyond; default 10 (verl), `None` for no bound.
    max_loss: float | None
    #: Default `Clipped`.
    route: OpdRoute
    #: Loss and gradient are multiplied by this; default 1.
    coefficient: float
    #: ε⁻ of the clipped route; default 0.2.
    clip_low: float
    #: ε⁺ of the clipped route; default 0.2.
    clip_high: float
    #: Second bound of the clipped route; default `Off`.
    dual_clip: DualClip
    #: Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20.
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the means of the clip metrics; default the exact count.
    divisor: Divisor


class OpenRlhfConfig(TypedDict, total=False):
    """The conventions of `openrlhf_metrics`; by default those of OpenRLHF 0.11."""

    #: How entropies and the KL of a loss are aggregated; default the token mean.
    aggregate: Aggregate
    #: The estimate; default k1, bounded.
    kl: KlConfig
    #: Default the reward.
    kl_use: KlUse


class OptimalBaselineConfig(TypedDict, total=False):
    """The conventions of `optimal_token_baseline` and `tir_optimal_token_baseline`."""

    #: The baseline in the tail of the longest answer; default none.
    zero_tail: ZeroTail
    #: The small number ε ≥ 0 added to the weights of each column; default 1e-8.
    epsilon: float


class OverlongConfig(TypedDict, total=False):
    """Where the penalty begins and how steep it is."""

    #: The longest response allowed.
    max_len: int
    #: The penalty grows linearly over the last `buffer` tokens before `max_len`; at least 1, at most `max_len`.
    buffer: int
    #: The penalty reached at `max_len`; default 1.
    factor: float
    #: What happens beyond; default `Unlimited`.
    floor: OverlongFloor


class PolicyConfig(TypedDict, total=False):
    """How logits become a distribution."""

    #: Logits are divided by this before the soft-max; positive, default 1.
    temperature: float


class PositiveNllConfig(TypedDict, total=False):
    """The settings of `positive_nll`."""

    #: μ, the factor on the mean; not negative, default 0.1.
    mu: float


class PpoConfig(TypedDict, total=False):
    """How `ppo_clip` clips and aggregates."""

    #: ε⁻: ratios below `1 − clip_low` are clipped where the advantage is negative; default 0.2.
    clip_low: float
    #: ε⁺: ratios above `1 + clip_high` are clipped where the advantage is positive; default 0.2 (DAPO: 0.28).
    clip_high: float
    #: Default `Off`.
    dual_clip: DualClip
    #: Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20 (verl, OpenRLHF; TRL has none).
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor
    #: Default `Bounded`.
    reported_kl: ReportedKl


class PufferConfig(TypedDict, total=False):
    """How `puffer_advantage` discounts and clips."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: Decay λ of the trace, in `[0, 1]`; default 1.
    lambda_: float
    #: Cap ρ̄ of the ratio in the TD error. Positive or ∞; default 1.
    rho_bar: float
    #: Cap c̄ of the ratio in the trace. Positive or ∞; default 1.
    c_bar: float
    #: What the ratio multiplies; default `V3`.
    variant: PufferVariant


class QuantileConfig(TypedDict, total=False):
    """Which quantile `quantile` takes."""

    #: The share of values below it, in `[0, 1]`; default 0.5, the median.
    level: float


class RefKlConfig(TypedDict, total=False):
    """How `ref_kl` keeps the policy near the one that sampled."""

    #: A token whose probability fell by more than this has no policy gradient; default 0.2.
    fall: float
    #: The coefficient c of the squared log-ratio; default 1e-3.
    drift: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class ReinforceConfig(TypedDict, total=False):
    """How `reinforce` aggregates."""

    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class ReinforcePlusPlusBaselineConfig(TypedDict, total=False):
    """The conventions of `reinforce_plus_plus_baseline`."""

    #: What a group of one gets instead of its difference from the mean; default 0.
    singleton: Singleton
    #: How the tokens are whitened; default as in `whiten`.
    whiten: WhitenConfig


class ReinforcePlusPlusConfig(TypedDict, total=False):
    """The conventions of `reinforce_plus_plus`."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across
    #: How the returns are whitened; default as in `whiten`.
    whiten: WhitenConfig


class RepetitionConfig(TypedDict, total=False):
    """The conventions of `repetition_penalty`."""

    #: Length of an n-gram in tokens; at least 1, default 3.
    ngram: int
    #: The reward of a response that only repeats itself; not positive, default −1.
    penalty: float


class ResampleConfig(TypedDict, total=False):
    """How `pf_ppo_indices` draws."""

    #: Seed of the random generator; default 0.
    seed: int


class RetraceConfig(TypedDict, total=False):
    """How `retrace` discounts and corrects."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: λ of the coefficient, in `[0, 1]`; default 1. `Importance` does not use it.
    lambda_: float
    #: The coefficient; default `Retrace`.
    coefficient: TraceCoefficient


class ReturnsConfig(TypedDict, total=False):
    """How `discounted_returns` discounts."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class RolloutConfig(TypedDict, total=False):
    """The conventions of `rollout_weights`."""

    #: Default `Token`.
    level: RolloutLevel
    #: Default: truncated at 2.
    bound: WeightBound
    #: Default ±20.
    log_bound: LogBound
    #: Default off.
    normalize: BatchNormalize
    #: Default `Nan`.
    unscored: Unscored
    #: Divisor of the means; default the exact count.
    divisor: Divisor


class RowNormalizeConfig(TypedDict, total=False):
    """How `row_normalize` guards its divisor."""

    #: The lower bound of the variance; positive and finite, default 1e-8.
    floor: float


class SapoConfig(TypedDict, total=False):
    """How soft the gate of `sapo` is."""

    #: τ where the advantage is positive; positive, default 1.
    tau_positive: float
    #: τ elsewhere; positive, default 1.05.
    tau_negative: float
    #: Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20 (verl; TRL has none).
    log_ratio_bound: float | None
    #: How token losses are aggregated; default equal weight per sequence, as in all frameworks.
    aggregate: Aggregate
    #: Divisor of the metrics' means; default the exact count.
    divisor: Divisor


class ShapeConfig(TypedDict, total=False):
    """The weight of the KL in `shape_rewards`."""

    #: Coefficient β of the KL; finite, default 0.001.
    beta: float


class StopProperlyConfig(TypedDict, total=False):
    """How `stop_properly_penalty` treats truncated responses. There is no default: the penalty is off in OpenRLHF.
    """

    #: c; finite and at most 1. From 0 to 1 it multiplies the score, below 0 it replaces the score.
    coefficient: Required[float]


class StructuralConfig(TypedDict, total=False):
    """The factors of the terms of `structural_weights`."""

    #: Factor c of the complexity; default 1.
    complexity: float
    #: Factor α of the surprisal; default 0.3.
    surprisal: float
    #: Factor β of the drift D, the centred surprisal times the advantage; default 0.2.
    drift: float
    #: Default `Batch`.
    scope: ScoreScope


class SurrogateConfig(TypedDict, total=False):
    """How `surrogate` is computed."""

    #: Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default none.
    log_ratio_bound: float | None
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class TdLambdaConfig(TypedDict, total=False):
    """How `td_lambda` discounts and mixes."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: Share λ of the return, against the next value, in `[0, 1]`; default 1.
    lambda_: float
    #: How a dropped token between two kept ones is treated; default `StepOver`.
    across: Across


class TopKJsdConfig(TypedDict, total=False):
    """How `topk_jsd` compares student and teacher."""

    #: 0 forward KL, 1 reverse KL, between them the mixture; default 0.5.
    beta: float
    #: Default `Tail`.
    rest: TopKRest
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class ToprConfig(TypedDict, total=False):
    """How `topr` weights good and bad responses."""

    #: Weight of responses with a positive score; not negative, default 1.
    positive: float
    #: Weight of the others; not negative, default 1.
    negative: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class TrieConfig(TypedDict, total=False):
    """How `trie_complexity` compares branches."""

    #: Default `Any`.
    prefix: TriePrefix
    #: Default `Mean`.
    value: BranchValue
    #: Default `Variance`.
    spread: BranchSpread
    #: Branches with fewer responses are ignored; at least 1, default 1.
    min_branch_size: int


class TrlConfig(TypedDict, total=False):
    """The conventions of `trl_metrics`; by default those of TRL 1.16."""

    #: ε⁻; default 0.2.
    clip_low: float
    #: ε⁺; default 0.2.
    clip_high: float
    #: TRL's `delta` is `BothSigns`; default off.
    dual_clip: DualClip
    #: `importance_sampling_level`; default the token.
    level: TrlLevel
    #: Whether `weights` are one per token or per sequence (`vllm_importance_sampling_mode`); default the token.
    weight_level: TrlLevel
    #: Default the group.
    scale: TrlScale
    #: The coefficient of the entropy bonus, if there is one.
    entropy_coefficient: float | None
    #: Tokens seen before this batch; default 0.
    tokens_seen: int


class ValueConfig(TypedDict, total=False):
    """How `value_loss` clips and aggregates."""

    #: Predictions are held within ±this of the old values; default 0.5 (TRL 0.2), `None` for none.
    clip: float | None
    #: Default ½.
    factor: ValueFactor
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate
    #: Divisor of the clip fraction's mean; default the exact count.
    divisor: Divisor


class VarianceConfig(TypedDict, total=False):
    """Which variance `variance` takes."""

    #: Divided by `n − 1` (default) or `n`.
    spread: Spread
    #: Divisor of means; default the exact count.
    divisor: Divisor


class VarianceProxyConfig(TypedDict, total=False):
    """What `variance_proxy` needs besides the tokens. There is no default: the norm is specific to the batch."""

    #: ‖g‖, the norm of the whole batch's gradient; not negative.
    gradient_norm: Required[float]
    #: Divisor of means; may be left out when deserialised, with the exact count as default.
    divisor: Divisor


class VerlConfig(TypedDict, total=False):
    """The conventions of `verl_metrics`; by default those of verl 0.9.1."""

    #: How entropies and KL are aggregated, as in the policy loss; default the token mean.
    aggregate: Aggregate
    #: Divisor of means over tokens; default `n + 1e-8`.
    divisor: Divisor
    #: The estimate of the KL loss; default k3, bounded.
    kl: KlConfig
    #: Its coefficient; default 1e-3.
    kl_coefficient: float
    #: The coefficient of the entropy; default 0.
    entropy_coefficient: float
    #: The importance weights whose metrics are reported; default none.
    rollout_weights: RolloutConfig | None
    #: The rejection whose metrics are reported; default none.
    rejection: RejectionConfig | None


class VespoConfig(TypedDict, total=False):
    """The shape of the weight of `vespo`: `φ(w) = w^k e^{λ (1 − w)}`."""

    #: k where the advantage is not negative; positive, default 2.
    k_positive: float
    #: λ where the advantage is not negative; positive, default 3.
    lambda_positive: float
    #: k where the advantage is negative; positive, default 3.
    k_negative: float
    #: λ where the advantage is negative; positive, default 2.
    lambda_negative: float
    #: How token losses are aggregated; default the token mean.
    aggregate: Aggregate


class VetoConfig(TypedDict, total=False):
    """The band of ratios outside of which a token drops its whole sequence."""

    #: Lower end of the band; not negative, default 1e-4. 0 for no lower end.
    lower: float
    #: Upper end of the band; not below `lower`, default +inf: no upper end.
    upper: float


class VtraceConfig(TypedDict, total=False):
    """How `vtrace` discounts and clips."""

    #: Discount γ per step, in `[0, 1]`; default 1.
    gamma: float
    #: Decay λ of the trace, in `[0, 1]`; default 1.
    lambda_: float
    #: Cap ρ̄ of the ratio that weights each TD error: decides *which* value function is learned. Positive or ∞;
    #: default 1.
    rho_bar: float
    #: Cap c̄ of the ratio that propagates TD errors back: decides how fast it is learned. Positive or ∞; default 1
    #: (rlax has no other).
    c_bar: float
    #: Cap ρ̄_pg of the ratio that weights the advantages. Positive or ∞; default 1.
    rho_bar_pg: float
    #: Share α of the caps, in `[0, 1]`: 1 (default) is V-trace, below 1 leaky V-trace, 0 no caps.
    alpha: float


class WhitenConfig(TypedDict, total=False):
    """The conventions of `whiten`; the default is verl's and TRL's rule with an exact mean."""

    #: Variance divided by `n − 1` (default) or `n`.
    spread: Spread
    #: The small number ε ≥ 0; default 1e-8.
    epsilon: float
    #: Where ε is added; default inside the root.
    place: EpsilonPlace
    #: Whether the mean is subtracted; default yes.
    center: Center
    #: Whether values are divided by their spread; default yes.
    scale: Scale
    #: What means divide by; default the exact count. In `f32` both options give the exact count, because verl's 1e-8
    #: is rounded away.
    divisor: Divisor


#: The bounds of the ratio in `cispo`.
CispoBounds: TypeAlias = "dict[str, object]"

#: What a mean divides its sum by.
Divisor: TypeAlias = "Literal['count', 'count-plus-epsilon']"

#: A second bound, for large ratios that the first clip does not bound.
DualClip: TypeAlias = "Literal['off'] | dict[str, object]"

#: Whether the gradient of `dual_game` includes the dependence of the modified advantage on the policy.
DualGradient: TypeAlias = "Literal['detached', 'through']"

#: What a recursion does at a dropped token between two kept ones.
Across: TypeAlias = "Literal['step-over', 'zero-step']"

#: What the gate accepts or rejects.
GateLevel: TypeAlias = "Literal['off', 'token', 'sequence']"

#: What the gate does outside the band.
GateMode: TypeAlias = "Literal['clip', 'mask']"

#: What the gate measures; p is the sampler's probability of the token, q the trainer's, both clamped to
#: `[1e-6, 1 − 1e-6]`.
GateStatistic: TypeAlias = "Literal['ratio', 'binary-kl', 'total-variation']"

#: Precision of a factor that depends on counts alone.
FactorPrecision: TypeAlias = "Literal['exact', 'single']"

#: When `dynamic_sampling_filter` keeps a prompt.
GroupRule: TypeAlias = "dict[str, object]"

#: What group advantages are divided by.
GroupScale: TypeAlias = "Literal['standard-deviation', 'unit', 'batch-deviation']"

#: Through which log-probabilities the gradient of a sequence's ratio flows.
GspoForm: TypeAlias = "Literal['sequence', 'token']"

#: Bounds on the estimates. Strictly beyond a bound the gradient is 0; exactly at the bound it is unchanged.
KlBounds: TypeAlias = "Literal['unbounded', 'k3-only', 'every']"

#: The function of `d = log π − log π_ref` of one sampled token.
KlEstimator: TypeAlias = "Literal['k1', 'abs', 'k2', 'k3']"

#: The gradient that belongs to the value.
KlGradient: TypeAlias = "Literal['own', 'straight-through']"

#: The weight of a token's estimate. Weights are not detached: the gradient goes through both factors.
KlWeight: TypeAlias = "Literal['token', 'sequence', 'token-bounded', 'token-finite', 'score-function']"

#: What keeps a division by the mean score finite.
MeanDivisor: TypeAlias = "Literal['plus-epsilon', 'if-positive']"

#: Where the powers of γ start in `minillm_advantage`.
DiscountFrom: TypeAlias = "Literal['token', 'start']"

#: What `minillm_advantage` divides by.
LengthNormalization: TypeAlias = "Literal['off', 'kept', 'kept-and-padding']"

#: The scores that a statistic is computed over.
Level: TypeAlias = "Literal['batch', 'group', 'off']"

#: How the distance to the teacher becomes a gradient.
OpdRoute: TypeAlias = "Literal['clipped', 'surrogate', 'reinforce', 'supervised']"

#: Where the KL to the reference is used, which decides how it is averaged.
KlUse: TypeAlias = "Literal['reward', 'loss']"

#: How `mixed_kl_topk` treats the student's probability outside the teacher's entries. The teacher's entries are
#: scaled to sum to 1 in either case.
OutsideTopK: TypeAlias = "float | None"

#: How far the penalty grows for responses longer than `max_len`.
OverlongFloor: TypeAlias = "Literal['unlimited', 'factor']"

#: Whether a score counts in the mean it is compared with.
Own: TypeAlias = "Literal['included', 'left-out']"

#: How `pf_ppo_weights` turns a score into a weight.
PfPpoRule: TypeAlias = "dict[str, object]"

#: What the capped ratio multiplies in `puffer_advantage`.
PufferVariant: TypeAlias = "Literal['v3', 'v4']"

#: The statistic of a token or sequence. With δ = log π_old − log π_rollout within ±20:
#: k1 = −δ, k2 = δ²/2, k3 = e^δ − 1 − δ.
RejectionOption: TypeAlias = Literal[
    "token-k1",
    "token-k2",
    "token-k3",
    "seq-sum-k1",
    "seq-sum-k2",
    "seq-sum-k3",
    "seq-mean-k1",
    "seq-mean-k2",
    "seq-mean-k3",
    "seq-max-k2",
    "seq-max-k3",
]

#: Which log-ratio the reported KL averages if log-ratios are bounded.
ReportedKl: TypeAlias = "Literal['bounded', 'unbounded']"

#: How `reward_scale_clip` maps scores to a range. There is no default.
RewardScaleConfig: TypeAlias = "dict[str, object]"

#: Whether the weights are divided by their mean, after the bounds.
BatchNormalize: TypeAlias = "Literal['off', 'by-level', 'tokens']"

#: Bound on the log of a ratio before it is exponentiated.
LogBound: TypeAlias = "float | None"

#: What one weight is computed from.
RolloutLevel: TypeAlias = "Literal['token', 'sequence', 'geometric']"

#: The advantage of the only sample of a prompt, which has no other sample to compare with.
Singleton: TypeAlias = "Literal['zero', 'raw', 'undefined']"

#: Which variance: divided by `n` or by `n − 1`.
Spread: TypeAlias = "Literal['population', 'sample']"

#: The tokens over which means and deviations are computed.
ScoreScope: TypeAlias = "Literal['batch', 'sequence']"

#: How `tis_loss` aggregates.
TisLossConfig: TypeAlias = "ReinforceConfig"

#: How the probability outside the entries is treated.
TopKRest: TypeAlias = "Literal['tail', 'renormalize']"

#: Trace coefficient: how much the later rewards count when the policy would have chosen other tokens.
TraceCoefficient: TypeAlias = "Literal['importance', 'lambda', 'tree-backup', 'retrace']"

#: How the distance between branch values is measured.
BranchSpread: TypeAlias = "Literal['variance', 'inter-quartile-range', 'range']"

#: The value of a branch, computed from the scores of the responses that chose the same token.
BranchValue: TypeAlias = "Literal['mean', 'median']"

#: Which responses `trie_complexity` compares at a position.
TriePrefix: TypeAlias = "Literal['any', 'same']"

#: Whether there is one importance ratio per token or per sequence.
TrlLevel: TypeAlias = "Literal['token', 'sequence']"

#: Which standard deviation `frac_reward_zero_std` tests.
TrlScale: TypeAlias = "Literal['group', 'batch']"

#: How a token is treated that has no log-probability from the sampler (δ is NaN).
Unscored: TypeAlias = "Literal['nan', 'ignore']"

#: The factor of the squared error.
ValueFactor: TypeAlias = "Literal['half', 'whole']"

#: What happens to a weight that is too large or too small.
WeightBound: TypeAlias = "dict[str, object]"

#: Whether the result is centred.
Center: TypeAlias = "Literal['shift', 'keep-mean']"

#: Where ε, which keeps a division by the standard deviation finite, is added.
EpsilonPlace: TypeAlias = "Literal['inside-root', 'outside', 'floor-variance']"

#: Whether values are divided by their spread.
Scale: TypeAlias = "Literal['standard-deviation', 'unit']"

#: The baseline of the longest answer of a prompt in the slots where all other answers have ended.
ZeroTail: TypeAlias = "Literal['no-baseline', 'own-return']"

