"""Writes every golden file. Run from the repository root: python tests/reference/generate.py"""

from __future__ import annotations

import logging
import sys
import warnings
from importlib.metadata import version

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch

import differences
import fixture16
import fixture16_catalogue
import golden
import worked
from suites import (
    advantage,
    control,
    distill,
    divergence,
    dual_game,
    estimators,
    filters,
    loss,
    metric,
    metric_sets,
    policy,
    policy_losses,
    reward,
    rollout,
    small,
    textbook,
    trl_groups,
)

SUITES = (
    policy,
    divergence,
    reward,
    advantage,
    estimators,
    loss,
    policy_losses,
    distill,
    rollout,
    metric,
    metric_sets,
    filters,
    small,
    trl_groups,
    textbook,
    dual_game,
    control,
    fixture16,
    fixture16_catalogue,
    worked,
)


def sources() -> dict[str, str]:
    """The text of a file's `source` field, by short name."""
    torch_version = f"torch {torch.__version__.split('+')[0]}"
    named = {
        name: f"{name} {version(name)}, {torch_version}, float64 and float32" for name in ("verl", "trl", "openrlhf")
    }
    return named | {
        "torch": f"{torch_version}, float64",
        "textbook": f"textbook, {torch_version}",
        "equations": f"the equations in plain {torch_version}, autograd, float64",
        "steps": "the equations step by step in Python floats",
        "bnto": f"docs/bnto.md §2 in plain torch, {torch_version}, float64 and float32",
        "fixture": "formulas fixture (verl 0.9.1, float32)",
        "chain": "docs/chain.md, recomputed",
    }


def main() -> int:
    """Write all files and print the number of cases of each."""
    torch.set_num_threads(1)
    named = sources()
    total = 0
    for suite in SUITES:
        for path, (source, build) in suite.FILES.items():
            count = golden.write(path, named[source], list(build()))
            print(f"{path}: {count}")
            total += count
    print(f"documented-differences.json: {differences.write()} differences")
    print(f"{total} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
