"""verl's own filters, resampling and debugging metrics."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
from verl import DataProto
from verl.trainer.ppo import core_algos, metric_utils
from verl.trainer.ppo.core_algos import AdaptiveKLController
from verl.utils import torch_functional as verl_f
from verl.utils.debug.metrics import calculate_debug_metrics

from frameworks.precision import Standin, double
from frameworks.verl_ops import PROFILE  # noqa: F401

# its package starts a service that is not installed; this file only needs the name of the service
_path = Path(core_algos.__file__).parent / "v1" / "replay_buffer.py"
_spec = importlib.util.spec_from_file_location("replay_buffer", _path)
replay_buffer = importlib.util.module_from_spec(_spec)
with mock.patch.dict(sys.modules, {"transfer_queue": mock.MagicMock()}):
    _spec.loader.exec_module(replay_buffer)

Tensor = torch.Tensor
Out = dict[str, object]


def probability_difference(old: Tensor, rollout: Tensor, mask: Tensor) -> Out:
    data = {"old_log_probs": old, "rollout_log_probs": rollout, "response_mask": mask, "responses": mask.long()}
    return calculate_debug_metrics(DataProto.from_single_dict(data))


def variance_proxy(
    old: Tensor, squares: Tensor, advantages: Tensor, mask: Tensor, norm: float, weights: Tensor | None
) -> Out:
    data = {"old_log_probs": old, "sum_pi_squared": squares, "advantages": advantages, "response_mask": mask}
    if weights is not None:
        data["rollout_is_weights"] = weights
    return metric_utils.compute_variance_proxy_metrics(DataProto.from_single_dict(data), gradient_norm=norm)


def dynamic_sampling_filter(scores: list[float], groups: list[int]) -> Out:
    """The groups that the replay buffer discards, with its storage replaced by a list; one entry per row."""
    keys = [f"{group}_{row}" for row, group in enumerate(groups)]
    buffer = SimpleNamespace(
        filter_groups_metric=replay_buffer.FILTER_GROUPS_REWARD_METRIC,
        finished_keys={"train": {str(group) for group in groups}},
        partitions={"train": keys},
        _dapo_classification_cache=defaultdict(dict),
    )
    rows = [torch.tensor([score], dtype=torch.float64) for score in scores]
    with mock.patch.object(replay_buffer, "tq", SimpleNamespace(kv_batch_get=lambda **_: {"rm_scores": rows})):
        dropped, _ = replay_buffer.ReplayBuffer._dapo_filtered_keys(buffer, "train")
    return {"keep": [float(str(group) not in dropped) for group in groups]}


def pf_ppo_weights(scores: Tensor, params: dict) -> Out:
    """The weights as verl hands them to its generator."""
    seen: list[Tensor] = []

    def multinomial(weights: Tensor, number: int, replacement: bool) -> Tensor:
        seen.append(weights)
        return torch.arange(number)

    data = DataProto.from_single_dict({"token_level_scores": scores[:, None]})
    with mock.patch.object(core_algos, "torch", Standin(torch, multinomial=multinomial)), double(scores.dtype):
        core_algos.compute_pf_ppo_reweight_data(data, params["method"], params.get("power", 2.0))
    return {"weights": seen[0]}


def response_mask_from_eos(tokens: Tensor, eos: list[int]) -> Out:
    return {"mask": verl_f.get_response_mask(tokens, eos, torch.float64)}


def row_sums(x: Tensor, mask: Tensor) -> Out:
    return {"out": verl_f.masked_sum(x, mask, axis=-1)}


def row_means(x: Tensor, mask: Tensor) -> Out:
    return {"out": verl_f.masked_mean(x, mask, axis=-1)}


def controller(params: dict) -> AdaptiveKLController:
    return AdaptiveKLController(params["beta"], params["target"], params["horizon"])
