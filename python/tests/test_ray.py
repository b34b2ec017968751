"""A local Ray over Parquet gives the bytes of one process, for any number of blocks.

Starting Ray takes seconds and hundreds of megabytes: the tests run with TOKENWISE_FRAMEWORKS=1 and need ray[data].
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("TOKENWISE_FRAMEWORKS") != "1":
    pytest.skip("TOKENWISE_FRAMEWORKS is not 1", allow_module_level=True)

import pyarrow as pa
import pyarrow.parquet as pq
import ray

import tokenwise_rl as tw
from tokenwise_rl.ray import Analysis, Formula, Metrics, states

NAMES = ("advantages", "old_log_probs", "rollout_log_probs", "rewards", "values", "returns", "token_level_scores")


@pytest.fixture(scope="module")
def cluster():
    package = str(Path(tw.__file__).parent.parent)
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}},
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(5)
    lengths = random.integers(0, 60, size=29)
    lengths[3] = 0
    columns = {}
    for name in NAMES:
        rows = [random.normal(size=n).astype(np.float32) for n in lengths]
        rows = [-np.abs(row) for row in rows] if name.endswith("log_probs") else rows
        columns[name] = pa.array(rows, type=pa.list_(pa.float32()))
    columns["mask"] = pa.array([random.random(n) < 0.8 for n in lengths], type=pa.list_(pa.bool_()))
    columns["prompt_length"] = pa.array(random.integers(1, 30, size=29))
    return pa.table(columns)


def written(table: pa.Table, blocks: int, folder: Path) -> str:
    edges = np.linspace(0, table.num_rows, blocks + 1).astype(int)
    for index, (start, end) in enumerate(zip(edges, edges[1:])):
        pq.write_table(table.slice(start, end - start), folder / f"{blocks - index}.parquet")
    return str(folder)


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_blocks_give_the_bytes_of_one_process(cluster, table: pa.Table, blocks: int, tmp_path: Path) -> None:
    ds = ray.data.read_parquet(written(table, blocks, tmp_path), override_num_blocks=blocks)
    for aggregate in (Metrics("verl-0.9.1", response_limit=59), Analysis()):
        [(name, found)] = ds.aggregate(aggregate).items()
        alone = aggregate.finalize(states(aggregate, table))
        assert name == ("analysis" if isinstance(aggregate, Analysis) else "metrics")
        assert len(alone) in (5, len(found)) and set(found) == set(alone)
        assert pickle.dumps([found[key] for key in alone]) == pickle.dumps(list(alone.values()))


def test_the_metrics_are_those_of_the_function(table: pa.Table) -> None:
    aggregate = Metrics("verl-0.9.1")
    found = aggregate.finalize(states(aggregate, table))
    flat = {name: np.concatenate([np.asarray(row, np.float32) for row in table[name].to_pylist()]) for name in NAMES}
    offsets = np.cumsum([0, *(len(row) for row in table["mask"].to_pylist())])
    expected = tw.verl_metrics(
        scores=flat.pop("token_level_scores"),
        mask=np.concatenate([np.asarray(row, bool) for row in table["mask"].to_pylist()]),
        cu_seqlens=offsets,
        response_lengths={"tokens": np.diff(offsets), "limit": 1000},
        prompt_lengths={"tokens": table["prompt_length"].to_numpy(), "limit": 1000},
        **flat,
    )
    assert set(found) == {key for key in expected if not key.endswith("/clip_ratio")}
    for key, value in found.items():
        assert value == pytest.approx(expected[key], rel=1e-9, abs=1e-12, nan_ok=True), key


def test_a_formula_per_token(cluster, table: pa.Table, tmp_path: Path) -> None:
    ds = ray.data.read_parquet(written(table, 2, tmp_path))
    gae = Formula("gae", outputs=["new_advantages", "new_returns"], gamma=1.0, lambda_=0.95)
    rows = ds.map_batches(gae, batch_format="pyarrow").take_all()
    assert len(rows) == table.num_rows
    for row in rows:
        expected = tw.gae(
            rewards=np.asarray(row["rewards"], np.float32)[None],
            values=np.asarray(row["values"], np.float32)[None],
            mask=np.asarray(row["mask"], bool)[None],
            gamma=1.0,
            lambda_=0.95,
        )
        np.testing.assert_array_equal(np.asarray(row["new_advantages"], np.float32), expected.advantages[0])


def test_columns_that_do_not_fit_are_refused(table: pa.Table) -> None:
    longer = table.set_column(
        table.column_names.index("values"), "values", pa.array([[0.0]] * 29, type=pa.list_(pa.float32()))
    )
    with pytest.raises(tw.TokenwiseError, match="lists as long as"):
        states(Metrics(), longer)
    with pytest.raises(tw.TokenwiseError, match="expected one column"):
        states(Metrics(), table.append_column("loss_mask", table["mask"]))
    with pytest.raises(tw.TokenwiseError, match="a list of numbers"):
        states(Metrics(columns={"scores": "prompt_length"}), table)
    with pytest.raises(tw.TokenwiseError, match="profile"):
        Metrics("trl-1.16")
    with pytest.raises(tw.TokenwiseError, match="a formula"):
        Formula("no_such", outputs=["a"])
