"""verl's own correction of the mismatch between sampler and trainer."""

from __future__ import annotations

import torch
from verl.trainer.ppo import rollout_corr_helper as helper

from frameworks.precision import double
from frameworks.verl_ops import PROFILE  # noqa: F401

Tensor = torch.Tensor
Out = dict[str, object]


def _logged(metrics: dict, prefix: str) -> Out:
    """verl always computes shares, deviations and effective sample sizes in float32."""
    return {key: float(value) for key, value in metrics.items() if key.startswith(f"rollout_corr/{prefix}")}


def rollout_is(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    """`upper` alone is verl's "U", with `lower` "L_U"; `threshold` is handed on as it is."""
    lower, upper = params.get("lower"), params.get("upper")
    threshold = params.get("threshold", upper if lower is None else f"{lower}_{upper}")
    weights, _, metrics = helper.compute_rollout_correction_and_rejection_mask(
        old,
        rollout,
        mask,
        rollout_is=params["level"],
        rollout_is_threshold=threshold,
        rollout_is_batch_normalize=params.get("batch_normalize", False),
    )
    return {"weights": weights.batch["rollout_is_weights"], "metrics": _logged(metrics, "rollout_is_")}


def rollout_rejection(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    _, kept, metrics = helper.compute_rollout_correction_and_rejection_mask(
        old, rollout, mask, rollout_rs=params["options"], rollout_rs_threshold=params["thresholds"]
    )
    return {"mask": kept, "metrics": _logged(metrics, "rollout_rs_")}


def rollout_metrics(old: Tensor, rollout: Tensor, mask: Tensor) -> Out:
    """The mismatch metrics under the keys that verl logs, `rollout_corr/` included."""
    with double(old.dtype):
        return helper.compute_rollout_corr_metrics_from_logprobs(old, rollout, mask)
