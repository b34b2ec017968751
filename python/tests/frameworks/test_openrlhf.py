"""OpenRLHF's own classes, with and without the plug-in. deepspeed, flash_attn and vllm are only imported by it, so they
are stubs here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("openrlhf")

import torch  # noqa: E402

import tokenwise_rl as tw  # noqa: E402
from tokenwise_rl.frameworks import openrlhf as plugin  # noqa: E402

from .batch import Batch, with_gradient  # noqa: E402

STUBS = """
import sys
from unittest import mock
import peft.tuners.lora, transformers.integrations.deepspeed, transformers.trainer
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
names = ("deepspeed", "deepspeed.runtime", "deepspeed.runtime.zero", "deepspeed.runtime.zero.partition_parameters",
    "flash_attn", "flash_attn.bert_padding", "flash_attn.utils", "flash_attn.utils.distributed", "vllm", "vllm.inputs",
    "vllm.utils")
sys.modules.update({name: mock.MagicMock() for name in names if name not in sys.modules})
"""
_before = set(sys.modules)
exec(STUBS)
from openrlhf.models import loss as theirs  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402

for _name in [name for name, module in sys.modules.items() if isinstance(module, mock.MagicMock)]:
    del sys.modules[_name]

TOLERANCE = {"rtol": 1e-11, "atol": 1e-12}
SIZES = ({}, {"dp_size": 4, "batch_num_tokens": 100.0, "global_batch_size": 16.0})


def same(ours: Any, want: Any) -> None:
    assert (ours is None) == (want is None)
    if want is not None:
        # shares are float32 in OpenRLHF, whatever the data is
        close = {"rtol": 1e-6, "atol": 0.0} if want.dtype == torch.float32 else TOLERANCE
        torch.testing.assert_close(ours, want.detach(), **close, check_dtype=False)


@pytest.mark.parametrize("sizes", SIZES, ids=["local", "global"])
@pytest.mark.parametrize("token_level_loss", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"clip_eps_low": 0.1, "clip_eps_high": 0.3, "dual_clip": 3.0},
        {"policy_loss_type": "gspo"},
        {"policy_loss_type": "gspo", "is_correction_level": "token"},
        {"is_correction_level": "token", "is_correction_mode": "clip"},
        {"is_correction_level": "token"},
        {"is_correction_level": "seq"},
        {"is_correction_level": "seq", "is_correction_gating": "binary_kl", "is_correction_threshold": (0.0, 0.05)},
        {"is_correction_level": "token", "is_correction_gating": "tv", "is_correction_threshold": (0.0, 0.1)},
    ],
    ids=str,
)
def test_a_policy_loss_is_that_of_openrlhf(
    settings: dict[str, Any], token_level_loss: bool, sizes: dict[str, Any]
) -> None:
    batch = Batch()
    original = theirs.PolicyLoss(token_level_loss=token_level_loss, **settings)
    results = []
    for module in (original, plugin.PolicyLoss.like(original)):
        results.append(
            with_gradient(
                lambda leaf: module(
                    leaf, batch.old, batch.advantages, batch.mask.double(), rollout_log_probs=batch.ref, **sizes
                ),
                batch.log_probs,
            )
        )
    (want, want_grad), (found, grad) = results
    same(grad, want_grad)
    for ours, other in zip(found, want):
        same(ours, other)


@pytest.mark.parametrize("sizes", SIZES, ids=["local", "global"])
@pytest.mark.parametrize("token_level_loss", [True, False])
@pytest.mark.parametrize("clip", [None, 0.2])
def test_a_value_loss_is_that_of_openrlhf(clip: float | None, token_level_loss: bool, sizes: dict[str, Any]) -> None:
    batch = Batch()
    original = theirs.ValueLoss(clip, token_level_loss)
    results = [
        with_gradient(lambda leaf: module(leaf, batch.old, batch.returns, batch.mask.double(), **sizes), batch.values)
        for module in (original, plugin.ValueLoss.like(original))
    ]
    (want, want_grad), (found, grad) = results
    same(found, want)
    same(grad, want_grad)


def test_advantages_are_those_of_openrlhf() -> None:
    batch = Batch()
    mask = batch.mask.double()
    arguments = (batch.values, batch.rewards, mask, 0.97, 0.9)
    want = RemoteExperienceMaker.get_advantages_and_returns(None, *arguments)
    for ours, other in zip(plugin.advantages_and_returns(None, *arguments), want):
        torch.testing.assert_close(ours[batch.mask], other[batch.mask], **TOLERANCE)


def test_classes_are_replaced_and_restored() -> None:
    before = theirs.PolicyLoss
    plugin.replace()
    assert theirs.PolicyLoss is plugin.PolicyLoss and theirs.ValueLoss is plugin.ValueLoss
    plugin.restore()
    assert theirs.PolicyLoss is before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy_loss_type": "grpo"}, "policy_loss_type must be ppo/gspo"),
        ({"is_correction_level": "both"}, "is_correction_level must be off/token/seq"),
        ({"is_correction_mode": "clip", "is_correction_level": "seq"}, "is_correction_mode=clip requires"),
        ({"policy_loss_type": "gspo", "dual_clip": 3.0}, "dual_clip"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plugin.PolicyLoss(**settings)


def test_openrlhfs_own_tests_pass_with_the_plug_in_active(tmp_path: Path) -> None:
    """They are in its wheel."""
    import openrlhf

    own = Path(openrlhf.__file__).parents[1] / "tests/test_loss_aggregation.py"
    assert own.exists()
    (tmp_path / "active.py").write_text(
        STUBS + "from tokenwise_rl.frameworks import openrlhf\nopenrlhf.replace()\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(tw.__file__).parents[1])])
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "active", "-p", "no:cacheprovider", str(own)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
