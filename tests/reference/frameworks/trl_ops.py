"""TRL's own functions. The GRPO loss is a trainer method: it is called on a mock trainer."""

from __future__ import annotations

import os
from collections import defaultdict
from types import SimpleNamespace

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from trl.experimental.gkd.gkd_trainer import GKDTrainer
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import entropy_from_logits, selective_log_softmax

from frameworks.precision import double

Tensor = torch.Tensor
Out = dict[str, object]
PROFILE = "trl-1.16"
LOSS_TYPES = {"token-mean": "bnpo", "seq-mean-token-mean": "grpo", "seq-mean-token-sum-norm": "dr_grpo"}


def token_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Out:
    return {"log_probs": selective_log_softmax(logits, tokens, temperature=temperature)}


def entropy(logits: Tensor, temperature: float = 1.0) -> Out:
    return {"entropy": entropy_from_logits(logits / temperature)}


def kl_full(logits: Tensor, ref_logits: Tensor) -> Out:
    """The generalised JSD of GKD at β = 1 is KL(policy ‖ reference), here summed over the vocabulary."""
    leaf = logits.clone().requires_grad_(True)
    kl = GKDTrainer.generalized_jsd_loss(leaf, ref_logits, beta=1, reduction="none").sum(-1)
    return {"kl": kl, "grad_logits": torch.autograd.grad(kl.sum(), leaf)[0]}


def _loss(
    log_probs: Tensor,
    old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    params: dict,
    *,
    ref: Tensor | None = None,
    entropies: Tensor | None = None,
    coefficient: float = 0.0,
    loss_type: str | None = None,
    level: str = "token",
    corrected_by: object = None,
) -> tuple[Tensor, dict[str, list[float]]]:
    """GRPOTrainer._compute_loss, one process, one accumulation step."""
    metrics: dict[str, list[float]] = defaultdict(list)
    entropies = torch.zeros_like(log_probs) if entropies is None else entropies
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, entropies, None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=corrected_by or (0.0 if ref is None else 1.0),
        loss_type=loss_type or LOSS_TYPES[params["aggregate"]],
        epsilon_low=params.get("clip_low", 0.2),
        epsilon_high=params.get("clip_high", 0.2),
        args=SimpleNamespace(
            delta=params.get("dual_clip"),
            use_bias_correction_kl=corrected_by is not None,
            steps_per_generation=1,
            sapo_temperature_pos=params.get("tau_pos", 1.0),
            sapo_temperature_neg=params.get("tau_neg", 1.05),
            vespo_k_pos=2.0,
            vespo_lambda_pos=3.0,
            vespo_k_neg=3.0,
            vespo_lambda_neg=2.0,
        ),
        get_gamma_weights=GRPOTrainer.get_gamma_weights,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=params.get("scale_factor", log_probs.shape[1]),
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, sync_gradients=True
        ),
        _entropy_bonus_enabled=coefficient != 0.0,
        use_adaptive_entropy=False,
        entropy_coef=coefficient,
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
        "ref_per_token_logps": ref,
        "num_items_in_batch": mask.sum(),
    }
    return GRPOTrainer._compute_loss(trainer, None, inputs), metrics


def ppo_clip(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """`dual_clip` is TRL's `delta`."""
    leaf = log_probs.clone().requires_grad_(True)
    loss, metrics = _loss(leaf, old, advantages, mask, params)
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    if mask.shape[1] > 1:  # TRL takes a single column for a sequence-level value and averages it in float32
        out["clip_fraction"] = metrics["clip_ratio/region_mean"][0]
    return out


def policy_loss(op: str, log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """gspo, luspo (both with the sequence's ratio), cispo, sapo, vespo. `advantages`: (rows,), as in TRL, or rows×cols.

    The metrics of a (rows,) advantage with a sequence's ratio are means over all rows, TRL's `x.shape[1] == 1`.
    """
    leaf = log_probs.clone().requires_grad_(True)
    by_row = op in ("gspo", "luspo")
    with double(log_probs.dtype):
        loss, metrics = _loss(
            leaf,
            old,
            advantages,
            mask,
            params,
            loss_type=None if op == "gspo" else op,
            level="sequence" if by_row else "token",
        )
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    if by_row and advantages.dim() == 1:
        out["clip_fraction"] = metrics["clip_ratio/region_mean"][0]
    if op == "cispo" and mask.shape[1] > 1:
        out["clip_fraction"] = metrics["cispo_clip_ratio"][0]
    if op == "vespo" and advantages.dim() == 1:
        out["phi_mean"] = metrics["vespo/phi_seq_mean"][0]
    return out


def clip_fractions(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    """The metrics of the loss; more than one column only."""
    _, metrics = _loss(log_probs, old, advantages, mask, params | {"aggregate": "token-mean"})
    names = {"clipped": "region_mean", "low": "low_mean", "high": "high_mean"}
    return {key: metrics[f"clip_ratio/{name}"][0] for key, name in names.items()}


def aggregate(losses: Tensor, mask: Tensor, mode: str, scale_factor: float | None = None) -> Out:
    """With ratio 1 the token loss is −A, so A = −losses shows the aggregation alone."""
    leaf = losses.clone().requires_grad_(True)
    params = {"aggregate": mode} | ({} if scale_factor is None else {"scale_factor": scale_factor})
    zeros = torch.zeros_like(losses)
    value, _ = _loss(zeros, zeros, -leaf, mask, params)
    return {"value": value, "weights": torch.autograd.grad(value, leaf)[0]}


def kl(log_probs: Tensor, ref: Tensor, mask: Tensor) -> Out:
    """The k3 term of the loss, one token at a time (advantage 0, β 1, a mask with that token alone)."""
    value, grad = torch.zeros_like(ref), torch.zeros_like(ref)
    zeros = torch.zeros_like(ref)
    for slot in torch.nonzero(mask).tolist():
        alone = torch.zeros_like(ref)
        alone[tuple(slot)] = 1.0
        leaf = torch.where(alone > 0, log_probs, 0.0).requires_grad_(True)
        loss, _ = _loss(
            leaf, leaf.detach(), zeros, alone, {"aggregate": "token-mean"}, ref=torch.where(alone > 0, ref, 0.0)
        )
        value[tuple(slot)] = loss.detach()
        grad[tuple(slot)] = torch.autograd.grad(loss, leaf)[0][tuple(slot)]
    return {"kl": value, "grad": grad}


class _Witness:
    """A β of 1 that records what it is multiplied with."""

    def __ne__(self, other: object) -> bool:
        return True

    def __mul__(self, per_token: Tensor) -> Tensor:
        self.seen = per_token
        return per_token


def kl_importance_weighted(log_probs: Tensor, ref: Tensor, old: Tensor, mask: Tensor, level: str) -> Out:
    """The KL term of the loss with `use_bias_correction_kl`, advantages 0; the gradient is that of its sum."""
    leaf, beta = log_probs.clone().requires_grad_(True), _Witness()
    params = {"aggregate": "seq-mean-token-sum-norm", "scale_factor": 1 / len(mask)}
    loss, _ = _loss(leaf, old, torch.zeros_like(leaf), mask, params, ref=ref, level=level, corrected_by=beta)
    return {"kl": beta.seen, "grad": torch.autograd.grad(loss, leaf)[0]}


def entropy_bonus(values: Tensor, mask: Tensor, coefficient: float) -> Out:
    """The loss with advantage 0 is the entropy bonus alone: a token mean for every loss type."""
    leaf = values.clone().requires_grad_(True)
    zeros = torch.zeros_like(values)
    loss, _ = _loss(zeros, zeros, zeros, mask, {"aggregate": "token-mean"}, entropies=leaf, coefficient=coefficient)
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
