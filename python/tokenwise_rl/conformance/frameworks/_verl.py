"""verl 0.9.1: ``verl.trainer.ppo.core_algos`` and ``verl.utils.torch_functional``."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from .._calling import Adapter, Skip
from .._cases import library
from ._subject import Subject, step, without_bootstrap

PROFILE = "verl-0.9.1"
BOTH = ("advantages", "returns")
#: The counts of a whole step, as ``agg_loss`` calls them.
COUNTS = {
    "scale_factor": "loss_scale_factor",
    "global_tokens": "batch_num_tokens",
    "global_sequences": "global_batch_size",
    "ranks": "dp_size",
}
METRICS = {"clip_fraction": "pg_clipfrac", "clip_fraction_lower": "pg_clipfrac_lower", "kl": "ppo_kl"}
ACTOR = {
    "clip_low": ("clip_ratio", "clip_ratio_low"),
    "clip_high": ("clip_ratio_high",),
    "dual_clip": ("clip_ratio_c",),
    "tau_pos": ("tau_pos",),
    "tau_neg": ("tau_neg",),
}
LOSS = {"beta": "dro_beta", "kl_coef": "ppo_kl_coef", "lower": "clip_cov_lb", "upper": "clip_cov_ub"}


def _core(name: str) -> Callable[..., Any]:
    """A function that is looked up when it is called, so that this list needs no verl."""

    def function(*arguments: Any, **options: Any) -> Any:
        os.environ.setdefault("VERL_DISABLE_FLASH_ATTN_CE", "1")
        return getattr(library("verl.trainer.ppo.core_algos"), name)(*arguments, **options)

    function.__name__ = name
    return function


def _functional(name: str) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        os.environ.setdefault("VERL_DISABLE_FLASH_ATTN_CE", "1")
        return getattr(library("verl.utils.torch_functional"), name)(*arguments, **options)

    function.__name__ = name
    return function


def _index(arguments: dict[str, Any]) -> Any:
    """verl's prompts are an array of NumPy."""
    return np.asarray(arguments["groups"])


def _gae(function: Any, arguments: dict[str, Any]) -> Any:
    without_bootstrap(arguments)
    names = {"rewards": "token_level_rewards", "values": "values", "mask": "response_mask", "gamma": "gamma"}
    return function(**step(arguments, names), lam=arguments["lambda_"])


def _grouped(function: Any, arguments: dict[str, Any], std: str = "") -> Any:
    if arguments.get("normalize") or arguments.get("scale") == "batch":
        raise Skip("it has no scale over the batch")
    given: dict[str, Any] = {}
    flag = {"norm_adv_by_std_in_grpo": arguments.get("norm_by_std", True)}
    if std == "argument":
        given = dict(flag)
    elif std == "config":
        given = {"config": flag}
    return function(arguments["rewards"], arguments["mask"], index=_index(arguments), **given)


def _gdpo(function: Any, arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    sources, mask = arguments["reward_sources"], arguments["mask"]
    keys = [f"source-{number}" for number in range(len(sources))]
    ones = torch.ones(mask.shape, dtype=torch.long)
    config: dict[str, Any] = {"gdpo_reward_keys": keys}
    if arguments.get("weights") is not None:
        config["gdpo_reward_weights"] = arguments["weights"]
    return function(
        torch.zeros_like(mask),
        mask,
        _index(arguments),
        config=config,
        non_tensor_batch={key: source.numpy() for key, source in zip(keys, sources)},
        batch={"prompts": ones[:, :1], "attention_mask": torch.cat([ones[:, :1], ones], dim=1)},
    )


def _discounted(function: Any, arguments: dict[str, Any]) -> Any:
    without_bootstrap(arguments)
    config = SimpleNamespace(gamma=arguments["gamma"])
    return function(arguments["rewards"], arguments["mask"], config=config)


def _remax(function: Any, arguments: dict[str, Any]) -> Any:
    return function(arguments["rewards"], arguments["baselines"], arguments["mask"])


def _optimal(function: Any, arguments: dict[str, Any]) -> Any:
    return function(
        arguments["rewards"],
        arguments["mask"],
        _index(arguments),
        arguments["old_log_probs"],
        arguments["sum_pi_squared"],
        handle_zero_tail=arguments.get("handle_zero_tail", True),
    )


def _policy_loss(name: str, function: Any, arguments: dict[str, Any]) -> Any:
    """Any loss of the registry."""
    if "dual_clip" in arguments and arguments["dual_clip"] is None:
        raise Skip("its second clip is always on")
    config = library("verl.workers.config.actor")
    loss = {theirs: arguments[ours] for ours, theirs in LOSS.items() if arguments.get(ours) is not None}
    if arguments.get("ratio") is not None:
        loss[f"{name}_ratio"] = arguments["ratio"]
    if name == "bypass_mode":
        loss = {
            "rollout_correction": {
                "loss_type": arguments["form"],
                "rollout_is": arguments.get("level"),
                "rollout_is_threshold": arguments["upper"],
                "rollout_rs": arguments.get("options") or None,
                "rollout_rs_threshold": arguments.get("thresholds") or None,
            }
        }
    actor = config.ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        policy_loss=config.PolicyLossConfig(**loss),
        **{name: arguments[ours] for ours, names in ACTOR.items() if arguments.get(ours) is not None for name in names},
    )
    actor.global_batch_info.update(step(arguments, COUNTS))
    value, metrics = function(
        arguments["old_log_probs"],
        arguments["log_probs"],
        arguments["advantages"],
        arguments["mask"],
        arguments.get("aggregate") or "token-mean",
        actor,
    )
    return {"loss": value} | {
        ours: metrics[key] for ours, theirs in METRICS.items() if (key := f"actor/{theirs}") in metrics
    }


def _clip_cov(function: Any, arguments: dict[str, Any]) -> Any:
    """verl draws the clipped tokens at random; the golden cases were drawn with these seeds, this many in each."""
    torch = library("torch")
    chosen, kept = float(arguments["selected"].sum()), float(arguments["mask"].sum())
    arguments = {**arguments, "ratio": (chosen + 0.5) / max(kept, 1.0)}
    permutation = torch.randperm

    def randperm(number: int, **_: Any) -> Any:
        seed = zlib.crc32(f"clip_cov/{number}".encode())
        return permutation(number, generator=torch.Generator().manual_seed(seed))

    with mock.patch.object(torch, "randperm", randperm):
        return _policy_loss("clip_cov", function, arguments)


def _registered(name: str) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        return _core("get_policy_loss_fn")(name)(*arguments, **options)

    function.__name__ = f'policy loss "{name}"'
    return function


def _value_loss(function: Any, arguments: dict[str, Any]) -> Any:
    if arguments.get("clip") is None:
        raise Skip("it always clips")
    found = (arguments[name] for name in ("predictions", "returns", "values", "mask", "clip"))
    return function(*found, arguments.get("aggregate") or "token-mean")


def _aggregate(function: Any, arguments: dict[str, Any]) -> Any:
    if arguments["mode"] == "prompt-mean":
        raise Skip("it has no aggregation prompt-mean")
    return function(arguments["losses"], arguments["mask"], arguments["mode"], **step(arguments, COUNTS))


def _kl(function: Any, arguments: dict[str, Any]) -> Any:
    return function(arguments["log_probs"], arguments["ref_log_probs"], arguments["estimator"])


def _masked(function: Any, arguments: dict[str, Any]) -> Any:
    more = {"shift_mean": arguments["shift_mean"]} if "shift_mean" in arguments else {}
    return function(arguments["x"], arguments["mask"], **more)


ESTIMATORS: dict[str, tuple[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "gae": ("compute_gae_advantage_return", _gae),
    "grpo": ("compute_grpo_outcome_advantage", partial(_grouped, std="argument")),
    "grpo_vectorized": ("compute_grpo_vectorized_outcome_advantage", partial(_grouped, std="argument")),
    "gdpo": ("compute_gdpo_outcome_advantage", _gdpo),
    "grpo_passk": ("compute_grpo_passk_outcome_advantage", partial(_grouped, std="config")),
    "reinforce_plus_plus_baseline": ("compute_reinforce_plus_plus_baseline_outcome_advantage", _grouped),
    "rloo": ("compute_rloo_outcome_advantage", _grouped),
    "rloo_vectorized": ("compute_rloo_vectorized_outcome_advantage", _grouped),
    "opo": ("compute_opo_outcome_advantage", _grouped),
    "reinforce_plus_plus": ("compute_reinforce_plus_plus_outcome_advantage", _discounted),
    "remax": ("compute_remax_outcome_advantage", _remax),
    "gpg_advantage": ("compute_gpg_outcome_advantage", _grouped),
    "optimal_token_baseline": ("compute_optimal_token_baseline_advantage", _optimal),
    "tir_optimal_token_baseline": ("compute_multi_turn_optimal_token_baseline_advantage", _optimal),
}
POLICY_LOSSES = {
    "ppo_clip": "vanilla",
    "dppo_tv": "dppo_tv",
    "dppo_kl": "dppo_kl",
    "gspo": "gspo",
    "sapo": "sapo",
    "reinforce": "gpg",
    "clip_cov": "clip_cov",
    "kl_cov": "kl_cov",
    "gmpo": "geo_mean",
    "dro": "dro",
    "cispo": "cispo",
    "bypass_mode": "bypass_mode",
}
OTHERS: dict[str, tuple[Callable[..., Any], Callable[[Any, dict[str, Any]], Any], tuple[str, ...]]] = {
    "value_loss": (_core("compute_value_loss"), _value_loss, ("loss", "clip_fraction")),
    "aggregate": (_core("agg_loss"), _aggregate, ("value",)),
    "kl": (_core("kl_penalty"), _kl, ("kl",)),
    "masked_mean": (_functional("masked_mean"), _masked, ("value",)),
    "masked_var": (_functional("masked_var"), _masked, ("value",)),
    "masked_whiten": (_functional("masked_whiten"), _masked, ("out",)),
}


def subjects() -> list[Subject]:
    made = []
    for op, (name, call) in ESTIMATORS.items():
        fixed = {"whiten": True} if op == "gae" else {}
        made.append(
            Subject(PROFILE, op, name, _core(name), Adapter(returns=BOTH, fixed=fixed, kind="torch", call=call))
        )
    for op, name in POLICY_LOSSES.items():
        call = _clip_cov if op == "clip_cov" else partial(_policy_loss, name)
        made.append(Subject(PROFILE, op, f'policy loss "{name}"', _registered(name), Adapter(kind="torch", call=call)))
    for op, (function, call, returns) in OTHERS.items():
        adapter = Adapter(returns=returns, kind="torch", call=call)
        made.append(Subject(PROFILE, op, function.__name__, function, adapter))
    return made
