"""TRL 1.16: ``GRPOTrainer._compute_loss`` and the advantages of the GRPO and RLOO trainers.

Both are methods of a trainer; they are called on an object that has the attributes they read, and no model.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._calling import Adapter, Skip
from .._cases import library
from ._subject import Subject, doubles

PROFILE = "trl-1.16"
LOSS_TYPES = {"token-mean": "bnpo", "seq-mean-token-mean": "grpo", "seq-mean-token-sum-norm": "dr_grpo"}


def _trainer(name: str) -> Any:
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    return getattr(library(f"trl.trainer.{name.lower().replace('trainer', '')}_trainer"), name)


def _loss(arguments: dict[str, Any], log_probs: Any, old: Any, advantages: Any, **options: Any) -> Any:
    torch = library("torch")
    mask = arguments["mask"]
    mode = arguments.get("aggregate") or "token-mean"
    if options.get("loss_type") is None and mode not in LOSS_TYPES:
        raise Skip(f"it has no aggregation {mode}")
    if "global_tokens" in arguments or "global_sequences" in arguments:
        raise Skip("it is called without counts of the whole step")
    metrics: dict[str, list[float]] = defaultdict(list)
    grpo = _trainer("GRPOTrainer")
    entropies = torch.zeros_like(log_probs) if options.get("entropies") is None else options["entropies"]
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, entropies, None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=options.get("level", "token"),
        beta=0.0,
        loss_type=options.get("loss_type") or LOSS_TYPES[mode],
        epsilon_low=arguments.get("clip_low", 0.2),
        epsilon_high=arguments.get("clip_high", 0.2),
        args=SimpleNamespace(
            delta=arguments.get("dual_clip"),
            use_bias_correction_kl=False,
            steps_per_generation=1,
            sapo_temperature_pos=arguments.get("tau_pos", 1.0),
            sapo_temperature_neg=arguments.get("tau_neg", 1.05),
            vespo_k_pos=2.0,
            vespo_lambda_pos=3.0,
            vespo_k_neg=3.0,
            vespo_lambda_neg=2.0,
        ),
        get_gamma_weights=grpo.get_gamma_weights,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=arguments.get("scale_factor") or mask.shape[1],
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, sync_gradients=True
        ),
        _entropy_bonus_enabled=bool(options.get("coefficient")),
        use_adaptive_entropy=False,
        entropy_coef=options.get("coefficient", 0.0),
        _metrics={"train": metrics},
    )
    ids = torch.ones(mask.shape, dtype=torch.long)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1],
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": None,
        "num_items_in_batch": mask.sum(),
    }
    with doubles(log_probs):
        return grpo._compute_loss(trainer, None, inputs), metrics


def _policy_loss(op: str, arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    level = "sequence" if op in ("gspo", "luspo") else "token"
    advantages = arguments["advantages"]
    kept = arguments["mask"] > 0
    rows = [set(row[keep].tolist()) for row, keep in zip(advantages, kept)]
    per_row = op not in ("ppo_clip", "cispo", "sapo") and all(len(values) <= 1 for values in rows)
    if per_row:  # one advantage per sequence, as TRL's trainers have
        advantages = torch.tensor([next(iter(values), 0.0) for values in rows], dtype=advantages.dtype)
    loss_type = None if op in ("ppo_clip", "gspo") else op
    loss, metrics = _loss(
        arguments, arguments["log_probs"], arguments["old_log_probs"], advantages, loss_type=loss_type, level=level
    )
    made = {"loss": loss}
    if op == "ppo_clip" and kept.shape[1] > 1:
        made["clip_fraction"] = metrics["clip_ratio/region_mean"][0]
    if op == "cispo" and kept.shape[1] > 1:
        made["clip_fraction"] = metrics["cispo_clip_ratio"][0]
    return made


def _aggregate(arguments: dict[str, Any]) -> Any:
    """With ratio 1 the loss of a token is −A."""
    torch = library("torch")
    zeros = torch.zeros_like(arguments["losses"])
    given = {**arguments, "aggregate": arguments["mode"]}
    return _loss(given, zeros, zeros, -arguments["losses"])[0]


def _entropy_bonus(arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    zeros = torch.zeros_like(arguments["entropy"])
    options = {"entropies": arguments["entropy"], "coefficient": arguments["coefficient"]}
    return _loss(arguments, zeros, zeros, zeros, **options)[0]


class _Scored:
    """The attributes that ``_generate_and_score_completions`` reads; every one that is not set is ``None``."""

    def __init__(self, rewards: Any, columns: int, size: int, **more: Any) -> None:
        torch = library("torch")
        rows, sources = rewards.shape
        self._rewards, self._rows, self._columns = rewards, rows, columns
        self.accelerator = SimpleNamespace(
            device=torch.device("cpu"), gather=lambda x: x, process_index=0, reduce=lambda x, reduction: x
        )
        self.model = SimpleNamespace(training=True, is_gradient_checkpointing=False)
        self.args = SimpleNamespace(
            per_device_train_batch_size=1,
            gradient_accumulation_steps=1,
            steps_per_generation=1,
            gradient_checkpointing_kwargs=None,
        )
        self._tokenizer = SimpleNamespace(pad_token_id=0)
        self.num_iterations, self.beta, self.num_generations = 1, 0.0, size
        self.mask_truncated_completions = self.use_vllm = self._is_vlm = False
        self.reward_weights = torch.ones(sources, dtype=rewards.dtype)
        self.reward_func_names = self.reward_funcs = [f"reward-{number}" for number in range(sources)]
        self._metrics: Any = {"train": defaultdict(list)}
        self._pending_extra_logs: dict[str, Any] = {}
        self._pending_metrics: dict[str, Any] = {}
        self._logs: Any = defaultdict(list) | {"rewards": defaultdict(list), "extra": defaultdict(list)}
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> None:
        return None

    def _calculate_rewards(self, *_: Any) -> Any:
        return self._rewards

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        ids = [[1] * self._columns for _ in range(self._rows)]
        if self._short:
            return [[1]] * self._rows, ids, ["!"] * self._rows
        return [[1]] * self._rows, ids, None, ["!"] * self._rows, None, {}, None, None

    def scored(self, method: Callable[..., Any]) -> Any:
        with doubles(self._rewards):
            return method(self, [{"prompt": "?"} for _ in range(self._rows)])["advantages"]


def _size(arguments: dict[str, Any]) -> int:
    """TRL's groups are neighbours and of one size."""
    labels = np.asarray(arguments["groups"])
    borders = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    sizes = set(np.diff(borders).tolist())
    if len(sizes) != 1 or len(borders) - 1 != len(set(labels.tolist())):
        raise Skip("its groups are neighbours of one size")
    return int(sizes.pop())


def _grpo(arguments: dict[str, Any]) -> Any:
    rewards, mask = arguments["rewards"], arguments["mask"]
    scale = arguments.get("scale") or ("group" if arguments.get("norm_by_std", True) else "none")
    trainer = _Scored(
        rewards.sum(dim=1)[:, None],
        mask.shape[1],
        _size(arguments),
        scale_rewards=scale,
        multi_objective_aggregation="sum_then_normalize",
    )
    return trainer.scored(_trainer("GRPOTrainer")._generate_and_score_completions)[:, None] * mask


def _gdpo(arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    sources, mask = arguments["reward_sources"], arguments["mask"]
    weights = arguments.get("weights") or [1.0] * len(sources)
    trainer = _Scored(
        sources.T.contiguous(),
        mask.shape[1],
        _size(arguments),
        multi_objective_aggregation="normalize_then_sum",
        reward_weights=torch.tensor(weights, dtype=sources.dtype),
    )
    return trainer.scored(_trainer("GRPOTrainer")._generate_and_score_completions)[:, None] * mask


def _rloo(arguments: dict[str, Any]) -> Any:
    torch = library("torch")
    rewards, mask = arguments["rewards"], arguments["mask"]
    trainer = _Scored(
        rewards.sum(dim=1)[:, None],
        mask.shape[1],
        _size(arguments),
        _short=True,
        normalize_advantages=arguments.get("normalize", False),
        _get_per_token_logps_and_entropies=lambda *_, **__: (torch.zeros_like(mask), None, None),
    )
    return trainer.scored(_trainer("RLOOTrainer")._generate_and_score_completions)[:, None] * mask


def _log_probs(arguments: dict[str, Any]) -> Any:
    utils = library("trl.trainer.utils")
    return utils.selective_log_softmax(arguments["logits"], arguments["tokens"], temperature=arguments["temperature"])


def _entropy(arguments: dict[str, Any]) -> Any:
    return library("trl.trainer.utils").entropy_from_logits(arguments["logits"] / arguments["temperature"])


def _subject(
    op: str, name: str, call: Callable[[dict[str, Any]], Any], returns: tuple[str, ...] | None = None
) -> Subject:
    def function(arguments: dict[str, Any]) -> Any:
        return call(arguments)

    function.__name__ = name
    how = Adapter(returns=returns, kind="torch", call=lambda found, arguments: found(arguments))
    return Subject(PROFILE, op, name, function, how, op in ("grpo", "gdpo", "rloo"))


def subjects() -> list[Subject]:
    return [
        _subject("grpo", "GRPOTrainer, advantages", _grpo),
        _subject("gdpo", "GRPOTrainer, normalize_then_sum", _gdpo),
        _subject("rloo", "RLOOTrainer, advantages", _rloo),
        _subject("ppo_clip", "_compute_loss, grpo bnpo dr_grpo", partial(_policy_loss, "ppo_clip")),
        _subject("gspo", "_compute_loss, sequence level", partial(_policy_loss, "gspo")),
        _subject("luspo", "_compute_loss, luspo", partial(_policy_loss, "luspo")),
        _subject("cispo", "_compute_loss, cispo", partial(_policy_loss, "cispo")),
        _subject("sapo", "_compute_loss, sapo", partial(_policy_loss, "sapo")),
        _subject("vespo", "_compute_loss, vespo", partial(_policy_loss, "vespo")),
        _subject("aggregate", "_compute_loss, aggregation", _aggregate, ("value",)),
        _subject("entropy_bonus", "_compute_loss, entropy bonus", _entropy_bonus),
        _subject("token_log_probs", "selective_log_softmax", _log_probs),
        _subject("entropy", "entropy_from_logits", _entropy),
    ]
