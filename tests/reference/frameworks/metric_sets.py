"""Everything that verl and TRL log for a batch, by their own methods; everything not about tokens is mocked."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from unittest import mock

import torch
import trl.trainer.grpo_trainer as trl_module
from trl.trainer.grpo_trainer import GRPOTrainer
from verl.trainer.ppo import metric_utils, rollout_corr_helper
from verl.utils.debug import metrics as verl_debug
from verl.utils.metric import Metric, reduce_metrics
from verl.workers.config.actor import ActorConfig
from verl.workers.utils import losses as verl_losses

from frameworks import trl_ops
from frameworks.precision import double

Tensor = torch.Tensor
Out = dict[str, object]
EOS, PAD, OTHER = 2, 0, 7


class _Data(dict):
    """A TensorDict without nested tensors."""

    def select(self, *_: str) -> "_Data":
        return self

    def to_padded_tensor(self) -> "_Data":
        return self


def _attention(lengths: list[int], width: int, left: bool) -> Tensor:
    place = torch.arange(width).repeat(len(lengths), 1)
    sizes = torch.tensor(lengths).unsqueeze(1)
    return ((width - place <= sizes) if left else (place < sizes)).long()


def verl_metrics(data: dict[str, Tensor], mask: Tensor, lengths: list[int], prompts: list[int], params: dict) -> Out:
    """compute_data_metrics, calculate_debug_metrics, the mismatch, the variance proxies, ppo_loss and value_loss."""
    width = params["prompt_limit"]
    batch = dict(data) | {
        "token_level_scores": data["scores"],
        "token_level_rewards": data["rewards"],
        "response_mask": mask,
        "responses": mask,
        "prompts": torch.zeros(mask.shape[0], width),
        "attention_mask": torch.cat(
            [_attention(prompts, width, True), _attention(lengths, mask.shape[1], False)], dim=1
        ),
    }
    proto = SimpleNamespace(batch=batch, non_tensor_batch={})
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        use_kl_loss=True,
        kl_loss_coef=params["kl_coefficient"],
        entropy_coeff=params["entropy_coefficient"],
    )
    step = _Data(batch) | {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None}
    step = _Data(step | {"ref_log_prob": data["ref_log_probs"]})
    plain = lambda values, _: values
    critic = SimpleNamespace(loss_scale_factor=None, cliprange_value=0.5, loss_agg_mode="token-mean")
    with double(mask.dtype, metric_utils), mock.patch.object(verl_losses, "no_padding_2_padding", plain):
        out = metric_utils.compute_data_metrics(proto)
        if mask.any():
            out |= rollout_corr_helper.compute_rollout_corr_metrics_from_logprobs(
                data["old_log_probs"], data["rollout_log_probs"], mask
            )
            out |= verl_debug.calculate_debug_metrics(proto)
            out |= metric_utils.compute_variance_proxy_metrics(proto, params["gradient_norm"])
        model = {"log_probs": data["log_probs"], "entropy": data["entropies"]}
        loss, update = verl_losses.ppo_loss(config, model, step)
        value, of_critic = verl_losses.value_loss(critic, {"values": data["predictions"]}, step)
    update = {key if key.startswith("actor/") else f"actor/{key}": value for key, value in update.items()}
    for key, found in (update | of_critic).items():
        out[key] = found.aggregate() if isinstance(found, Metric) else found
    out |= {"actor/loss": loss, "critic/loss": value}
    return {key: float(value) for key, value in out.items()}


def reduce(key: str, values: list[float]) -> Out:
    """verl's rule, by the key alone."""
    return {"value": float(reduce_metrics({key: list(values)})[key])}


def trl_metrics(data: dict[str, Tensor], mask: Tensor, item: SimpleNamespace, params: dict) -> tuple[Out, Tensor]:
    """_generate_and_score_completions and _compute_loss; also returns the importance weights of the former."""
    metrics: dict[str, list[float]] = defaultdict(list)
    rows, cols = mask.shape
    rollout = [[None if x != x else x for x in row] for row in data["rollout_log_probs"].tolist()]
    same = lambda x, *_, **__: x
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(device="cpu", gather=same, process_index=0, num_processes=1),
        model=SimpleNamespace(training=True),
        environment_factories=None,
        environments=None,
        tools=None,
        rollout_func=lambda *_: {
            "prompt_ids": [[OTHER] * n for n in item.prompts],
            "completion_ids": [[OTHER] * (cols - 1) + [OTHER if cut else EOS] for cut in item.truncated],
            "logprobs": rollout,
            "env_mask": [[int(x) for x in row] for row in mask.tolist()],
        },
        use_vllm=True,
        vllm_importance_sampling_correction=True,
        vllm_importance_sampling_mode=params["mode"],
        vllm_importance_sampling_clip_min=None,
        vllm_importance_sampling_clip_max=1.2,
        vllm_generation=SimpleNamespace(sync_weights=lambda: None),
        _last_loaded_step=0,
        state=SimpleNamespace(num_input_tokens_seen=params["tokens_seen"], global_step=0),
        eos_token_ids=[EOS],
        _tokenizer=SimpleNamespace(pad_token_id=PAD),
        processing_class=SimpleNamespace(batch_decode=lambda ids, **_: ["" for _ in ids]),
        pad_to_multiple_of=None,
        mask_truncated_completions=False,
        args=SimpleNamespace(
            per_device_train_batch_size=rows,
            steps_per_generation=1,
            gradient_accumulation_steps=1,
            gradient_checkpointing_kwargs=None,
        ),
        num_iterations=1,
        num_generations=params["generations"],
        beta=0.0,
        reward_func_names=["first", "second"],
        reward_funcs=[None, None],
        reward_weights=torch.tensor(params["source_weights"], dtype=mask.dtype),
        multi_objective_aggregation="sum_then_normalize",
        scale_rewards=params["scale"],
        log_multimodal=False,
        _calculate_rewards=lambda *_: torch.tensor(item.sources, dtype=mask.dtype).T,
        _get_per_token_logps_and_entropies=lambda *_, **__: (data["old_log_probs"], None, None),
        _logs=defaultdict(list) | {"rewards": defaultdict(list), "extra": defaultdict(list)},
        _pending_metrics={},
        _pending_extra_logs={},
        _metrics={"train": metrics},
    )
    trainer._generate = partial(GRPOTrainer._generate, trainer)
    prompts = [{"prompt": ""} for _ in range(rows)]
    with (
        double(mask.dtype),
        mock.patch.object(trl_module, "gather_object", same),
        mock.patch.object(trl_module, "disable_gradient_checkpointing", lambda *_: nullcontext()),
    ):
        scored = GRPOTrainer._generate_and_score_completions(trainer, prompts)
        _, of_loss = trl_ops._loss(
            data["log_probs"],
            data["old_log_probs"],
            torch.tensor(item.advantages, dtype=mask.dtype),
            mask,
            params | {"aggregate": "token-mean"},
            ref=data.get("ref_log_probs"),
            entropies=data["entropies"],
            coefficient=params["entropy_coefficient"],
            level=params["level"],
        )
    found = {key: value[0] for key, value in (metrics | of_loss).items()}
    out = {key: value for key, value in found.items() if not key.startswith("rewards/")}
    for name in ("mean", "std"):
        out[f"source_{name}s"] = [found[f"rewards/{source}/{name}"] for source in trainer.reward_func_names]
    if "ref_log_probs" in data:  # it holds the KL term too
        del out["policy_loss"]
    return out, scored["importance_sampling_ratio"].expand(rows, cols)
