"""Real processes over Gloo give the bytes of one process.

Needs torch. Every process is started anew, so that nothing is shared by accident.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenwise_rl as tw

pytest.importorskip("torch")

SHAPE = (16, 40)


def data() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    names = ("advantages", "old_log_probs", "log_probs", "ref_log_probs", "rewards", "values", "returns")
    columns = {name: random.normal(size=SHAPE).astype(np.float32) for name in names}
    for name in ("old_log_probs", "log_probs", "ref_log_probs"):
        columns[name] = -np.abs(columns[name])
    columns["advantages"] *= 10.0 ** random.integers(-6, 6, size=SHAPE).astype(np.float32)
    columns["mask"] = random.random(SHAPE) < 0.7
    for name in names:
        # dropped slots must not matter
        columns[name][~columns["mask"]] = np.nan
    return columns


def cuts(world: int) -> list[int]:
    """Sequences of each rank: with four, one has none and one a single token."""
    return {1: [0, 16], 2: [0, 5, 16], 4: [0, 0, 9, 10, 16]}[world]


def prepared(world: int) -> dict[str, np.ndarray]:
    columns = data()
    # in every world, so that the data is the same: sequence 9 has a single token
    columns["mask"][9] = False
    columns["mask"][9, 17] = True
    for name, column in columns.items():
        if name != "mask":
            column[9, 17] = -0.25
    columns["scores"] = np.random.default_rng(4).normal(size=SHAPE[0]).astype(np.float32)
    return columns


#: Covariances between two bounds, of which a few are chosen.
CLIP_COV = {"clip": {"lower": 0.01, "upper": 1e9, "ratio": 0.05}, "seed": 3}


def trl_inputs(part: dict[str, Any], rows: slice) -> dict[str, Any]:
    """One prompt per sequence, two reward functions."""
    columns = {name: part[name] for name in ("log_probs", "old_log_probs", "ref_log_probs", "advantages")}
    scores = np.random.default_rng(5).normal(size=(2, SHAPE[0])).astype(np.float32)
    scores[1, 3] = np.nan
    lengths = np.arange(SHAPE[0])[rows]
    rewards = {"sources": scores[:, rows], "source_weights": [1.0, 0.5], "names": ["first", "second"]}
    return {
        **columns,
        "rollout_log_probs": part["ref_log_probs"],
        "entropies": part["values"],
        "rewards": rewards,
        "groups": lengths,
        "completion_lengths": lengths,
        "truncated": lengths % 3 == 0,
    }


def openrlhf_inputs(part: dict[str, Any], rows: slice) -> dict[str, Any]:
    columns = {name: part[name] for name in ("log_probs", "ref_log_probs", "rewards")}
    lengths = np.arange(SHAPE[0])[rows]
    scores = (lengths / 7).astype(np.float32)
    # pairs of sequences would be cut by the ranks: a prompt each, whose deviation is NaN
    return {**columns, "scores": scores, "groups": lengths, "total_lengths": {"tokens": lengths, "limit": 9}}


#: Divided by the mean over the sequences of all ranks.
WEIGHTS = {"level": "sequence", "normalize": "by-level", "bound": {"kind": "truncate", "upper": 1.5}}
CRITERIA = [{"option": "token-k1", "lower": 0.7, "upper": 1.4}, {"option": "seq-max-k2", "upper": 4.0}]
#: Prompts that several ranks share, by number and by name; the world of one has the same.
PROMPTS = np.array([5, 2, 5, 9, 2, 2, 5, 9, 9, 1, 1, 5, 2, 7, 7, 1])
ENTROPIES = {"aggregate": {"mode": "seq-mean-token-mean"}}


def sampled(part: dict[str, Any]) -> dict[str, Any]:
    return {"old_log_probs": part["old_log_probs"], "rollout_log_probs": part["log_probs"]}


def proxies(part: dict[str, Any]) -> dict[str, Any]:
    names = {"old_log_probs": "old_log_probs", "sum_pi_squared": "rewards", "advantages": "returns"}
    return {argument: part[name] for argument, name in names.items()}


def plus_plus(module: Any, part: dict[str, Any], mask: Any) -> Any:
    return module.reinforce_plus_plus(rewards=part["rewards"], mask=mask, gamma=0.9, whiten={"spread": "population"})


def rank_main() -> None:
    """What each process runs."""
    import torch
    import torch.distributed as dist

    from tokenwise_rl import distributed as twd

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    edges = cuts(world)
    rows = slice(edges[rank], edges[rank + 1])
    part = {name: torch.from_numpy(column[rows]) for name, column in prepared(world).items()}
    mask = part["mask"]
    verl = {name: part[name] for name in ("advantages", "returns", "values", "log_probs", "ref_log_probs")}
    lengths = {"tokens": np.full(rows.stop - rows.start, SHAPE[1], dtype=np.uint32), "limit": SHAPE[1]}
    policy = {name: part[name] for name in ("log_probs", "old_log_probs", "advantages")}
    found = {
        "whitened": twd.whiten(part["advantages"], mask=mask).numpy(),
        "moments": twd.moments(part["advantages"], mask=mask).to_bytes(),
        "correlation": twd.co_moments(part["returns"], part["values"], mask=mask).correlation(),
        "analysis": twd.analysis(
            old_log_probs=part["old_log_probs"], advantages=part["advantages"], rewards=part["rewards"], mask=mask
        ),
        "kl": twd.kl_means(log_probs=part["log_probs"], ref_log_probs=part["ref_log_probs"], mask=mask),
        "clip": twd.clip_fractions(
            log_probs=part["log_probs"], old_log_probs=part["old_log_probs"], advantages=part["advantages"], mask=mask
        ),
        "verl": twd.verl_metrics(mask=mask, response_lengths=lengths, rewards=part["rewards"], **verl),
        "counts": twd.counts(mask=mask, prompts=rows.stop - rows.start),
        "quantiles": [twd.quantile(part["advantages"], level, mask=mask) for level in (0.0, 0.31, 0.5, 0.9, 1.0)],
        "smallest": twd.smallest(part["values"].double(), 7, mask=mask),
        "high": twd.high_entropy_mask(part["values"], share=0.3, mask=mask).numpy(),
        "m2po": twd.m2po_mask(
            old_log_probs=part["old_log_probs"], rollout_log_probs=part["log_probs"], tau=0.2, mask=mask
        ).numpy(),
        "kl_cov": twd.kl_cov(
            **policy, mask=mask, ratio=0.1, aggregate={"mode": "token-mean", "counts": twd.counts(mask=mask)}
        ).grad.numpy(),
        "clip_cov": twd.clip_cov_selection(**policy, **CLIP_COV, mask=mask).numpy(),
        "plus_plus": plus_plus(twd, part, mask).advantages.numpy(),
        "weights": twd.rollout_weights(**sampled(part), mask=mask, **WEIGHTS).weights.numpy(),
        "weight_metrics": twd.rollout_weight_metrics(**sampled(part), mask=mask, **WEIGHTS),
        "rejection": twd.rollout_rejection_metrics(**sampled(part), mask=mask, criteria=CRITERIA),
        "proxy": twd.variance_proxy(**proxies(part), mask=mask, gradient_norm=0.2),
        "entropies": twd.verl_metrics(entropies=part["values"], mask=mask, config=ENTROPIES),
        "relative": twd.by_prompt(tw.group_relative, scores=part["scores"], groups=PROMPTS[rows]).numpy(),
        "named": twd.by_prompt(
            tw.leave_one_out, scores=part["scores"].numpy(), groups=[f"prompt {one}" for one in PROMPTS[rows]]
        ),
        "trl": twd.trl_metrics(**trl_inputs(part, rows), mask=mask),
        "openrlhf": twd.openrlhf_metrics(**openrlhf_inputs(part, rows), mask=mask),
    }
    Path(os.environ["FOUND"], f"{rank}.pickle").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def run(world: int, folder: Path) -> list[dict[str, object]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(world):
        settings = {"RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "FOUND": folder}
        environment = {**os.environ, **{key: str(value) for key, value in settings.items()}, "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = str(Path(tw.__file__).parent.parent)
        code = "import test_distributed; test_distributed.rank_main()"
        processes.append(subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=Path(__file__).parent))
    try:
        codes = [process.wait(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert codes == [0] * world
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(world)]


#: Results of which each rank has its part.
PER_SEQUENCE = ("whitened", "high", "m2po", "clip_cov", "kl_cov", "plus_plus", "weights", "relative", "named")


def exact(value: object) -> bytes:
    """The bits of a result."""
    return pickle.dumps(value)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return run(1, tmp_path_factory.mktemp("alone"))[0]


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_give_the_bytes_of_one_process(world: int, alone: dict[str, object], tmp_path: Path) -> None:
    ranks = run(world, tmp_path)
    for name, expected in alone.items():
        if name in PER_SEQUENCE:
            joined = np.concatenate([found[name] for found in ranks])
            assert joined.tobytes() == expected.tobytes(), name
        else:
            assert {exact(found[name]) for found in ranks} == {exact(expected)}, name


def test_one_process_agrees_with_the_functions(alone: dict[str, object]) -> None:
    columns = prepared(1)
    mask = columns["mask"]
    assert alone["quantiles"] == [
        tw.quantile(values=columns["advantages"], mask=mask, level=level) for level in (0.0, 0.31, 0.5, 0.9, 1.0)
    ]
    assert alone["smallest"] == float(np.sort(columns["values"][mask])[7])
    high = tw.high_entropy_mask(entropies=columns["values"], mask=mask, share=0.3)
    np.testing.assert_array_equal(alone["high"], high)
    m2po = tw.m2po_mask(
        old_log_probs=columns["old_log_probs"], rollout_log_probs=columns["log_probs"], tau=0.2, mask=mask
    )
    np.testing.assert_array_equal(alone["m2po"], m2po)
    assert 0 < m2po.sum() < mask.sum()
    policy = {name: columns[name] for name in ("log_probs", "old_log_probs", "advantages")}
    chosen = tw.clip_cov_selection(**policy, **CLIP_COV, mask=mask)
    np.testing.assert_array_equal(alone["clip_cov"], chosen)
    assert chosen.sum() > 3
    np.testing.assert_array_equal(alone["kl_cov"], tw.kl_cov(**policy, mask=mask, ratio=0.1).grad)
    whole = slice(0, SHAPE[0])
    for name, plain, inputs in [
        ("trl", tw.trl_metrics, trl_inputs(columns, whole)),
        ("openrlhf", tw.openrlhf_metrics, openrlhf_inputs(columns, whole)),
    ]:
        assert alone[name] == pytest.approx(plain(**inputs, mask=mask), rel=1e-9, nan_ok=True), name
    np.testing.assert_allclose(alone["plus_plus"], plus_plus(tw, columns, mask).advantages, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        alone["weights"], tw.rollout_weights(**sampled(columns), mask=mask, **WEIGHTS).weights, rtol=1e-6
    )
    for name, expected in [
        ("weight_metrics", tw.rollout_weight_metrics(**sampled(columns), mask=mask, **WEIGHTS)),
        ("rejection", tw.rollout_rejection_metrics(**sampled(columns), mask=mask, criteria=CRITERIA)),
        ("proxy", tw.variance_proxy(**proxies(columns), mask=mask, gradient_norm=0.2)),
        ("entropies", tw.verl_metrics(entropies=columns["values"], mask=mask, **ENTROPIES)),
    ]:
        assert alone[name] == pytest.approx(expected, rel=1e-9), name
    scores = columns["scores"]
    np.testing.assert_array_equal(alone["relative"], tw.group_relative(scores=scores, groups=PROMPTS))
    np.testing.assert_array_equal(alone["named"], tw.leave_one_out(scores=scores, groups=PROMPTS))
    assert alone["counts"] == {"tokens": int(mask.sum()), "sequences": 16, "prompts": 16}
    np.testing.assert_allclose(alone["whitened"], tw.whiten(values=columns["advantages"], mask=mask), rtol=1e-5)
