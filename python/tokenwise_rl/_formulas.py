# Written by `cargo xtask python --write` from the catalogue; changes here are lost.
"""Every formula of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._native import call as _call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from typing_extensions import Unpack

    from . import configs
    from ._types import Array, Groups

__all__ = [
    "shift",
    "log_probs_and_entropy",
    "LogProbsAndEntropyResult",
    "token_log_probs",
    "entropy",
    "sum_squared_probs",
    "topk_log_probs",
    "topk_logits_gradient",
    "logits_gradient",
    "kl_estimate",
    "kl_gradient",
    "kl_importance_weighted",
    "kl_importance_weighted_gradient",
    "kl_exact",
    "kl_exact_gradient",
    "place_scores",
    "shape_rewards",
    "kl_in_reward",
    "KlInRewardResult",
    "kl_in_scores",
    "clipped_rewards",
    "overlong_penalty",
    "stop_properly_penalty",
    "missing_eos_penalty",
    "reward_scale_clip",
    "RewardScaleClipResult",
    "repetition_penalty",
    "length_penalty_group",
    "discounted_returns",
    "gae",
    "GaeResult",
    "whiten",
    "gae_decoupled",
    "GaeDecoupledResult",
    "monte_carlo_advantage",
    "MonteCarloAdvantageResult",
    "td_lambda",
    "n_step_returns",
    "upgo",
    "vtrace",
    "VtraceResult",
    "retrace",
    "puffer_advantage",
    "remax",
    "RemaxResult",
    "reinforce_plus_plus",
    "ReinforcePlusPlusResult",
    "opd_advantage",
    "minillm_advantage",
    "uniform_credit",
    "last_k_credit",
    "attention_credit",
    "broadcast",
    "sequence_sums",
    "group_relative",
    "leave_one_out",
    "leave_one_out_scaled",
    "normalize_scores",
    "gpg_advantage",
    "max_rl",
    "best_of_group",
    "length_weighted_baseline",
    "decoupled_scores",
    "gdpo",
    "reinforce_plus_plus_baseline",
    "optimal_token_baseline",
    "OptimalTokenBaselineResult",
    "tir_optimal_token_baseline",
    "TirOptimalTokenBaselineResult",
    "rollout_weights",
    "RolloutWeightsResult",
    "rollout_weight_metrics",
    "rollout_mismatch",
    "probability_difference",
    "rollout_rejection",
    "rollout_rejection_metrics",
    "rollout_gate",
    "RolloutGateResult",
    "kl_mask",
    "sequence_veto",
    "m2po_mask",
    "off_policy_sequence_mask",
    "high_entropy_mask",
    "dynamic_sampling_filter",
    "pf_ppo_weights",
    "pf_ppo_indices",
    "response_mask_from_eos",
    "token_weights",
    "advantage_jump",
    "structural_weights",
    "trie_complexity",
    "surrogate",
    "SurrogateResult",
    "ppo_clip",
    "PpoClipResult",
    "reinforce",
    "ReinforceResult",
    "cispo",
    "CispoResult",
    "tis_loss",
    "TisLossResult",
    "kl_cov",
    "KlCovResult",
    "dppo_tv",
    "DppoTvResult",
    "dppo_kl",
    "DppoKlResult",
    "dro",
    "DroResult",
    "gspo",
    "GspoResult",
    "sapo",
    "SapoResult",
    "gmpo",
    "GmpoResult",
    "luspo",
    "LuspoResult",
    "clip_cov",
    "ClipCovResult",
    "clip_cov_selection",
    "vespo",
    "VespoResult",
    "topr",
    "ToprResult",
    "gvpo",
    "GvpoResult",
    "positive_nll",
    "PositiveNllResult",
    "aggregate",
    "AggregateResult",
    "group_tokens",
    "value_loss",
    "ValueLossResult",
    "entropy_bonus",
    "EntropyBonusResult",
    "dual_game",
    "DualGameResult",
    "kl_loss",
    "KlLossResult",
    "opd_loss",
    "OpdLossResult",
    "ref_kl",
    "RefKlResult",
    "iw_opd",
    "IwOpdResult",
    "forward_kl_topk",
    "ForwardKlTopkResult",
    "topk_jsd",
    "TopkJsdResult",
    "mixed_kl_topk",
    "MixedKlTopkResult",
    "generalized_jsd",
    "GeneralizedJsdResult",
    "bypass_loss",
    "BypassLossResult",
    "mean",
    "variance",
    "analysis",
    "analysis_sums",
    "AnalysisSumsResult",
    "moments",
    "MomentsResult",
    "co_moments",
    "CoMomentsResult",
    "correlation",
    "explained_variance",
    "kl_means",
    "KlMeansResult",
    "clip_fractions",
    "ClipFractionsResult",
    "effective_sample_size",
    "quantile",
    "row_means",
    "row_normalize",
    "variance_proxy",
    "verl_metrics",
    "trl_metrics",
    "openrlhf_metrics",
]


def shift(
    *,
    raw: Array | Sequence[float],
    raw_cu_seqlens: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """Extracts the rows that predicted the responses from the output of a model for whole sequences.

    `out[i, t, ·] = raw[i, L_i − T_i − 1 + t, ·]        t = 0 … T_i − 1`
    """
    return _call(
        "shift",
        {"raw": raw, "raw_cu_seqlens": raw_cu_seqlens},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


class LogProbsAndEntropyResult(NamedTuple):
    """The result of :func:`log_probs_and_entropy`."""

    log_probs: Array
    entropy: Array


def log_probs_and_entropy(
    *,
    logits: Array,
    tokens: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> LogProbsAndEntropyResult:
    """Log-probability of each token, and the entropy of the distribution it was drawn from, in one pass over the
    logits.

    `z = logits / τ      log_probs_i = z[a_i] − m − ln Σ_v e^{z_v − m}`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The id of each token.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "log_probs_and_entropy",
        {"logits": logits, "tokens": tokens},
        config,
        mask,
        cu_seqlens,
        None,
        LogProbsAndEntropyResult,
    )


def token_log_probs(
    *,
    logits: Array,
    tokens: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """Log-probability of each token.

    `out_i = z[a_i] − m − ln Σ_v e^{z_v − m}        z = logits / τ,  m = max z`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The id of each token.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "token_log_probs",
        {"logits": logits, "tokens": tokens},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def entropy(
    *,
    logits: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """Entropy of the distribution each kept token was drawn from, in nats.

    `out_i = ln Σ_v e^{z_v} − Σ_v p_v z_v        z = logits / τ;  an entry of −inf counts 0`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "entropy",
        {"logits": logits},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def sum_squared_probs(
    *,
    logits: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """Sum of the squared probabilities: the chance that two draws from the same distribution agree.

    `out_i = Σ_v p_v²        p = soft-max of logits / τ`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "sum_squared_probs",
        {"logits": logits},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def topk_log_probs(
    *,
    logits: Array,
    tokens: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """Log-probabilities of several vocabulary entries for each token, such as the most likely ones under a teacher.

    `out_ij = z[a_ij] − m − ln Σ_v e^{z_v − m}        z = logits / τ,  m = max z,  j = 1 … k`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    ``tokens``: ``[batch, length, k]``: `[tokens, k]`: ids of some vocabulary entries for each token, such as a
    teacher's most likely ones.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "topk_log_probs",
        {"logits": logits, "tokens": tokens},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def topk_logits_gradient(
    *,
    logits: Array,
    tokens: Array,
    grad_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """The gradient of a loss with respect to the logits, from its gradient with respect to the log-probabilities of
    some
    entries.

    `∂loss/∂logit_v = (Σ_{j: a_j = v} g_j − p_v Σ_j g_j) / τ        g = grad_log_probs`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token
    (see `shift`).

    ``tokens``: ``[batch, length, k]``: `[tokens, k]`: the ids whose log-probabilities the loss read.

    ``grad_log_probs``: ``[batch, length, k]``: `[tokens, k]`: ∂loss/∂ of each of those log-probabilities.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "topk_logits_gradient",
        {"logits": logits, "tokens": tokens, "grad_log_probs": grad_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def logits_gradient(
    *,
    logits: Array,
    tokens: Array,
    grad_log_probs: Array,
    grad_entropy: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """The gradient of a loss with respect to the logits, from its gradients with respect to log-probabilities and
    entropy.

    `∂loss/∂logit_v = ( g_i (1[v = a_i] − p_v) − h_i p_v (ln p_v + H) ) / τ        g = grad_log_probs, h =
    grad_entropy`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the row that predicted each token.

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The id of each token.

    ``grad_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: ∂loss/∂log_probs, as the losses
    write it.

    ``grad_entropy``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: ∂loss/∂entropy, as `entropy_bonus`
    writes it; zeros if there is no bonus.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "logits_gradient",
        {"logits": logits, "tokens": tokens, "grad_log_probs": grad_log_probs, "grad_entropy": grad_entropy},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_estimate(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlConfig],
) -> Array:
    """Per-token estimate of how far the policy has moved from the reference.

    `d = log π − log π_ref      K1: d      Abs: |d|      K2: d²/2      K3: e^{−d} − 1 + d`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    Settings are those of ``configs.KlConfig``.
    """
    return _call(
        "kl_estimate",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_gradient(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlConfig],
) -> Array:
    """The derivative of each token's KL estimate with respect to its log-probability.

    `K1: 1      Abs: sign d      K2: d      K3: 1 − e^{−d}      StraightThrough: d`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    Settings are those of ``configs.KlConfig``.
    """
    return _call(
        "kl_gradient",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_importance_weighted(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    old_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlWeightedConfig],
) -> Array:
    """KL to the reference, estimated from tokens of an older policy and importance-weighted to the current policy.

    `d = log π − log π_ref      out = w · k(d)      w = e^{log π − log π_old} of the token, or as KlWeight says`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens.

    Settings are those of ``configs.KlWeightedConfig``.
    """
    return _call(
        "kl_importance_weighted",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs, "old_log_probs": old_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_importance_weighted_gradient(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    old_log_probs: Array,
    grad_kl: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlWeightedConfig],
) -> Array:
    """The gradient of a loss with respect to the log-probabilities, from its gradient with respect to each token's
    weighted KL.

    `∂loss/∂log π_t = g_t w k'(d_t) + g_t w k(d_t)                         one weight per token`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens.

    ``grad_kl``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: ∂loss/∂kl of each token.

    Settings are those of ``configs.KlWeightedConfig``.
    """
    return _call(
        "kl_importance_weighted_gradient",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs, "old_log_probs": old_log_probs, "grad_kl": grad_kl},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_exact(
    *,
    logits: Array,
    ref_logits: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """The exact KL divergence over the whole vocabulary, which the one-sample estimators approximate.

    `kl_i = Σ_v p_v (ln p_v − ln q_v)        p, q = soft-max of logits / τ, ref_logits / τ`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the policy's row that predicted each
    token.

    ``ref_logits``: ``[batch, length, vocabulary]``: The reference's rows, of the same shape.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "kl_exact",
        {"logits": logits, "ref_logits": ref_logits},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def kl_exact_gradient(
    *,
    logits: Array,
    ref_logits: Array,
    grad_kl: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PolicyConfig],
) -> Array:
    """The gradient of a loss with respect to the policy's logits, from its gradient with respect to each token's exact
    KL.

    `∂loss/∂logit_v = g_i p_v (ln p_v − ln q_v − kl_i) / τ        g = grad_kl`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the policy's row that predicted each
    token.

    ``ref_logits``: ``[batch, length, vocabulary]``: The reference's rows, of the same shape.

    ``grad_kl``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: ∂loss/∂kl of each token.

    Settings are those of ``configs.PolicyConfig``.
    """
    return _call(
        "kl_exact_gradient",
        {"logits": logits, "ref_logits": ref_logits, "grad_kl": grad_kl},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def place_scores(
    *,
    scores: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """An outcome score, placed on the token that ended the response.

    `out[i, t] = s_i    if t is the last kept token of sequence i, else 0`

    ``scores``: ``[batch]``
    """
    return _call(
        "place_scores",
        {"scores": scores},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def shape_rewards(
    *,
    scores: Array,
    kl: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ShapeConfig],
) -> Array:
    """Token rewards: the scores minus a KL penalty for leaving the reference.

    `r_t = score_t − β kl_t`

    ``scores``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token scores, usually 0 except on the last
    token (`place_scores`).

    ``kl``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: KL per token.

    Settings are those of ``configs.ShapeConfig``.
    """
    return _call(
        "shape_rewards",
        {"scores": scores, "kl": kl},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class KlInRewardResult(NamedTuple):
    """The result of :func:`kl_in_reward`."""

    mean_kl: float
    rewards: Array


def kl_in_reward(
    *,
    scores: Array,
    old_log_probs: Array,
    ref_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlRewardConfig],
) -> KlInRewardResult:
    """Token rewards computed directly from log-probabilities, and the mean KL as input for a controller of β.

    `r_t = score_t − β kl(log π_old, log π_ref)_t        returned: mean over sequences of (Σ_t kl_t / n_i)`

    ``scores``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token scores, usually 0 except on the last
    token (`place_scores`).

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the reference.

    Settings are those of ``configs.KlRewardConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "kl_in_reward",
        {"scores": scores, "old_log_probs": old_log_probs, "ref_log_probs": ref_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        KlInRewardResult,
    )


def kl_in_scores(
    *,
    scores: Array,
    old_log_probs: Array,
    ref_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlInScoresConfig],
) -> Array:
    """Scores minus a penalty on the KL of the whole sequence to the reference.

    `out_i = s_i − β Σ_t (log π_old − log π_ref)`

    ``scores``: ``[batch]``: One score per sequence.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, action-aligned.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the reference,
    action-aligned.

    Settings are those of ``configs.KlInScoresConfig``.
    """
    return _call(
        "kl_in_scores",
        {"scores": scores, "old_log_probs": old_log_probs, "ref_log_probs": ref_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def clipped_rewards(
    *,
    scores: Array,
    kl: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ClippedRewardsConfig],
) -> Array:
    """Token rewards as in OpenRLHF: the clipped score on the last kept token, the KL penalty on every kept token.

    `r_t = −max(β, 0) kl_t + [t is the last kept token] clip(s_i, low, high)`

    ``scores``: ``[batch]``: One score per sequence.

    ``kl``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: KL per token, action-aligned.

    Settings are those of ``configs.ClippedRewardsConfig``.
    """
    return _call(
        "clipped_rewards",
        {"scores": scores, "kl": kl},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def overlong_penalty(
    *,
    scores: Array,
    lengths: Array,
    **config: Unpack[configs.OverlongConfig],
) -> Array:
    """Scores with a soft penalty for responses that come near the length limit.

    `e_i = L_i − (max_len − buffer)        out_i = s_i + min(−e_i / buffer · factor, 0)`

    ``scores``: ``[batch]``: The scores before the penalty.

    ``lengths``: ``[batch]``: Response lengths in tokens.

    Settings are those of ``configs.OverlongConfig``.
    """
    return _call(
        "overlong_penalty",
        {"scores": scores, "lengths": lengths},
        config,
        None,
        None,
        None,
        None,
    )


def stop_properly_penalty(
    *,
    scores: Array,
    truncated: Array,
    **config: Unpack[configs.StopProperlyConfig],
) -> Array:
    """Scores with a penalty for responses that were cut off instead of ending.

    `out_i = c s_i  (0 ≤ c ≤ 1)    or    c  (c < 0)        where truncated, else s_i`

    ``scores``: ``[batch]``: The scores before the penalty.

    ``truncated``: ``[batch]``: Whether the response was cut off by the length limit.

    Settings are those of ``configs.StopProperlyConfig``.
    """
    return _call(
        "stop_properly_penalty",
        {"scores": scores, "truncated": truncated},
        config,
        None,
        None,
        None,
        None,
    )


def missing_eos_penalty(
    *,
    scores: Array,
    ended: Array,
    **config: Unpack[configs.MissingEosConfig],
) -> Array:
    """Scores with a fixed penalty for responses without an end-of-sequence token.

    `out_i = s_i − penalty   without an end, else s_i`

    ``scores``: ``[batch]``: The scores before the penalty.

    ``ended``: ``[batch]``: Whether the response contains an end-of-sequence token.

    Settings are those of ``configs.MissingEosConfig``.
    """
    return _call(
        "missing_eos_penalty",
        {"scores": scores, "ended": ended},
        config,
        None,
        None,
        None,
        None,
    )


class RewardScaleClipResult(NamedTuple):
    """The result of :func:`reward_scale_clip`."""

    clip_fraction: float
    scores: Array


def reward_scale_clip(
    *,
    scores: Array,
    rule: configs.RewardScaleConfig,
) -> RewardScaleClipResult:
    """Scores clipped or rescaled to a range.

    `Clip: clip(s, low, high)      ShiftScaleClip: clip((s + bias) scale, ±bound)`

    ``scores``: ``[batch]``

    ``rule`` is those of ``configs.RewardScaleConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "reward_scale_clip",
        {"scores": scores},
        rule,
        None,
        None,
        None,
        RewardScaleClipResult,
    )


def repetition_penalty(
    *,
    tokens: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RepetitionConfig],
) -> Array:
    """A penalty for repetition: the share of n-grams that occurred before in the same response.

    `out_i = (1 − distinct n-grams / n-grams) · penalty        0 for fewer than n tokens`

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.RepetitionConfig``.
    """
    return _call(
        "repetition_penalty",
        {"tokens": tokens},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def length_penalty_group(
    *,
    scores: Array,
    outputs: Array,
    inputs: Array,
    turns: Array,
    groups: Groups,
    **config: Unpack[configs.GroupLengthConfig],
) -> Array:
    """Scores minus a length penalty, which is relative to the longest answer to the same prompt and scaled by the mean
    score of that prompt.

    `f_i = w_o out_i / max_g out + w_in in_i / max_g in + w_t turns_i / max_g turns      (each max at least 1)`

    ``scores``: ``[batch]``: The scores before the penalty.

    ``outputs``: ``[batch]``: Tokens the policy wrote.

    ``inputs``: ``[batch]``: Tokens it was given in between.

    ``turns``: ``[batch]``: Turns taken.

    Settings are those of ``configs.GroupLengthConfig``.
    """
    return _call(
        "length_penalty_group",
        {"scores": scores, "outputs": outputs, "inputs": inputs, "turns": turns},
        config,
        None,
        None,
        groups,
        None,
    )


def discounted_returns(
    *,
    rewards: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReturnsConfig],
) -> Array:
    """Monte-Carlo returns: the discounted sum of the rewards from each token on.

    `G_t = r_t + γ G_{t+1}        G after the last kept token = bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the return expected after its last kept token. 0 for a finished
    sequence, V(s) for a truncated one.

    Settings are those of ``configs.ReturnsConfig``.
    """
    return _call(
        "discounted_returns",
        {"rewards": rewards, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class GaeResult(NamedTuple):
    """The result of :func:`gae`."""

    advantages: Array
    returns: Array


def gae(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GaeConfig],
) -> GaeResult:
    """Generalized advantage estimates: how much better each token was than the critic predicted.

    `δ_t = r_t + γ V_{t+1} − V_t      V after the last kept token = bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    Settings are those of ``configs.GaeConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "gae",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        GaeResult,
    )


def whiten(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.WhitenConfig],
) -> Array:
    """Values shifted to mean 0 and scaled to standard deviation 1 over the kept tokens of the whole batch.

    `y_t = (x_t − μ) / √(σ² + ε)      μ, σ² over all kept tokens      (+ μ with Center::KeepMean)`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.WhitenConfig``.
    """
    return _call(
        "whiten",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class GaeDecoupledResult(NamedTuple):
    """The result of :func:`gae_decoupled`."""

    advantages: Array
    returns: Array


def gae_decoupled(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GaeDecoupledConfig],
) -> GaeDecoupledResult:
    """GAE with one λ for the critic and another for the policy: unbiased targets, low-variance advantages.

    `A_t = δ_t + γ λ_policy A_{t+1}        G_t = V_t + Â_t,  Â_t = δ_t + γ λ_value Â_{t+1}        δ as in gae`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    Settings are those of ``configs.GaeDecoupledConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "gae_decoupled",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        GaeDecoupledResult,
    )


class MonteCarloAdvantageResult(NamedTuple):
    """The result of :func:`monte_carlo_advantage`."""

    advantages: Array
    returns: Array


def monte_carlo_advantage(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReturnsConfig],
) -> MonteCarloAdvantageResult:
    """The return that was observed, minus the value that the critic expected.

    `G_t = r_t + γ G_{t+1}        A_t = G_t − V_t`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    Settings are those of ``configs.ReturnsConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "monte_carlo_advantage",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        MonteCarloAdvantageResult,
    )


def td_lambda(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.TdLambdaConfig],
) -> Array:
    """Returns that mix in the critic's value at every step: the targets of TD(λ).

    `G_t = r_t + γ ((1 − λ) V_{t+1} + λ G_{t+1})        V and G after the last kept token = bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    Settings are those of ``configs.TdLambdaConfig``.
    """
    return _call(
        "td_lambda",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def n_step_returns(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.NStepConfig],
) -> Array:
    """Returns over a window: `n` observed rewards, then the critic's value.

    `G_t = r_t + γ r_{t+1} + … + γ^{n−1} r_{t+n−1} + γ^n V_{t+n}        fewer than n left: all of them, then
    bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    Settings are those of ``configs.NStepConfig``.
    """
    return _call(
        "n_step_returns",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def upgo(
    *,
    rewards: Array,
    values: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """Returns that use the observed rewards for as long as they are at least as good as the critic expected (UPGO).

    `G_t = r_t + G_{t+1}    if r_{t+1} + V_{t+2} ≥ V_{t+1}, or if t + 1 is past the end`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.
    """
    return _call(
        "upgo",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


class VtraceResult(NamedTuple):
    """The result of :func:`vtrace`."""

    targets: Array
    advantages: Array


def vtrace(
    *,
    rewards: Array,
    values: Array,
    log_probs: Array,
    old_log_probs: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VtraceConfig],
) -> VtraceResult:
    """Value targets and advantages with capped importance weights, for tokens that an older policy generated.

    `ρ_t = exp(log π_t − log π_old,t)        cap(b) = (1 − α) ρ_t + α min(b, ρ_t)`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    being trained, action-aligned.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that generated the tokens, action-aligned.

    Settings are those of ``configs.VtraceConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "vtrace",
        {
            "rewards": rewards,
            "values": values,
            "bootstrap": bootstrap,
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
        },
        config,
        mask,
        cu_seqlens,
        None,
        VtraceResult,
    )


def retrace(
    *,
    rewards: Array,
    values: Array,
    action_values: Array,
    log_probs: Array,
    old_log_probs: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RetraceConfig],
) -> Array:
    """Returns for action values, from tokens that another policy generated.

    `G_t = r_t + γ (V_{t+1} + c_{t+1} (G_{t+1} − Q_{t+1}))        last kept token: G = r + γ bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values of the states under the policy,
    `Σ_a π(a) Q(s, a)`, state-aligned.

    ``action_values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Action values `Q(s, a)` of the
    emitted tokens, action-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    being evaluated, action-aligned.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that generated the tokens, action-aligned.

    Settings are those of ``configs.RetraceConfig``.
    """
    return _call(
        "retrace",
        {
            "rewards": rewards,
            "values": values,
            "action_values": action_values,
            "bootstrap": bootstrap,
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
        },
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def puffer_advantage(
    *,
    rewards: Array,
    values: Array,
    ratios: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PufferConfig],
) -> Array:
    """GAE and V-trace in one recursion: advantages with capped importance ratios.

    `ρ = min(w_t, ρ̄)    c = min(w_t, c̄)                    V after the last kept token = bootstrap`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Values V(s), state-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the value after its last kept token. 0 for a finished sequence,
    V(s) for a truncated one.

    ``ratios``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Importance ratios π / π_old,
    action-aligned.

    Settings are those of ``configs.PufferConfig``.
    """
    return _call(
        "puffer_advantage",
        {"rewards": rewards, "values": values, "bootstrap": bootstrap, "ratios": ratios},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class RemaxResult(NamedTuple):
    """The result of :func:`remax`."""

    advantages: Array
    returns: Array


def remax(
    *,
    rewards: Array,
    baselines: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> RemaxResult:
    """The return of each token, minus the score of the greedy answer to the same prompt (ReMax).

    `G_t = r_t + G_{t+1}        A_t = G_t − b_i`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``baselines``: ``[batch]``: One per sequence: the score of the greedy answer to the same prompt.
    """
    return _call(  # type: ignore[no-any-return]
        "remax",
        {"rewards": rewards, "baselines": baselines},
        None,
        mask,
        cu_seqlens,
        None,
        RemaxResult,
    )


class ReinforcePlusPlusResult(NamedTuple):
    """The result of :func:`reinforce_plus_plus`."""

    advantages: Array
    returns: Array


def reinforce_plus_plus(
    *,
    rewards: Array,
    bootstrap: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReinforcePlusPlusConfig],
) -> ReinforcePlusPlusResult:
    """The return of each token relative to the returns of all tokens of the batch (REINFORCE++).

    `G_t = r_t + γ G_{t+1}        A_t = (G_t − μ) / √(σ² + ε)        μ, σ² over all kept tokens of the batch`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``bootstrap``: ``[batch]``: One per sequence: the return expected after its last kept token. 0 for a finished
    sequence, V(s) for a truncated one.

    Settings are those of ``configs.ReinforcePlusPlusConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "reinforce_plus_plus",
        {"rewards": rewards, "bootstrap": bootstrap},
        config,
        mask,
        cu_seqlens,
        None,
        ReinforcePlusPlusResult,
    )


def opd_advantage(
    *,
    teacher_log_probs: Array,
    old_log_probs: Array,
    advantages: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OpdConfig],
) -> Array:
    """On-policy distillation: the advantage of a token is how much more likely it is under the teacher than under the
    student.

    `A_t = A⁰_t + β (log π_teacher,t − log π_old,t)`

    ``teacher_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the teacher.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the student, before the update.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages to add to; `None` if the
    teacher is the only signal.

    Settings are those of ``configs.OpdConfig``.
    """
    return _call(
        "opd_advantage",
        {"teacher_log_probs": teacher_log_probs, "old_log_probs": old_log_probs, "advantages": advantages},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def minillm_advantage(
    *,
    teacher_log_probs: Array,
    old_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MinillmConfig],
) -> Array:
    """How much more likely a token *and all that follow it* are under the teacher, per remaining token (MiniLLM).

    `ρ_t = log π_teacher,t − log π_old,t        A_t = Σ_{u ≥ t} γ^{u−t} ρ_u / Σ_{u ≥ t} γ^{u−t}        γ = 0: A = ρ`

    ``teacher_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the teacher.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the student.

    Settings are those of ``configs.MinillmConfig``.
    """
    return _call(
        "minillm_advantage",
        {"teacher_log_probs": teacher_log_probs, "old_log_probs": old_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def uniform_credit(
    *,
    scores: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """Credit shared equally: every kept token gets the same part of its sequence's score.

    `A[i, t] = s_i / n_i        n_i kept tokens in sequence i`

    ``scores``: ``[batch]``
    """
    return _call(
        "uniform_credit",
        {"scores": scores},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def last_k_credit(
    *,
    scores: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.LastKConfig],
) -> Array:
    """Credit for the end only: the last `k` kept tokens share the score, the others get 0.

    `A[i, t] = s_i / min(k, n_i)    for the last min(k, n_i) kept tokens of sequence i, else 0`

    ``scores``: ``[batch]``

    Settings are those of ``configs.LastKConfig``.
    """
    return _call(
        "last_k_credit",
        {"scores": scores},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def attention_credit(
    *,
    scores: Array,
    weights: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """Credit by weight: the score of a sequence is divided among its kept tokens in proportion to their weights.

    `A[i, t] = s_i · w[i, t] / Σ_u w[i, u]`

    ``scores``: ``[batch]``: One score per sequence.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Importance of each token, not negative,
    action-aligned; only the proportions matter.
    """
    return _call(
        "attention_credit",
        {"scores": scores, "weights": weights},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def broadcast(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """One number per sequence, copied to each of its kept tokens.

    `out[i, t] = values_i`

    ``values``: ``[batch]``
    """
    return _call(
        "broadcast",
        {"values": values},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def sequence_sums(
    *,
    rewards: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """The sum of the kept token rewards of each sequence: its score.

    `out_i = Σ_t r[i, t]`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(
        "sequence_sums",
        {"rewards": rewards},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def group_relative(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.GroupConfig],
) -> Array:
    """Scores of one prompt's samples, compared with each other (GRPO; `Unit` is Dr. GRPO).

    `A_i = (s_i − mean_j s_j) / (std_j s_j + ε)        j over the samples of i's prompt`

    ``scores``: ``[batch]``

    Settings are those of ``configs.GroupConfig``.
    """
    return _call(
        "group_relative",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def leave_one_out(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.LeaveOneOutConfig],
) -> Array:
    """Each score minus the mean of the prompt's other samples (RLOO).

    `A_i = s_i − mean_{j≠i} s_j = (s_i − mean_j s_j) · K / (K − 1)        K samples of i's prompt`

    ``scores``: ``[batch]``

    Settings are those of ``configs.LeaveOneOutConfig``.
    """
    return _call(
        "leave_one_out",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def leave_one_out_scaled(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.LeaveOneOutScaledConfig],
) -> Array:
    """Each score relative to the mean *and* the spread of the prompt's other samples.

    `A_i = (s_i − b_i) / (σ_i + ε)    b_i, σ_i: mean and sample deviation of the prompt's other samples`

    ``scores``: ``[batch]``

    Settings are those of ``configs.LeaveOneOutScaledConfig``.
    """
    return _call(
        "leave_one_out_scaled",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def normalize_scores(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.NormalizeConfig],
) -> Array:
    """Scores minus a mean, divided by a deviation, each over the batch, the prompt, or not at all.

    `c_i = s_i − m_i                        m over batch or group, with or without s_i itself, or 0`

    ``scores``: ``[batch]``

    Settings are those of ``configs.NormalizeConfig``.
    """
    return _call(
        "normalize_scores",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def gpg_advantage(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.GpgConfig],
) -> Array:
    """Scores minus their prompt's mean, scaled up when many samples of the batch scored 0 (GPG).

    `A_i = α (s_i − mean_j s_j) / F        α = samples / max(samples with s ≠ 0, 1), over the whole batch`

    ``scores``: ``[batch]``

    Settings are those of ``configs.GpgConfig``.
    """
    return _call(
        "gpg_advantage",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def max_rl(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.MaxRlConfig],
) -> Array:
    """Scores minus their prompt's mean, divided by that mean: rare successes count most (MaxRL).

    `A_i = (s_i − mean_j s_j) / (mean_j s_j + ε)        j over the samples of i's prompt`

    ``scores``: ``[batch]``

    Settings are those of ``configs.MaxRlConfig``.
    """
    return _call(
        "max_rl",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def best_of_group(
    *,
    scores: Array,
    groups: Groups,
    **config: Unpack[configs.BestOfGroupConfig],
) -> Array:
    """The best sample of a prompt gets its lead over the second best, all others get 0: for training pass@k.

    `A_i = (s_i − second best s) / (std_j s_j + ε)    for the best sample of a prompt, else 0`

    ``scores``: ``[batch]``

    Settings are those of ``configs.BestOfGroupConfig``.
    """
    return _call(
        "best_of_group",
        {"scores": scores},
        config,
        None,
        None,
        groups,
        None,
    )


def length_weighted_baseline(
    *,
    scores: Array,
    groups: Groups,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.LengthWeightedConfig],
) -> Array:
    """Each score minus the prompt's mean score *per token*: the minimum-variance baseline when longer answers weigh
    more
    (OPO).

    `A_i = s_i − Σ_j n_j s_j / Σ_j n_j        n kept tokens, j over the samples of i's prompt`

    ``scores``: ``[batch]``

    Settings are those of ``configs.LengthWeightedConfig``.
    """
    return _call(
        "length_weighted_baseline",
        {"scores": scores},
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


def decoupled_scores(
    *,
    sources: Array,
    weights: Array | Sequence[float],
    groups: Groups,
    **config: Unpack[configs.GroupConfig],
) -> Array:
    """Scores of several reward sources: each source is normalised within its prompt, then they are added up.

    `out_i = Σ_k w_k (s_{k,i} − mean_j s_{k,j}) / (std_j s_{k,j} + ε)        j over the samples of i's prompt`

    ``sources``: ``[sources, batch]``: Scores of each reward source, one source after the other: `sources ×
    sequences`.

    ``weights``: One weight per source, finite.

    Settings are those of ``configs.GroupConfig``.
    """
    return _call(
        "decoupled_scores",
        {"sources": sources, "weights": weights},
        config,
        None,
        None,
        groups,
        None,
    )


def gdpo(
    *,
    sources: Array,
    weights: Array | Sequence[float],
    groups: Groups,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GdpoConfig],
) -> Array:
    """`decoupled_scores` copied to the tokens and whitened over all of them (GDPO).

    `a_i = Σ_k w_k grpo(s_k)_i        A[i, t] = (a_i − μ) / √(σ² + ε)        μ, σ² over all kept tokens`

    ``sources``: ``[sources, batch]``: Scores of each reward source, one source after the other: `sources ×
    sequences`.

    ``weights``: One weight per source, finite.

    Settings are those of ``configs.GdpoConfig``.
    """
    return _call(
        "gdpo",
        {"sources": sources, "weights": weights},
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


def reinforce_plus_plus_baseline(
    *,
    scores: Array,
    groups: Groups,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReinforcePlusPlusBaselineConfig],
) -> Array:
    """Scores minus their prompt's mean, copied to the tokens and whitened over all of them (REINFORCE++-baseline).

    `c[i, t] = s_i − mean_j s_j        A = (c − μ) / √(σ² + ε)        μ, σ² over all kept tokens: long answers weigh
    more`

    ``scores``: ``[batch]``

    Settings are those of ``configs.ReinforcePlusPlusBaselineConfig``.
    """
    return _call(
        "reinforce_plus_plus_baseline",
        {"scores": scores},
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


class OptimalTokenBaselineResult(NamedTuple):
    """The result of :func:`optimal_token_baseline`."""

    advantages: Array
    returns: Array


def optimal_token_baseline(
    *,
    rewards: Array,
    old_log_probs: Array,
    sum_pi_squared: Array,
    groups: Groups,
    is_weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OptimalBaselineConfig],
) -> OptimalTokenBaselineResult:
    """A separate baseline for every column: the mean return of the prompt's answers at that position, weighted by the
    size
    of their accumulated gradients.

    `s_t = (1 − 2 e^{log π_t} + Σ_v π(v)²) w_t²        C_t = s_0 + … + s_t        G_t = r_t + G_{t+1}`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the trained policy, before the update; action-aligned.

    ``sum_pi_squared``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: `Σ_v π(v)²` of the distribution
    each token was drawn from, action-aligned.

    ``is_weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Importance weights of the tokens,
    action-aligned; `None` if the sampler is the policy.

    Settings are those of ``configs.OptimalBaselineConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "optimal_token_baseline",
        {
            "rewards": rewards,
            "old_log_probs": old_log_probs,
            "sum_pi_squared": sum_pi_squared,
            "is_weights": is_weights,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        OptimalTokenBaselineResult,
    )


class TirOptimalTokenBaselineResult(NamedTuple):
    """The result of :func:`tir_optimal_token_baseline`."""

    advantages: Array
    returns: Array


def tir_optimal_token_baseline(
    *,
    rewards: Array,
    old_log_probs: Array,
    sum_pi_squared: Array,
    groups: Groups,
    is_weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OptimalBaselineConfig],
) -> TirOptimalTokenBaselineResult:
    """`optimal_token_baseline` for answers that contain tool calls: columns count only kept tokens.

    `as optimal_token_baseline, with column k = the k-th kept token of each sequence`

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards, action-aligned.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the tokens
    under the trained policy, before the update; action-aligned.

    ``sum_pi_squared``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: `Σ_v π(v)²` of the distribution
    each token was drawn from, action-aligned.

    ``is_weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Importance weights of the tokens,
    action-aligned; `None` if the sampler is the policy.

    Settings are those of ``configs.OptimalBaselineConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "tir_optimal_token_baseline",
        {
            "rewards": rewards,
            "old_log_probs": old_log_probs,
            "sum_pi_squared": sum_pi_squared,
            "is_weights": is_weights,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        TirOptimalTokenBaselineResult,
    )


class RolloutWeightsResult(NamedTuple):
    """The result of :func:`rollout_weights`."""

    factor: float
    weights: Array


def rollout_weights(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RolloutConfig],
) -> RolloutWeightsResult:
    """Importance weights: how much each token counts, so that tokens drawn by the sampler stand for tokens drawn by
    the
    trainer's policy.

    `δ = log π_old − log π_rollout      w = e^δ, e^{Σ_t δ} or e^{Σ_t δ / n}`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.RolloutConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "rollout_weights",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        RolloutWeightsResult,
    )


def rollout_weight_metrics(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RolloutConfig],
) -> dict[str, float]:
    """Statistics of the weights of `rollout_weights`, under verl's keys.

    `w raw weight, ω = w within bounds, U and L its band (L = 1/U where only U is given), ω̃ = clip(ω, 0, U)`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.RolloutConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "rollout_weight_metrics",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def rollout_mismatch(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MeanConfig],
) -> dict[str, float]:
    """How far the trainer's log-probabilities are from the sampler's: KL, perplexities, χ².

    `δ = log π_old − log π_rollout      kl = mean −δ      k3_kl = mean (e^δ − 1 − δ)      ppl = mean_i e^{−mean_t
    log π}`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.MeanConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "rollout_mismatch",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def probability_difference(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> dict[str, float]:
    """How far trainer and sampler are apart in probability rather than in log-probability.

    `p = π_old = e^{log π_old}      q = π_rollout      max, mean, std of |p − q|; Pearson(p, q)`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.
    """
    return _call(  # type: ignore[no-any-return]
        "probability_difference",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def rollout_rejection(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RejectionConfig],
) -> Array:
    """Keeps the tokens on which trainer and sampler agree closely enough, by every criterion.

    `δ = clip(log π_old − log π_rollout, ±20)      k1 = −δ      k2 = δ²/2      k3 = e^δ − 1 − δ`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.RejectionConfig``.
    """
    return _call(
        "rollout_rejection",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def rollout_rejection_metrics(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RejectionConfig],
) -> dict[str, float]:
    """Statistics of `rollout_rejection` per criterion, under verl's keys.

    `s the statistic of a token or sequence, L and U its bounds (k1: their logs; the others: L = 0 for the std
    only)`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.RejectionConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "rollout_rejection_metrics",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class RolloutGateResult(NamedTuple):
    """The result of :func:`rollout_gate`."""

    filtered: float
    kl: float
    weights: Array


def rollout_gate(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GateConfig],
) -> RolloutGateResult:
    """OpenRLHF's gate between trainer and sampler: one weight per token, 0 or clipped where the two disagree too much.

    `δ = log π_old − log π_rollout      s = e^δ (sequence: e^{mean δ}), binary KL or total variation (sequence:
    mean)`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.GateConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "rollout_gate",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        RolloutGateResult,
    )


def kl_mask(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlMaskConfig],
) -> Array:
    """Drops tokens whose log-probabilities differ too much between trainer and sampler.

    `keep = ½ (log π_old − log π_rollout)² ≤ τ`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.KlMaskConfig``.
    """
    return _call(
        "kl_mask",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def sequence_veto(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VetoConfig],
) -> Array:
    """Drops every sequence in which trainer and sampler disagree extremely on a token: the tokens that follow it are
    then
    suspect too.

    `ρ_t = e^{log π_old − log π_rollout}      keep_t = lower ≤ ρ_s ≤ upper for all s of the sequence`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.VetoConfig``.
    """
    return _call(
        "sequence_veto",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def m2po_mask(
    *,
    old_log_probs: Array,
    rollout_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.M2poConfig],
) -> Array:
    """Drops the tokens whose log-probabilities differ most between trainer and sampler, until the rest agree on
    average.

    `x = (log π_rollout − log π_old)²`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens, as computed by the trainer.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities as reported
    by the sampler.

    Settings are those of ``configs.M2poConfig``.
    """
    return _call(
        "m2po_mask",
        {"old_log_probs": old_log_probs, "rollout_log_probs": rollout_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def off_policy_sequence_mask(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OffPolicyConfig],
) -> Array:
    """Drops tokens with a negative advantage in sequences that the policy has moved away from: it would no longer
    generate
    them, so they need not be unlearned.

    `k_i = Σ_t (log π_old − log π) / n_i      keep_t = A_t ≥ 0 ∨ k_i ≤ τ`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    being trained.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities under the policy
    that sampled the tokens.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    Settings are those of ``configs.OffPolicyConfig``.
    """
    return _call(
        "off_policy_sequence_mask",
        {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def high_entropy_mask(
    *,
    entropies: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.HighEntropyConfig],
) -> Array:
    """Keeps the tokens with the highest entropy: the forks, where the policy was least certain.

    `q = quantile of the kept entropies at level 1 − share, linear between neighbours      keep = H ≥ q`

    ``entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.HighEntropyConfig``.
    """
    return _call(
        "high_entropy_mask",
        {"entropies": entropies},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def dynamic_sampling_filter(
    *,
    scores: Array,
    groups: Groups,
    rule: configs.GroupRule | None = None,
) -> Array:
    """Keeps the prompts whose samples differ enough to learn from.

    `NotConstant: std ≠ 0 or K = 1      Spread: std > at_least      MeanBetween: low < mean < high`

    ``scores``: ``[batch]``

    ``rule`` is those of ``configs.GroupRule``.
    """
    return _call(
        "dynamic_sampling_filter",
        {"scores": scores},
        rule,
        None,
        None,
        groups,
        None,
    )


def pf_ppo_weights(
    *,
    scores: Array,
    rule: configs.PfPpoRule | None = None,
) -> Array:
    """Resampling weight of each sequence, from its score.

    `w_i = max(f(s_i) + 1e-8, 1e-8)      f: |s|^p, 1[s is max or min], or 0.4 at the max and 0.1 elsewhere`

    ``scores``: ``[batch]``

    ``rule`` is those of ``configs.PfPpoRule``.
    """
    return _call(
        "pf_ppo_weights",
        {"scores": scores},
        rule,
        None,
        None,
        None,
        None,
    )


def pf_ppo_indices(
    *,
    weights: Array,
    draws: int,
    **config: Unpack[configs.ResampleConfig],
) -> Array:
    """Draws sequences with replacement, each in proportion to its weight; the same seed gives the same draws.

    `C_i = Σ_{j ≤ i} w_j      u from SplitMix64(seed) in [0, C_n)      index = the first i with C_i > u`

    ``weights``: ``[batch]``

    Settings are those of ``configs.ResampleConfig``.
    """
    return _call(
        "pf_ppo_indices",
        {"weights": weights, "draws": draws},
        config,
        None,
        None,
        None,
        None,
    )


def response_mask_from_eos(
    *,
    tokens: Array,
    eos: Array | Sequence[float],
    cu_seqlens: Array | None = None,
) -> Array:
    """The mask of a response: everything up to and including the first token that ends it.

    `keep_t = no token before t is in the set of ends`

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The emitted tokens, action-aligned.

    ``eos``: The tokens that end a response, in any number and order.
    """
    return _call(
        "response_mask_from_eos",
        {"tokens": tokens, "eos": eos},
        None,
        None,
        cu_seqlens,
        None,
        None,
    )


def token_weights(
    *,
    log_probs: Array,
    advantages: Array,
    ref_log_probs: Array | None = None,
    weight: str | None = None,
    structural: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """How much each token's entropy counts in the budget.

    `p = e^{log π}      Plain: w = p (1 − p) |A|      KlGated: w = p (1 − p) |A| |log π − log π_ref|`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the reference,
    if there is one; only `KlGated` reads them.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    ``weight``: Which weight.

    ``structural``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(
        "token_weights",
        {
            "log_probs": log_probs,
            "ref_log_probs": ref_log_probs,
            "advantages": advantages,
            "weight": weight,
            "structural": structural,
        },
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def advantage_jump(
    *,
    advantages: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """How far each advantage is from that of the token before it: a measure of structure that needs only one response.

    `C_t = |A_t − A_{t−1}|        0 at the first kept token`

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(
        "advantage_jump",
        {"advantages": advantages},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def structural_weights(
    *,
    log_probs: Array,
    advantages: Array,
    complexity: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    config: configs.StructuralConfig | None = None,
) -> Array:
    """How important each token is for the structure of the response: never negative, a constant in every gradient.

    `S = −log π      D = A (S − mean S)      I = max(0, c z(C) + α z(S) + β z(D))`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    ``complexity``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Structural complexity of each token:
    `advantage_jump` or `trie_complexity`.

    Settings are those of ``configs.StructuralConfig``.
    """
    return _call(
        "structural_weights",
        {"log_probs": log_probs, "advantages": advantages, "complexity": complexity},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def trie_complexity(
    *,
    tokens: Array,
    rewards: Array,
    groups: Groups,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.TrieConfig],
) -> Array:
    """How much the choice of each token decided the score, judged by the other responses to the same prompt.

    `score_i = Σ_t r_t`

    ``tokens``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The emitted tokens.

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards; their sum is the score of
    a sequence.

    Settings are those of ``configs.TrieConfig``.
    """
    return _call(
        "trie_complexity",
        {"tokens": tokens, "rewards": rewards},
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


class SurrogateResult(NamedTuple):
    """The result of :func:`surrogate`."""

    loss: float
    grad: Array


def surrogate(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.SurrogateConfig],
) -> SurrogateResult:
    """The surrogate objective as a loss: maximised by TRPO, clipped by PPO. Returns the loss, writes ∂loss/∂log_probs
    into
    `grad`.

    `ρ_t = exp(log π_t − log π_old,t)        loss = −Agg_t ρ_t A_t        ∂loss/∂log π_t = −W_t ρ_t A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.SurrogateConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "surrogate",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        SurrogateResult,
    )


class PpoClipResult(NamedTuple):
    """The result of :func:`ppo_clip`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def ppo_clip(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PpoConfig],
) -> PpoClipResult:
    """Clipped surrogate loss. Returns the loss and its metrics, writes ∂loss/∂log_probs into `grad`.

    `ρ_t = exp(log π_t − log π_old,t)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.PpoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "ppo_clip",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        PpoClipResult,
    )


class ReinforceResult(NamedTuple):
    """The result of :func:`reinforce`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def reinforce(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReinforceConfig],
) -> ReinforceResult:
    """The plain policy gradient as a loss. Returns the loss, writes ∂loss/∂log_probs into `grad`.

    `loss = −Agg_t A_t log π_t        ∂loss/∂log π_t = −W_t A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.ReinforceConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "reinforce",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        ReinforceResult,
    )


class CispoResult(NamedTuple):
    """The result of :func:`cispo`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def cispo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.CispoConfig],
) -> CispoResult:
    """A policy gradient weighted by the bounded ratio: clipping without losing a token's gradient.

    `ĉ_t = clip(ρ_t, low, high), a constant        loss = −Agg_t ĉ_t A_t log π_t        ∂loss/∂log π_t = −W_t ĉ_t
    A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.CispoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "cispo",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        CispoResult,
    )


class TisLossResult(NamedTuple):
    """The result of :func:`tis_loss`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def tis_loss(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ReinforceConfig],
) -> TisLossResult:
    """A policy gradient weighted by the ratio, capped at 1.

    `ĉ_t = min(ρ_t, 1), a constant        loss = −Agg_t ĉ_t A_t log π_t        ∂loss/∂log π_t = −W_t ĉ_t A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.TisLossConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "tis_loss",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        TisLossResult,
    )


class KlCovResult(NamedTuple):
    """The result of :func:`kl_cov`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def kl_cov(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlCovConfig],
) -> KlCovResult:
    """The surrogate with a penalty on the change of the tokens with the highest covariance of advantage and
    log-probability.

    `d_t = log π_t − log π_old,t        cov_t = (A_t − Ā)(log π_t − mean log π)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.KlCovConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "kl_cov",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        KlCovResult,
    )


class DppoTvResult(NamedTuple):
    """The result of :func:`dppo_tv`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def dppo_tv(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.DppoConfig],
) -> DppoTvResult:
    """A policy gradient that drops tokens whose probability has moved too far in the direction of the update, by total
    variation.

    `p = π_t, q = π_old,t        kept: A > 0 ? p − q ≤ ε⁺ : p − q ≥ −ε⁻        w = min(ρ, cap), a constant`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.DppoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "dppo_tv",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        DppoTvResult,
    )


class DppoKlResult(NamedTuple):
    """The result of :func:`dppo_kl`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def dppo_kl(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.DppoConfig],
) -> DppoKlResult:
    """A policy gradient that drops tokens whose probability has moved too far in the direction of the update, by
    binary
    KL.

    `b = q (log q − log p) + (1 − q) ln((1 − q + 1e-8) / (1 − p + 1e-8))        p = π_t, q = π_old,t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.DppoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "dppo_kl",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        DppoKlResult,
    )


class DroResult(NamedTuple):
    """The result of :func:`dro`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def dro(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.DroConfig],
) -> DroResult:
    """A policy gradient with a quadratic penalty on the distance from the policy that sampled.

    `d_t = log π_t − log π_old,t        loss = −Agg_t (A_t log π_t − ½ β d_t²)        ∂loss/∂log π_t = W_t (β d_t −
    A_t)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.DroConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "dro",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        DroResult,
    )


class GspoResult(NamedTuple):
    """The result of :func:`gspo`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def gspo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GspoConfig],
) -> GspoResult:
    """The clipped surrogate with one ratio per sequence: the geometric mean of its tokens' ratios.

    `s_i = exp(Σ_t (log π_t − log π_old,t) / n_i)        loss = −Agg_t min(s_i A_t, clip(s_i, 1 − ε⁻, 1 + ε⁺) A_t)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.GspoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "gspo",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        GspoResult,
    )


class SapoResult(NamedTuple):
    """The result of :func:`sapo`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def sapo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.SapoConfig],
) -> SapoResult:
    """A soft gate in place of the clip: the further the ratio is from 1, the weaker the gradient, without a hard
    cutoff.

    `f(ρ) = (4/τ) σ(τ (ρ − 1))        loss = −Agg_t f(ρ_t) A_t        ∂loss/∂log π_t = −4 W_t σ (1 − σ) ρ_t A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.SapoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "sapo",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        SapoResult,
    )


class GmpoResult(NamedTuple):
    """The result of :func:`gmpo`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def gmpo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GmpoConfig],
) -> GmpoResult:
    """The geometric mean of a sequence's clipped ratios, times its mean advantage: one outlier cannot dominate a
    sequence.

    `d_t = log π_t − log π_old,t        d*_t = d_t, held at ε⁺ if A_t > 0, at −ε⁻ if A_t < 0, and 0 if A_t = 0`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    Settings are those of ``configs.GmpoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "gmpo",
        {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages, "weights": weights},
        config,
        mask,
        cu_seqlens,
        None,
        GmpoResult,
    )


class LuspoResult(NamedTuple):
    """The result of :func:`luspo`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def luspo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.LuspoConfig],
) -> LuspoResult:
    """`gspo` with sequences weighted by their length, so that a token's gradient does not shrink as its response
    grows.

    `loss = −Σ_i Σ_t min(s_i A_t, clip(s_i) A_t) / B`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    Settings are those of ``configs.LuspoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "luspo",
        {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages, "weights": weights},
        config,
        mask,
        cu_seqlens,
        None,
        LuspoResult,
    )


class ClipCovResult(NamedTuple):
    """The result of :func:`clip_cov`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def clip_cov(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    selected: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ClipCovConfig],
) -> ClipCovResult:
    """The clipped surrogate without the selected tokens: their gradient is detached, so that entropy does not
    collapse.

    `L_t = [t not selected] · max(−ρ_t A_t, −clip(ρ_t, 1 − ε⁻, 1 + ε⁺) A_t)        ∂loss/∂log π_t = −W_t ρ_t A_t, or
    0`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    ``selected``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Tokens whose gradient is detached.

    Settings are those of ``configs.ClipCovConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "clip_cov",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
            "selected": selected,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        ClipCovResult,
    )


def clip_cov_selection(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ClipCovSelectionConfig],
) -> Array:
    """Selects the tokens whose gradient `clip_cov` detaches: some of those with a high covariance of advantage and
    log-probability.

    `cov_t = (A_t − Ā)(log π_t − mean log π)        candidates: lower < cov_t < upper, and not held by the clip`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.ClipCovSelectionConfig``.
    """
    return _call(
        "clip_cov_selection",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


class VespoResult(NamedTuple):
    """The result of :func:`vespo`."""

    loss: float
    phi_mean: float
    grad: Array


def vespo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VespoConfig],
) -> VespoResult:
    """A policy gradient weighted by a smooth function of the whole sequence's ratio, which is 1 at ratio 1 and small
    on
    both sides.

    `w_i = exp(clip(Σ_t clip(log π_t − log π_old,t, ±20), ln 1e-8, 20))        φ = w^k e^{λ (1 − w)}, a constant`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.VespoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "vespo",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        VespoResult,
    )


class ToprResult(NamedTuple):
    """The result of :func:`topr`."""

    loss: float
    grad: Array


def topr(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    scores: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ToprConfig],
) -> ToprResult:
    """Imitation of good responses, tapered off-policy learning from bad ones. Returns the loss, writes
    ∂loss/∂log_probs
    into `grad`.

    `s_i > 0: L_t = −w₊ A_t log π_t        s_i ≤ 0: L_t = −w₋ min(ρ_t, 1) A_t log π_t, the ratio a constant`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    ``scores``: ``[batch]``: One score per sequence: above 0 for a good response.

    Settings are those of ``configs.ToprConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "topr",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
            "scores": scores,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        ToprResult,
    )


class GvpoResult(NamedTuple):
    """The result of :func:`gvpo`."""

    loss: float
    grad: Array


def gvpo(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    groups: Groups,
    weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.GvpoConfig],
) -> GvpoResult:
    """Within each prompt, fits the differences of the sequences' log-ratios to the differences of their advantages.

    `u_i = β Σ_t (log π_t − log π_old,t)        ū = mean of u over the prompt, a constant        Ā_i = mean_t A_t`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    Settings are those of ``configs.GvpoConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "gvpo",
        {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages, "weights": weights},
        config,
        mask,
        cu_seqlens,
        groups,
        GvpoResult,
    )


class PositiveNllResult(NamedTuple):
    """The result of :func:`positive_nll`."""

    loss: float
    grad: Array


def positive_nll(
    *,
    log_probs: Array,
    scores: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.PositiveNllConfig],
) -> PositiveNllResult:
    """Imitation of the good responses only: their mean negative log-likelihood. Returns the loss, writes
    ∂loss/∂log_probs
    into `grad`.

    `loss = −μ Σ_{i: s_i > 0} Σ_t log π_t / N₊        ∂loss/∂log π_t = −μ / N₊ [s_i > 0]`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained, action-aligned; the gradient is taken with respect to these.

    ``scores``: ``[batch]``: One score per sequence.

    Settings are those of ``configs.PositiveNllConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "positive_nll",
        {"log_probs": log_probs, "scores": scores},
        config,
        mask,
        cu_seqlens,
        None,
        PositiveNllResult,
    )


class AggregateResult(NamedTuple):
    """The result of :func:`aggregate`."""

    loss: float
    weights: Array


def aggregate(
    *,
    losses: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.Aggregate],
) -> AggregateResult:
    """Aggregates token losses into one number and writes the weight of each token in it.

    `loss = Σ_i Σ_t W[i, t] L[i, t]        W = ∂loss/∂L, constant within a sequence; see AggregateMode`

    ``losses``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.Aggregate``.
    """
    return _call(  # type: ignore[no-any-return]
        "aggregate",
        {"losses": losses, "group_tokens": group_tokens},
        config,
        mask,
        cu_seqlens,
        groups,
        AggregateResult,
    )


def group_tokens(
    *,
    groups: Groups,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> Array:
    """Number of kept tokens of each prompt in one batch; add up those of all batches for `PromptMean`.

    `out_p = Σ_{i of prompt p} n_i`
    """
    return _call(
        "group_tokens",
        {},
        None,
        mask,
        cu_seqlens,
        groups,
        None,
    )


class ValueLossResult(NamedTuple):
    """The result of :func:`value_loss`."""

    loss: float
    clip_fraction: float
    grad: Array


def value_loss(
    *,
    predictions: Array,
    values: Array,
    returns: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ValueConfig],
) -> ValueLossResult:
    """The critic's squared error, the larger of clipped and unclipped. Returns the loss, writes ∂loss/∂predictions
    into
    `grad`.

    `v̂ = clip(v, V − ε, V + ε)        loss = ½ Agg_t max((v − G)², (v̂ − G)²)`

    ``predictions``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The critic's new values; the gradient
    is taken with respect to these.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Its values when the batch was collected;
    constants.

    ``returns``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The targets of the values; constants.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.ValueConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "value_loss",
        {"predictions": predictions, "values": values, "returns": returns, "group_tokens": group_tokens},
        config,
        mask,
        cu_seqlens,
        groups,
        ValueLossResult,
    )


class EntropyBonusResult(NamedTuple):
    """The result of :func:`entropy_bonus`."""

    loss: float
    grad: Array


def entropy_bonus(
    *,
    entropy: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.EntropyBonusConfig],
) -> EntropyBonusResult:
    """A reward for high entropy, as a loss. Returns the loss, writes ∂loss/∂entropy into `grad`.

    `loss = −c · Agg_t H_t        ∂loss/∂H_t = −c W_t`

    ``entropy``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.EntropyBonusConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "entropy_bonus",
        {"entropy": entropy, "group_tokens": group_tokens},
        config,
        mask,
        cu_seqlens,
        groups,
        EntropyBonusResult,
    )


class DualGameResult(NamedTuple):
    """The result of :func:`dual_game`."""

    loss: float
    clip_fraction: float
    clip_fraction_upper: float
    clip_fraction_lower: float
    kl: float
    grad: Array


def dual_game(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    ref_log_probs: Array | None = None,
    weight: str | None = None,
    structural: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.DualGameConfig],
) -> DualGameResult:
    """Clipped surrogate whose advantages include the price of entropy and of the KL to the reference. Returns the
    loss,
    writes its gradient.

    `A_base = max(A, 0) + γ min(A, 0)        A_mod = A_base − λ w (−log π − 1) − β (log π − log π_ref)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the reference;
    constants. Without them β has no effect, and gates are 1.

    ``weight``: How much each token's entropy counts.

    ``structural``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.DualGameConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "dual_game",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "weights": weights,
            "group_tokens": group_tokens,
            "ref_log_probs": ref_log_probs,
            "weight": weight,
            "structural": structural,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        DualGameResult,
    )


class KlLossResult(NamedTuple):
    """The result of :func:`kl_loss`."""

    loss: float
    aggregated: float
    mean: float
    grad: Array


def kl_loss(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.KlLossConfig],
) -> KlLossResult:
    """The KL to the reference as a loss of its own. Returns the loss, writes ∂loss/∂log_probs into `grad`.

    `loss = β · Agg_t kl(d_t)        ∂loss/∂log π_t = β W_t kl'(d_t)        d = log π − log π_ref`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.KlLossConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "kl_loss",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs, "group_tokens": group_tokens},
        config,
        mask,
        cu_seqlens,
        groups,
        KlLossResult,
    )


class OpdLossResult(NamedTuple):
    """The result of :func:`opd_loss`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    abs_loss: float
    loss_min: float
    loss_max: float
    grad: Array


def opd_loss(
    *,
    log_probs: Array,
    old_log_probs: Array,
    teacher_log_probs: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OpdLossConfig],
) -> OpdLossResult:
    """On-policy distillation: each sampled token's distance to the teacher, as a reward to the policy or as a loss
    itself.

    `L_t = clip(kl(log π_t − log π_teacher,t), ±max)        A_t = −L_t, a constant`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the student; the
    gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants. The student's own if there is no older policy.

    ``teacher_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the same
    tokens under the teacher; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    rollout correction; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.OpdLossConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "opd_loss",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "teacher_log_probs": teacher_log_probs,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        OpdLossResult,
    )


class RefKlResult(NamedTuple):
    """The result of :func:`ref_kl`."""

    loss: float
    ref_kl: float
    fallen: float
    mismatch_fallen: float
    mismatch_kept: float
    grad: Array


def ref_kl(
    *,
    log_probs: Array,
    old_log_probs: Array,
    ref_log_probs: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RefKlConfig],
) -> RefKlResult:
    """A policy gradient whose advantage is the log-ratio of teacher to student, kept near the policy that sampled.

    `A_t = log π_ref,t − log π_t, a constant      d_t = log π_t − log π_old,t      ρ = e^d`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the teacher;
    constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss;
    constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.RefKlConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "ref_kl",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "ref_log_probs": ref_log_probs,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        RefKlResult,
    )


class IwOpdResult(NamedTuple):
    """The result of :func:`iw_opd`."""

    loss: float
    mean_advantage: float
    mean_abs_advantage: float
    mean_weight: float
    min_weight: float
    max_weight: float
    grad: Array


def iw_opd(
    *,
    log_probs: Array,
    old_log_probs: Array,
    teacher_log_probs: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.IwOpdConfig],
) -> IwOpdResult:
    """On-policy distillation that gives a token more weight the less the teacher disagrees with the tokens before it.

    `a_t = log π_teacher,t − log π_old,t        w_t = 1 + γ (1 − Σ_{u < t} |a_u| / max(Σ_u |a_u|, ε))`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the student; the
    gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the student
    when it sampled; constants.

    ``teacher_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the same
    tokens under the teacher; constants.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.IwOpdConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "iw_opd",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "teacher_log_probs": teacher_log_probs,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        IwOpdResult,
    )


class ForwardKlTopkResult(NamedTuple):
    """The result of :func:`forward_kl_topk`."""

    loss: float
    loss_min: float
    loss_max: float
    student_mass: dict[str, float]
    teacher_mass: dict[str, float]
    overlap: dict[str, float] | None
    losses: Array
    grad: Array


def forward_kl_topk(
    *,
    log_probs: Array,
    teacher_log_probs: Array,
    teacher_ids: Array | None = None,
    student_ids: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ForwardKlTopKConfig],
) -> ForwardKlTopkResult:
    """Forward KL to the teacher over its likeliest tokens only: the student learns to cover all that the teacher finds
    likely.

    `L_t = clip(Σ_j p_j (ln p_j − s_j), 0, max)        s_j, ln p_j: log-probabilities of student and teacher, ≥
    floor`

    ``log_probs``: ``[batch, length, k]``: `[tokens, k]`, row-major: the student's log-probabilities of the
    teacher's likeliest tokens.

    ``teacher_log_probs``: ``[batch, length, k]``: `[tokens, k]`: the teacher's; constants.

    ``teacher_ids``: ``[batch, length, k]``

    ``student_ids``: ``[batch, length, k]``

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.ForwardKlTopKConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "forward_kl_topk",
        {
            "log_probs": log_probs,
            "teacher_log_probs": teacher_log_probs,
            "teacher_ids": teacher_ids,
            "student_ids": student_ids,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        ForwardKlTopkResult,
    )


class TopkJsdResult(NamedTuple):
    """The result of :func:`topk_jsd`."""

    loss: float
    grad: Array


def topk_jsd(
    *,
    log_probs: Array,
    teacher_log_probs: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.TopKJsdConfig],
) -> TopkJsdResult:
    """`generalized_jsd` over a few tokens instead of the vocabulary. Returns the loss.

    `Tail: p_rest = 1 − Σ_j p_j is one more entry        Renormalize: p_j / Σ_i p_i`

    ``log_probs``: ``[batch, length, k]``: `[tokens, k]`, row-major: the student's log-probabilities of some tokens;
    the gradient is taken with respect to these. −inf in both rows marks an absent entry, so that tokens may have
    different numbers of entries.

    ``teacher_log_probs``: ``[batch, length, k]``: `[tokens, k]`: the teacher's log-probabilities of the same
    tokens; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    capped importance weight; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.TopKJsdConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "topk_jsd",
        {
            "log_probs": log_probs,
            "teacher_log_probs": teacher_log_probs,
            "weights": weights,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        TopkJsdResult,
    )


class MixedKlTopkResult(NamedTuple):
    """The result of :func:`mixed_kl_topk`."""

    loss: float
    grad: Array
    grad_entropies: Array


def mixed_kl_topk(
    *,
    log_probs: Array,
    teacher_log_probs: Array,
    entropies: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MixedKlConfig],
) -> MixedKlTopkResult:
    """A mixture of both KL divergences over the teacher's likeliest tokens. Returns the loss.

    `L_t = w Σ_j q_j (ln q_j − s_j) + (1 − w) (Σ_j p_j (s_j − ln q_j) + R_t)        p = e^s, Σ_j q_j = 1`

    ``log_probs``: ``[batch, length, k]``: `[tokens, k]`, row-major: the student's log-probabilities of the
    teacher's likeliest tokens.

    ``teacher_log_probs``: ``[batch, length, k]``: `[tokens, k]`: the teacher's log-probabilities or logits of
    these; constants.

    ``entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: One per token: the entropy of the
    student over the whole vocabulary; read with `LogProb` only.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.MixedKlConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "mixed_kl_topk",
        {
            "log_probs": log_probs,
            "teacher_log_probs": teacher_log_probs,
            "entropies": entropies,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        MixedKlTopkResult,
    )


class GeneralizedJsdResult(NamedTuple):
    """The result of :func:`generalized_jsd`."""

    loss: float
    grad_logits: Array


def generalized_jsd(
    *,
    logits: Array,
    teacher_logits: Array,
    weights: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.JsdConfig],
) -> GeneralizedJsdResult:
    """The generalized Jensen–Shannon divergence of student and teacher over the whole vocabulary. Returns the loss.

    `β = 0: D = KL(q‖p)      β = 1: D = KL(p‖q)      else m = (1 − β) p + β q,  D = β KL(q‖m) + (1 − β) KL(p‖m)`

    ``logits``: ``[batch, length, vocabulary]``: `[tokens, vocab]`, row-major: the student's row that predicted each
    token; the gradient is taken with respect to these.

    ``teacher_logits``: ``[batch, length, vocabulary]``: The teacher's rows, of the same shape; constants.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: A weight for each token's loss, such as a
    capped importance weight; constants. `None` gives weight 1.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.JsdConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "generalized_jsd",
        {"logits": logits, "teacher_logits": teacher_logits, "weights": weights, "group_tokens": group_tokens},
        config,
        mask,
        cu_seqlens,
        groups,
        GeneralizedJsdResult,
    )


class BypassLossResult(NamedTuple):
    """The result of :func:`bypass_loss`."""

    loss: float
    clip_fraction: float
    clip_fraction_lower: float
    kl: float
    metrics: dict[str, float]
    weights: Array
    keep: Array
    grad: Array


def bypass_loss(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.BypassConfig],
) -> BypassLossResult:
    """A policy loss that uses the sampler's log-probabilities as the old ones and corrects for both at once.

    `δ_t = log π_t − log π_old,t, a constant        ω = rollout_weights(δ)        m' = rollout_rejection(δ)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; the gradient is taken with respect to these.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled; constants.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; constants.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.BypassConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "bypass_loss",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "advantages": advantages,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        BypassLossResult,
    )


def mean(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MeanConfig],
) -> float:
    """Mean over the kept tokens.

    `Σ_t x_t / N        N kept tokens, or N + 1e-8 with Divisor::CountPlusEpsilon`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.MeanConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "mean",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def variance(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VarianceConfig],
) -> float:
    """Variance over the kept tokens.

    `Σ_t (x_t − μ)² / N            Spread::Population`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.VarianceConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "variance",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def analysis(
    *,
    old_log_probs: Array,
    advantages: Array,
    rewards: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> dict[str, float]:
    """The five `analysis/…` numbers of a batch: entropy, covariance of advantage and log-probability, weighted
    entropy,
    reward.

    `p = e^{log p}      H = −p log p      w = p (1 − p) |A|`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token rewards.
    """
    return _call(  # type: ignore[no-any-return]
        "analysis",
        {"old_log_probs": old_log_probs, "advantages": advantages, "rewards": rewards},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


class AnalysisSumsResult(NamedTuple):
    """The result of :func:`analysis_sums`."""

    moments: dict[str, float]
    entropy_sum: float
    wh_sum: float
    reward_sum: float
    sequences: float


def analysis_sums(
    *,
    old_log_probs: Array,
    advantages: Array,
    rewards: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> AnalysisSumsResult:
    """The sums behind the five `analysis/…` keys; shards are combined by `merge`.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(  # type: ignore[no-any-return]
        "analysis_sums",
        {"old_log_probs": old_log_probs, "advantages": advantages, "rewards": rewards},
        None,
        mask,
        cu_seqlens,
        None,
        AnalysisSumsResult,
    )


class MomentsResult(NamedTuple):
    """The result of :func:`moments`."""

    count_: float
    mean: float
    m2: float


def moments(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> MomentsResult:
    """Count, mean and sum of squared deviations of some numbers.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(  # type: ignore[no-any-return]
        "moments",
        {"values": values},
        None,
        mask,
        cu_seqlens,
        None,
        MomentsResult,
    )


class CoMomentsResult(NamedTuple):
    """The result of :func:`co_moments`."""

    count_: float
    mean_x: float
    mean_y: float
    m2_x: float
    m2_y: float
    co_moment: float


def co_moments(
    *,
    x: Array,
    y: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> CoMomentsResult:
    """The moments of two quantities together: what covariance and correlation need, mergeable. They overflow where
    `Moments` do.

    ``x``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    ``y``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(  # type: ignore[no-any-return]
        "co_moments",
        {"x": x, "y": y},
        None,
        mask,
        cu_seqlens,
        None,
        CoMomentsResult,
    )


def correlation(
    *,
    x: Array,
    y: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> float:
    """Pearson's correlation of two quantities over the kept tokens.

    `Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² · Σ (y − ȳ)²)`

    ``x``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The first quantity.

    ``y``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The second.
    """
    return _call(  # type: ignore[no-any-return]
        "correlation",
        {"x": x, "y": y},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def explained_variance(
    *,
    values: Array,
    returns: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ExplainedVarianceConfig],
) -> float:
    """How much of the variance of the returns the critic predicted: 1 all of it, 0 no better than a constant, negative
    worse.

    `1 − Var(G − V) / (Var(G) + ε)`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The critic's values.

    ``returns``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The returns, their targets.

    Settings are those of ``configs.ExplainedVarianceConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "explained_variance",
        {"values": values, "returns": returns},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


class KlMeansResult(NamedTuple):
    """The result of :func:`kl_means`."""

    k1: float
    abs: float
    k2: float
    k3: float


def kl_means(
    *,
    log_probs: Array,
    ref_log_probs: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MeanConfig],
) -> KlMeansResult:
    """Every KL estimate, averaged over the kept tokens in one pass.

    `d = log π − log π_ref      k1: mean d      abs: mean |d|      k2: mean d²/2      k3: mean (e^{−d} − 1 + d)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π of each token.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: log π_ref of each token.

    Settings are those of ``configs.MeanConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "kl_means",
        {"log_probs": log_probs, "ref_log_probs": ref_log_probs},
        config,
        mask,
        cu_seqlens,
        None,
        KlMeansResult,
    )


class ClipFractionsResult(NamedTuple):
    """The result of :func:`clip_fractions`."""

    clipped: float
    low: float
    high: float
    dual: float


def clip_fractions(
    *,
    log_probs: Array,
    old_log_probs: Array,
    advantages: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.ClipConfig],
) -> ClipFractionsResult:
    """How many tokens the clip holds, and on which side.

    `low: share of A < 0 ∧ ρ < 1 − ε⁻      high: share of A > 0 ∧ ρ > 1 + ε⁺      clipped = low + high`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    Settings are those of ``configs.ClipConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "clip_fractions",
        {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages},
        config,
        mask,
        cu_seqlens,
        None,
        ClipFractionsResult,
    )


def effective_sample_size(
    *,
    weights: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
) -> float:
    """How many equally weighted tokens the weighted ones are equivalent to.

    `(Σ_t w_t)² / Σ_t w_t²`

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``
    """
    return _call(  # type: ignore[no-any-return]
        "effective_sample_size",
        {"weights": weights},
        None,
        mask,
        cu_seqlens,
        None,
        None,
    )


def quantile(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.QuantileConfig],
) -> float:
    """The value below which a share `level` of the kept tokens lies, interpolated linearly between neighbours.

    `place = level · (N − 1)      between the sorted values x_⌊place⌋ and x_⌊place⌋₊₁ in proportion`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.QuantileConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "quantile",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def row_means(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.MeanConfig],
) -> Array:
    """Mean over the kept tokens of each sequence.

    `out_i = Σ_t x_t / n_i        n_i kept tokens, or n_i + 1e-8 with Divisor::CountPlusEpsilon`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.MeanConfig``.
    """
    return _call(
        "row_means",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def row_normalize(
    *,
    values: Array,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.RowNormalizeConfig],
) -> Array:
    """Each sequence normalised separately to mean 0 and variance 1.

    `out_t = (x_t − μ_i) / √max(Σ_t (x_t − μ_i)² / n_i, floor)`

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``

    Settings are those of ``configs.RowNormalizeConfig``.
    """
    return _call(
        "row_normalize",
        {"values": values},
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def variance_proxy(
    *,
    old_log_probs: Array,
    sum_pi_squared: Array,
    advantages: Array,
    weights: Array | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VarianceProxyConfig],
) -> dict[str, float]:
    """Signal and noise of the policy gradient, from the size of each token's score function.

    `s_t = 1 − 2 π_t + Σ_v π_v²      W_i = Σ_t s_t      a_i = mean_t A      w̄_i = mean_t w (1 without weights)`

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy
    that sampled.

    ``sum_pi_squared``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: `Σ_v π_v²` of the distribution
    each token was drawn from.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Importance weights, where the loss uses
    them.

    Settings are those of ``configs.VarianceProxyConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "variance_proxy",
        {
            "old_log_probs": old_log_probs,
            "sum_pi_squared": sum_pi_squared,
            "advantages": advantages,
            "weights": weights,
        },
        config,
        mask,
        cu_seqlens,
        None,
        None,
    )


def verl_metrics(
    *,
    scores: Array | None = None,
    rewards: Array | None = None,
    advantages: Array | None = None,
    returns: Array | None = None,
    values: Array | None = None,
    predictions: Array | None = None,
    log_probs: Array | None = None,
    ref_log_probs: Array | None = None,
    old_log_probs: Array | None = None,
    rollout_log_probs: Array | None = None,
    old_entropies: Array | None = None,
    entropies: Array | None = None,
    sum_pi_squared: Array | None = None,
    weights: Array | None = None,
    response_lengths: Mapping[str, Any] | object | None = None,
    prompt_lengths: Mapping[str, Any] | object | None = None,
    gradient_norm: float | None = None,
    policy_loss: Mapping[str, Any] | object | None = None,
    value_loss: Mapping[str, Any] | object | None = None,
    reward_kl: Mapping[str, Any] | object | None = None,
    mask_before_rejection: Array | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.VerlConfig],
) -> dict[str, float]:
    """Everything that verl logs about the tokens of a batch, under its keys.

    `critic/{score, rewards}: Σ_t of responses with length > 0`

    ``scores``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token-level scores, before any KL penalty;
    action-aligned. Used only with `response_lengths`.

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Token-level rewards, after it;
    action-aligned. Used only with `response_lengths`.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages, action-aligned.

    ``returns``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Returns, state-aligned.

    ``values``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The critic's values when the batch was
    collected, state-aligned.

    ``predictions``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The critic's new values,
    state-aligned.

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained, action-aligned; for the KL loss only.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the reference.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the trainer when the batch
    was collected.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the sampler.

    ``old_entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The entropies of the policy of
    `old_log_probs`.

    ``entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The entropies of the policy of
    `log_probs`.

    ``sum_pi_squared``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: `Σ_v π_v²` of the policy of
    `old_log_probs`. Used only with these, `advantages` and `gradient_norm`.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The importance weights that the loss
    used, for the variance proxies.

    ``response_lengths``: ``[batch]``: The token count of each response (by the attention mask, not the loss mask),
    and its maximum.

    ``prompt_lengths``: ``[batch]``: The same for the prompts.

    ``gradient_norm``: The norm of the whole batch's gradient, for the variance proxies.

    ``policy_loss``: What the policy loss returned.

    ``value_loss``: What the value loss returned.

    ``reward_kl``: What the KL penalty in the reward returned.

    ``mask_before_rejection``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The mask before rejection,
    if rejection changed it: entropies of the old policy and all metrics of the sampler use it.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.VerlConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "verl_metrics",
        {
            "scores": scores,
            "rewards": rewards,
            "advantages": advantages,
            "returns": returns,
            "values": values,
            "predictions": predictions,
            "log_probs": log_probs,
            "ref_log_probs": ref_log_probs,
            "old_log_probs": old_log_probs,
            "rollout_log_probs": rollout_log_probs,
            "old_entropies": old_entropies,
            "entropies": entropies,
            "sum_pi_squared": sum_pi_squared,
            "weights": weights,
            "response_lengths": response_lengths,
            "prompt_lengths": prompt_lengths,
            "gradient_norm": gradient_norm,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "reward_kl": reward_kl,
            "mask_before_rejection": mask_before_rejection,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


def trl_metrics(
    *,
    log_probs: Array | None = None,
    old_log_probs: Array | None = None,
    ref_log_probs: Array | None = None,
    rollout_log_probs: Array | None = None,
    weights: Array | None = None,
    advantages: Array | None = None,
    entropies: Array | None = None,
    loss: Mapping[str, Any] | object | None = None,
    rewards: Mapping[str, Any] | object | None = None,
    completion_lengths: Array | None = None,
    truncated: Array | None = None,
    prompt_lengths: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.TrlConfig],
) -> dict[str, float]:
    """Everything that the GRPO trainer of TRL logs about the tokens of a batch, under its keys.

    `R_i = Σ_k w_k s_ki over the functions that scored i      reward = mean_i R`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy being
    trained; all token slices are action-aligned.

    ``old_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the trainer when the batch
    was collected; if `None`, the clip uses `log_probs` in their place.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the reference.

    ``rollout_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the sampler; NaN where
    it gave none.

    ``weights``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The importance weights between sampler
    and trainer, as the loss used them.

    ``advantages``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Advantages; at sequence level, that of
    the first kept token is used.

    ``entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The entropies of the policy of
    `log_probs`.

    ``loss``: What the loss returned.

    ``rewards``: ``[sources, batch]``: The scores.

    ``completion_lengths``: ``[batch]``: Number of tokens of each completion that the model generated.

    ``truncated``: ``[batch]``: Which completions end in neither an end-of-sequence nor a padding token. Used only
    with `completion_lengths`.

    ``prompt_lengths``: ``[batch]``: Number of tokens of each prompt. Used only with `completion_lengths`.

    Settings are those of ``configs.TrlConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "trl_metrics",
        {
            "log_probs": log_probs,
            "old_log_probs": old_log_probs,
            "ref_log_probs": ref_log_probs,
            "rollout_log_probs": rollout_log_probs,
            "weights": weights,
            "advantages": advantages,
            "entropies": entropies,
            "loss": loss,
            "rewards": rewards,
            "completion_lengths": completion_lengths,
            "truncated": truncated,
            "prompt_lengths": prompt_lengths,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )


def openrlhf_metrics(
    *,
    log_probs: Array | None = None,
    ref_log_probs: Array | None = None,
    entropies: Array | None = None,
    rewards: Array | None = None,
    predictions: Array | None = None,
    scores: Array | None = None,
    total_lengths: Mapping[str, Any] | object | None = None,
    truncated: Array | None = None,
    policy_loss: Mapping[str, Any] | object | None = None,
    gate: Mapping[str, Any] | object | None = None,
    value_loss: Mapping[str, Any] | object | None = None,
    group_tokens: Array | None = None,
    groups: Groups | None = None,
    mask: Array | None = None,
    cu_seqlens: Array | None = None,
    **config: Unpack[configs.OpenRlhfConfig],
) -> dict[str, float]:
    """Everything that OpenRLHF logs about the tokens of a batch, under its keys.

    `kl, logprobs_diff = mean_i mean_t (KlUse::Reward), or Agg_t and mean over tokens (KlUse::Loss)`

    ``log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Log-probabilities of the policy,
    action-aligned: the trained one for a KL in the loss, the old one for a KL in the reward.

    ``ref_log_probs``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: Those of the reference.

    ``entropies``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The entropies of the trained policy.

    ``rewards``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The shaped rewards, action-aligned.

    ``predictions``: ``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``: The critic's new values,
    state-aligned.

    ``scores``: ``[batch]``: The scores, one per sequence.

    ``total_lengths``: ``[batch]``: Tokens of prompt and response together, and the length from which on a sequence
    counts as truncated.

    ``truncated``: ``[batch]``: Which responses the sampler truncated.

    ``policy_loss``: What the policy loss returned.

    ``gate``: What the gate between trainer and sampler reported.

    ``value_loss``: What the value loss returned.

    ``group_tokens``: ``[groups]``

    Settings are those of ``configs.OpenRlhfConfig``.
    """
    return _call(  # type: ignore[no-any-return]
        "openrlhf_metrics",
        {
            "log_probs": log_probs,
            "ref_log_probs": ref_log_probs,
            "entropies": entropies,
            "rewards": rewards,
            "predictions": predictions,
            "scores": scores,
            "total_lengths": total_lengths,
            "truncated": truncated,
            "policy_loss": policy_loss,
            "gate": gate,
            "value_loss": value_loss,
            "group_tokens": group_tokens,
        },
        config,
        mask,
        cu_seqlens,
        groups,
        None,
    )
