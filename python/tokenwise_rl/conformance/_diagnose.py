"""Says which profile a function follows, or which convention sets it apart from the nearest one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from .. import profiles
from ._calling import Adapter, Answer, Caller, Function
from ._cases import Case, cases
from ._check import TOLERANCE, adapted, report
from ._explain import Explanation, agrees
from ._operations import runs
from ._report import Report, table, wrap


@dataclass(frozen=True)
class Diagnosis:
    """What a function computes."""

    op: str
    function: str
    #: Cases that agree, and those that were compared, by profile.
    fits: Mapping[str, tuple[int, int]]
    #: The profiles that agree in every case.
    profiles: Sequence[str]
    #: The nearest profile, and what explains the deviations from it.
    nearest: str
    explanations: Sequence[Explanation]
    #: Settings that the function has no parameter for, with the values that fit it best.
    fixed: Mapping[str, Any]
    #: The cases under the nearest profile.
    report: Report
    #: How closely numbers agree: 0 for the tolerance of each case (1e-9).
    tolerance: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether a profile fits."""
        return bool(self.profiles)

    @property
    def explained(self) -> bool:
        """Whether a profile fits, or conventions explain every deviation from the nearest."""
        return self.ok or any(one.complete for one in self.explanations)

    def __str__(self) -> str:
        lines = wrap(f"{self.op}: {self.function}")
        if self.fixed:
            given = ", ".join(f"{name} = {value!r}" for name, value in self.fixed.items())
            lines += wrap(f"taken as built in: {given}", "  ")
        rows = [
            [profile, f"{fit} of {of}", "fits" if profile in self.profiles else ""]
            for profile, (fit, of) in self.fits.items()
        ]
        lines += table(["profile", "cases", ""], rows)
        within = f" (within {self.tolerance:g})" if self.tolerance else ""
        if self.ok:
            lines += wrap(f"follows {' and '.join(self.profiles)}{within}")
        elif self.explained:
            count = 1 + self.explanations[0].convention.count(" + ")
            changed = "one convention" if count == 1 else f"{count} conventions"
            lines += wrap(f"{self.nearest}, with {changed} changed{within}:")
            for number, one in enumerate(self.explanations):
                lines += wrap(f"{'or ' if number else ''}{one}", "  ")
        else:
            lines += wrap(f"nearest is {self.nearest}; no conventions explain all deviations")
            for one in self.explanations:
                lines += wrap(f"in part: {one}", "  ")
            lines += self.report.first()[:2] if self.report.failed else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "function": self.function,
            "fits": {profile: {"agree": fit, "compared": of} for profile, (fit, of) in self.fits.items()},
            "profiles": list(self.profiles),
            "nearest": self.nearest,
            "explanations": [one.to_json() for one in self.explanations],
            "fixed": dict(self.fixed),
            "tolerance": self.tolerance,
        }

    def json(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)


def diagnose(
    op: str,
    function: Function,
    *,
    adapter: Adapter | None = None,
    names: Mapping[str, str] | None = None,
    returns: Sequence[str | None] | None = None,
    fixed: Mapping[str, Any] | None = None,
    kind: str | None = None,
    gradients: bool = True,
    dtypes: Sequence[str] = ("f64",),
    against: Sequence[str] | None = None,
    tolerance: float | None = None,
) -> Diagnosis:
    """Compares a function with our formula under every profile, over the inputs of all cases.

    If none fits, every single convention is changed in turn to find the one that explains all deviations, first within
    the tolerance of the cases (1e-9), then within 1e-6, then up to four at once; with ``tolerance`` within this only. A
    setting that the function has no parameter for is taken as built in, with the value that fits best.
    """
    caller = Caller(function, adapted(adapter, names, returns, fixed, kind, gradients))
    every = cases(op)
    found = [case for case in every if case.dtype in dtypes] or every
    found = _distinct([case for case in found if caller.skipped(case) is None])
    unknown = caller.unknown_settings(found)
    combinations = [dict(zip(unknown, values)) for values in product(*unknown.values())][:64]
    answers = [(case, caller(case)) for case in found]
    best: Diagnosis | None = None
    tolerances = (0.0, TOLERANCE) if tolerance is None else (tolerance,)
    for within, several in [(within, several) for several in (False, True) for within in tolerances]:
        loosened = [(case.loosened(within), answer) for case, answer in answers]
        nearest = max(
            (_of(op, caller.name, _kept(loosened, fixed), fixed, against or profiles()) for fixed in combinations),
            key=_rank,
        )
        if not nearest.ok:
            pairs = _under(_kept(loosened, nearest.fixed), nearest.nearest)
            explained = report(op, nearest.nearest, caller.name, pairs, several=several)
            nearest = replace(nearest, explanations=explained.explanations, report=explained)
        nearest = replace(nearest, tolerance=within)
        if nearest.explained:
            return nearest
        best = best or nearest
    assert best is not None
    return best


def _kept(answers: Sequence[tuple[Case, Answer]], fixed: Mapping[str, Any]) -> list[tuple[Case, Answer]]:
    return [
        (case, answer)
        for case, answer in answers
        if all(case.params.get(name, value) == value for name, value in fixed.items())
    ]


def _rank(found: Diagnosis) -> tuple[bool, float, int]:
    agree, compared = found.fits.get(found.nearest, (0, 0))
    return found.ok, agree / max(compared, 1), agree


def _distinct(found: Sequence[Case]) -> list[Case]:
    """Frameworks share inputs: each is run once."""
    seen: dict[str, Case] = {}
    for case in found:
        inputs = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in case.inputs.items()}
        groups = None if case.groups is None else case.groups.tolist()
        key = json.dumps([inputs, dict(case.params), case.mask.tolist(), groups], sort_keys=True)
        seen.setdefault(key, case)
    return list(seen.values())


def _under(answers: Sequence[tuple[Case, Answer]], profile: str) -> list[tuple[Case, Answer]]:
    """The same cases, with what our formula gives under a profile."""
    made = []
    for case, answer in answers:
        ours = runs(replace(case, profile=profile))
        known = {name: value for name, value in ours.items() if name in (case.expect or {})}
        if known and answer.skipped is None:
            made.append((replace(case, profile=profile, expect=known, source=f"our formula under {profile}"), answer))
    return made


def _of(
    op: str, name: str, answers: Sequence[tuple[Case, Answer]], fixed: Mapping[str, Any], against: Sequence[str]
) -> Diagnosis:
    fits: dict[str, tuple[int, int]] = {}
    for profile in against:
        judged = [agrees(case, answer, case.expect or {}) is True for case, answer in _under(answers, profile)]
        fits[profile] = (sum(judged), len(judged))
    nearest = max(fits, key=lambda profile: fits[profile][0] / max(fits[profile][1], 1))
    fit = [profile for profile, (agree, compared) in fits.items() if agree == compared > 0]
    return Diagnosis(op, name, fits, fit, nearest, (), fixed, report_of(op, nearest, name, answers))


def report_of(op: str, profile: str, name: str, answers: Sequence[tuple[Case, Answer]]) -> Report:
    from ._check import _finding

    return Report(op, profile, name, [_finding(case, answer) for case, answer in _under(answers, profile)])
