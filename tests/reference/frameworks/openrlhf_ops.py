"""OpenRLHF's own functions. deepspeed, flash_attn and vllm are only imported, so they are stubbed."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from unittest import mock

import peft.tuners.lora  # noqa: F401  (imported before the stubs, which they must not see)
import torch
import transformers.integrations.deepspeed  # noqa: F401
import transformers.trainer  # noqa: F401
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText  # noqa: F401

_STUBS = (
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
_before = set(sys.modules)
sys.modules.update({name: mock.MagicMock() for name in _STUBS})
from openrlhf.models import loss as rlhf_loss
from openrlhf.models import utils as rlhf_utils
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.kl_controller import AdaptiveKLController
from openrlhf.trainer.ppo_utils.length_penalty import apply_overlong_penalty, apply_stop_properly_penalty

from frameworks.precision import double

for _name in [name for name in _STUBS if name not in _before]:
    del sys.modules[_name]

Tensor = torch.Tensor
Out = dict[str, object]
PROFILE = "openrlhf-0.11"
TOKEN_LEVEL = {"token-mean": True, "seq-mean-token-mean": False}


def masked_mean(x: Tensor, mask: Tensor) -> Out:
    return {"value": rlhf_utils.masked_mean(x, mask)}


def token_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Out:
    return {"log_probs": rlhf_utils.log_probs_from_logits(logits.clone(), tokens, temperature)}


def kl(log_probs: Tensor, ref: Tensor, estimator: str) -> Out:
    """A trailing + is OpenRLHF's `unbiased_gradient`. The function casts to float32."""
    leaf = log_probs.clone().requires_grad_(True)
    straight = estimator.endswith("+")
    value = rlhf_utils.compute_approx_kl(leaf, ref, kl_estimator=estimator.rstrip("+"), unbiased_gradient=straight)
    return {"kl": value, "grad": torch.autograd.grad(value.sum(), leaf)[0]}


def place_scores(scores: Tensor, mask: Tensor) -> Out:
    """The reward without its KL term, with the default clipping."""
    zeros = torch.zeros_like(mask, dtype=scores.dtype)
    return {"rewards": rlhf_utils.compute_reward(scores, 0.0, zeros, mask, reward_clip_range=(-10.0, 10.0))}


def overlong_penalty(scores: list[float], lengths: list[int], max_len: int, buffer: int, factor: float) -> Out:
    rewards = torch.tensor(scores, dtype=torch.float64)
    experience = SimpleNamespace(rewards=rewards, response_length=torch.tensor(lengths))
    apply_overlong_penalty([experience], max_len, buffer, factor)
    return {"scores": experience.rewards}


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Out:
    """Before normalisation."""
    advantages, returns = RemoteExperienceMaker.get_advantages_and_returns(None, values, rewards, mask, gamma, lam)
    return {"advantages": advantages, "returns": returns}


def discounted_returns(rewards: Tensor, mask: Tensor, gamma: float) -> Out:
    return {"returns": RemoteExperienceMaker.get_cumulative_returns(None, rewards, mask, gamma)}


def _advantages(
    estimator: str, rewards: Tensor, experience: SimpleNamespace, group_size: int, gamma: float, lam: float
) -> Out:
    """RemoteExperienceMaker.compute_advantages_and_returns; token rewards are passed as −1·kl with coefficient 1."""
    experience.kl, experience.info = -rewards, {}
    args = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=group_size),
        reward=SimpleNamespace(clip_range=None),
        algo=SimpleNamespace(advantage=SimpleNamespace(estimator=estimator, gamma=gamma, lambd=lam, no_std_norm=False)),
    )
    maker = SimpleNamespace(
        strategy=SimpleNamespace(args=args), advantage_estimator=estimator, kl_ctl=SimpleNamespace(value=1.0)
    )
    maker.get_advantages_and_returns = partial(RemoteExperienceMaker.get_advantages_and_returns, maker)
    maker.get_cumulative_returns = partial(RemoteExperienceMaker.get_cumulative_returns, maker)
    RemoteExperienceMaker.compute_advantages_and_returns(maker, [experience])
    return {"advantages": experience.advantages, "returns": experience.returns}


def gae_whitened(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Out:
    """With the normalisation; its statistics are float32."""
    rows = mask.shape[0]
    zero = torch.zeros(rows, dtype=rewards.dtype)
    experience = SimpleNamespace(rewards=zero, index=list(range(rows)), action_mask=mask, values=values)
    return _advantages("gae", rewards, experience, 1, gamma, lam)


def group_advantage(estimator: str, scores: Tensor, mask: Tensor, index: list[int], group_size: int) -> Out:
    """group_norm, dr_grpo, rloo or reinforce_baseline; `index[i]` is row i's place in prompt order."""
    experience = SimpleNamespace(rewards=scores, index=index, action_mask=mask, values=None)
    out = _advantages(estimator, torch.zeros_like(mask), experience, group_size, 1.0, 1.0)
    return {"advantages": out["advantages"]}


def reinforce_plus_plus(rewards: Tensor, mask: Tensor, gamma: float) -> Out:
    """The estimator `reinforce`; the statistics of its normalisation are float32."""
    rows = mask.shape[0]
    zero = torch.zeros(rows, dtype=rewards.dtype)
    experience = SimpleNamespace(rewards=zero, index=list(range(rows)), action_mask=mask, values=None)
    return _advantages("reinforce", rewards, experience, 1, gamma, 1.0)


def aggregate(losses: Tensor, mask: Tensor, mode: str) -> Out:
    leaf = losses.clone().requires_grad_(True)
    value = rlhf_loss.aggregate_loss(leaf, mask, token_level_loss=TOKEN_LEVEL[mode])
    return {"value": value, "weights": torch.autograd.grad(value, leaf)[0]}


def ppo_clip(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    module = rlhf_loss.PolicyLoss(
        params["clip_low"], params["clip_high"], params["dual_clip"], TOKEN_LEVEL[params["aggregate"]]
    )
    leaf = log_probs.clone().requires_grad_(True)
    loss, clip_fraction, kl_mean, _, _ = module(leaf, old, advantages, action_mask=mask)
    grad = torch.autograd.grad(loss, leaf)[0]
    return {"loss": loss, "grad": grad, "clip_fraction": clip_fraction, "kl": kl_mean}


def policy_loss(op: str, log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """gspo; OpenRLHF forces its aggregation to the mean of sequence means."""
    module = rlhf_loss.PolicyLoss(
        params["clip_low"], params["clip_high"], None, TOKEN_LEVEL[params["aggregate"]], policy_loss_type=op
    )
    leaf = log_probs.clone().requires_grad_(True)
    loss, clip_fraction, kl_mean, _, _ = module(leaf, old, advantages, action_mask=mask)
    grad = torch.autograd.grad(loss, leaf)[0]
    return {"loss": loss, "grad": grad, "clip_fraction": clip_fraction, "kl": kl_mean}


def value_loss(
    predictions: Tensor, values: Tensor, returns: Tensor, mask: Tensor, clip: float | None, mode: str
) -> Out:
    leaf = predictions.clone().requires_grad_(True)
    loss = rlhf_loss.ValueLoss(clip, TOKEN_LEVEL[mode])(leaf, values, returns, action_mask=mask)
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}


def rollout_gate(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    """The gate's weights, as gradients of a sum of token losses 1 (ratio 1, advantage −1, divisor 1)."""
    module = rlhf_loss.PolicyLoss(
        is_correction_level={"sequence": "seq"}.get(params["level"], params["level"]),
        is_correction_gating=params["statistic"],
        is_correction_mode=params["mode"],
        is_correction_threshold=(params["lower"], params["upper"]),
    )
    minus = torch.full_like(old, -1.0).requires_grad_(True)
    with double(old.dtype):  # the share of filtered sequences is float32 otherwise
        loss, _, _, kl, filtered = module(
            old, old, minus, action_mask=mask, rollout_log_probs=rollout, batch_num_tokens=1.0
        )
    weights = -torch.autograd.grad(loss, minus)[0]
    return {"weights": weights, "filtered": filtered, "kl": kl}


def stop_properly_penalty(scores: list[float], truncated: list[int], coefficient: float) -> Out:
    rewards = torch.tensor(scores, dtype=torch.float64)
    experience = SimpleNamespace(rewards=rewards, truncated=torch.tensor(truncated))
    apply_stop_properly_penalty([experience], coefficient)
    return {"scores": experience.rewards}


def clipped_rewards(scores: list[float], kl: Tensor, mask: Tensor, beta: float, bounds: tuple[float, float]) -> Out:
    rewards = torch.tensor(scores, dtype=kl.dtype)
    return {"rewards": rlhf_utils.compute_reward(rewards, beta, kl, mask, reward_clip_range=bounds)}


def row_means(x: Tensor, mask: Tensor) -> Out:
    return {"out": rlhf_utils.masked_mean(x, mask, dim=-1)}


def row_normalize(x: Tensor, mask: Tensor) -> Out:
    return {"out": rlhf_utils.masked_normalize(x, mask, dim=-1)}


def controller(params: dict) -> AdaptiveKLController:
    return AdaptiveKLController(params["beta"], params["target"], params["horizon"])
