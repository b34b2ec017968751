"""TRL's own loss function, with and without the mixin."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl")

import torch  # noqa: E402
from trl.trainer.grpo_trainer import GRPOTrainer  # noqa: E402

import tokenwise_rl as tw  # noqa: E402
from tokenwise_rl.frameworks.trl import TokenwiseLoss  # noqa: E402

from .batch import Batch  # noqa: E402


class Trainer(TokenwiseLoss, GRPOTrainer):
    pass


class Vespo(TokenwiseLoss, GRPOTrainer):
    tokenwise_loss = "vespo"
    tokenwise_settings = {"k_positive": 2.5}


def trainer(kind: type, batch: Batch, leaf: Any, entropies: Any, **changes: Any) -> Any:
    """A trainer of one process with the attributes that the loss reads, and a model that was run already."""
    made = object.__new__(kind)
    arguments = {
        "delta": None,
        "use_bias_correction_kl": False,
        "steps_per_generation": 3,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
        "vespo_k_pos": 2.0,
        "vespo_lambda_pos": 3.0,
        "vespo_k_neg": 3.0,
        "vespo_lambda_neg": 2.0,
        "entropy_target": 0.5,
        "entropy_coef_delta": 0.01,
        "entropy_coef_max": 1.0,
        "entropy_coef_min": 0.0,
    }
    for key in arguments:
        if key in changes:
            arguments[key] = changes.pop(key)
    attributes = {
        "_get_per_token_logps_and_entropies": lambda *_, **__: (leaf, entropies, leaf.sum() * 0.01),
        "aux_loss_enabled": False,
        "router_aux_loss_coef": 0.1,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "loss_type": "grpo",
        "epsilon_low": 0.2,
        "epsilon_high": 0.3,
        "args": SimpleNamespace(**arguments),
        "use_vllm": False,
        "vllm_importance_sampling_correction": False,
        "model": SimpleNamespace(training=True),
        "current_gradient_accumulation_steps": 2,
        "max_completion_length": 20,
        "accelerator": SimpleNamespace(
            num_processes=2,
            gather=lambda x: x,
            gather_for_metrics=lambda x: x,
            pad_across_processes=lambda x, dim, pad_index: x,
            reduce=lambda x, reduction: x,
            sync_gradients=True,
        ),
        "_entropy_bonus_enabled": False,
        "use_adaptive_entropy": False,
        "entropy_coef": 0.05,
        "_last_world_entropy": 0.1,
        "_entropy_window_stats": None,
        "_metrics": {"train": defaultdict(list), "eval": defaultdict(list)},
    }
    made.__dict__.update({**attributes, **changes})
    return made


def inputs(batch: Batch, **changes: Any) -> dict[str, Any]:
    ids = torch.ones(batch.mask.shape, dtype=torch.long)
    return {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1],
        "completion_ids": ids,
        "completion_mask": batch.mask.double(),
        "advantages": batch.scores,
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": batch.ref,
        "num_items_in_batch": batch.mask.sum(),
        **changes,
    }


@pytest.fixture(autouse=True)
def double() -> Any:
    """Numbers without a type of their own, such as SAPO's temperatures, are float32 in TRL otherwise."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def run(kind: type, given: dict[str, Any], **changes: Any) -> tuple[Any, ...]:
    batch = Batch()
    if changes.get("use_vllm"):
        # 1 in dropped slots, as TRL has it there, because VESPO multiplies all of them
        given = {**given, "importance_sampling_ratio": torch.where(batch.mask, batch.weights, 1.0)}
    leaf, entropies = batch.log_probs.clone().requires_grad_(), batch.entropies.clone().requires_grad_()
    made = trainer(kind, batch, leaf, entropies, **changes)
    loss = made._compute_loss(None, inputs(batch, **given))
    grads = torch.autograd.grad(loss, (leaf, entropies), allow_unused=True)
    state = (made.entropy_coef, made._last_world_entropy)
    return loss, grads, {key: values for key, values in made._metrics["train"].items()}, state


CASES: list[dict[str, Any]] = [
    *({"loss_type": kind} for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "vespo", "luspo")),
    *(
        {"loss_type": kind, "importance_sampling_level": "sequence"}
        for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
    ),
    {"delta": 1.5},
    {"beta": 0.1},
    {"beta": 0.1, "loss_type": "dapo"},
    {"beta": 0.1, "use_bias_correction_kl": True},
    {"beta": 0.1, "use_bias_correction_kl": True, "importance_sampling_level": "sequence", "loss_type": "bnpo"},
    {"top_entropy_quantile": 0.5},
    {"loss_type": "vespo", "top_entropy_quantile": 0.5},
    {"loss_type": "vespo", "use_vllm": True, "vllm_importance_sampling_correction": True},
    {"off_policy_mask_threshold": 0.05},
    {"use_vllm": True, "vllm_importance_sampling_correction": True},
    {"_entropy_bonus_enabled": True},
    {"_entropy_bonus_enabled": True, "top_entropy_quantile": 0.5, "loss_type": "dapo"},
    {"_entropy_bonus_enabled": True, "use_adaptive_entropy": True},
    {"_entropy_bonus_enabled": True, "use_adaptive_entropy": True, "_last_world_entropy": 9.0},
    {"aux_loss_enabled": True},
    {"model": SimpleNamespace(training=False), "loss_type": "dapo"},
]


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_the_loss_is_that_of_trl(changes: dict[str, Any]) -> None:
    (want, grads, metrics, state), found = run(GRPOTrainer, {}, **changes), run(Trainer, {}, **changes)
    close = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(found[0], want, **close)
    for ours, theirs in zip(found[1], grads):
        theirs = torch.zeros_like(ours) if theirs is None and ours is not None else theirs
        ours = torch.zeros_like(theirs) if ours is None and theirs is not None else ours
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, **close)
    # TRL's own, computed once
    assert found[2].keys() == metrics.keys() and found[3] == state
    for key, values in metrics.items():
        assert found[2][key] == pytest.approx(values, nan_ok=True), key


def test_advantages_by_token_tool_masks_and_no_old_policy() -> None:
    batch = Batch()
    tool = torch.ones_like(batch.mask, dtype=torch.double)
    tool[:, 0] = 0.0
    given = {"advantages": batch.advantages, "tool_mask": tool, "old_per_token_logps": None}
    want, found = run(GRPOTrainer, given), run(Trainer, given)
    torch.testing.assert_close(found[0], want[0])
    torch.testing.assert_close(found[1][0], want[1][0])


def test_another_loss_keeps_trls_metrics() -> None:
    batch, (loss, _, metrics, _) = Batch(), run(Vespo, {}, loss_type="bnpo")
    want = tw.vespo(
        log_probs=batch.log_probs,
        old_log_probs=batch.old,
        advantages=batch.scores[:, None].expand(batch.mask.shape).contiguous(),
        mask=batch.mask,
        k_positive=2.5,
    )
    assert loss.item() == pytest.approx(want.loss / 2)
    assert "clip_ratio/region_mean" in metrics


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delta": 1.5, "importance_sampling_level": "sequence"}, "delta: expected None"),
        ({"loss_type": "cispo", "importance_sampling_level": "sequence"}, "importance_sampling_level: expected token"),
    ],
    ids=str,
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(tw.TokenwiseError, match=words):
        run(Trainer, {}, **changes)


def test_the_methods_are_the_trainers_again_afterwards() -> None:
    batch = Batch()
    leaf = batch.log_probs.clone().requires_grad_()
    made = trainer(Trainer, batch, leaf, batch.entropies)
    before = dict(made.__dict__)
    made._compute_loss(None, inputs(batch))
    assert made.__dict__.keys() == before.keys()
    own = "_get_per_token_logps_and_entropies"
    assert made.__dict__[own] is before[own]
