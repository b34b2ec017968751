"""Every call that the golden cases make, through the Python functions: the bits of the core."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenwise_rl as tw
from tokenwise_rl._native import call

CALLS = os.environ.get("TOKENWISE_CALLS")


def numbers(values: Any, dtype: str) -> np.ndarray:
    return np.array([float(value) for value in values], dtype=dtype)


def lines() -> list[dict[str, Any]]:
    assert CALLS is not None
    return [json.loads(line) for line in Path(CALLS).read_text().splitlines()]


def settings(value: Any) -> Any:
    """Infinite settings are strings in the file."""
    if isinstance(value, dict):
        return {key: settings(item) for key, item in value.items()}
    if isinstance(value, list):
        return [settings(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def arguments(recorded: dict[str, Any]) -> dict[str, Any]:
    """The inputs in the shapes that their kinds ask for; parts of one argument in a dict."""
    rows = recorded["rows"]
    width = len(recorded["mask"]) // rows if rows else 0
    shapes = {"Token": (rows, width), "Logit": (rows, width, -1), "TopK": (rows, width, -1), "Source": (-1, rows)}
    made: dict[str, Any] = {}
    for name, given in recorded["inputs"].items():
        if name in ("vocab", "k"):
            continue
        value: Any = float(given) if given in ("inf", "-inf", "nan") else given
        if isinstance(given, list):
            whole = bool(given) and all(isinstance(item, int) for item in given)
            value = np.array(given) if whole else numbers(given, "float64")
            if value.size:
                value = value.reshape(shapes.get(recorded["kinds"][name], (-1,)))
        outer, _, inner = name.partition(".")
        if inner:
            made.setdefault(outer, {})[inner] = value
        else:
            made[name] = value
    return made


@pytest.mark.skipif(CALLS is None, reason="the calls come from the Rust tests: cargo xtask test --only python")
def test_every_call_has_the_bits_of_the_core() -> None:
    assert len(lines()) > 4000
    ran: dict[str, int] = {}
    for recorded in lines():
        name = recorded["name"]
        if name == "shift":
            continue  # its layouts are the shapes of arrays here; test_calls.py has it
        nested = arguments(recorded)
        rows = recorded["rows"]
        mask = np.array(recorded["mask"], dtype=bool).reshape(rows, -1) if rows else np.zeros((0, 0), dtype=bool)
        groups = recorded["groups"]
        if name == "response_mask_from_eos":
            mask = None
        config = settings(recorded["config"])
        try:
            result = call(name, nested, config, mask, None, groups, None)
        except tw.TokenwiseError:
            assert "error" in recorded, (name, recorded)
            continue
        assert "error" not in recorded, (name, recorded["error"])
        ran[name] = ran.get(name, 0) + 1
        compare(name, recorded, result)
    assert len(ran) > 100, sorted(ran)


def compare(name: str, recorded: dict[str, Any], result: Any) -> None:
    expected = [(key, float(value)) for key, value in recorded["numbers"]]
    outputs = recorded["outputs"]
    got: list[Any]
    if isinstance(result, tuple):
        got = list(result)
    elif isinstance(result, dict):
        assert result == pytest.approx(dict(expected), nan_ok=True, abs=0, rel=0)
        return
    else:
        got = [result]
    arrays = [item for item in got if isinstance(item, np.ndarray)]
    singles = [item for item in got if not isinstance(item, np.ndarray)]
    flat: list[float] = []
    for single in singles:
        flat.extend(single.values() if isinstance(single, dict) else [] if single is None else [single])
    np.testing.assert_array_equal(np.array(flat, dtype=float), np.array([number for _, number in expected]), name)
    assert len(arrays) == len(outputs), name
    for array, (key, want) in zip(arrays, outputs):
        wanted = np.array([float(item) for item in want]).reshape(array.shape)
        np.testing.assert_array_equal(np.asarray(array, dtype=float), wanted, f"{name}.{key}")
