"""Runs a call and measures its results against the textbook version, in ulps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tokenwise_rl
from mpmath import mp, mpf
from tokenwise_rl import TokenwiseError, _formulas
from tokenwise_rl._native import call as native

from .calls import LOGITS, Given, is_real
from .textbook import Textbook
from .textbook.call import BITS, Call

SMALLEST = {"float32": mpf(2) ** -126, "float64": mpf(2) ** -1022}
LARGEST = {"float32": mpf(float(np.finfo(np.float32).max)), "float64": mpf(float(np.finfo(np.float64).max))}
#: Results by name, flat.
Made = dict[str, Any]
#: Of the same call, by another library; `None` where it has no such formula or convention.
Peer = Callable[[Given, str], "Made | None"]


class Skipped(Exception):
    """A call that no error is measured of."""


def ulp(exact: mpf, dtype: str) -> mpf:
    """The distance between neighbours of the type at `exact`; below the normal numbers that of the smallest one."""
    size = max(abs(exact), SMALLEST[dtype])
    return mpf(2) ** (mp.frexp(size)[1] - BITS[dtype])


def typed(given: Given, dtype: str) -> Given:
    """The same call with its numbers rounded to the type."""
    inputs = {name: value.astype(dtype) if is_real(value) else value for name, value in given.inputs.items()}
    return Given(given.name, given.rows, given.mask, given.groups, inputs, given.kinds, given.config)


def nested(inputs: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in inputs.items():
        outer, _, inner = name.partition(".")
        if inner:
            out.setdefault(outer, {})[inner] = value
        else:
            out[outer] = value
    return out


def ours(given: Given) -> Made:
    """The results of the package by name; the only one of a formula is called `""`."""
    mask = np.array(given.mask, dtype=bool).reshape(given.rows, -1) if given.rows else np.zeros((0, 0), dtype=bool)
    form = getattr(tokenwise_rl, given.name).__annotations__.get("return", "")
    result = getattr(_formulas, form, None) if str(form).endswith("Result") else None
    if given.name in ("response_mask_from_eos", "pf_ppo_indices"):
        mask = None
    try:
        made = native(given.name, nested(given.inputs), given.config, mask, None, given.groups, result)
    except TokenwiseError as error:
        raise Skipped(str(error)) from error
    return flat(made._asdict()) if result else flat(made) if isinstance(made, dict) else {"": made}


def flat(made: dict[str, Any]) -> Made:
    out: Made = {}
    for name, value in made.items():
        if isinstance(value, dict):
            out |= {f"{name}.{key}": part for key, part in value.items()}
        else:
            out[name.rstrip("_")] = value
    return out


def exact(version: Textbook, given: Given, dtype: str) -> tuple[dict[str, list[Any]], Call]:
    call = Call(
        given.name,
        given.inputs,
        rows=given.rows,
        mask=given.mask,
        groups=given.groups,
        config=given.config,
        dtype=dtype,
    )
    # probabilities down to e^−spread beside 1; below e^−750 they are 0 in f64
    spreads = [np.ptp(z[np.isfinite(z)]) for name in LOGITS if (z := given.inputs.get(name)) is not None and np.size(z)]
    spread = max(spreads, default=0) / min(call.setting("temperature", 1) if spreads else 1, 1)
    with mp.workprec(mp.prec + int(3 * min(spread, 750))):
        return version.exact(call), call


def error(got: Any, right: list[Any], least: mpf, dtype: str) -> float:
    """The largest error of an output, in ulps of each number, or of `least` where that is larger."""
    numbers = np.asarray(got).ravel()
    assert len(numbers) == len(right), (len(numbers), len(right))
    worst = mpf(0)
    for one, want in zip(numbers, right):
        if want is None:
            continue
        if not isinstance(want, mpf):
            if int(one) != int(want):
                return float("inf")
            continue
        one = float(one)
        if mp.isnan(want):
            continue
        if mp.isinf(want) or abs(want) > LARGEST[dtype]:
            if one != float(want) and not np.isinf(one):
                return float("inf")
            continue
        if not np.isfinite(one):
            return float("inf")
        if mpf(one) != want:
            worst = max(worst, abs(mpf(one) - want) / ulp(max(least, abs(want)), dtype))
    return float(worst)


def compare(made: Made, right: dict[str, list[Any]], call: Call, version: Textbook) -> dict[str, float]:
    """The error of each result."""
    out = {}
    for name, want in right.items():
        if name not in made and "" not in made:
            continue
        got = made[""] if "" in made and name not in made else made[name]
        if got is None:
            if any(x is not None for x in want):
                out[name] = float("inf")
            continue
        least = call.scale.get(name, mpf(0))
        if version.of == "largest":
            least = max([least, *(abs(x) for x in want if isinstance(x, mpf) and mp.isfinite(x))])
        out[name] = error(got, want, least, call.dtype)
    return out


@dataclass
class Found:
    """What was found for a row of the table: errors by who, type and kind of call."""

    errors: dict[tuple[str, str, str], float] = field(default_factory=dict)
    #: Where the largest ones were.
    where: dict[tuple[str, str, str], str] = field(default_factory=dict)
    calls: int = 0
    #: Calls with a comparison that is too close.
    close: int = 0
    refused: int = 0
    undefined: int = 0
    terms: bool = False
    whole: bool = True
    peers: set[str] = field(default_factory=set)

    def note(self, who: str, dtype: str, kind: str, errors: dict[str, float], about: str) -> None:
        for name, size in errors.items():
            if size >= self.errors.get((who, dtype, kind), -1.0):
                self.errors[who, dtype, kind] = size
                self.where[who, dtype, kind] = f"{name} {about}"


def judge(version: Textbook, given: Given, dtype: str, kind: str, found: Found, peers: dict[str, Peer]) -> None:
    given = typed(given, dtype)
    try:
        made = ours(given)
    except Skipped:
        found.refused += 1
        return
    try:
        right, call = exact(version, given, dtype)
    except ZeroDivisionError:
        found.undefined += 1
        return
    if call.close:
        found.close += 1
        return
    found.calls += 1
    found.terms |= bool(call.scale)
    found.whole &= all(not isinstance(x, mpf) for want in right.values() for x in want)
    about = f"{given.rows}x{given.width} {given.config} {sorted(given.inputs)}"
    found.note("ours", dtype, kind, compare(made, right, call, version), about)
    for who, peer in peers.items():
        got = peer(given, dtype)
        if got is not None:
            found.peers.add(who)
            found.note("peer", dtype, kind, compare(got, right, call, version), about)
