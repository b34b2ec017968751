"""Properties that need no expected numbers: what must not change a result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._calling import Adapter, Answer, Caller, Function, UnfitFunction
from ._cases import Case, Deviation, cases
from ._check import TOLERANCE, adapted
from ._diagnose import _distinct
from ._operations import gradient, runs
from ._report import table, wrap

#: A change of a case, and how results of the changed case are turned back.
Change = tuple[Case, Callable[[str, Any], Any]]
TEXTS = {
    "nan-in-dropped": "NaN in dropped slots changes no kept result",
    "1e30-in-dropped": "±1e30 in dropped slots changes no kept result",
    "dropped-gradient": "the gradient at dropped slots is 0",
    "padding": "more dropped columns on the right change nothing",
    "row-order": "sequences in another order give the same results",
    "group-labels": "other labels of the same groups give the same results",
    "micro-batches": "two halves of a batch add up to the whole",
    "inputs-kept": "the inputs are not changed in place",
}


@dataclass(frozen=True)
class Property:
    """One property, over all cases that it applies to."""

    name: str
    #: Cases in which it holds, and those in which it was tried.
    held: int
    tried: int
    #: The first case that violates it, and what happened there.
    case: str | None = None
    violation: str | None = None

    @property
    def ok(self) -> bool:
        return self.held == self.tried

    @property
    def outcome(self) -> str:
        return "not applicable" if not self.tried else "holds" if self.ok else "violated"

    def to_json(self) -> dict[str, Any]:
        return {
            "property": self.name,
            "text": TEXTS[self.name],
            "outcome": self.outcome,
            "held": self.held,
            "tried": self.tried,
            "case": self.case,
            "violation": self.violation,
        }


@dataclass(frozen=True)
class Properties:
    """All properties of one function."""

    op: str
    function: str
    found: Sequence[Property]

    @property
    def ok(self) -> bool:
        return all(one.ok for one in self.found)

    @property
    def violated(self) -> list[Property]:
        return [one for one in self.found if not one.ok]

    def __str__(self) -> str:
        rows = [[one.name, one.outcome, f"{one.held} of {one.tried}" if one.tried else ""] for one in self.found]
        lines = wrap(f"{self.op}: {self.function}") + table(["property", "outcome", "cases"], rows)
        for one in self.violated:
            lines += wrap(f'{TEXTS[one.name]}: not in case "{one.case}": {one.violation}')
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "function": self.function, "properties": [one.to_json() for one in self.found]}

    def json(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)

    def check(self) -> None:
        """Fails unless every property holds."""
        if not self.ok:
            raise AssertionError(str(self))


def properties(
    op: str,
    function: Function,
    profile: str | None = None,
    *,
    adapter: Adapter | None = None,
    names: Mapping[str, str] | None = None,
    returns: Sequence[str | None] | None = None,
    fixed: Mapping[str, Any] | None = None,
    kind: str | None = None,
    gradients: bool = True,
    only: Sequence[str] | None = None,
) -> Properties:
    """Tries every property on the inputs of the cases; no expected number is read.

    Micro-batches are tried where the two halves of our own formula add up to the whole: not where statistics of the
    batch are part of the definition.
    """
    caller = Caller(function, adapted(adapter, names, returns, fixed, kind, gradients))
    every = cases(op, profile)
    doubles = [case for case in every if case.dtype == "f64"]
    found = _distinct(doubles if 2 * len(doubles) >= len(every) else every)
    found = [case.loosened(TOLERANCE) for case in found if caller.skipped(case) is None]
    for name, values in caller.unknown_settings(found).items():
        found = [case for case in found if case.params.get(name, values[0]) == values[0]]
    found = [_filled(case, 0.0) for case in found if case.mask.sum() > 1]
    judged: dict[str, list[tuple[Case, str | None]]] = {name: [] for name in only or TEXTS}
    for case in found:
        base = caller(case)
        if base.error or base.skipped:
            continue
        for name in judged:
            for verdict in _tried(name, caller, case, base):
                judged[name].append((case, verdict))
    return Properties(op, caller.name, [_summed(name, results) for name, results in judged.items()])


def _summed(name: str, results: Sequence[tuple[Case, str | None]]) -> Property:
    wrong = [(case, why) for case, why in results if why is not None]
    wrong.sort(key=lambda item: item[0].rows * item[0].cols)
    first = (wrong[0][0].name, wrong[0][1]) if wrong else (None, None)
    return Property(name, len(results) - len(wrong), len(results), *first)


def _tried(name: str, caller: Caller, case: Case, base: Answer) -> Iterator[str | None]:
    """What violates a property, or ``None``; nothing if it does not apply."""
    dropped = not case.mask.all()
    if name == "nan-in-dropped" and dropped:
        yield _same(caller, case, base, (_filled(case, float("nan")), lambda _, x: x))
    elif name == "1e30-in-dropped" and dropped:
        yield _same(caller, case, base, (_filled(case, 1e30), lambda _, x: x))
    elif name == "dropped-gradient" and dropped:
        yield from _dropped_gradient(case, base)
    elif name == "padding" and _width_is_free(caller, case):
        yield _same(caller, case, base, _padded(case))
    elif name == "row-order" and case.rows > 1:
        yield _same(caller, case, base, _permuted(case))
    elif name == "group-labels" and case.groups is not None:
        labels = {label: 10 + 7 * place for place, label in enumerate(sorted(set(case.groups.tolist()), reverse=True))}
        other = replace(case, groups=np.array([labels[label] for label in case.groups.tolist()]))
        yield _same(caller, case, base, (other, lambda _, x: x))
    elif name == "micro-batches":
        yield from _micro_batches(caller, case, base)
    elif name == "inputs-kept":
        yield _inputs_kept(caller, case)


def _same(caller: Caller, case: Case, base: Answer, change: Change) -> str | None:
    changed, back = change
    answer = caller(changed)
    if answer.error:
        return f"raised {answer.error}"
    made = {name: back(name, np.asarray(value)) for name, value in answer.values.items()}
    return _differs(case, base, made)


def _differs(case: Case, base: Answer, made: Mapping[str, Any]) -> str | None:
    """Compared with the result for the unchanged case."""
    for name, value in base.values.items():
        if name in made and (case.expect is None or name in case.expect):
            found = case.deviation(name, made[name], value, base.precisions.get(name))
            if found is not None:
                return _words(found)
    return None


def _words(found: Deviation) -> str:
    return f"{found.place} becomes {found.got:.7g} instead of {found.expected:.7g}"


def _shape(case: Case, value: Any) -> bool:
    return np.shape(value)[:2] == (case.rows, case.cols) and np.ndim(value) >= 2


def _filled(case: Case, garbage: float) -> Case:
    """Dropped slots of every input hold this, with signs that no two inputs share everywhere: differences must not
    cancel."""
    made = {}
    for place, (name, value) in enumerate(case.inputs.items()):
        if _shape(case, value) and value.dtype.kind == "f":
            signs = np.random.default_rng(place).choice([-1.0, 1.0], size=value.shape)
            kept = case.mask.reshape(case.mask.shape + (1,) * (value.ndim - 2))
            made[name] = np.where(kept, value, garbage * signs)
    return replace(case, inputs={**case.inputs, **made})


def _dropped_gradient(case: Case, base: Answer) -> Iterator[str | None]:
    what = gradient(case.op)
    if what is None or what[2] not in base.values or not _shape(case, base.values[what[2]]):
        return
    value = base.values[what[2]]
    dropped = ~case.mask.reshape(case.mask.shape + (1,) * (value.ndim - 2))
    wrong = np.argwhere((value != 0) & dropped)
    if not len(wrong):
        yield None
        return
    cell = tuple(int(index) for index in wrong[0])
    yield f"{Deviation(what[2], cell, 0.0, 0.0).place} is {value[cell]:.7g}"


def _width_is_free(caller: Caller, case: Case) -> bool:
    """Dr. GRPO's divisor is the width of the batch unless it is given."""
    mode = case.params.get("aggregate") or case.params.get("mode")
    return mode != "seq-mean-token-sum-norm" or ("scale_factor" in case.params and caller.takes("scale_factor"))


def _padded(case: Case, more: int = 3) -> Change:
    def wider(value: Any) -> Any:
        if not _shape(case, value):
            return value
        return np.pad(value, [(0, 0), (0, more)] + [(0, 0)] * (value.ndim - 2))

    cols = case.cols
    changed = replace(
        case,
        cols=cols + more,
        mask=np.pad(case.mask, ((0, 0), (0, more))),
        inputs={name: wider(value) for name, value in case.inputs.items()},
    )
    return changed, lambda _, x: x[:, :cols] if x.ndim >= 2 and x.shape[1] == cols + more else x


def _rows(case: Case, chosen: Any) -> Case:
    def taken(name: str, value: Any) -> Any:
        if name == "reward_sources":
            return value[:, chosen]
        return value[chosen] if np.ndim(value) and len(value) == case.rows and name != "eos" else value

    return replace(
        case,
        rows=len(chosen),
        mask=case.mask[chosen],
        groups=None if case.groups is None else case.groups[chosen],
        inputs={name: taken(name, value) for name, value in case.inputs.items()},
    )


def _permuted(case: Case) -> Change:
    """Reversed; groups stay together."""
    order = np.arange(case.rows)[::-1]
    back = np.argsort(order)
    return _rows(case, order), lambda _, x: x[back] if x.ndim and len(x) == case.rows else x


def _halves(case: Case) -> tuple[Any, Any] | None:
    rows = np.arange(case.rows)
    if case.groups is None:
        first = rows[: case.rows // 2]
    else:
        labels = list(dict.fromkeys(case.groups.tolist()))
        first = rows[np.isin(case.groups, labels[: len(labels) // 2])]
    second = np.setdiff1d(rows, first)
    return (first, second) if len(first) and len(second) else None


def _joined(case: Case, halves: Sequence[Any], parts: Sequence[Mapping[str, Any]], weights: Sequence[float]) -> Any:
    made: dict[str, Any] = {}
    for name in parts[0]:
        values = [np.asarray(part[name], dtype=np.float64) for part in parts]
        slope = gradient(case.op)
        if values[0].ndim == 0:
            made[name] = sum(weight * value for weight, value in zip(weights, values))
        else:
            whole = np.zeros((case.rows, *values[0].shape[1:]))
            for rows, value, weight in zip(halves, values, weights):
                whole[rows] = value * (
                    weight
                    if slope is not None
                    and slope[1] in parts[0]
                    and np.ndim(parts[0][slope[1]]) == 0
                    and name == slope[2]
                    else 1.0
                )
            made[name] = whole
    return made


def _micro_batches(caller: Caller, case: Case, base: Answer) -> Iterator[str | None]:
    """The halves add up by the share of rows, of kept tokens, of rows with kept tokens, or as they are: by that which
    our own formula needs. If none of them does, statistics of the batch are part of the definition."""
    halves = _halves(case)
    if halves is None:
        return
    parts = [_rows(case, rows) for rows in halves]
    if not all(part.mask.any() for part in parts):
        return
    ours, ours_parts = runs(case), [runs(part) for part in parts]
    if not ours or not all(ours_parts):
        return
    compared = Answer({name: np.asarray(ours[name]) for name in base.values if name in ours}, {})
    counts = [
        [1.0 for _ in parts],
        [part.mask.sum() / case.mask.sum() for part in parts],
        [part.rows / case.rows for part in parts],
        [part.mask.any(axis=1).sum() / max(case.mask.any(axis=1).sum(), 1) for part in parts],
    ]
    names = [name for name in compared.values if name in (case.expect or {})]
    # metrics of a loss are means over tokens whatever its mode; only what is minimised has to add up
    what = gradient(case.op)
    if what is not None:
        names = [name for name in names if name in what[1:]]
    if not names:
        return
    for weights in counts:
        joined = _joined(case, halves, [{name: part[name] for name in names} for part in ours_parts], weights)
        if _differs(case, Answer({name: compared.values[name] for name in names}, {}), joined) is None:
            break
    else:
        return
    answers = [caller(part) for part in parts]
    wrong = next((answer.error for answer in answers if answer.error), None)
    if wrong is not None:
        yield f"raised {wrong}"
        return
    theirs = _joined(case, halves, [{name: answer.values[name] for name in names} for answer in answers], weights)
    yield _differs(case, Answer({name: base.values[name] for name in names}, base.precisions), theirs)


def _inputs_kept(caller: Caller, case: Case) -> str | None:
    arguments = (case.torch if caller.kind == "torch" else case.jax if caller.kind == "jax" else case.numpy)()
    before = {name: np.array(value) for name, value in arguments.items() if hasattr(value, "shape")}
    try:
        caller.invoke(arguments)
    except UnfitFunction:
        raise
    except Exception as error:  # a finding of another property
        return f"raised {type(error).__name__}: {error}"
    changed = [
        name
        for name, value in before.items()
        if not np.array_equal(value, np.array(arguments[name]), equal_nan=value.dtype.kind == "f")
    ]
    return f"{changed[0]} was written to" if changed else None
