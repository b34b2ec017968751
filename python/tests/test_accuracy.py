"""The textbook versions behind docs/accuracy.md, in exact arithmetic: every formula has one, and the package agrees."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tokenwise_rl import _formulas

ROOT = Path(__file__).parents[2]
CALLS = os.environ.get("TOKENWISE_CALLS")
NAMES = [name for name in _formulas.__all__ if name[0].islower()]
#: In ulps, a relative 1e-7: a version that computes something else is off by more.
NEAR = 2.0**30

pytest.importorskip("mpmath")
sys.path.insert(0, str(ROOT / "tests/reference"))

from accuracy import calls, judge, textbook  # noqa: E402

VERSIONS = textbook.load()


def test_every_formula_has_a_textbook_version_and_a_row() -> None:
    rows = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/accuracy.md").read_text(), re.MULTILINE))
    assert [name for name in NAMES if name not in VERSIONS] == []
    assert [name for name in NAMES if name not in rows] == []


@pytest.mark.skipif(CALLS is None, reason="the calls come from the Rust tests: cargo xtask test --only python")
def test_the_package_agrees_with_the_textbook() -> None:
    assert CALLS is not None
    given = calls.golden(Path(CALLS))
    off = []
    for name in NAMES:
        found, version = judge.Found(), VERSIONS[name]
        different = calls.different(given[name], 8)
        made = [calls.remade(one, np.random.default_rng(7), 4, 6, calls.at_random) for one in different[:2]]
        for one in [*different, *made]:
            judge.judge(version, one, "float64", "", found, {})
        assert found.calls + found.close > 0, name
        worst = max(found.errors.values(), default=0.0)
        if worst > (0.0 if version.copies else NEAR):
            off.append((name, found.errors, found.where))
    assert off == []
