"""OpenRLHF 0.11: ``openrlhf.models.loss`` and ``RemoteExperienceMaker``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from .._calling import Adapter, Skip
from .._cases import library
from ._subject import Subject, doubles, without_bootstrap

PROFILE = "openrlhf-0.11"
TOKEN_LEVEL = {"token-mean": True, "seq-mean-token-mean": False}
#: Imported by OpenRLHF for training, not needed for its formulas.
HEAVY = (
    "deepspeed",
    "deepspeed.runtime",
    "deepspeed.runtime.zero",
    "deepspeed.runtime.zero.partition_parameters",
    "flash_attn",
    "flash_attn.bert_padding",
    "flash_attn.utils",
    "flash_attn.utils.distributed",
    "vllm",
    "vllm.inputs",
    "vllm.utils",
)


@lru_cache(maxsize=1)
def _modules() -> SimpleNamespace:
    """The modules with the formulas, without what is only needed to train."""
    for name in ("peft.tuners.lora", "transformers.integrations.deepspeed", "transformers.trainer"):
        library(name)  # before the stand-ins, which they must not see
    library("transformers").AutoModelForCausalLM
    missing = {name: mock.MagicMock() for name in HEAVY if name not in sys.modules}
    with mock.patch.dict(sys.modules):
        sys.modules.update(missing)
        found = SimpleNamespace(
            loss=library("openrlhf.models.loss"),
            utils=library("openrlhf.models.utils"),
            maker=library("openrlhf.trainer.ppo_utils.experience_maker").RemoteExperienceMaker,
        )
        kept = {name: module for name, module in sys.modules.items() if name.startswith("openrlhf")}
    sys.modules.update(kept)
    return found


def _token_level(mode: str) -> bool:
    if mode not in TOKEN_LEVEL:
        raise Skip("it aggregates by tokens or by sequences only")
    return TOKEN_LEVEL[mode]


def _gae(arguments: dict[str, Any]) -> Any:
    """Before the normalisation."""
    without_bootstrap(arguments)
    found = (arguments[name] for name in ("values", "rewards", "mask", "gamma", "lambda_"))
    return _modules().maker.get_advantages_and_returns(None, *found)


def _returns(arguments: dict[str, Any]) -> Any:
    without_bootstrap(arguments)
    return _modules().maker.get_cumulative_returns(None, arguments["rewards"], arguments["mask"], arguments["gamma"])


def _made(estimator: str, scores: Any, rewards: Any, mask: Any, index: list[int], size: int, gamma: float) -> Any:
    """``compute_advantages_and_returns``; token rewards go in as a KL of the opposite sign with coefficient 1."""
    experience = SimpleNamespace(rewards=scores, index=index, action_mask=mask, values=None, kl=-rewards, info={})
    advantage = SimpleNamespace(estimator=estimator, gamma=gamma, lambd=1.0, no_std_norm=False)
    args = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=size),
        reward=SimpleNamespace(clip_range=None),
        algo=SimpleNamespace(advantage=advantage),
    )
    maker = _modules().maker
    mine = SimpleNamespace(
        strategy=SimpleNamespace(args=args), advantage_estimator=estimator, kl_ctl=SimpleNamespace(value=1.0)
    )
    mine.get_advantages_and_returns = partial(maker.get_advantages_and_returns, mine)
    mine.get_cumulative_returns = partial(maker.get_cumulative_returns, mine)
    maker.compute_advantages_and_returns(mine, [experience])
    return {"advantages": experience.advantages, "returns": experience.returns}


def _grouped(estimator: str, arguments: dict[str, Any]) -> Any:
    """OpenRLHF knows groups by their order and one size."""
    if arguments.get("normalize") or arguments.get("scale") == "batch":
        raise Skip("it has no scale over the batch")
    torch = library("torch")
    labels = np.asarray(arguments["groups"])
    _, sizes = np.unique(labels, return_counts=True)
    if len(set(sizes.tolist())) != 1:
        raise Skip("it has groups of one size only")
    place = np.empty(len(labels), dtype=int)
    place[np.argsort(labels, kind="stable")] = np.arange(len(labels))
    name = "dr_grpo" if estimator == "group_norm" and not arguments.get("norm_by_std", True) else estimator
    scores, mask = arguments["rewards"].sum(dim=-1), arguments["mask"]
    made = _made(name, scores, torch.zeros_like(mask), mask, place.tolist(), int(sizes[0]), 1.0)
    return {"advantages": made["advantages"]}


def _reinforce(arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    rewards, mask = arguments["rewards"], arguments["mask"]
    rows = len(mask)
    return _made(
        "reinforce", torch.zeros(rows, dtype=rewards.dtype), rewards, mask, list(range(rows)), 1, arguments["gamma"]
    )


def _policy_loss(kind: str, arguments: dict[str, Any]) -> Any:
    if "global_tokens" in arguments or "global_sequences" in arguments:
        raise Skip("it is called without counts of the whole step")
    options = {} if kind == "ppo" else {"policy_loss_type": kind}
    bound = arguments.get("dual_clip") if kind == "ppo" else None
    mode = _token_level(arguments.get("aggregate") or "token-mean")
    module = _modules().loss.PolicyLoss(arguments["clip_low"], arguments["clip_high"], bound, mode, **options)
    found = (arguments[name] for name in ("log_probs", "old_log_probs", "advantages"))
    loss, clip_fraction, kl, _, _ = module(*found, action_mask=arguments["mask"])
    return {"loss": loss, "clip_fraction": clip_fraction, "kl": kl}


def _value_loss(arguments: dict[str, Any]) -> Any:
    module = _modules().loss.ValueLoss(arguments.get("clip"), _token_level(arguments.get("aggregate") or "token-mean"))
    found = (arguments[name] for name in ("predictions", "values", "returns"))
    return module(*found, action_mask=arguments["mask"])


def _aggregate(arguments: dict[str, Any]) -> Any:
    if "global_tokens" in arguments or "global_sequences" in arguments:
        raise Skip("it is called without counts of the whole step")
    mode = _token_level(arguments["mode"])
    return _modules().loss.aggregate_loss(arguments["losses"], arguments["mask"], token_level_loss=mode)


def _kl(arguments: dict[str, Any]) -> Any:
    name = arguments["estimator"]
    if name.rstrip("+") == "abs":
        raise Skip("it has no estimate abs")
    options = {"kl_estimator": name.rstrip("+"), "unbiased_gradient": name.endswith("+")}
    return _modules().utils.compute_approx_kl(arguments["log_probs"], arguments["ref_log_probs"], **options)


def _gate(arguments: dict[str, Any]) -> Any:
    """The weights as gradients: ratio 1, advantage −1, divisor 1."""
    torch = library("torch")
    old = arguments["old_log_probs"]
    module = _modules().loss.PolicyLoss(
        is_correction_level={"sequence": "seq"}.get(arguments["level"], arguments["level"]),
        is_correction_gating=arguments["statistic"],
        is_correction_mode=arguments["mode"],
        is_correction_threshold=(arguments["lower"], arguments["upper"]),
    )
    minus = torch.full_like(old, -1.0).requires_grad_(True)
    with doubles(old):
        loss, _, _, kl, filtered = module(
            old,
            old,
            minus,
            action_mask=arguments["mask"],
            rollout_log_probs=arguments["rollout_log_probs"],
            batch_num_tokens=1.0,
        )
    return {"weights": -torch.autograd.grad(loss, minus)[0], "filtered": filtered, "kl": kl}


def _subject(
    op: str, name: str, call: Callable[[dict[str, Any]], Any], returns: tuple[str, ...] | None = None, **fixed: Any
) -> Subject:
    def function(arguments: dict[str, Any]) -> Any:
        return call(arguments)

    function.__name__ = name
    how = Adapter(returns=returns, fixed=fixed, kind="torch", call=lambda found, arguments: found(arguments))
    of_scores = op in ("grpo", "rloo", "reinforce_plus_plus_baseline")
    return Subject(PROFILE, op, name, function, how, of_scores)


def subjects() -> list[Subject]:
    return [
        _subject("gae", "get_advantages_and_returns", _gae, ("advantages", "returns"), whiten=False),
        _subject("discounted_returns", "get_cumulative_returns", _returns, ("returns",)),
        _subject("grpo", "estimator group_norm, dr_grpo", partial(_grouped, "group_norm")),
        _subject("rloo", "estimator rloo", partial(_grouped, "rloo")),
        _subject(
            "reinforce_plus_plus_baseline", "estimator reinforce_baseline", partial(_grouped, "reinforce_baseline")
        ),
        _subject("reinforce_plus_plus", "estimator reinforce", _reinforce),
        _subject("ppo_clip", "PolicyLoss", partial(_policy_loss, "ppo")),
        _subject("gspo", 'PolicyLoss("gspo")', partial(_policy_loss, "gspo")),
        _subject("value_loss", "ValueLoss", _value_loss, ("loss",)),
        _subject("aggregate", "aggregate_loss", _aggregate, ("value",)),
        _subject("kl", "compute_approx_kl", _kl, ("kl",)),
        _subject("rollout_gate", "PolicyLoss, is_correction", _gate),
        _subject("masked_mean", "masked_mean", lambda a: _modules().utils.masked_mean(a["x"], a["mask"]), ("value",)),
        _subject(
            "row_normalize",
            "masked_normalize",
            lambda a: _modules().utils.masked_normalize(a["x"], a["mask"], dim=-1),
            ("out",),
        ),
    ]
