"""verl's own correction of the mismatch between sampler and trainer."""

from __future__ import annotations

import torch
from verl.trainer.ppo import rollout_corr_helper as helper

from frameworks.precision import double
from frameworks.verl_ops import PROFILE  # noqa: F401

Tensor = torch.Tensor
Out = dict[str, object]


def rollout_is(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    """`upper` alone is verl's "U", with `lower` "L_U"."""
    lower, upper = params["lower"], params["upper"]
    weights, _, _ = helper.compute_rollout_correction_and_rejection_mask(
        old,
        rollout,
        mask,
        rollout_is=params["level"],
        rollout_is_threshold=upper if lower is None else f"{lower}_{upper}",
        rollout_is_batch_normalize=params["batch_normalize"],
    )
    return {"weights": weights.batch["rollout_is_weights"]}


def rollout_rejection(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    _, kept, _ = helper.compute_rollout_correction_and_rejection_mask(
        old, rollout, mask, rollout_rs=params["options"], rollout_rs_threshold=params["thresholds"]
    )
    return {"mask": kept}


def rollout_metrics(old: Tensor, rollout: Tensor, mask: Tensor) -> Out:
    """The mismatch metrics under the keys that verl logs, `rollout_corr/` included."""
    with double(old.dtype):
        return helper.compute_rollout_corr_metrics_from_logprobs(old, rollout, mask)
