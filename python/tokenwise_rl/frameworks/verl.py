"""The plug-in for verl 0.9.1.

verl loads it by itself (entry point ``verl.plugins``) in every process that imports verl, also in Ray's workers. It
then has these names, which nothing else of verl's changes for:

- ``actor_rollout_ref.actor.policy_loss.loss_mode=tokenwise/vanilla``: any of verl's own losses with the closed-form
  gradient (:data:`LOSSES`). Loss, gradient and metrics are those of verl, including ``global_batch_info``.
- ``algorithm.adv_estimator=tokenwise/rloo``: any of verl's estimators that it calls through its registry
  (:data:`ESTIMATORS`). GAE and GRPO are not among these: verl calls its own functions for them.

:func:`replace` puts our functions in the place of verl's, GAE and GRPO first of all. It is called by you, or by
``TOKENWISE_VERL_REPLACE=gae,grpo`` in the environment of the driver. Dropped slots of results are 0, where verl leaves
numbers that nothing reads.

:func:`analysis` gives the five ``analysis/…`` numbers of a batch, after ``compute_advantage`` in ``fit``::

    metrics.update(tokenwise_rl.frameworks.verl.analysis(batch))
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .. import _formulas as tw
from .. import torch as twt
from .._errors import TokenwiseError
from ._tensors import conventions, count, kept, same_precision

__all__ = ["ESTIMATORS", "LOSSES", "VERSION", "analysis", "policy_loss", "register", "replace", "restore"]

#: The version of verl that this is tested with.
VERSION = "0.9.1"
_PROFILE = "verl-0.9.1"
_VARIABLE = "TOKENWISE_VERL_REPLACE"

Tensor = torch.Tensor
Advantages = tuple[Tensor, Tensor]


def analysis(data: Any) -> dict[str, float]:
    """The five ``analysis/…`` numbers of a ``DataProto`` that has advantages."""
    batch = data.batch
    rewards = batch["token_level_rewards"] if "token_level_rewards" in batch.keys() else batch["token_level_scores"]
    log_probs, advantages, rewards = same_precision(batch["old_log_probs"], batch["advantages"], rewards)
    mask = kept(batch["response_mask"])
    return tw.analysis(old_log_probs=log_probs, advantages=advantages, rewards=rewards, mask=mask)


# --- advantages ---------------------------------------------------------------------------------------------------


def _gae(
    token_level_rewards: Tensor, values: Tensor, response_mask: Tensor, gamma: Any, lam: Any, **_: Any
) -> Advantages:
    rewards, values = same_precision(token_level_rewards.detach(), values.detach())
    mask = kept(response_mask)
    found = tw.gae(
        rewards=rewards, values=values, mask=mask, **conventions(_PROFILE, "gae", gamma=float(gamma), lambda_=float(lam))
    )
    return tw.whiten(values=found.advantages, mask=mask, **conventions(_PROFILE, "whiten")), found.returns


def _scores(token_level_rewards: Tensor) -> Tensor:
    # verl's own sum, over all slots: the reward of an answer that ends with a tool's output is in a dropped one
    (rewards,) = same_precision(token_level_rewards.detach())
    scores: Tensor = rewards.sum(dim=-1)
    return scores


def _on_tokens(values: Tensor, response_mask: Tensor) -> Advantages:
    advantages = tw.broadcast(values=values, mask=kept(response_mask))
    return advantages, advantages


def _scale(by_deviation: bool) -> dict[str, Any]:
    return {} if by_deviation else {"scale": "unit"}


def _grpo(
    token_level_rewards: Tensor,
    response_mask: Tensor,
    index: Any,
    epsilon: float = 1e-6,
    norm_adv_by_std_in_grpo: bool = True,
    config: Any = None,
    **_: Any,
) -> Advantages:
    settings = conventions(_PROFILE, "group_relative", epsilon=epsilon, **_scale(norm_adv_by_std_in_grpo))
    return _on_tokens(tw.group_relative(scores=_scores(token_level_rewards), groups=index, **settings), response_mask)


def _grpo_passk(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, epsilon: float = 1e-6, config: Any = None, **_: Any
) -> Advantages:
    by_deviation = True if config is None else config.get("norm_adv_by_std_in_grpo", True)
    settings = conventions(_PROFILE, "best_of_group", epsilon=epsilon, **_scale(by_deviation))
    return _on_tokens(tw.best_of_group(scores=_scores(token_level_rewards), groups=index, **settings), response_mask)


def _rloo(token_level_rewards: Tensor, response_mask: Tensor, index: Any, **_: Any) -> Advantages:
    settings = conventions(_PROFILE, "leave_one_out")
    return _on_tokens(tw.leave_one_out(scores=_scores(token_level_rewards), groups=index, **settings), response_mask)


def _opo(token_level_rewards: Tensor, response_mask: Tensor, index: Any, **_: Any) -> Advantages:
    values = tw.length_weighted_baseline(
        scores=_scores(token_level_rewards),
        groups=index,
        mask=kept(response_mask),
        **conventions(_PROFILE, "length_weighted_baseline"),
    )
    return _on_tokens(values, response_mask)


def _gpg(token_level_rewards: Tensor, response_mask: Tensor, index: Any, f_norm: float = 1.0, **_: Any) -> Advantages:
    settings = conventions(_PROFILE, "gpg_advantage", norm=f_norm)
    return _on_tokens(tw.gpg_advantage(scores=_scores(token_level_rewards), groups=index, **settings), response_mask)


def _reinforce_plus_plus(
    token_level_rewards: Tensor, response_mask: Tensor, config: Any = None, **_: Any
) -> Advantages:
    (rewards,) = same_precision(token_level_rewards.detach())
    gamma = 1.0 if config is None else float(config.gamma)
    settings = conventions(_PROFILE, "reinforce_plus_plus", gamma=gamma)
    found = tw.reinforce_plus_plus(rewards=rewards, mask=kept(response_mask), **settings)
    return found.advantages, found.returns


def _reinforce_plus_plus_baseline(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, **_: Any
) -> Advantages:
    advantages = tw.reinforce_plus_plus_baseline(
        scores=_scores(token_level_rewards),
        groups=index,
        mask=kept(response_mask),
        **conventions(_PROFILE, "reinforce_plus_plus_baseline"),
    )
    return advantages, advantages


def _remax(token_level_rewards: Tensor, reward_baselines: Tensor, response_mask: Tensor, **_: Any) -> Advantages:
    rewards, baselines = same_precision(token_level_rewards.detach(), reward_baselines)
    found = tw.remax(rewards=rewards, baselines=baselines, mask=kept(response_mask))
    return found.advantages, found.returns


#: The estimators that verl calls through its registry, by verl's names; registered as ``tokenwise/…``.
ESTIMATORS: dict[str, Callable[..., Advantages]] = {
    "grpo_passk": _grpo_passk,
    "reinforce_plus_plus": _reinforce_plus_plus,
    "reinforce_plus_plus_baseline": _reinforce_plus_plus_baseline,
    "remax": _remax,
    "rloo": _rloo,
    "opo": _opo,
    "gpg": _gpg,
}
#: The two that it calls by themselves; only :func:`replace` reaches these.
_DIRECT: dict[str, Callable[..., Advantages]] = {"gae": _gae, "grpo": _grpo}
_ATTRIBUTES = {
    "gae": "compute_gae_advantage_return",
    "grpo": "compute_grpo_outcome_advantage",
    "grpo_passk": "compute_grpo_passk_outcome_advantage",
    "reinforce_plus_plus": "compute_reinforce_plus_plus_outcome_advantage",
    "reinforce_plus_plus_baseline": "compute_reinforce_plus_plus_baseline_outcome_advantage",
    "remax": "compute_remax_outcome_advantage",
    "rloo": "compute_rloo_outcome_advantage",
    "opo": "compute_opo_outcome_advantage",
    "gpg": "compute_gpg_outcome_advantage",
}


# --- losses -------------------------------------------------------------------------------------------------------


def _aggregate(mode: str, width: int, info: Mapping[str, Any]) -> dict[str, Any]:
    """``agg_loss`` as settings: what it divides by, and the number of ranks."""
    known = {"dp_size", "batch_num_tokens", "global_batch_size", "loss_scale_factor"}
    if unknown := set(info) - known:
        name = sorted(unknown)[0]
        raise TokenwiseError(f"global_batch_info: {name} is not known", "key", name, None, str(sorted(known)), name)
    ranks = count("dp_size", info.get("dp_size")) or 1
    aggregate: dict[str, Any] = {"mode": mode, "divisor": "count-plus-epsilon"}
    if mode == "seq-mean-token-sum-norm":
        scale = info.get("loss_scale_factor")
        aggregate["scale"] = float(width if scale is None else scale)
    name, part = ("batch_num_tokens", "tokens") if mode == "token-mean" else ("global_batch_size", "sequences")
    divisor = count(name, info.get(name))
    if mode == "token-sum":
        aggregate["counts"] = {"ranks": ranks}
    elif divisor is not None:
        aggregate["counts"] = {part: divisor, "ranks": ranks}
    elif ranks > 1:
        raise ValueError(f"{name} is required when dp_size > 1")
    return aggregate


def _clip(config: Any) -> dict[str, float]:
    low, high = config.clip_ratio_low, config.clip_ratio_high
    return {
        "clip_low": config.clip_ratio if low is None else low,
        "clip_high": config.clip_ratio if high is None else high,
    }


def _or(value: Any, default: float) -> Any:
    return default if value is None else value


def _dual(config: Any) -> dict[str, Any]:
    bound = config.get("clip_ratio_c", 3.0)
    return {**_clip(config), "dual_clip": {"negative_only": float(bound)}}


def _clip_cov(config: Any) -> dict[str, Any]:
    loss = config.policy_loss
    ratio, lower = _or(loss.clip_cov_ratio, 0.0002), _or(loss.clip_cov_lb, 1.0)
    return {**_clip(config), "ratio": ratio, "lower": lower, "upper": _or(loss.clip_cov_ub, 5.0)}


def _kl_cov(config: Any) -> dict[str, Any]:
    loss = config.policy_loss
    return {"ratio": _or(loss.kl_cov_ratio, 0.0002), "kl_coef": _or(loss.ppo_kl_coef, 1.0)}


def _dro(config: Any) -> dict[str, Any]:
    beta = config.policy_loss.dro_beta
    if beta is None or beta <= 0:
        name, words = "policy_loss.dro_beta", "a positive number"
        raise TokenwiseError(f"{name}: expected {words}, got {beta}", "config", name, None, words, beta)
    return {"beta": beta}


def _dppo(config: Any) -> dict[str, Any]:
    return {**_clip(config), "ratio_cap": config.get("clip_ratio_c", 20.0)}


_FRACTIONS = {"actor/pg_clipfrac": "clip_fraction", "actor/pg_clipfrac_lower": "clip_fraction_lower"}
_KL = {"actor/ppo_kl": "kl"}
_METRICS = {**_FRACTIONS, **_KL}
#: verl's name → ours, the settings that verl's config gives, verl's metrics, whether it aggregates as it is told to
_KNOWN: dict[str, tuple[str, Callable[[Any], dict[str, Any]], dict[str, str], str | None]] = {
    "vanilla": ("ppo_clip", _dual, _METRICS, "as told"),
    "dppo_tv": ("dppo_tv", _dppo, _METRICS, "as told"),
    "dppo_kl": ("dppo_kl", _dppo, _METRICS, "as told"),
    "gspo": ("gspo", _clip, _METRICS, "as told"),
    "sapo": (
        "sapo",
        lambda config: {"tau_positive": config.tau_pos, "tau_negative": config.tau_neg},
        _METRICS,
        "seq-mean-token-mean",
    ),
    "gpg": ("reinforce", lambda config: {}, {}, "as told"),
    "clip_cov": ("clip_cov", _clip_cov, {"actor/pg_clipfrac": "clip_fraction", **_KL}, "as told"),
    "kl_cov": ("kl_cov", _kl_cov, _KL, "as told"),
    "geo_mean": ("gmpo", _clip, _METRICS, None),
    "dro": ("dro", _dro, _KL, "as told"),
    "cispo": (
        "cispo",
        lambda config: {"bounds": {"kind": "relative", **{key[5:]: bound for key, bound in _clip(config).items()}}},
        _METRICS,
        "as told",
    ),
}


class _Loss:
    """A policy loss with verl's signature."""

    def __init__(
        self,
        formula: str,
        settings: Callable[[Any], dict[str, Any]],
        metrics: Mapping[str, str],
        aggregation: str | None,
    ) -> None:
        self.formula, self.settings, self.metrics, self.aggregation = formula, settings, metrics, aggregation
        self.__name__ = self.__qualname__ = f"tokenwise_{formula}"

    def __call__(
        self,
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        old, new, advantages, weights = same_precision(
            old_log_prob.detach(), log_prob, advantages.detach(), rollout_is_weights
        )
        mask = kept(response_mask)
        settings = conventions(_PROFILE, self.formula, **self.settings(config))
        if self.aggregation is not None:
            mode = loss_agg_mode if self.aggregation == "as told" else self.aggregation
            settings["aggregate"] = _aggregate(mode, mask.shape[-1], config.global_batch_info)
        inputs = {"log_probs": new, "old_log_probs": old, "advantages": advantages, "mask": mask, "weights": weights}
        if self.formula == "clip_cov":
            # verl draws with torch's generator; a seed from it keeps runs repeatable under torch.manual_seed
            chosen = {key: value for key, value in settings.items() if key != "aggregate"}
            seed = int(torch.randint(2**31, ()).item())
            drawn = {key: value for key, value in inputs.items() if key != "weights"}
            drawn["log_probs"] = new.detach()
            inputs["selected"] = tw.clip_cov_selection(**drawn, clip=chosen, seed=seed)  # type: ignore[arg-type]
        found = twt.loss(self.formula, **inputs, **settings)
        return found.loss, {key: getattr(found, field) for key, field in self.metrics.items()}


#: verl's losses, by verl's names; registered as ``tokenwise/…``.
LOSSES: dict[str, _Loss] = {name: _Loss(*known) for name, known in _KNOWN.items()}


def policy_loss(formula: str, **settings: Any) -> Callable[..., tuple[Tensor, dict[str, Any]]]:
    """Any loss of tokenwise as a policy loss of verl, to be registered under a name of your own.

    ``register_policy_loss("mine")(policy_loss("vespo", k_positive=2.0))`` in a module that
    ``VERL_USE_EXTERNAL_MODULES`` names, so that every worker has it. The aggregation is that of the actor's config.
    """
    if formula not in twt.losses():
        raise TokenwiseError(f"{formula}: not a loss", "choice", "formula", None, ", ".join(twt.losses()), formula)
    takes_mode = formula not in ("gmpo", "luspo")
    fields: tuple[str, ...] = getattr(getattr(tw, _result(formula)), "_fields", ())
    metrics = {key: field for key, field in _METRICS.items() if field in fields}
    return _Loss(formula, lambda config: dict(settings), metrics, "as told" if takes_mode else None)


def _result(formula: str) -> str:
    return "".join(part.capitalize() for part in formula.split("_")) + "Result"


# --- registration -------------------------------------------------------------------------------------------------

_log = logging.getLogger(__name__)
_replaced: list[Callable[[], None]] = []


def _core_algos() -> Any:
    from verl.trainer.ppo import core_algos  # type: ignore[import-untyped, unused-ignore]

    return core_algos


def _version() -> str:
    import verl  # type: ignore[import-untyped, unused-ignore]

    return str(getattr(verl, "__version__", "unknown"))


def register() -> None:
    """Gives verl the names ``tokenwise/…``. Importing this module does it; twice is as good as once."""
    core_algos = _core_algos()
    for name, loss in LOSSES.items():
        core_algos.register_policy_loss(f"tokenwise/{name}")(loss)
    for name, estimator in ESTIMATORS.items():
        core_algos.register_adv_est(f"tokenwise/{name}")(estimator)


def replace(*names: str) -> None:
    """Puts our functions in the place of verl's: ``gae``, ``grpo`` (both if nothing is named), any of
    :data:`ESTIMATORS` or :data:`LOSSES`. :func:`restore` undoes it.
    """
    if _version() != VERSION:
        raise TokenwiseError(
            f"verl: expected {VERSION}, got {_version()}", "version", "verl", None, VERSION, _version()
        )
    core_algos = _core_algos()
    estimators = {**_DIRECT, **ESTIMATORS}
    for name in names or tuple(_DIRECT):
        if name in estimators:
            attribute, function = _ATTRIBUTES[name], estimators[name]
            _assign(core_algos.__dict__, attribute, function)
            _assign(core_algos.ADV_ESTIMATOR_REGISTRY, name, function)
        elif name in LOSSES:
            _assign(core_algos.POLICY_LOSS_REGISTRY, name, LOSSES[name])
            _assign(core_algos.__dict__, f"compute_policy_loss_{name}", LOSSES[name])
        else:
            words = ", ".join([*estimators, *LOSSES])
            raise TokenwiseError(f"{name}: expected one of {words}", "choice", "name", None, words, name)


def _assign(owner: dict[str, Any], key: str, value: Any) -> None:
    before = owner[key]
    owner[key] = value
    _replaced.append(lambda: owner.__setitem__(key, before))


def restore() -> None:
    """verl's own functions again."""
    while _replaced:
        _replaced.pop()()


def _at_import() -> None:
    register()
    if _version() != VERSION:
        _log.warning("tokenwise_rl is tested with verl %s, this is %s", VERSION, _version())
    names = [name.strip() for name in os.environ.get(_VARIABLE, "").split(",") if name.strip()]
    if names:
        try:
            replace(*names)
        except TokenwiseError as error:
            # verl logs a plug-in that fails at DEBUG, where nobody sees it
            _log.warning("%s=%s: nothing replaced: %s", _VARIABLE, ",".join(names), error)


_at_import()
