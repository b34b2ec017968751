"""verl's own functions, with and without the plug-in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("verl")

import torch  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.config import AlgoConfig  # noqa: E402
from verl.trainer.ppo import core_algos, ray_trainer  # noqa: E402
from verl.workers.config.actor import ActorConfig, PolicyLossConfig  # noqa: E402

import tokenwise_rl as tw  # noqa: E402
from tokenwise_rl.frameworks import verl as plugin  # noqa: E402

from .batch import Batch, with_gradient  # noqa: E402

MODES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
TOLERANCE = {torch.float32: {"rtol": 2e-5, "atol": 2e-6}, torch.float64: {"rtol": 1e-11, "atol": 1e-12}}


def actor(**changes: Any) -> ActorConfig:
    info = changes.pop("info", {})
    loss = PolicyLossConfig(dro_beta=0.1, clip_cov_ratio=0.1, clip_cov_lb=-5.0, kl_cov_ratio=0.1)
    config = ActorConfig(
        strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, policy_loss=loss, clip_ratio=0.2, **changes
    )
    config.global_batch_info.update(info)
    return config


@pytest.fixture(autouse=True)
def restored() -> Any:
    yield
    plugin.restore()


def verls(mask: Any, dtype: torch.dtype) -> Any:
    """Booleans, as verl's losses get them. In float64 the 1e-8 that verl adds to counts is only there if the mask is
    float64, too."""
    return mask if dtype == torch.float32 else mask.double()


def both(name: str, batch: Batch, mode: str, config: ActorConfig, weights: Any = None) -> list[Any]:
    found = []
    for function in (core_algos.get_policy_loss_fn(name), core_algos.get_policy_loss_fn(f"tokenwise/{name}")):
        arguments = {
            "old_log_prob": batch.old,
            "advantages": batch.advantages,
            "response_mask": verls(batch.mask, batch.old.dtype),
            "loss_agg_mode": mode,
            "config": config,
            "rollout_is_weights": weights,
        }
        found.append(with_gradient(lambda leaf: function(log_prob=leaf, **arguments), batch.log_probs))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(set(plugin.LOSSES) - {"clip_cov"}))
def test_a_loss_is_that_of_verl(name: str, mode: str, dtype: torch.dtype) -> None:
    batch = Batch(dtype=dtype)
    infos: list[dict[str, Any]] = [{}]
    if name != "geo_mean":
        sizes = {"batch_num_tokens": 100, "global_batch_size": 16}
        infos.append({"dp_size": 4, "loss_scale_factor": 7, **sizes})
    for info in infos:
        for weights in (None, batch.weights):
            theirs, ours = both(name, batch, mode, actor(info=info), weights)
            (loss, metrics), grad = theirs
            (our_loss, our_metrics), our_grad = ours
            torch.testing.assert_close(our_loss, loss, **TOLERANCE[dtype])
            torch.testing.assert_close(our_grad, grad, **TOLERANCE[dtype])
            assert our_metrics == pytest.approx(metrics, rel=1e-5, abs=1e-7)


def test_clip_cov_detaches_as_many_tokens() -> None:
    """verl draws the tokens with a random permutation, so that single tokens cannot be compared."""
    batch = Batch(rows=32, width=40)
    ((_, theirs), _), ((_, ours), grad) = both("clip_cov", batch, "token-mean", actor())
    assert ours["actor/pg_clipfrac"] == pytest.approx(theirs["actor/pg_clipfrac"])
    assert ours["actor/ppo_kl"] == pytest.approx(theirs["actor/ppo_kl"])
    torch.manual_seed(3)
    first = both("clip_cov", batch, "token-mean", actor())[1][1]
    torch.manual_seed(3)
    again = both("clip_cov", batch, "token-mean", actor())[1][1]
    assert torch.equal(first, again)


def test_ranks_need_counts() -> None:
    with pytest.raises(ValueError, match="batch_num_tokens is required"):
        both("vanilla", Batch(), "token-mean", actor(info={"dp_size": 2}))[1]


def test_a_weight_is_not_a_mask() -> None:
    batch = Batch()
    with pytest.raises(tw.TokenwiseError, match="0 or 1"):
        plugin.LOSSES["vanilla"](batch.old, batch.log_probs, batch.advantages, batch.weights, config=actor())


def test_any_loss_can_be_registered() -> None:
    batch = Batch()
    core_algos.register_policy_loss("mine")(plugin.policy_loss("vespo", k_positive=2.5))
    loss, _ = core_algos.get_policy_loss_fn("mine")(
        batch.old, batch.log_probs, batch.advantages, batch.mask, "token-mean", actor(), None
    )
    want = tw.vespo(
        log_probs=batch.log_probs,
        old_log_probs=batch.old,
        advantages=batch.advantages,
        mask=batch.mask,
        k_positive=2.5,
    )
    assert loss.item() == pytest.approx(want.loss)


def proto(batch: Batch) -> DataProto:
    tensors = {
        "token_level_rewards": batch.rewards,
        "values": batch.values,
        "response_mask": batch.mask.long() if batch.old.dtype == torch.float32 else batch.mask.double(),
        "old_log_probs": batch.old,
        "reward_baselines": batch.scores * 0.5,
    }
    groups = np.array([f"prompt-{group}" for group in batch.groups], dtype=object)
    return DataProto.from_dict(tensors=tensors, non_tensors={"uid": groups})


def config(gamma: float = 0.97) -> AlgoConfig:
    return AlgoConfig(gamma=gamma, lam=0.9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", sorted(plugin.ESTIMATORS))
def test_an_estimator_is_that_of_verl(name: str, dtype: torch.dtype) -> None:
    batch = Batch(dtype=dtype)
    found = [
        ray_trainer.compute_advantage(proto(batch), estimator, config=config()).batch
        for estimator in (name, f"tokenwise/{name}")
    ]
    for key in ("advantages", "returns"):
        theirs, ours = (one[key][batch.mask] for one in found)
        torch.testing.assert_close(ours, theirs, **TOLERANCE[torch.float32])
        assert (found[1][key][~batch.mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("by_deviation", [True, False])
@pytest.mark.parametrize("name", ["gae", "grpo"])
def test_the_functions_that_verl_calls_directly(name: str, by_deviation: bool, dtype: torch.dtype) -> None:
    batch = Batch(dtype=dtype)
    arguments = {"gamma": 0.97, "lam": 0.9, "norm_adv_by_std_in_grpo": by_deviation, "config": config()}
    theirs = ray_trainer.compute_advantage(proto(batch), name, **arguments).batch
    plugin.replace()
    ours = ray_trainer.compute_advantage(proto(batch), name, **arguments).batch
    for key in ("advantages", "returns"):
        torch.testing.assert_close(ours[key][batch.mask], theirs[key][batch.mask], **TOLERANCE[dtype])
        assert ours[key].dtype == dtype
    assert core_algos.compute_gae_advantage_return is plugin._gae
    plugin.restore()
    assert core_algos.compute_gae_advantage_return is not plugin._gae


def test_a_score_in_a_dropped_slot_counts_as_in_verl() -> None:
    """The reward of an answer that ends with a tool's output is in a slot that the mask drops."""
    batch = Batch()
    batch.rewards[:, 2] = batch.scores
    theirs = core_algos.compute_grpo_outcome_advantage(batch.rewards, batch.mask.double(), np.array(batch.groups))[0]
    ours = plugin._grpo(batch.rewards, batch.mask.double(), np.array(batch.groups))[0]
    torch.testing.assert_close(ours, theirs)


def test_the_five_numbers_after_compute_advantage() -> None:
    batch = Batch(dtype=torch.float32)
    data = ray_trainer.compute_advantage(proto(batch), "gae", gamma=1.0, lam=0.95, config=config())
    found = plugin.analysis(data)
    assert len(found) == 5 and all(key.startswith("analysis/") for key in found)
    log_probs, advantages = batch.old[batch.mask].double(), data.batch["advantages"][batch.mask].double()
    covariance = torch.cov(torch.stack([log_probs, advantages]), correction=0)[0, 1].item()
    assert any(value == pytest.approx(covariance, rel=1e-4) for value in found.values()), found


def test_unknown_names_and_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tw.TokenwiseError, match="expected one of"):
        plugin.replace("gea")
    monkeypatch.setattr("verl.__version__", "0.10.0")
    with pytest.raises(tw.TokenwiseError, match="expected 0.9.1, got 0.10.0"):
        plugin.replace()


def run(code: str, folder: Path, **environment: str) -> str:
    """In a process of its own, with the package known by its entry point, as after `pip install`."""
    import os

    entry = folder / "tokenwise_rl-0.1.0.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: tokenwise-rl\nVersion: 0.1.0\n")
    (entry / "entry_points.txt").write_text("[verl.plugins]\ntokenwise_rl = tokenwise_rl.frameworks.verl:register\n")
    package = Path(tw.__file__).parents[1]
    path = os.pathsep.join([str(folder), str(package)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_verl_loads_the_plug_in_by_itself_and_replaces_nothing(tmp_path: Path) -> None:
    code = (
        "import verl\nfrom verl.trainer.ppo import core_algos as c\n"
        "print(sum(name.startswith('tokenwise/') for name in c.POLICY_LOSS_REGISTRY), "
        "sum(name.startswith('tokenwise/') for name in c.ADV_ESTIMATOR_REGISTRY), "
        "c.compute_gae_advantage_return.__module__)"
    )
    assert run(code, tmp_path).split() == [str(len(plugin.LOSSES)), str(len(plugin.ESTIMATORS)), core_algos.__name__]


def test_the_environment_replaces(tmp_path: Path) -> None:
    code = "import verl\nfrom verl.trainer.ppo import core_algos as c\nprint(c.compute_gae_advantage_return.__module__)"
    found = run(code, tmp_path, TOKENWISE_VERL_REPLACE="gae, grpo")
    assert found.split() == ["tokenwise_rl.frameworks.verl"]


#: verl's own tests of these functions, which its wheel installs as the package `tests`.
OWN_TESTS = [
    "trainer/ppo/test_core_algos_on_cpu.py",
    "trainer/ppo/test_reinforce_pp_multiturn_on_cpu.py",
    "trainer/ppo/test_loss_aggregation_on_cpu.py",
    "trainer/ppo/test_dynamic_policy_losses_on_cpu.py",
]


def test_verls_own_tests_pass_with_the_plug_in_active(tmp_path: Path) -> None:
    import os

    import verl

    folder = Path(verl.__file__).parents[1] / "tests"
    present = [str(folder / name) for name in OWN_TESTS if (folder / name).exists()]
    assert present, "verl's wheel has its tests"
    (tmp_path / "active.py").write_text(
        "from tokenwise_rl.frameworks import verl\n"
        "verl.replace('gae', 'grpo', *verl.ESTIMATORS, *sorted(set(verl.LOSSES)))\n"
    )
    package = Path(tw.__file__).parents[1]
    path = os.pathsep.join([str(tmp_path), str(package)])
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "active", "-p", "no:cacheprovider", *present]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    print(done.stdout.splitlines()[-1])
