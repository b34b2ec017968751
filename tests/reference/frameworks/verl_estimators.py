"""verl's own advantage estimators beside GAE, GRPO and RLOO."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from verl.trainer.ppo import core_algos

from frameworks.precision import double
from frameworks.verl_ops import PROFILE  # noqa: F401

Tensor = torch.Tensor
Out = dict[str, object]
GROUPED = {
    "grpo_vectorized": core_algos.compute_grpo_vectorized_outcome_advantage,
    "grpo_passk": core_algos.compute_grpo_passk_outcome_advantage,
    "reinforce_plus_plus_baseline": core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage,
    "rloo_vectorized": core_algos.compute_rloo_vectorized_outcome_advantage,
    "opo": core_algos.compute_opo_outcome_advantage,
    "gpg_advantage": core_algos.compute_gpg_outcome_advantage,
}
OPTIMAL = {
    "optimal_token_baseline": core_algos.compute_optimal_token_baseline_advantage,
    "tir_optimal_token_baseline": core_algos.compute_multi_turn_optimal_token_baseline_advantage,
}


def grouped(op: str, rewards: Tensor, mask: Tensor, groups: list[int], norm_by_std: bool | None = None) -> Out:
    """An estimator that reads the groups. GPG's α = rows / non-zero scores stays float32, as in verl."""
    more = {} if norm_by_std is None else {"norm_adv_by_std_in_grpo": norm_by_std}
    config = dict(more)
    if op == "grpo_passk":
        more = {}  # reads the config instead
    with double(torch.float32 if op == "gpg_advantage" else rewards.dtype):
        advantages, _ = GROUPED[op](rewards, mask, np.array(groups), config=config, **more)
    return {"advantages": advantages}


def gdpo(sources: Tensor, mask: Tensor, groups: list[int], weights: list[float] | None) -> Out:
    """`sources` is k×rows."""
    keys = [f"source-{k}" for k in range(len(sources))]
    ones = torch.ones(mask.shape, dtype=torch.long)
    config = {"gdpo_reward_keys": keys} | ({} if weights is None else {"gdpo_reward_weights": weights})
    with double(sources.dtype, core_algos):
        advantages, _ = core_algos.compute_gdpo_outcome_advantage(
            torch.zeros_like(mask),
            mask,
            np.array(groups),
            config=config,
            non_tensor_batch={key: source.numpy() for key, source in zip(keys, sources)},
            batch={"prompts": ones[:, :1], "attention_mask": torch.cat([ones[:, :1], ones], dim=1)},
        )
    return {"advantages": advantages}


def reinforce_plus_plus(rewards: Tensor, mask: Tensor, gamma: float) -> Out:
    advantages, returns = core_algos.compute_reinforce_plus_plus_outcome_advantage(
        rewards, mask, config=SimpleNamespace(gamma=gamma)
    )
    return {"advantages": advantages, "returns": returns}


def remax(rewards: Tensor, mask: Tensor, baselines: Tensor) -> Out:
    advantages, returns = core_algos.compute_remax_outcome_advantage(rewards, baselines, mask)
    return {"advantages": advantages, "returns": returns}


def optimal(
    op: str, rewards: Tensor, mask: Tensor, groups: list[int], old: Tensor, squares: Tensor, zero_tail: bool
) -> Out:
    advantages, returns = OPTIMAL[op](rewards, mask, np.array(groups), old, squares, handle_zero_tail=zero_tail)
    return {"advantages": advantages, "returns": returns}
