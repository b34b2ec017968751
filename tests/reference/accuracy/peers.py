"""The same formulas in verl, TRL, OpenRLHF and torch, on the same inputs in the same type.

A function is used only where the config of the call is that library's convention; elsewhere it returns `None`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from frameworks import (
    distill_ops,
    openrlhf_ops,
    trl_ops,
    verl_estimators,
    verl_filters,
    verl_losses,
    verl_ops,
    verl_rollout,
)

from .calls import Given
from .judge import Made, Peer

Tensor = torch.Tensor
EPSILON = "count-plus-epsilon"


class Inputs:
    """The inputs of a call as tensors."""

    def __init__(self, given: Given, dtype: str) -> None:
        self.given, self.config, self.dtype = given, given.config, getattr(torch, dtype)
        mask = np.array(given.mask, dtype=dtype)
        self.mask = torch.from_numpy(mask.reshape(given.rows, -1) if given.rows else mask)

    def __call__(self, *names: str) -> list[Tensor]:
        return [torch.from_numpy(np.ascontiguousarray(self.given.inputs[name])) for name in names]

    def has(self, name: str) -> bool:
        return self.given.inputs.get(name) is not None

    def of(self, path: str, default: Any = None) -> Any:
        value: Any = self.config
        for part in path.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value

    def kept(self, x: Tensor) -> Tensor:
        """0 at the dropped slots, where libraries write anything."""
        mask = self.mask if x.dim() == 2 else self.mask.unsqueeze(-1)
        return torch.where(mask > 0, x, 0.0)

    @property
    def groups(self) -> list[int]:
        return list(self.given.groups or [])

    def summed(self, scores: Tensor) -> Tensor:
        """A score of a sequence as a reward of its first slot."""
        rewards = torch.zeros_like(self.mask)
        rewards[:, 0] = scores
        return rewards


Run = Callable[[Inputs], "dict[str, Any] | None"]
PEERS: dict[str, dict[str, Peer]] = {}


def peer(who: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a library's function for formulas; one for several gets their name as its second argument."""

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:

            def wrapped(given: Given, dtype: str, name: str = name) -> Made | None:
                inputs = Inputs(given, dtype)
                try:
                    made = run(inputs, name) if len(names) > 1 else run(inputs)
                except (ValueError, RuntimeError, ZeroDivisionError, AssertionError):
                    return None  # a call that the library refuses
                return made and {key: plain(inputs, value) for key, value in made.items()}

            PEERS.setdefault(name, {})[who] = wrapped
        return run

    return register


def plain(inputs: Inputs, value: Any) -> np.ndarray:
    tensor = torch.as_tensor(value).detach()
    if tensor.dim() >= 2 and tensor.shape[:2] == inputs.mask.shape:
        tensor = inputs.kept(tensor)
    return tensor.double().numpy()


# policy and divergence


def temperature(i: Inputs) -> float:
    return i.of("temperature", 1.0)


@peer("verl", "token_log_probs")
def token_log_probs(i: Inputs) -> Any:
    return verl_ops.token_log_probs(*i("logits", "tokens"), temperature(i))


@peer("verl", "entropy")
def entropy(i: Inputs) -> Any:
    return verl_ops.entropy(*i("logits"), temperature(i))


@peer("verl", "log_probs_and_entropy")
def both(i: Inputs) -> Any:
    return token_log_probs(i) | entropy(i)


@peer("verl", "sum_squared_probs")
def sum_squared_probs(i: Inputs) -> Any:
    return verl_ops.sum_pi_squared(*i("logits")) if temperature(i) == 1 else None


@peer("verl", "logits_gradient")
def logits_gradient(i: Inputs) -> Any:
    z, tokens, g, h = i("logits", "tokens", "grad_log_probs", "grad_entropy")
    return verl_ops.logits_grad(z, tokens, g, h, torch.ones_like(g)) if temperature(i) == 1 else None


@peer("torch", "topk_log_probs")
def topk_log_probs(i: Inputs) -> Any:
    z, ids = i("logits", "tokens")
    return {"log_probs": torch.log_softmax(z / temperature(i), -1).gather(-1, ids.long())}


@peer("torch", "topk_logits_gradient")
def topk_logits_gradient(i: Inputs) -> Any:
    z, ids, grad = i("logits", "tokens", "grad_log_probs")
    z.requires_grad_(True)
    found = torch.log_softmax(z / temperature(i), -1).gather(-1, ids.long())
    return {"grad_logits": torch.autograd.grad((found * grad).sum(), z)[0]}


def estimator(config: dict[str, Any], bounds: str = "k3-only") -> str | None:
    if config.get("bounds", "unbounded") != bounds:
        return None
    return config.get("estimator", "k1") + ("+" if config.get("gradient", "own") == "straight-through" else "")


@peer("verl", "kl_estimate", "kl_gradient")
def kl(i: Inputs, name: str) -> Any:
    kind = estimator(i.config)
    return kind and verl_ops.kl(*i("log_probs", "ref_log_probs"), kind)


@peer("TRL", "kl_importance_weighted")
def kl_importance_weighted(i: Inputs) -> Any:
    level = {"token": "token", "sequence": "sequence"}.get(i.of("weight", "token"))
    if level is None or estimator(i.of("kl", {"estimator": "k3"}), "unbounded") != "k3":
        return None
    return trl_ops.kl_importance_weighted(*i("log_probs", "ref_log_probs", "old_log_probs"), i.mask, level)


def torch_kl(i: Inputs) -> tuple[Tensor, Tensor]:
    z, w = i("logits", "ref_logits")
    z.requires_grad_(True)
    p, q = (torch.log_softmax(x / temperature(i), -1) for x in (z, w))
    return z, torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1)


@peer("torch", "kl_exact")
def kl_exact(i: Inputs) -> Any:
    return {"kl": torch_kl(i)[1]}


@peer("torch", "kl_exact_gradient")
def kl_exact_gradient(i: Inputs) -> Any:
    z, made = torch_kl(i)
    return {"grad_logits": torch.autograd.grad((made * i("grad_kl")[0]).sum(), z)[0]}


# rewards


@peer("verl", "kl_in_reward")
def kl_in_reward(i: Inputs) -> Any:
    kind = estimator(i.of("kl", {}))
    if not kind or i.of("divisor") != EPSILON:
        return None
    out = verl_ops.kl_in_reward(*i("scores", "old_log_probs", "ref_log_probs"), i.mask, i.of("beta", 0.001), kind)
    return {"rewards": out["rewards"], "mean_kl": out["current_kl"]}


@peer("OpenRLHF", "clipped_rewards")
def clipped_rewards(i: Inputs) -> Any:
    scores, kl = i("scores", "kl")
    bounds = i.of("low", -10.0), i.of("high", 10.0)
    return openrlhf_ops.clipped_rewards(scores.tolist(), kl, i.mask, i.of("beta", 0.01), bounds)


@peer("OpenRLHF", "place_scores")
def place_scores(i: Inputs) -> Any:
    (scores,) = i("scores")
    return openrlhf_ops.place_scores(scores, i.mask) if scores.abs().max() <= 10 else None


# advantages


def whole_steps(i: Inputs) -> bool:
    return i.of("across", "step-over") == "step-over" and not bool(np.any(i.given.inputs.get("bootstrap", 0)))


@peer("verl", "gae")
def gae(i: Inputs) -> Any:
    if not whole_steps(i):
        return None
    return verl_ops.gae(*i("rewards", "values"), i.mask, i.of("gamma", 1.0), i.of("lambda", 1.0), whiten=False)


@peer("verl", "discounted_returns")
def discounted_returns(i: Inputs) -> Any:
    return verl_ops.discounted_returns(*i("rewards"), i.mask, i.of("gamma", 1.0)) if whole_steps(i) else None


def is_verl_whiten(i: Inputs, config: dict[str, Any]) -> bool:
    usual = {"spread": "sample", "place": "inside-root", "scale": "standard-deviation"}
    if any(config.get(key, value) != value for key, value in usual.items()):
        return False
    epsilon = abs(config.get("epsilon", 1e-8) / 1e-8 - 1) < 1e-6
    return epsilon and (config.get("divisor") == EPSILON or i.dtype == torch.float32)


@peer("verl", "whiten")
def whiten(i: Inputs) -> Any:
    shift = i.of("center", "shift") == "shift"
    return verl_ops.masked_whiten(*i("values"), i.mask, shift) if is_verl_whiten(i, i.config) else None


@peer("verl", "reinforce_plus_plus")
def reinforce_plus_plus(i: Inputs) -> Any:
    if not whole_steps(i) or not is_verl_whiten(i, i.of("whiten", {})):
        return None
    return verl_estimators.reinforce_plus_plus(*i("rewards"), i.mask, i.of("gamma", 1.0))


@peer("verl", "reinforce_plus_plus_baseline")
def reinforce_plus_plus_baseline(i: Inputs) -> Any:
    if i.of("singleton") != "raw" or not is_verl_whiten(i, i.of("whiten", {})):
        return None
    return verl_estimators.grouped("reinforce_plus_plus_baseline", i.summed(*i("scores")), i.mask, i.groups)


@peer("verl", "remax")
def remax(i: Inputs) -> Any:
    rewards, baselines = i("rewards", "baselines")
    return verl_estimators.remax(i.kept(rewards), i.mask, baselines)


@peer("verl", "gdpo")
def gdpo(i: Inputs) -> Any:
    group = i.of("group", {})
    usual = group.get("scale", "standard-deviation") == "standard-deviation" and group.get("spread") == "sample"
    if not usual or group.get("singleton") != "raw" or not is_verl_whiten(i, i.of("whiten", {})):
        return None
    sources, weights = i("sources", "weights")
    return verl_estimators.gdpo(sources, i.mask, i.groups, weights.tolist())


def by_sequence(i: Inputs, advantages: Tensor) -> Any:
    return {"out": advantages[:, 0]}


def columns(i: Inputs) -> tuple[Tensor, Tensor]:
    """The scores as rewards of one token."""
    (scores,) = i("scores")
    return scores.reshape(-1, 1), torch.ones(len(scores), 1, dtype=scores.dtype)


@peer("verl", "group_relative")
def group_relative(i: Inputs) -> Any:
    if i.of("spread", "sample") != "sample" or i.of("singleton") != "raw" or i.of("scale") == "batch-deviation":
        return None
    if abs(i.of("epsilon", 1e-6) / 1e-6 - 1) > 1e-6:
        return None
    made = verl_ops.grpo(*columns(i), i.groups, i.of("scale", "standard-deviation") == "standard-deviation")
    return by_sequence(i, made["advantages"])


@peer("verl", "leave_one_out")
def leave_one_out(i: Inputs) -> Any:
    return by_sequence(i, verl_ops.rloo(*columns(i), i.groups)["advantages"]) if i.of("singleton") == "raw" else None


@peer("verl", "gpg_advantage")
def gpg_advantage(i: Inputs) -> Any:
    if i.of("singleton") != "raw" or i.of("factor") != "single" or i.of("norm", 1.0) != 1:
        return None
    return by_sequence(i, verl_estimators.grouped("gpg_advantage", *columns(i), i.groups)["advantages"])


@peer("verl", "best_of_group")
def best_of_group(i: Inputs) -> Any:
    if i.of("spread", "sample") != "sample" or i.of("scale") == "batch-deviation":
        return None
    by_std = i.of("scale", "standard-deviation") == "standard-deviation"
    return by_sequence(i, verl_estimators.grouped("grpo_passk", *columns(i), i.groups, by_std)["advantages"])


@peer("verl", "length_weighted_baseline")
def length_weighted_baseline(i: Inputs) -> Any:
    if i.of("singleton") != "raw" or not bool((i.mask[:, 0] > 0).all()):
        return None
    return by_sequence(i, verl_estimators.grouped("opo", i.summed(*i("scores")), i.mask, i.groups)["advantages"])


@peer("verl", "optimal_token_baseline", "tir_optimal_token_baseline")
def optimal(i: Inputs, name: str) -> Any:
    if i.has("is_weights"):
        return None
    rewards, old, squares = i("rewards", "old_log_probs", "sum_pi_squared")
    zero_tail = i.of("zero_tail", "no-baseline") == "no-baseline"
    return verl_estimators.optimal(name, i.kept(rewards), i.mask, i.groups, old, squares, zero_tail)


# losses


def aggregation(i: Inputs, path: str = "aggregate") -> dict[str, Any] | None:
    """verl's parameters."""
    config = i.of(path, {}) if path else i.config
    if config.get("counts") or config.get("empty_rows", "excluded") != "excluded":
        return None
    mode = config.get("mode", "token-mean")
    if mode == "prompt-mean" or (mode == "seq-mean-token-mean" and config.get("divisor") != EPSILON):
        return None
    return {"aggregate": mode} | ({"scale_factor": config["scale"]} if "scale" in config else {})


POLICY = ("log_probs", "old_log_probs", "advantages")


@peer("verl", "ppo_clip")
def ppo_clip(i: Inputs) -> Any:
    params, dual = aggregation(i), i.of("dual_clip", "off")
    if params is None or i.has("weights") or i.of("log_ratio_bound", 20.0) != 20 or i.of("divisor") != EPSILON:
        return None
    if not isinstance(dual, dict) or "negative_only" not in dual or i.of("reported_kl", "bounded") != "bounded":
        return None
    params |= {"clip_low": i.of("clip_low"), "clip_high": i.of("clip_high"), "dual_clip": dual["negative_only"]}
    return verl_ops.ppo_clip(*i(*POLICY), i.mask, params)


NAMES = {"tau_positive": "tau_pos", "tau_negative": "tau_neg"}


@peer("verl", "gspo", "gmpo", "cispo", "sapo", "dppo_tv", "dppo_kl", "kl_cov", "dro", "reinforce")
def policy_loss(i: Inputs, name: str) -> Any:
    params = {} if name == "gmpo" else aggregation(i)
    if params is None or i.has("weights") or i.of("divisor") != EPSILON or i.of("counts"):
        return None
    if name == "gspo" and (i.of("form") != "token" or i.of("log_ratio_cap") != 10):
        return None
    bounds = i.of("bounds", {})
    if name == "cispo":
        if bounds.get("kind") != "relative":
            return None
        params |= {"clip_low": bounds["low"], "clip_high": bounds["high"]}
    keys = ("clip_low", "clip_high", "tau_positive", "tau_negative", "beta", "kl_coef", "ratio")
    params |= {NAMES.get(key, key): i.config[key] for key in keys if key in i.config}
    out = verl_losses.policy_loss(name, *i(*POLICY), i.mask, params)
    return {key: value for key, value in out.items() if key in ("loss", "grad")}


@peer("TRL", "vespo", "luspo")
def trl_loss(i: Inputs, name: str) -> Any:
    if i.has("weights") or (name == "vespo" and i.of("aggregate.mode", "token-mean") != "token-mean"):
        return None
    if name == "vespo" and i.of("aggregate.counts"):
        return None
    params = {key: i.config[key] for key in ("clip_low", "clip_high") if key in i.config}
    out = trl_ops.policy_loss(name, *i(*POLICY), i.mask, params)
    return {key: value for key, value in out.items() if key in ("loss", "grad")}


@peer("verl", "aggregate")
def aggregate(i: Inputs) -> Any:
    params = aggregation(i, "")
    if params is None:
        return None
    mode = params.pop("aggregate")
    out = verl_ops.aggregate(*i("losses"), i.mask, mode, **params)
    return {"loss": out["value"], "weights": out["weights"]}


@peer("verl", "value_loss")
def value_loss(i: Inputs) -> Any:
    params = aggregation(i)
    if params is None or len(params) > 1 or i.of("factor", "half") != "half" or i.of("divisor") != EPSILON:
        return None
    if i.of("clip", 0.5) is None:
        return None
    columns = i("predictions", "values", "returns")
    return verl_ops.value_loss(*columns, i.mask, i.of("clip", 0.5), params["aggregate"])


@peer("verl", "entropy_bonus")
def entropy_bonus(i: Inputs) -> Any:
    params = aggregation(i)
    if params is None or len(params) > 1:
        return None
    return verl_ops.entropy_bonus(*i("entropy"), i.mask, i.of("coefficient", 0.01), params["aggregate"])


@peer("verl", "kl_loss")
def kl_loss(i: Inputs) -> Any:
    params, kind = aggregation(i), estimator(i.of("kl", {"estimator": "k3"}))
    if params is None or not kind:
        return None
    params |= {"estimator": kind, "coefficient": i.of("coefficient", 1e-3)}
    return distill_ops.kl_loss(*i("log_probs", "ref_log_probs"), i.mask, params)


@peer("verl", "opd_loss")
def opd_loss(i: Inputs) -> Any:
    params, kind = aggregation(i), estimator(i.of("kl", {}))
    route = i.of("route", "clipped")
    if params is None or len(params) > 1 or not kind or i.has("weights") or i.of("coefficient", 1.0) != 1:
        return None
    if route not in ("clipped", "supervised") or i.of("max_loss", 10.0) is None or i.of("divisor") != EPSILON:
        return None
    params |= {"estimator": kind, "max_loss": i.of("max_loss", 10.0), "route": route}
    params |= {key: i.of(key, 0.2) for key in ("clip_low", "clip_high")}
    out = distill_ops.opd_loss(*i("log_probs", "old_log_probs", "teacher_log_probs"), i.mask, params)
    return {key: value for key, value in out.items() if key in ("loss", "grad")}


@peer("TRL", "iw_opd")
def iw_opd(i: Inputs) -> Any:
    if i.of("aggregate.mode", "token-mean") != "token-mean" or i.of("aggregate.counts"):
        return None
    params = {"gamma": i.of("gamma", 0.5), "epsilon": i.of("epsilon", 1e-8)}
    out = distill_ops.iw_opd(*i("log_probs", "old_log_probs", "teacher_log_probs"), i.mask, params)
    return {key: value for key, value in out.items() if key in ("loss", "grad")}


@peer("TRL", "generalized_jsd")
def generalized_jsd(i: Inputs) -> Any:
    if i.of("aggregate.mode", "token-mean") != "token-mean" or i.has("weights") or i.of("aggregate.counts"):
        return None
    params = {"beta": float(i.of("beta", 0.5)), "temperature": i.of("temperature", 1.0)}
    return distill_ops.generalized_jsd(*i("logits", "teacher_logits"), i.mask, params)


# rollout and metrics


@peer("verl", "rollout_weights")
def rollout_weights(i: Inputs) -> Any:
    bound, level = i.of("bound", {}), i.of("level", "token")
    if i.of("divisor") != EPSILON or level == "geometric" or i.of("log_bound", 20.0) != 20:
        return None
    if i.of("normalize", "off") == "tokens" or bound.get("kind") not in ("truncate", "zero"):
        return None
    params = {"level": level, "upper": bound["upper"], "batch_normalize": i.of("normalize", "off") != "off"}
    if bound["kind"] == "zero":
        params["lower"] = bound["lower"]
    return {"weights": verl_rollout.rollout_is(*i("old_log_probs", "rollout_log_probs"), i.mask, params)["weights"]}


@peer("verl", "rollout_mismatch")
def rollout_mismatch(i: Inputs) -> Any:
    if i.of("divisor") != EPSILON:
        return None
    made = verl_rollout.rollout_metrics(*i("old_log_probs", "rollout_log_probs"), i.mask)
    return {key: value for key, value in made.items() if key.startswith("rollout_corr/")}


@peer("OpenRLHF", "rollout_gate")
def rollout_gate(i: Inputs) -> Any:
    if i.of("level", "off") == "off":
        return None
    params = {key: i.config[key] for key in ("level", "statistic", "mode", "lower", "upper") if key in i.config}
    names = {"ratio": "ratio", "binary-kl": "binary_kl", "total-variation": "tv"}
    params["statistic"] = names[params.get("statistic", "ratio")]
    return {"weights": openrlhf_ops.rollout_gate(*i("old_log_probs", "rollout_log_probs"), i.mask, params)["weights"]}


@peer("verl", "probability_difference")
def probability_difference(i: Inputs) -> Any:
    return verl_filters.probability_difference(*i("old_log_probs", "rollout_log_probs"), i.mask)


@peer("verl", "variance_proxy")
def variance_proxy(i: Inputs) -> Any:
    if i.of("divisor") != EPSILON:
        return None
    columns = i("old_log_probs", "sum_pi_squared", "advantages")
    weights = i("weights")[0] if i.has("weights") else None
    return verl_filters.variance_proxy(*columns, i.mask, i.of("gradient_norm"), weights)


@peer("verl", "mean")
def mean(i: Inputs) -> Any:
    return {"mean": verl_ops.masked_mean(*i("values"), i.mask)["value"]} if i.of("divisor") == EPSILON else None


@peer("verl", "variance")
def variance(i: Inputs) -> Any:
    if i.of("divisor") != EPSILON or i.of("spread", "sample") != "sample":
        return None
    return {"variance": verl_ops.masked_var(*i("values"), i.mask)["value"]}


@peer("verl", "kl_means")
def kl_means(i: Inputs) -> Any:
    # verl bounds k3
    columns = i("log_probs", "ref_log_probs")
    if i.of("divisor") != EPSILON:
        return None
    return {key: x for key, x in verl_ops.kl_means(*columns, i.mask).items() if key != "k3"}


@peer("verl", "row_means")
def row_means(i: Inputs) -> Any:
    return verl_filters.row_means(*i("values"), i.mask) if i.of("divisor") == EPSILON else None


@peer("verl", "sequence_sums")
def sequence_sums(i: Inputs) -> Any:
    return verl_filters.row_sums(*i("rewards"), i.mask)


@peer("OpenRLHF", "row_normalize")
def row_normalize(i: Inputs) -> Any:
    return openrlhf_ops.row_normalize(*i("values"), i.mask) if abs(i.of("floor", 1e-8) / 1e-8 - 1) < 1e-6 else None


def kept_numbers(i: Inputs, *names: str) -> list[Tensor]:
    return [x[i.mask > 0] for x in i(*names)]


@peer("torch", "quantile")
def quantile(i: Inputs) -> Any:
    (x,) = kept_numbers(i, "values")
    return {"quantile": torch.quantile(x, float(i.of("level", 0.5)))} if len(x) else None


@peer("torch", "correlation")
def correlation(i: Inputs) -> Any:
    return {"correlation": torch.corrcoef(torch.stack(kept_numbers(i, "x", "y")))[0, 1]}


@peer("verl", "explained_variance")
def explained_variance(i: Inputs) -> Any:
    if i.of("spread", "sample") != "sample" or not bool((i.mask > 0).all()):
        return None
    if abs(i.of("epsilon", 1e-5) / 1e-5 - 1) > 1e-6:
        return None
    return {"explained_variance": verl_ops.explained_variance(*i("values", "returns"), i.mask)["value"]}


warnings.filterwarnings("ignore")
