"""verl's own functions with uniform signatures. Every returned value is verl's."""

from __future__ import annotations

import os
from types import SimpleNamespace
from unittest import mock

os.environ["VERL_DISABLE_FLASH_ATTN_CE"] = "1"

import numpy as np
import torch
import verl.utils.torch_functional as verl_f
from verl import DataProto
from verl.trainer.ppo import core_algos, metric_utils, ray_trainer
from verl.workers.config.actor import ActorConfig
from verl.workers.reward_manager.dapo import DAPORewardManager

Tensor = torch.Tensor
Out = dict[str, object]
PROFILE = "verl-0.9.1"
# what agg_loss calls the counts of the whole step
BATCH_INFO = {
    "scale_factor": "loss_scale_factor",
    "global_tokens": "batch_num_tokens",
    "global_sequences": "global_batch_size",
    "ranks": "dp_size",
}


def batch_info(params: dict) -> dict:
    return {BATCH_INFO[key]: value for key, value in params.items() if key in BATCH_INFO}


def masked_mean(x: Tensor, mask: Tensor) -> Out:
    return {"value": verl_f.masked_mean(x, mask)}


def masked_var(x: Tensor, mask: Tensor) -> Out:
    return {"value": verl_f.masked_var(x, mask)}


def masked_whiten(x: Tensor, mask: Tensor, shift_mean: bool = True) -> Out:
    return {"out": verl_f.masked_whiten(x, mask, shift_mean=shift_mean)}


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    """Temperature as verl applies it."""
    return verl_f.post_process_logits(None, logits.clone(), temperature, None, None)


def token_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Out:
    return {"log_probs": verl_f.logprobs_from_logits(_scaled(logits, temperature), tokens)}


def entropy(logits: Tensor, temperature: float = 1.0) -> Out:
    return {"entropy": verl_f.entropy_from_logits(_scaled(logits, temperature))}


def sum_pi_squared(logits: Tensor) -> Out:
    return {"out": verl_f.calculate_sum_pi_squared_from_logits(logits)}


def logits_grad(
    logits: Tensor, tokens: Tensor, g_lp: Tensor, g_h: Tensor, mask: Tensor, temperature: float = 1.0
) -> Out:
    """Autograd of Σ_kept g_lp·log_prob + g_h·entropy; the entropy is left out when its weights are all zero."""
    leaf = logits.clone().requires_grad_(True)
    scaled = _scaled(leaf, temperature)
    total = (torch.where(mask > 0, g_lp, 0.0) * verl_f.logprobs_from_logits(scaled, tokens)).sum()
    if bool((g_h != 0).any()):
        total = total + (torch.where(mask > 0, g_h, 0.0) * verl_f.entropy_from_logits(scaled)).sum()
    return {"grad_logits": torch.autograd.grad(total, leaf)[0]}


def kl(log_probs: Tensor, ref: Tensor, estimator: str) -> Out:
    leaf = log_probs.clone().requires_grad_(True)
    value = core_algos.kl_penalty(leaf, ref, estimator)
    return {"kl": value, "grad": torch.autograd.grad(value.sum(), leaf)[0]}


def kl_means(log_probs: Tensor, ref: Tensor, mask: Tensor) -> Out:
    names = ("k1", "abs", "k2", "k3")
    return {name: verl_f.masked_mean(core_algos.kl_penalty(log_probs, ref, name), mask) for name in names}


def kl_in_reward(scores: Tensor, old: Tensor, ref: Tensor, mask: Tensor, beta: float, estimator: str) -> Out:
    tensors = {"response_mask": mask, "token_level_scores": scores, "old_log_probs": old, "ref_log_prob": ref}
    data, metrics = ray_trainer.apply_kl_penalty(
        DataProto.from_single_dict(tensors), core_algos.FixedKLController(beta), kl_penalty=estimator
    )
    return {"rewards": data.batch["token_level_rewards"], "current_kl": metrics["actor/reward_kl_penalty"]}


def overlong_penalty(scores: list[float], lengths: list[int], max_len: int, buffer: int, factor: float) -> Out:
    """verl's DAPO reward manager on rows of the given lengths; it works in float32."""
    width = max(lengths)
    valid = (torch.arange(width) < torch.tensor(lengths).unsqueeze(1)).long()
    ones = torch.ones(len(lengths), 1, dtype=torch.long)
    data = DataProto.from_single_dict(
        {
            "prompts": ones,
            "responses": torch.ones_like(valid),
            "attention_mask": torch.cat([ones, valid], dim=1),
            "reward_model": np.array([{"ground_truth": s} for s in scores], dtype=object),
            "data_source": np.array(["any"] * len(scores), dtype=object),
        }
    )
    manager = DAPORewardManager(
        tokenizer=SimpleNamespace(decode=lambda ids, skip_special_tokens: "", eos_token="</s>"),
        num_examine=0,
        compute_score=lambda ground_truth, **_: ground_truth,
        max_resp_len=max_len,
        overlong_buffer_cfg=SimpleNamespace(enable=True, len=buffer, penalty_factor=factor, log=False),
    )
    return {"scores": manager(data).sum(-1)}


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float, whiten: bool) -> Out:
    """`whiten=False` runs the same function with its whitening step replaced by the identity."""
    step = verl_f.masked_whiten if whiten else (lambda x, _mask: x)
    with mock.patch.object(verl_f, "masked_whiten", step):
        advantages, returns = core_algos.compute_gae_advantage_return(rewards, values, mask, gamma, lam)
    return {"advantages": advantages, "returns": returns}


def discounted_returns(rewards: Tensor, mask: Tensor, gamma: float) -> Out:
    """The returns of verl's REINFORCE++ estimator."""
    with mock.patch.object(verl_f, "masked_whiten", lambda x, _mask: x):
        _, returns = core_algos.compute_reinforce_plus_plus_outcome_advantage(
            rewards, mask, config=SimpleNamespace(gamma=gamma)
        )
    return {"returns": returns}


def grpo(rewards: Tensor, mask: Tensor, groups: list[int], norm_by_std: bool = True) -> Out:
    advantages, _ = core_algos.compute_grpo_outcome_advantage(
        rewards, mask, np.array(groups), norm_adv_by_std_in_grpo=norm_by_std
    )
    return {"advantages": advantages}


def rloo(rewards: Tensor, mask: Tensor, groups: list[int]) -> Out:
    advantages, _ = core_algos.compute_rloo_outcome_advantage(rewards, mask, np.array(groups))
    return {"advantages": advantages}


def aggregate(losses: Tensor, mask: Tensor, mode: str, **params: float) -> Out:
    leaf = losses.clone().requires_grad_(True)
    value = core_algos.agg_loss(leaf, mask, mode, **batch_info(params))
    return {"value": value, "weights": torch.autograd.grad(value, leaf)[0]}


def ppo_clip(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio=params["clip_low"],
        clip_ratio_low=params["clip_low"],
        clip_ratio_high=params["clip_high"],
        clip_ratio_c=params["dual_clip"],
    )
    config.global_batch_info.update(batch_info(params))
    leaf = log_probs.clone().requires_grad_(True)
    loss, metrics = core_algos.compute_policy_loss_vanilla(old, leaf, advantages, mask, params["aggregate"], config)
    return {
        "loss": loss,
        "grad": torch.autograd.grad(loss, leaf)[0],
        "clip_fraction": metrics["actor/pg_clipfrac"],
        "clip_fraction_lower": metrics["actor/pg_clipfrac_lower"],
        "kl": metrics["actor/ppo_kl"],
    }


def clip_fractions(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """The metrics of the vanilla policy loss."""
    out = ppo_clip(log_probs, old, advantages, mask, params | {"aggregate": "token-sum"})
    return {"clipped": out["clip_fraction"], "dual": out["clip_fraction_lower"]}


def value_loss(predictions: Tensor, values: Tensor, returns: Tensor, mask: Tensor, clip: float, mode: str) -> Out:
    leaf = predictions.clone().requires_grad_(True)
    loss, fraction = core_algos.compute_value_loss(leaf, returns, values, mask, clip, mode)
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0], "clip_fraction": fraction}


def entropy_bonus(values: Tensor, mask: Tensor, coefficient: float, mode: str) -> Out:
    """verl's actor subtracts coefficient·agg_loss(entropy) from the policy loss."""
    leaf = values.clone().requires_grad_(True)
    loss = -coefficient * core_algos.agg_loss(leaf, mask, mode)
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> Out:
    ids = torch.ones(mask.shape, dtype=torch.long)
    zeros = torch.zeros_like(values)
    names = ("token_level_scores", "token_level_rewards", "advantages")
    tensors = dict.fromkeys(names, zeros) | {"returns": returns, "values": values, "response_mask": mask}
    tensors |= {"prompts": ids[:, :1], "responses": ids, "attention_mask": torch.cat([ids[:, :1], mask.long()], dim=1)}
    metrics = metric_utils.compute_data_metrics(DataProto.from_single_dict(tensors))
    return {"value": metrics["critic/vf_explained_var"]}
