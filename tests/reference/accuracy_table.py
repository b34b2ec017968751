"""Writes docs/accuracy.md: the largest error of every formula, by random search and in hard cases.

From the repository root, in the environment of requirements.txt; with gmpy2 mpmath is faster. Names of formulas print
their errors and where they were found, and write nothing; `--write` writes the last run again:

    cargo xtask python --build
    cargo run --package tokenwise-tests --bin golden -- tests/golden --calls target/golden-calls.jsonl
    PYTHONPATH=python python tests/reference/accuracy_table.py target/golden-calls.jsonl [NAME … | --write]
"""

from __future__ import annotations

import itertools
import logging
import math
import multiprocessing
import pickle
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy as np
import torch
from accuracy.calls import Given, golden, hard_calls, random_calls
from accuracy.judge import Found, judge
from accuracy.notes import NOTES, TEXT
from accuracy.peers import PEERS
from accuracy.textbook import load
from accuracy.textbook.call import NEAR
from tokenwise_rl import _formulas

DTYPES = ("float32", "float64")
KINDS = ("random", "hard")
WORKERS = 2
#: What the catalogue has and a caller of Python cannot call by name.
NAMES = [name for name in _formulas.__all__ if name[0].islower()]


def variant(given: Given) -> str:
    """The part of a formula that has a row of its own."""
    config = given.config
    if given.name in ("kl_estimate", "kl_gradient"):
        return str(config.get("estimator", "k1"))
    if given.name in ("gae", "discounted_returns"):
        return "γ = 1" if config.get("gamma", 1) * config.get("lambda", 1) == 1 else "γ < 1"
    if given.name == "generalized_jsd":
        return {0: "forward", 1: "reverse"}.get(config.get("beta", 0.5), "mixture")
    return ""


def search(name: str) -> tuple[str, dict[str, Found], float]:
    """The errors of a formula, by variant."""
    start, version, found = time.monotonic(), VERSIONS[name], defaultdict(Found)
    parts = defaultdict(list)
    for given in CALLS[name]:
        parts[variant(given)].append(given)
    for (part, calls), dtype in itertools.product(parts.items(), DTYPES):
        for kind, source in (("random", random_calls), ("hard", hard_calls)):
            rng = np.random.default_rng(sum(name.encode()))
            for given in source(calls, rng):
                try:
                    judge(version, given, dtype, kind, found[part], PEERS.get(name, {}))
                except Exception as error:
                    raise RuntimeError(f"{name} in {dtype}: {given}") from error
    return name, dict(found), time.monotonic() - start


def shown(error: float | None) -> str:
    if error is None:
        return ""
    if math.isinf(error):
        return "∞"
    if error < 100:
        return f"{error:.2f}" if error < 10 else f"{error:.1f}"
    return f"{error:,.0f}" if error < 1e6 else f"{error:.1e}"


def row(name: str, part: str, found: Found) -> str:
    """One line of the table."""
    version = VERSIONS[name]
    unit = "terms" if found.terms else version.of
    if version.copies or found.whole:
        worst = max((found.errors[key] for key in found.errors if key[0] == "ours"), default=0.0)
        if worst:
            print(f"{name} is not exact: {found.where}", file=sys.stderr)
        unit = f"exact: {version.copies or 'whole numbers'}"
    cells = [f"`{name}`{', ' + part if part else ''}", unit]
    for who in ("ours", "peer"):
        if who == "peer":
            cells.append(", ".join(sorted(found.peers)))
        cells += [shown(found.errors.get((who, dtype, kind))) for dtype in DTYPES for kind in KINDS]
    cells += [str(found.calls), str(found.close or "")]
    return f"| {' | '.join(cells)} |"


def explain(name: str, found: Found) -> None:
    """What is behind the numbers of a formula."""
    for key in sorted(found.errors):
        print(f"    {key}: {found.errors[key]:.4g}  {found.where[key][:400]}")
    print(f"    refused {found.refused}, undefined {found.undefined}")


def main() -> None:
    torch.set_num_threads(1)
    chosen = sys.argv[2:]
    made: dict[str, dict[str, Found]] = {}
    held = Path("target/accuracy.pickle")
    if chosen == ["--write"]:
        write(pickle.loads(held.read_bytes()))
        return
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        for name, found, seconds in pool.imap_unordered(search, chosen or NAMES):
            made[name] = found
            done = f"{len(made)}/{len(chosen or NAMES)}"
            for part, one in found.items():
                print(f"{done} {row(name, part, one)} {seconds:.0f} s", file=sys.stderr, flush=True)
                if chosen and one.errors:
                    explain(name, one)
    if not chosen:
        held.write_bytes(pickle.dumps(made))
        write(made)


def write(made: dict[str, dict[str, Found]]) -> None:
    """The document."""
    lines = [row(name, part, found) for name in NAMES for part, found in sorted(made[name].items()) if found.calls]
    calls = sum(found.calls for parts in made.values() for found in parts.values())
    close = sum(found.close for parts in made.values() for found in parts.values())
    text = TEXT.format(
        formulas=len(NAMES),
        torch=torch.__version__.partition("+")[0],
        table="\n".join(lines),
        notes=NOTES,
        calls=f"{calls:,}",
        close=f"{close:,}",
        near=NEAR,
    )
    Path("docs/accuracy.md").write_text(text)


VERSIONS = load()
CALLS: dict[str, list[Any]] = golden(Path(sys.argv[1])) if len(sys.argv) > 1 else {}

if __name__ == "__main__":
    absent = [name for name in NAMES if name not in VERSIONS or name not in CALLS]
    assert not absent, f"without a textbook version or calls: {absent}"
    main()
