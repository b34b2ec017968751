"""What TRL computes between generation and loss: its trainers' methods, on mock trainers that generate nothing."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import torch
from trl.rewards import get_repetition_penalty_reward
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

from frameworks.precision import double
from frameworks.trl_ops import PROFILE  # noqa: F401

Tensor = torch.Tensor
Out = dict[str, object]


class _Trainer:
    """The attributes that `_generate_and_score_completions` reads; every one that is not set is None."""

    def __init__(self, rewards: Tensor, lengths: list[int], group_size: int, **more: object) -> None:
        self._rewards, self._lengths = rewards, lengths
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
        self.num_iterations, self.beta, self.num_generations = 1, 0.0, group_size
        self.mask_truncated_completions = self.use_vllm = self._is_vlm = False
        self.reward_weights = torch.ones(rewards.shape[1], dtype=rewards.dtype)
        self.reward_func_names = self.reward_funcs = [f"reward-{k}" for k in range(rewards.shape[1])]
        self._metrics, self._pending_extra_logs, self._pending_metrics = {"train": defaultdict(list)}, {}, {}
        self._logs = defaultdict(list) | {"rewards": defaultdict(list), "extra": defaultdict(list)}
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> None:
        return None

    def _calculate_rewards(self, *_: object) -> Tensor:
        return self._rewards

    def _scored(self, method) -> Out:
        with double(self._rewards.dtype):
            return method(self, [{"prompt": "?"} for _ in self._lengths])


class _Grpo(_Trainer):
    def _generate(self, prompts: list) -> tuple:
        ids = [[1] * length for length in self._lengths]
        return [[1]] * len(ids), ids, None, ["!"] * len(ids), self._sampled, {}, None, None


class _Rloo(_Trainer):
    def _generate(self, prompts: list) -> tuple:
        ids = [[1] * length for length in self._lengths]
        return [[1]] * len(ids), ids, ["!"] * len(ids)


def _on_tokens(values: Tensor, mask: Tensor) -> Tensor:
    return values[:, None] * mask


def grpo(scores: Tensor, mask: Tensor, group_size: int, scale: str) -> Out:
    """Contiguous groups of equal size, as in TRL."""
    trainer = _Grpo(
        scores[:, None],
        [mask.shape[1]] * len(scores),
        group_size,
        scale_rewards=scale,
        multi_objective_aggregation="sum_then_normalize",
    )
    return {"advantages": _on_tokens(trainer._scored(GRPOTrainer._generate_and_score_completions)["advantages"], mask)}


def gdpo(sources: Tensor, mask: Tensor, group_size: int, weights: list[float]) -> Out:
    """`normalize_then_sum`; `sources` is k×rows."""
    trainer = _Grpo(
        sources.T.contiguous(),
        [mask.shape[1]] * len(mask),
        group_size,
        multi_objective_aggregation="normalize_then_sum",
        reward_weights=torch.tensor(weights, dtype=sources.dtype),
    )
    return {"advantages": _on_tokens(trainer._scored(GRPOTrainer._generate_and_score_completions)["advantages"], mask)}


def rloo(scores: Tensor, mask: Tensor, group_size: int, normalize: bool) -> Out:
    trainer = _Rloo(scores[:, None], [mask.shape[1]] * len(scores), group_size, normalize_advantages=normalize)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (torch.zeros_like(mask), None, None)
    return {"advantages": _on_tokens(trainer._scored(RLOOTrainer._generate_and_score_completions)["advantages"], mask)}


def clipped_scores(scores: Tensor, old: Tensor, ref: Tensor, lengths: list[int], beta: float, bounds: object) -> Tensor:
    """The scores that RLOO compares: clipped, then minus the KL penalty. In groups of two whose other member scores 0
    and has no KL, the advantage of the first is its score."""
    rows, cols = old.shape
    twice = lambda x: torch.stack([x, torch.zeros_like(x)], dim=1).reshape(2 * len(x), *x.shape[1:])
    trainer = _Rloo(
        twice(scores)[:, None], [n for n in lengths for _ in range(2)], 2, beta=beta, reward_clip_range=bounds
    )
    trainer.ref_model = "reference"
    both = {"reference": twice(ref)}
    trainer._get_per_token_logps_and_entropies = lambda model, *_, **__: (both.get(model, twice(old)), None, None)
    trainer.model = type("Policy", (SimpleNamespace,), {"__hash__": lambda self: 0})(
        training=True, is_gradient_checkpointing=False
    )
    return trainer._scored(RLOOTrainer._generate_and_score_completions)["advantages"][::2]


def kl_in_scores(scores: Tensor, old: Tensor, ref: Tensor, lengths: list[int], beta: float) -> Out:
    return {"scores": clipped_scores(scores, old, ref, lengths, beta, None)}


def reward_scale_clip(scores: Tensor, low: float, high: float) -> Out:
    zeros = torch.zeros((len(scores), 1), dtype=scores.dtype)
    return {"scores": clipped_scores(scores, zeros, zeros, [1] * len(scores), 0.0, (low, high))}


def rollout_is(old: Tensor, rollout: Tensor, lengths: list[int], params: dict) -> Out:
    """`vllm_importance_sampling_correction`: the weights that the loss is multiplied with, on every token of a row."""
    rows, cols = old.shape
    trainer = _Grpo(
        torch.arange(rows, dtype=old.dtype)[:, None],
        lengths,
        rows,
        scale_rewards="none",
        multi_objective_aggregation="sum_then_normalize",
        use_vllm=True,
        vllm_importance_sampling_correction=True,
        vllm_importance_sampling_mode=f"{params['level']}_{params['mode']}",
        vllm_importance_sampling_clip_min=params["lower"],
        vllm_importance_sampling_clip_max=params["upper"],
        _sampled=[row[:length].tolist() for row, length in zip(rollout, lengths)],
    )
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (old, None, None)
    with double(old.dtype):
        out = trainer._scored(GRPOTrainer._generate_and_score_completions)["importance_sampling_ratio"]
    return {"weights": out.expand(rows, cols)}


def off_policy_sequence_mask(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, threshold: float) -> Out:
    """One advantage per row, as in TRL."""
    keep = GRPOTrainer.get_off_policy_mask(advantages[:, None], log_probs, old, mask, threshold)
    return {"mask": keep * mask}


def high_entropy_mask(entropy: Tensor, mask: Tensor, share: float) -> Out:
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(pad_across_processes=lambda x, dim, pad_index: x, gather=lambda x: x)
    )
    with double(entropy.dtype):
        return {"mask": GRPOTrainer.get_high_entropy_mask(trainer, entropy, mask, 1 - share).to(mask.dtype)}


def repetition_penalty(completions: list[list[int]], ngram: int, penalty: float) -> Out:
    return {"scores": get_repetition_penalty_reward(ngram, penalty)(completions)}
