"""Every formula of the catalogue: `f32` against `f64` on the same numbers.

The calls are those of the golden cases, on inputs that are exact in both types, as they are and with random noise.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from tokenwise_rl import TokenwiseError
from tokenwise_rl._native import call

# calls of one formula, and noisy copies of each
CALLS, COPIES = 40, 8
EPSILON = 2.0**-23
# A call with a larger difference, in parts of the largest number, is counted apart.
LEFT_OUT = 1e-3
SHAPES = {
    "Token": ("rows", "width"),
    "Logit": ("rows", "width", -1),
    "TopK": ("rows", "width", -1),
    "Source": (-1, "rows"),
}


def settings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: settings(item) for key, item in value.items()}
    if isinstance(value, list):
        return [settings(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def arguments(recorded: dict[str, Any]) -> dict[str, Any]:
    """The inputs by name, in their shapes; floats rounded to single precision."""
    rows = recorded["rows"]
    sizes = {"rows": rows, "width": len(recorded["mask"]) // rows if rows else 0}
    made: dict[str, Any] = {}
    for name, given in recorded["inputs"].items():
        if name in ("vocab", "k"):
            continue
        value: Any = float(given) if given in ("inf", "-inf", "nan") else given
        if isinstance(given, list):
            integers = bool(given) and all(isinstance(item, int) for item in given)
            value = np.array(given) if integers else np.array([float(item) for item in given], dtype=np.float32)
            if value.size:
                shape = SHAPES.get(recorded["kinds"][name], (-1,))
                value = value.reshape([sizes.get(size, size) for size in shape])
        made[name] = value
    return made


def is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def noisy(given: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Each float array times 1 + 0.1 noise: signs, zeros and infinities stay."""
    out = {}
    for name, value in given.items():
        if is_real(value):
            value = (value * (1 + 0.1 * rng.standard_normal(value.shape))).astype(np.float32)
        out[name] = value
    return out


def nested(given: dict[str, Any], dtype: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in given.items():
        value = value.astype(dtype) if is_real(value) else value
        outer, _, inner = name.partition(".")
        if inner:
            out.setdefault(outer, {})[inner] = value
        else:
            out[outer] = value
    return out


def numbers(result: Any) -> list[np.ndarray]:
    """The parts of a result that are real numbers: arrays, and single ones as arrays of one."""
    if isinstance(result, dict):
        return [part for value in result.values() for part in numbers(value)]
    if isinstance(result, (tuple, list)):
        return [part for value in result for part in numbers(value)]
    if isinstance(result, float) or is_real(result):
        return [np.asarray(result, dtype=np.float64).ravel()]
    return []


def run(recorded: dict[str, Any], given: dict[str, Any], dtype: str) -> list[np.ndarray] | None:
    rows = recorded["rows"]
    mask = np.array(recorded["mask"], dtype=bool).reshape(rows, -1) if rows else np.zeros((0, 0), dtype=bool)
    if recorded["name"] == "response_mask_from_eos":
        mask = None
    config = settings(recorded["config"])
    try:
        made = call(recorded["name"], nested(given, dtype), config, mask, None, recorded["groups"], None)
    except TokenwiseError:
        return None
    return numbers(made)


def difference(single: list[np.ndarray], double: list[np.ndarray]) -> list[float]:
    """The error of each part, in units of ε times its largest number; none where one is infinite or NaN."""
    found = []
    for a, b in zip(single, double):
        kept = np.isfinite(a) & np.isfinite(b)
        largest = np.max(np.abs(b[kept]), initial=0.0)
        if largest > 1e-30:
            found.append(float(np.max(np.abs(a[kept] - b[kept]), initial=0.0) / largest / EPSILON))
    return found


def every(path: Path) -> dict[str, tuple[float, int, int]]:
    """Per formula: the largest rounding error, calls, and calls that were left out."""
    recorded_by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        recorded = json.loads(line)
        if "error" not in recorded and recorded["name"] != "shift":
            recorded_by_name[recorded["name"]].append(recorded)
    out = {}
    for name, calls in sorted(recorded_by_name.items()):
        rng = np.random.default_rng(sum(name.encode()))
        worst, ran, left_out = 0.0, 0, 0
        step = max(1, len(calls) // CALLS)
        for recorded in calls[::step]:
            plain = arguments(recorded)
            for given in [plain, *(noisy(plain, rng) for _ in range(COPIES))]:
                results = [run(recorded, given, dtype) for dtype in ("float32", "float64")]
                if results[0] is None or results[1] is None or not results[1]:
                    continue
                ran += 1
                found = difference(results[0], results[1])
                left_out += any(error * EPSILON > LEFT_OUT for error in found)
                worst = max([worst, *(error for error in found if error * EPSILON <= LEFT_OUT)])
        out[name] = worst, ran, left_out
    return out
