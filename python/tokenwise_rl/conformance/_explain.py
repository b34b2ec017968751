"""Which convention turns our numbers into somebody else's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._calling import Answer
from ._cases import Case
from ._operations import Variation, runs
from ._variations import both, variations

Pair = tuple[Case, Answer]


@dataclass(frozen=True)
class Explanation:
    """A convention, and how much of the deviations it explains."""

    #: ``whiten.spread``
    convention: str
    #: What the function does, in words.
    text: str
    #: Failed cases that it explains, and those that it does not.
    explained: int
    unexplained: int
    #: Passed cases that would fail with it.
    broken: int = 0

    @property
    def complete(self) -> bool:
        """Whether it explains every deviation and no agreement speaks against it."""
        return not self.unexplained and not self.broken

    def __str__(self) -> str:
        of = self.explained + self.unexplained
        share = f"all {of}" if self.complete else f"{self.explained} of {of}"
        return f"{self.convention}: {self.text} (explains {share})"

    def to_json(self) -> dict[str, Any]:
        return {
            "convention": self.convention,
            "text": self.text,
            "explained": self.explained,
            "unexplained": self.unexplained,
            "broken": self.broken,
        }


def agrees(case: Case, answer: Answer, ours: Mapping[str, Any]) -> bool | None:
    """Whether an answer equals these outputs; ``None`` if there is nothing to compare."""
    known = [name for name in answer.values if name in ours and (case.expect is None or name in case.expect)]
    if not known:
        return None
    return all(
        case.deviation(name, answer.values[name], ours[name], answer.precisions.get(name)) is None for name in known
    )


def explain(failed: Sequence[Pair], passed: Sequence[Pair], most: int = 3, several: bool = False) -> list[Explanation]:
    """The conventions that explain the failed cases, the best first.

    If one explains all of them, only such are returned. With ``several``, up to four at once are tried when no single
    one does.
    """
    failed = [pair for pair in failed if pair[1].error is None]
    if not failed:
        return []
    found = []
    partial: list[tuple[int, Variation]] = []
    for variation in variations([case for case, _ in [*failed, *passed]]):
        matched = sum(1 for case, answer in failed if agrees(case, answer, runs(case, variation)))
        if matched:
            partial.append((matched, variation))
            found.append(_judged(variation, matched, failed, passed))
    complete = _distinct([one for one in found if one.complete])
    if complete:
        return complete[:most]
    factor = _factor(failed)
    if factor is not None:
        return [factor]
    if several:
        for start in sorted(partial, key=lambda item: -item[0])[:3]:
            one = _several(start, failed, passed)
            if one is not None:
                return [one]
    found.sort(key=lambda one: (one.broken - one.explained, one.broken))
    return _distinct([one for one in found if one.explained > one.broken])[:1]


def _several(start: tuple[int, Variation], failed: Sequence[Pair], passed: Sequence[Pair]) -> Explanation | None:
    """Adds to a convention, one at a time, the one that explains most of what is left."""
    best, current = start
    candidates = variations([case for case, _ in [*failed, *passed]])
    for _ in range(3):
        gained = best
        for other in candidates:
            if other.name in current.name.split(" + "):
                continue
            joined = both(current, other)
            matched = sum(1 for case, answer in failed if agrees(case, answer, runs(case, joined)))
            if matched > gained:
                gained, following = matched, joined
        if gained == best:
            return None
        best, current = gained, following
        if best == len(failed):
            found = _judged(current, best, failed, passed)
            return found if found.complete else None
    return None


def _judged(variation: Variation, matched: int, failed: Sequence[Pair], passed: Sequence[Pair]) -> Explanation:
    broken = sum(1 for case, answer in passed if agrees(case, answer, runs(case, variation)) is False)
    return Explanation(variation.name, variation.text, matched, len(failed) - matched, broken)


def _distinct(found: list[Explanation]) -> list[Explanation]:
    seen: dict[str, Explanation] = {}
    for one in found:
        seen.setdefault(one.text, one)
    return list(seen.values())


def _factor(failed: Sequence[Pair]) -> Explanation | None:
    """A constant between all numbers."""
    ratios = []
    for case, answer in failed:
        for name, want in (case.expect or {}).items():
            if name not in answer.values:
                continue
            wanted, got = np.asarray(want, dtype=np.float64), np.asarray(answer.values[name], dtype=np.float64)
            if wanted.shape != got.shape:
                return None
            kept = case.kept(name, wanted.shape) & (wanted != 0)
            ratios.extend((got[kept] / wanted[kept]).tolist())
    if not ratios or not np.all(np.isfinite(ratios)):
        return None
    middle = float(np.median(ratios))
    if np.max(np.abs(np.array(ratios) - middle)) > 1e-6 * abs(middle) or abs(middle - 1) < 1e-6:
        return None
    return Explanation("factor", f"every number is {middle:.6g} times the expected one", len(failed), 0)
