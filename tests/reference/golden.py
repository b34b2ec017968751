"""The golden file format: one `Case`, and a writer that puts one case on each line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
F64 = {"rtol": 1e-9, "atol": 1e-12}
F32 = {"rtol": 2e-5, "atol": 2e-6}


@dataclass
class Case:
    """One call of one operation, with what it must return."""

    op: str
    rows: int
    cols: int
    mask: list[int]
    inputs: dict[str, Any]
    expect: dict[str, Any] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    profile: str | None = None
    dtype: str = "f64"
    groups: list[int] | None = None
    error: str | None = None
    rtol: float | None = None
    atol: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The case as the plain object that is written."""
        out: dict[str, Any] = {"op": self.op, "name": self.name}
        if self.profile:
            out["profile"] = self.profile
        out |= {"dtype": self.dtype, "rows": self.rows, "cols": self.cols, "mask": self.mask}
        if self.groups is not None:
            out["groups"] = self.groups
        out |= {"inputs": plain(self.inputs, "f64"), "params": self.params}
        if self.error is not None:
            return out | {"expect_error": self.error}
        base = F32 if self.dtype == "f32" else F64
        out["expect"] = plain(self.expect, self.dtype)
        out["rtol"] = base["rtol"] if self.rtol is None else self.rtol
        out["atol"] = base["atol"] if self.atol is None else self.atol
        return out


def plain(value: Any, dtype: str) -> Any:
    """Tensors to flat lists, f32 results to their shortest digits, not-finite numbers to strings."""
    if isinstance(value, dict):
        return {key: plain(item, dtype) for key, item in value.items()}
    if hasattr(value, "detach"):
        value = value.detach().reshape(-1).tolist() if value.dim() else value.item()
    if isinstance(value, list):
        return [plain(item, dtype) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return float(str(np.float32(value))) if dtype == "f32" else value
    return value


def write(path: str, source: str, cases: list[Case]) -> int:
    """Write one file; the number of cases in it."""
    target = GOLDEN / path
    target.parent.mkdir(parents=True, exist_ok=True)
    dump = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    lines = ",\n".join(json.dumps(case.to_json(), **dump) for case in cases)
    head = f'{{"format":"tokenwise-golden/1","source":{json.dumps(source, ensure_ascii=False)},"cases":[\n'
    target.write_text(f"{head}{lines}\n]}}\n", encoding="utf-8")
    size = target.stat().st_size
    assert size < 200_000, f"{path} has {size} bytes"
    return len(cases)
