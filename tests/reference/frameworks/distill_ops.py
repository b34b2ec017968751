"""verl's and TRL's own distillation losses, verl's KL loss and its bypass mode; gradients by autograd."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from unittest import mock

import torch
from trl.experimental.iw_opd.iw_opd_trainer import IWOPDTrainer
from trl.experimental.sdft import loss_utils
from verl.trainer.distillation import losses as verl_distill
from verl.trainer.distillation.fsdp import losses as verl_topk
from verl.trainer.ppo import core_algos
from verl.workers.config import DistillationLossConfig
from verl.workers.config.actor import ActorConfig, PolicyLossConfig

from frameworks.precision import double
from frameworks.trl_ops import GKDTrainer
from frameworks.verl_ops import batch_info

Tensor = torch.Tensor
Out = dict[str, object]
METRICS = {"clip_fraction": "pg_clipfrac", "clip_fraction_lower": "pg_clipfrac_lower", "kl": "ppo_kl"}


def _actor(**more: object) -> ActorConfig:
    return ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, **more)


def _number(value: object) -> object:
    """The value of a verl metric."""
    values = getattr(value, "values", value)
    return values[0] if isinstance(values, list) else values


def kl_loss(log_probs: Tensor, ref: Tensor, mask: Tensor, params: dict) -> Out:
    """What verl's actor adds: kl_penalty, agg_loss, times the coefficient."""
    leaf = log_probs.clone().requires_grad_(True)
    kl = core_algos.kl_penalty(leaf, ref, params["estimator"])
    aggregated = core_algos.agg_loss(kl, mask, params["aggregate"], **batch_info(params))
    loss = aggregated * params["coefficient"]
    return {"loss": loss, "aggregated": aggregated, "grad": torch.autograd.grad(loss, leaf)[0]}


def _distillation_loss(config: DistillationLossConfig, output: dict, data: dict, params: dict) -> tuple[Tensor, dict]:
    """verl's distillation_loss on data that is padded already."""
    info = batch_info(params)
    data = data | {
        "dp_size": info.get("dp_size", 1),
        "batch_num_tokens": info.get("batch_num_tokens"),
        "global_batch_size": info.get("global_batch_size"),
    }
    actor = _actor(loss_agg_mode=params["aggregate"])
    with mock.patch.object(verl_distill, "no_padding_2_padding", lambda tensor, _: tensor):
        return verl_distill.distillation_loss(actor, SimpleNamespace(distillation_loss=config), output, data)


def opd_loss(log_probs: Tensor, old: Tensor, teacher: Tensor, mask: Tensor, params: dict) -> Out:
    config = DistillationLossConfig(
        loss_mode=params["estimator"],
        loss_max_clamp=params["max_loss"],
        use_policy_gradient=params["route"] == "clipped",
        clip_ratio=params.get("clip_low", 0.2),
        clip_ratio_low=params.get("clip_low", 0.2),
        clip_ratio_high=params.get("clip_high", 0.2),
    )
    leaf = log_probs.clone().requires_grad_(True)
    data = {"response_mask": mask, "teacher_logprobs": teacher.unsqueeze(-1), "old_log_probs": old}
    loss, metrics = _distillation_loss(config, {"log_probs": leaf}, data, params)
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    names = {key: key for key in ("abs_loss", "loss_min", "loss_max")} | METRICS
    return out | {
        key: _number(metrics[f"distillation/{name}"])
        for key, name in names.items()
        if f"distillation/{name}" in metrics
    }


def forward_kl_topk(logits: Tensor, teacher: Tensor, ids: Tensor, mask: Tensor, params: dict) -> Out:
    rows, cols, vocab = logits.shape
    config = DistillationLossConfig(
        loss_mode="forward_kl_topk",
        topk=params["k"],
        loss_max_clamp=params["max_loss"],
        log_prob_min_clamp=params["log_prob_floor"],
        use_policy_gradient=False,
    )
    leaf = logits.clone().requires_grad_(True)
    nested = lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged)
    with double(logits.dtype, verl_topk):
        output = verl_topk.compute_forward_kl_topk(
            leaf.reshape(1, rows * cols, vocab),
            nested(teacher),
            nested(ids),
            SimpleNamespace(distillation_loss=config),
            "thd",
        )
        output = {key: value.reshape(rows, cols) for key, value in output.items()}
        loss, metrics = _distillation_loss(config, output, {"response_mask": mask}, params)
    out = {"loss": loss, "grad_logits": torch.autograd.grad(loss, leaf)[0]}
    return out | {key.removeprefix("distillation/"): _number(value) for key, value in metrics.items()}


def bypass_mode(log_probs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, params: dict) -> Out:
    correction = {
        "loss_type": params["form"],
        "rollout_is": params["level"],
        "rollout_is_threshold": params["upper"],
        "rollout_rs": params["options"] or None,
        "rollout_rs_threshold": params["thresholds"] or None,
    }
    actor = _actor(policy_loss=PolicyLossConfig(rollout_correction=correction))
    actor.global_batch_info.update(batch_info(params))
    leaf = log_probs.clone().requires_grad_(True)
    with double(log_probs.dtype):
        run = core_algos.get_policy_loss_fn("bypass_mode")
        loss, metrics = run(old, leaf, advantages, mask, params["aggregate"], actor)
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    out |= {key: metrics[f"actor/{name}"] for key, name in METRICS.items() if f"actor/{name}" in metrics}
    return out | {key: metrics[key] for key in ("rollout_corr/kl", "rollout_corr/k3_kl")}


def generalized_jsd(logits: Tensor, teacher: Tensor, mask: Tensor, params: dict) -> Out:
    """GKD's loss; dropped positions have the label −100."""
    leaf = logits.clone().requires_grad_(True)
    labels = torch.where(mask > 0, 0, -100)
    loss = GKDTrainer.generalized_jsd_loss(
        leaf, teacher, labels=labels, beta=params["beta"], temperature=params["temperature"]
    )
    return {"loss": loss, "grad_logits": torch.autograd.grad(loss, leaf)[0]}


def topk_jsd(
    logits: Tensor, teacher: Tensor, mask: Tensor, params: dict, policies: tuple[Tensor, Tensor] | None
) -> Out:
    """SDFT's loss on the student's top k, capped importance weights, mean over the kept tokens."""
    leaf = logits.clone().requires_grad_(True)
    losses = loss_utils.compute_topk_self_distillation_loss(
        leaf,
        teacher,
        distillation_topk=params["k"],
        distillation_alpha=params["beta"],
        distillation_add_tail=params["rest"] == "tail",
    )
    if policies:
        losses = loss_utils.apply_importance_sampling_clipping(losses, *policies, params["is_clip"])
    loss = torch.where(mask > 0, losses, 0.0).sum() / mask.sum()
    return {"loss": loss, "grad_logits": torch.autograd.grad(loss, leaf)[0]}


def _pair(log_probs: Tensor) -> Tensor:
    """Two logits whose first has the log-probability."""
    return torch.stack([log_probs, torch.log(-torch.expm1(log_probs))], -1)


def sampled_token(log_probs: Tensor, teacher: Tensor, mask: Tensor) -> Out:
    """SDFT's loss of the sampled token; mean over the kept ones."""
    leaf = log_probs.clone().requires_grad_(True)
    first = torch.zeros_like(log_probs, dtype=torch.long)
    losses = loss_utils.compute_sampled_token_self_distillation_loss(
        _pair(leaf), _pair(teacher), first, distillation_alpha=1.0
    )
    loss = torch.where(mask > 0, losses, 0.0).sum() / mask.sum()
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}


def iw_opd(log_probs: Tensor, old: Tensor, teacher: Tensor, mask: Tensor, params: dict) -> Out:
    leaf = log_probs.clone().requires_grad_(True)
    trainer = SimpleNamespace(
        temperature=1.0,
        iw_opd_gamma=params["gamma"],
        iw_opd_epsilon=params["epsilon"],
        model=SimpleNamespace(training=True),
        _metrics={"train": defaultdict(list)},
    )
    loss = IWOPDTrainer._compute_iw_opd_loss(
        trainer,
        student_logits=_pair(leaf),
        completion_tokens=torch.zeros_like(mask, dtype=torch.long),
        labels=torch.where(mask > 0, 0, -100),
        teacher_actual_logprobs=teacher,
        rollout_logprobs=old,
    )
    out = {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}
    return out | {key.removeprefix("iw_opd/"): value[0] for key, value in trainer._metrics["train"].items()}
