"""verl's own policy losses beside the clipped one; gradients by autograd."""

from __future__ import annotations

import zlib
from unittest import mock

import torch
from verl.trainer.ppo import core_algos
from verl.workers.config.actor import ActorConfig, PolicyLossConfig

from frameworks.precision import Standin
from frameworks.verl_ops import PROFILE, batch_info  # noqa: F401

Tensor = torch.Tensor
Out = dict[str, object]
NAMES = {"gmpo": "geo_mean", "reinforce": "gpg"}
METRICS = {"clip_fraction": "pg_clipfrac", "clip_fraction_lower": "pg_clipfrac_lower", "kl": "ppo_kl"}
ACTOR = {
    "clip_low": ("clip_ratio", "clip_ratio_low"),
    "clip_high": ("clip_ratio_high",),
    "tau_pos": ("tau_pos",),
    "tau_neg": ("tau_neg",),
}
LOSS = {
    "beta": "dro_beta",
    "kl_coef": "ppo_kl_coef",
    "lower": "clip_cov_lb",
    "upper": "clip_cov_ub",
}


def _config(op: str, params: dict) -> ActorConfig:
    actor = {name: params[key] for key, names in ACTOR.items() if key in params for name in names}
    loss = {name: params[key] for key, name in LOSS.items() if key in params}
    if "ratio" in params:
        loss[f"{op}_ratio"] = params["ratio"]
    config = ActorConfig(
        strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, policy_loss=PolicyLossConfig(**loss), **actor
    )
    config.global_batch_info.update(batch_info(params))
    return config


def policy_loss(op: str, log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """Any registered policy loss. `aggregate` may be absent where verl ignores it."""
    leaf = log_probs.clone().requires_grad_(True)
    run = core_algos.get_policy_loss_fn(NAMES.get(op, op))
    loss, metrics = run(old, leaf, advantages, mask, params.get("aggregate", "token-mean"), _config(op, params))
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    return out | {key: metrics[f"actor/{name}"] for key, name in METRICS.items() if f"actor/{name}" in metrics}


def clip_cov(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> tuple[Out, Tensor]:
    """Also returns the tokens that verl selected: those whose `corr`, ones before the call, is 0 afterwards."""
    seen: list[Tensor] = []

    def ones_like(tensor: Tensor, **more: object) -> Tensor:
        seen.append(torch.ones_like(tensor, **more))
        return seen[-1]

    def randperm(number: int) -> Tensor:
        seed = zlib.crc32(f"clip_cov/{number}".encode())
        return torch.randperm(number, generator=torch.Generator().manual_seed(seed))

    with mock.patch.object(core_algos, "torch", Standin(torch, ones_like=ones_like, randperm=randperm)):
        out = policy_loss("clip_cov", log_probs, old, advantages, mask, params)
    return {key: out[key] for key in ("loss", "grad", "clip_fraction")}, (seen[0] == 0).long()
