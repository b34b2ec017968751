"""Our own formulas under the names of the golden cases, with any convention changed.

An operation is one formula of the catalogue or a few in a row; ``runs`` computes it under the profile of a case.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _formulas, configs, conventions, settings
from .._errors import TokenwiseError
from .._native import call

if TYPE_CHECKING:
    from ._cases import Case

Settings = dict[str, Any]
#: How a function of this operation usually returns a tuple.
OUTPUTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gae", "monte_carlo_advantage", "reinforce_plus_plus", "remax"), ("advantages", "returns")),
    **dict.fromkeys(("optimal_token_baseline", "tir_optimal_token_baseline"), ("advantages", "returns")),
    **dict.fromkeys(("discounted_returns", "td_lambda", "n_step_returns", "upgo", "retrace"), ("returns",)),
    **dict.fromkeys(("uniform_credit", "last_k_credit", "attention_credit"), ("advantages",)),
    **dict.fromkeys(("masked_mean", "masked_var", "quantile", "correlation", "explained_variance"), ("value",)),
    **dict.fromkeys(("masked_whiten", "row_sums", "row_means", "row_normalize", "sum_pi_squared"), ("out",)),
    **dict.fromkeys(("kl", "kl_full", "kl_importance_weighted"), ("kl",)),
    **dict.fromkeys(("clipped_rewards", "place_scores", "shape_rewards"), ("rewards",)),
    **dict.fromkeys(("high_entropy_mask", "m2po_mask", "sequence_veto", "response_mask_from_eos"), ("mask",)),
    **dict.fromkeys(("rollout_is", "rollout_gate", "pf_ppo_weights"), ("weights",)),
    **dict.fromkeys(("kl_in_scores", "max_rl", "normalize_scores", "overlong_penalty"), ("scores",)),
    **dict.fromkeys(("repetition_penalty", "reward_scale_clip", "stop_properly_penalty"), ("scores",)),
    **dict.fromkeys(("off_policy_sequence_mask", "rollout_rejection"), ("mask",)),
    "vtrace": ("targets", "advantages"),
    "aggregate": ("value",),
    "token_log_probs": ("log_probs",),
    "entropy": ("entropy",),
    "kl_in_reward": ("rewards", "current_kl"),
    "logits_grad": ("grad_logits",),
    "dynamic_sampling_filter": ("keep",),
    "clip_fractions": ("clipped", "low", "high", "dual"),
    "kl_means": ("k1", "abs", "k2", "k3"),
}
ADVANTAGES = (
    "grpo",
    "grpo_vectorized",
    "grpo_passk",
    "rloo",
    "rloo_vectorized",
    "opo",
    "gpg_advantage",
    "gdpo",
    "reinforce_plus_plus_baseline",
)


def _result(formula: str) -> Any:
    return getattr(_formulas, "".join(part.capitalize() for part in formula.split("_")) + "Result", None)


#: The formulas that return a loss, and the operation that bears another name than its formula.
LOSSES = (
    *(name for name in _formulas.__all__ if name != "aggregate" and "loss" in getattr(_result(name), "_fields", ())),
    "bypass_mode",
)
OUTPUTS |= dict.fromkeys(ADVANTAGES, ("advantages",)) | dict.fromkeys(LOSSES, ("loss",))
_ROWS = ("bootstrap", "baselines", "lengths", "truncated", "keep")


def per_sequence(op: str, name: str) -> bool:
    """Whether an input or output has one entry per sequence."""
    if name == "scores":
        return op not in ("kl_in_reward", "shape_rewards")
    return (
        name in _ROWS
        or (name == "out" and op in ("row_sums", "row_means"))
        or (op, name) == ("pf_ppo_weights", "weights")
    )


def gradient(op: str) -> tuple[str, str, str] | None:
    """The input of a gradient, what is differentiated (summed over kept tokens if it is an array), and the output that
    holds the gradient."""
    if op in ("generalized_jsd", "topk_jsd", "forward_kl_topk"):
        return "logits", "loss", "grad_logits"
    by_name = {
        "aggregate": ("losses", "value", "weights"),
        "kl": ("log_probs", "kl", "grad"),
        "kl_importance_weighted": ("log_probs", "kl", "grad"),
        "kl_full": ("logits", "kl", "grad_logits"),
        "value_loss": ("predictions", "loss", "grad"),
        "entropy_bonus": ("entropy", "loss", "grad"),
    }
    return by_name.get(op) or (("log_probs", "loss", "grad") if op in LOSSES else None)


@dataclass(frozen=True)
class Variation:
    """One convention, changed."""

    #: ``whiten.spread``, ``aggregate.mode``, ``mask`` …
    name: str
    #: What a function with this convention does, in words.
    text: str
    #: Settings by formula (``*`` for any) and dotted key.
    change: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    inputs: Callable[[Case], Case] | None = None
    outputs: Callable[[Case, dict[str, Any]], dict[str, Any]] | None = None
    #: Conventions that are no setting, by their names in ``tokenwise_rl.conventions``.
    conventions: Mapping[str, str] = field(default_factory=dict)
    #: Formulas that are computed as if every slot were kept.
    unmasked: tuple[str, ...] = ()
    #: Settings are changed only where they have this value; ``...`` for wherever they are.
    only: Any = ...

    def applied(self, formula: str, config: Settings) -> Settings:
        made = deepcopy(config)
        for (of, key), value in self.change.items():
            if of not in (formula, "*"):
                continue
            place: Any = made
            *outer, last = key.split(".")
            for part in outer:
                place = place.get(part) if isinstance(place, dict) else None
            if isinstance(place, dict) and last in place and (self.only is ... or place[last] == self.only):
                place[last] = deepcopy(value)
                if key.endswith("aggregate.mode") or key == "mode":
                    place.pop("scale", None)
        return made


#: The library's own defaults, where they differ from the papers'.
_DEFAULTS: dict[str, Settings] = {
    "group_relative": {"epsilon": 1e-6},
    "best_of_group": {"epsilon": 1e-6},
    **{name: {"log_ratio_bound": 20.0} for name in ("ppo_clip", "cispo", "sapo", "dppo_tv", "dppo_kl")},
    "clipped_rewards": {"low": -10.0, "high": 10.0},
    "overlong_penalty": {"floor": "unlimited"},
    "rollout_weights": {"log_bound": 20.0},
}


def keyword(name: str) -> str:
    """The name of a setting as a keyword argument."""
    return f"{name}_" if name in ("lambda", "from") else name


def plain(name: str) -> str:
    """The other way."""
    return name[:-1] if name in ("lambda_", "from_") else name


@lru_cache(maxsize=512)
def _settings(profile: str | None, formula: str) -> Settings:
    # settings of the formulas have the names of the core here, without the underscore of keyword arguments
    found: Settings = {plain(name): value for name, value in settings(profile or "paper", formula).items()}
    if profile is None:
        found |= _DEFAULTS.get(formula, {})
        if formula == "gdpo":
            found["group"]["epsilon"] = 1e-6
    return found


@lru_cache(maxsize=16)
def _conventions(profile: str | None) -> dict[str, str]:
    found = dict(conventions(profile or "paper"))
    if profile is None:
        found |= {"score_slots": "Kept", "empty_mean": "Refused", "empty_loss": "Refused", "kl_reward.beta": "0.001"}
    return found


@lru_cache(maxsize=256)
def _arguments(formula: str) -> tuple[tuple[str, bool], ...]:
    """The inputs of a formula and whether they may be missing."""
    parameters = inspect.signature(getattr(_formulas, formula)).parameters.values()
    skip = ("mask", "cu_seqlens", "groups", "config", "rule")
    return tuple((found.name, found.default is None) for found in parameters if found.name not in skip)


@lru_cache(maxsize=256)
def reads(formula: str, *names: str) -> bool:
    """Whether a formula has all these inputs."""
    return hasattr(_formulas, formula) and {*names} <= {name for name, _ in _arguments(formula)}


@lru_cache(maxsize=256)
def setting_names(formula: str) -> tuple[str, ...]:
    """The names of a formula's settings."""
    found = inspect.signature(getattr(_formulas, formula)).parameters["config"].annotation
    config = getattr(configs, str(found).removeprefix("Unpack[configs.").removesuffix("]"))
    return tuple(plain(name) for name in config.__annotations__)


@lru_cache(maxsize=256)
def _takes_mask(formula: str) -> bool:
    return "mask" in inspect.signature(getattr(_formulas, formula)).parameters


class Run:
    """The formulas of one case, one after the other; later ones read what earlier ones returned."""

    def __init__(self, case: Case, variation: Variation | None = None) -> None:
        self.case = case
        self.variation = variation
        self.made: dict[str, Any] = {}
        #: The settings of every formula that ran.
        self.used: dict[str, Settings] = {}
        self.conventions = _conventions(case.profile) | dict(variation.conventions if variation else {})
        self.real = np.float32 if case.dtype == "f32" else np.float64

    def of(self, formula: str, of: str | None = None, **names: str) -> Settings:
        """The settings of a formula under the profile, and over them the parameters of the case."""
        return self.with_params(deepcopy(_settings(self.case.profile, of or formula)), **names)

    def with_params(self, config: Settings, **names: str) -> Settings:
        params = self.case.params
        for key in list(config):
            if key == "aggregate":
                config[key] = self.aggregate("aggregate", config[key])
            elif key == "counts":
                config[key] = self.counts() or config[key]
            elif key == "dual_clip":
                config[key] = self.dual_clip()
            elif key == "estimator":
                self.estimator(config)
            elif key == "kl":
                self.estimator(config[key])
            else:
                name = names.get(key, key)
                value = params.get(name)
                if value is not None:
                    config[key] = _setting(value)
                elif name in params and name in ("clip", "max_loss", "log_prob_floor"):
                    config[key] = None
        return config

    def aggregate(self, key: str, usual: Settings) -> Settings:
        mode = self.case.params.get(key) or "token-mean"
        made = {**usual, "mode": mode}
        made.pop("scale", None)
        if mode == "seq-mean-token-sum-norm":
            made["scale"] = self.case.params.get("scale_factor") or float(self.case.cols)
        counts = self.counts()
        return made if counts is None else {**made, "counts": counts}

    def counts(self) -> Settings | None:
        params = self.case.params
        if "global_tokens" not in params and "global_sequences" not in params:
            return None
        names = {"tokens": ("global_tokens", 0), "sequences": ("global_sequences", 0), "ranks": ("ranks", 1)}
        return {name: params.get(key, usual) for name, (key, usual) in names.items()}

    def dual_clip(self) -> Any:
        params = self.case.params
        if "dual_clip" not in params:
            return deepcopy(_settings(self.case.profile, "ppo_clip")["dual_clip"])
        bound = params["dual_clip"]
        both = self.conventions["dual_clip.signs"] == "Both"
        return "off" if bound is None else {"both_signs" if both else "negative_only": bound}

    def estimator(self, config: Settings) -> None:
        name = self.case.params.get("estimator")
        if name:
            base = name.rstrip("+")
            config["estimator"] = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}.get(base, base)
            config["gradient"] = "straight-through" if name.endswith("+") else "own"

    def step(
        self,
        formula: str,
        config: Settings | None = None,
        names: Mapping[str, str] | None = None,
        *,
        mask: Any = None,
        groups: bool = True,
        empty: tuple[str, ...] = (),
    ) -> None:
        """Calls one formula. ``names``: that of the formula, that of the case. ``empty``: numbers that the framework
        defines for a batch without kept tokens."""
        names = names or {}
        case = self.case
        if config is not None:
            self.used[formula] = config
            if self.variation is not None:
                config = self.variation.applied(formula, config)
        inputs = {name: self.input(names.get(name, name), optional) for name, optional in _arguments(formula)}
        labels = case.groups.tolist() if groups and case.groups is not None else None
        kept = case.mask if mask is None else mask
        if self.variation is not None and formula in self.variation.unmasked:
            kept = np.ones_like(case.mask)
        takes_mask = _takes_mask(formula)
        try:
            found = call(formula, inputs, config, kept if takes_mask else None, None, labels, _result(formula))
        except TokenwiseError:
            convention = self.conventions["empty_loss" if "loss" in empty else "empty_mean"]
            if not empty or case.mask.any() or convention == "Refused":
                raise
            value = 0.0 if convention == "Zero" else float("nan")
            self.made.update({names.get(name, name): value for name in empty})
            return
        self.keep(formula, found, names)

    def input(self, name: str, optional: bool) -> Any:
        case = self.case
        found = self.made.get(name, case.inputs.get(name))
        if found is None and name in case.params and not optional:
            found = case.params[name]
        if found is None and name == "bootstrap":
            return np.zeros(case.rows, dtype=self.real)
        if found is None and name == "grad_kl":
            return np.ones((case.rows, case.cols), dtype=self.real)
        if found is None and name == "group_tokens" and case.groups is not None:
            return call("group_tokens", {}, None, case.mask, None, case.groups.tolist(), None)
        if isinstance(found, np.ndarray) and found.dtype.kind == "f":
            return found.astype(self.real)
        return found

    def keep(self, formula: str, found: Any, names: Mapping[str, str]) -> None:
        if hasattr(found, "_asdict"):
            parts = found._asdict()
        elif isinstance(found, dict):
            parts = found
        else:
            parts = {_SINGLE.get(formula, "out"): found}
        for name, value in parts.items():
            if isinstance(value, dict):
                self.made.update({names.get(inner, inner): item for inner, item in value.items()})
            elif value is not None:
                self.made[names.get(name, name)] = value


#: The name of a result that is alone.
_SINGLE = {
    "mean": "mean",
    "variance": "variance",
    "quantile": "quantile",
    "correlation": "correlation",
    "explained_variance": "explained_variance",
    "effective_sample_size": "effective_sample_size",
    "discounted_returns": "returns",
    "td_lambda": "returns",
    "n_step_returns": "returns",
    "upgo": "returns",
    "retrace": "targets",
    "token_log_probs": "log_probs",
    "entropy": "entropy",
    "logits_gradient": "grad_logits",
    "kl_estimate": "kl",
    "kl_gradient": "grad",
    "kl_exact": "kl",
    "kl_exact_gradient": "grad_logits",
    "kl_importance_weighted": "kl",
    "kl_importance_weighted_gradient": "grad",
    "place_scores": "rewards",
    "clipped_rewards": "rewards",
    "shape_rewards": "rewards",
    "gdpo": "advantages",
    "reinforce_plus_plus_baseline": "advantages",
    "pf_ppo_weights": "weights",
    **dict.fromkeys(
        (
            "high_entropy_mask",
            "m2po_mask",
            "kl_mask",
            "sequence_veto",
            "off_policy_sequence_mask",
            "response_mask_from_eos",
        ),
        "keep",
    ),
}


def _setting(value: Any) -> Any:
    return value.replace("_", "-") if isinstance(value, str) else value


def ran(case: Case, variation: Variation | None = None) -> tuple[dict[str, Any], dict[str, Settings]]:
    """The outputs of our formula for a case, and the settings that were used. No outputs if it refuses the call, or if
    it has no form for the operation."""
    from ._table import operation_of

    operation = operation_of(case.op)
    if operation is None:
        return {}, {}
    if variation is not None and variation.inputs is not None:
        case = variation.inputs(case)
    run = Run(case, variation)
    try:
        operation(run)
        made = run.made
        if variation is not None and variation.outputs is not None:
            made = variation.outputs(case, made)
    except TokenwiseError:
        return {}, run.used
    return made, run.used


def runs(case: Case, variation: Variation | None = None) -> dict[str, Any]:
    """The outputs alone."""
    return ran(case, variation)[0]


def with_inputs(case: Case, **inputs: Any) -> Case:
    return replace(case, inputs={**case.inputs, **inputs})
