"""Metrics of a folder of rollout files by Ray Data, with the same bits for any number of files.

    pip install ./python "ray[data]==2.60.*"
    python python/examples/ray_over_parquet.py [FOLDER]

Without a folder, one with 512 made-up sequences in two files, and the same in seven, is compared.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

from tokenwise_rl.ray import Analysis, Formula, Metrics

COLUMNS = ["old_log_probs", "rewards", "values", "mask"]


def rollouts(sequences: int = 512) -> pa.Table:
    random = np.random.default_rng(0)
    lengths = random.integers(16, 257, size=sequences)

    def per_token(numbers, kind=pa.float32()):
        return pa.array([numbers(length) for length in lengths], type=pa.list_(kind))

    return pa.table(
        {
            "old_log_probs": per_token(lambda n: -random.exponential(0.5, n).astype(np.float32)),
            "rewards": per_token(lambda n: np.eye(1, n, n - 1, dtype=np.float32)[0] * random.integers(0, 2)),
            "values": per_token(lambda n: random.normal(0.5, 0.1, n).astype(np.float32)),
            "mask": per_token(lambda n: np.ones(n, dtype=bool), pa.bool_()),
        }
    )


def written(table: pa.Table, files: int, folder: Path) -> Path:
    folder.mkdir()
    edges = np.linspace(0, table.num_rows, files + 1).astype(int)
    for index, (start, end) in enumerate(zip(edges, edges[1:])):
        pq.write_table(table.slice(start, end - start), folder / f"step_0_rank_{index}.parquet")
    return folder


def metrics(folder: Path) -> dict[str, float]:
    found = ray.data.read_parquet(str(folder), columns=COLUMNS)
    # each block gets advantages where it is; only the states of the aggregates travel
    found = found.map_batches(Formula("gae", outputs=["advantages", "returns"]), batch_format="pyarrow")
    both = found.aggregate(Metrics("verl-0.9.1"), Analysis())
    return {**both["metrics"], **both["analysis"]}


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    if len(sys.argv) > 1:
        found = metrics(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            table = rollouts()
            found = metrics(written(table, 2, Path(folder) / "two"))
            assert found == metrics(written(table, 7, Path(folder) / "seven"))
            print("two files and seven: the same bits\n")
    for key, value in sorted(found.items()):
        print(f"{key:40} {value:+.6g}")


if __name__ == "__main__":
    main()
