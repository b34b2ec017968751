"""The golden cases: inputs, settings and the results of a named implementation."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._operations import OUTPUTS, keyword, per_sequence, plain, runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKED = Path(__file__).with_name("golden.json.gz")
#: Tolerances by the precision that a function computes in.
TOLERANCES = {"f64": (1e-9, 1e-12), "f32": (2e-5, 2e-6), "half": (2e-2, 1e-2)}
DTYPES: dict[str, np.dtype[Any]] = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}
#: Inputs that are whole numbers.
_WHOLE = ("tokens", "teacher_ids", "eos", "lengths", "truncated", "selected", "token_count")


class NoCase(LookupError):
    """No golden case fits what was asked for."""


@dataclass(frozen=True)
class Deviation:
    """One number that differs."""

    output: str
    #: (row, column) of a token, (row, column, entry) of a logit, (entry,) of another list, () of a single number.
    cell: tuple[int, ...]
    got: float
    expected: float
    #: How many numbers of this output differ, of how many that are compared.
    count: int = 1
    compared: int = 1

    @property
    def place(self) -> str:
        """``advantages[1, 3]``."""
        return self.output + (f"[{', '.join(map(str, self.cell))}]" if self.cell else "")

    def __str__(self) -> str:
        text = f"{self.place} is {number(self.got)}, expected {number(self.expected)}"
        return text if self.compared == 1 else f"{text} ({self.count} of {self.compared} differ)"


def number(value: float) -> str:
    """Twelve digits: enough to see a difference at 1e-9."""
    return f"{value:.12g}"


@dataclass(frozen=True)
class Case:
    """One call with its expected results. Arrays have the shapes of the batch; ``mask`` is 1 for kept tokens."""

    op: str
    name: str
    profile: str | None
    dtype: str
    rows: int
    cols: int
    mask: NDArray[np.bool_]
    groups: NDArray[np.int64] | None
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    expect: Mapping[str, Any] | None
    #: Why the source refuses this call, where it does.
    error: str | None
    rtol: float
    atol: float
    #: Who computed the expected numbers.
    source: str
    #: The names under which ``compare`` reads a tuple.
    returns: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.name

    def numpy(self) -> dict[str, Any]:
        """The arguments as NumPy arrays, by name: inputs, ``mask``, ``groups`` and settings."""
        real = DTYPES[self.dtype]
        made: dict[str, Any] = {}
        for name, value in self.inputs.items():
            is_array = isinstance(value, np.ndarray)
            made[name] = np.array(value, dtype=real if value.dtype.kind == "f" else None) if is_array else value
        made["mask"] = self.mask.astype(real)
        if self.groups is not None:
            made["groups"] = self.groups.copy()
        made.update({keyword(name): value for name, value in self.params.items()})
        return made

    def torch(self) -> dict[str, Any]:
        """The arguments as torch tensors."""
        torch = library("torch")
        return {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for name, value in self.numpy().items()
        }

    def jax(self) -> dict[str, Any]:
        """The arguments as JAX arrays."""
        jnp = library("jax.numpy")
        return {
            name: jnp.asarray(value) if isinstance(value, np.ndarray) else value for name, value in self.numpy().items()
        }

    def compare(self, result: Any, returns: Sequence[str] | None = None) -> None:
        """Fails with the cell, both numbers and the convention that explains them, unless the result is as expected.

        ``returns`` names the parts of a tuple; a dict or a named tuple has names of its own.
        """
        from ._check import compare_one

        compare_one(self, result, returns)

    def deviations(self, outputs: Mapping[str, Any], precision: str | None = None) -> list[Deviation]:
        """The first differing number of each output that is both expected and there."""
        expected = self.expect or {}
        return [
            found
            for name in expected
            if name in outputs
            if (found := self.deviation(name, outputs[name], expected[name], precision)) is not None
        ]

    def deviation(self, name: str, got: Any, expected: Any, precision: str | None = None) -> Deviation | None:
        """The first differing number of one output, at the kept tokens."""
        want = np.asarray(expected, dtype=np.float64)
        have = np.asarray(got, dtype=np.float64)
        if have.size != want.size:
            if want.ndim == 0 or have.ndim == 0 or have.size == 0:
                return Deviation(name, (), float("nan"), float(want.flat[0]) if want.size else float("nan"))
            try:  # one number per sequence stands for each of its tokens
                have = np.broadcast_to(have.reshape(have.shape + (1,) * (want.ndim - have.ndim)), want.shape)
            except ValueError:
                return Deviation(name, (), float("nan"), float(want.flat[0]), want.size, want.size)
        have = have.reshape(want.shape)
        rtol, atol = self.tolerance(precision)
        with np.errstate(invalid="ignore"):
            close = np.abs(have - want) <= atol + rtol * np.abs(want)
        same = close | (have == want) | (np.isnan(have) & np.isnan(want))
        kept = self.kept(name, want.shape)
        wrong = np.argwhere(~same & kept)
        if not len(wrong):
            return None
        cell = tuple(int(index) for index in wrong[0])
        return Deviation(name, cell, float(have[cell]), float(want[cell]), len(wrong), int(kept.sum()))

    def tolerance(self, precision: str | None = None) -> tuple[float, float]:
        """The larger of the case's own tolerance and that of the precision a function returned."""
        rtol, atol = TOLERANCES.get(precision or "", (0.0, 0.0))
        return max(self.rtol, rtol), max(self.atol, atol)

    def loosened(self, tolerance: float) -> Case:
        """The same case, compared within at least this."""
        return replace(self, rtol=max(self.rtol, tolerance), atol=max(self.atol, tolerance / 10))

    def kept(self, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which entries of an output are compared."""
        if shape[:2] == (self.rows, self.cols) and not per_sequence(self.op, name):
            kept = self.mask.reshape(self.mask.shape + (1,) * (len(shape) - 2))
            return np.broadcast_to(kept, shape).copy()
        return np.ones(shape, dtype=bool)


def library(name: str) -> Any:
    """A library that only some functions need."""
    return import_module(name)


def _numbers(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


def _shaped(op: str, name: str, value: Any, rows: int, cols: int, output: bool = False) -> Any:
    if not isinstance(value, list):
        return float(value) if value in ("nan", "inf", "-inf") else value
    whole = name in _WHOLE and not output and all(float(item).is_integer() for item in value)
    array: NDArray[Any] = np.array(_numbers(value), dtype=np.float64)
    if whole:
        array = array.astype(np.int64)
    slots = rows * cols
    if name == "reward_sources":
        return array.reshape(-1, rows)
    if per_sequence(op, name) or not slots or array.size % slots:
        return array
    wide = "logits" in name or name in ("teacher_ids", "teacher_log_probs") and op == "forward_kl_topk"
    return array.reshape((rows, cols) if array.size == slots and not wide else (rows, cols, -1))


def read(recorded: Mapping[str, Any], source: str) -> Case:
    """A case of the format ``tokenwise-golden/1`` (tests/golden/README.md)."""
    op, rows, cols = recorded["op"], recorded.get("rows", 1), recorded.get("cols", 1)
    dtype = recorded.get("dtype", "f64")
    rtol, atol = TOLERANCES[dtype]
    mask = recorded.get("mask")
    groups = recorded.get("groups")
    expect = recorded.get("expect")
    return Case(
        op=op,
        name=recorded.get("name", "unnamed"),
        profile=recorded.get("profile"),
        dtype=dtype,
        rows=rows,
        cols=cols,
        mask=(np.ones((rows, cols)) if mask is None else np.array(mask).reshape(rows, cols)) == 1,
        groups=None if groups is None else np.array(groups, dtype=np.int64),
        inputs={name: _shaped(op, name, value, rows, cols) for name, value in recorded.get("inputs", {}).items()},
        params=recorded.get("params", {}),
        expect=None
        if expect is None
        else {name: _shaped(op, name, value, rows, cols, output=True) for name, value in expect.items()},
        error=recorded.get("expect_error"),
        rtol=recorded.get("rtol", rtol),
        atol=recorded.get("atol", atol),
        source=source,
        returns=OUTPUTS.get(op, ()),
    )


def read_file(path: str | Path) -> list[Case]:
    """The cases of a file of one's own in the same format."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return [read(case, found["source"]) for case in found["cases"]]


@lru_cache(maxsize=1)
def _all() -> dict[str, list[Case]]:
    with gzip.open(PACKED, "rt", encoding="utf-8") as file:
        files = json.load(file)["files"]
    found: dict[str, list[Case]] = {}
    for one in files:
        for recorded in one["cases"]:
            found.setdefault(recorded["op"], []).append(read(recorded, one["source"]))
    return {op: list(_distinct(found[op])) for op in sorted(found)}


def _distinct(cases: list[Case]) -> Iterator[Case]:
    """Names are ids in pytest: a second case of the same name and profile gets a number."""
    seen: dict[tuple[str | None, str], int] = {}
    for case in cases:
        count = seen[case.profile, case.name] = seen.get((case.profile, case.name), 0) + 1
        yield case if count == 1 else replace(case, name=f"{case.name}-{count}")


def operations() -> dict[str, list[str]]:
    """Every operation that has cases, with the profiles that it has them for (``""``: no framework's)."""
    return {op: sorted({case.profile or "" for case in found}) for op, found in _all().items()}


def cases(
    op: str,
    profile: str | None = None,
    *,
    dtypes: Sequence[str] = ("f64", "f32"),
    fixed: Mapping[str, Any] | None = None,
    refused: bool = False,
) -> list[Case]:
    """The cases of an operation, under a profile or (``None``) under any.

    ``fixed`` keeps those whose settings have these values. ``refused`` adds the calls that the source refuses. If there
    is none under the profile, the inputs of the others are used and our own formula says what is expected.
    """
    known = _all()
    if op not in known:
        raise NoCase(f"{op}: no such operation; there are {', '.join(known)}")
    fixed = {plain(name): value for name, value in (fixed or {}).items()}
    found = [case for case in known[op] if case.dtype in dtypes and (refused or case.error is None)]
    found = [case for case in found if all(case.params.get(name, value) == value for name, value in fixed.items())]
    if profile is not None:
        own = [case for case in found if case.profile == profile]
        found = own or _under(found, profile)
    if not found:
        given = "".join(f", {name} = {value!r}" for name, value in fixed.items())
        raise NoCase(f"{op}: no case{'' if profile is None else f' under {profile}'}{given}")
    return found


def _under(found: list[Case], profile: str) -> list[Case]:
    """The inputs of other cases, with what our formula gives under a profile."""
    from .. import __version__, profiles

    if profile not in profiles():
        raise NoCase(f"profile: expected one of {', '.join(profiles())}, got {profile}")
    made = []
    for case in found:
        expect = runs(replace(case, profile=profile))
        if expect:
            made.append(
                replace(
                    case,
                    profile=profile,
                    expect=expect,
                    source=f"tokenwise {__version__}",
                    name=case.name if case.profile is None else f"{case.profile}-{case.name}",
                )
            )
    return list(_distinct(made))
