"""Errors in ulps of a number type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from mpmath import mp, mpf

mp.prec = 240

Inputs = dict[str, np.ndarray]
Numbers = np.ndarray
Exact = list[mpf]

BITS = {"float32": 24, "float64": 53}
SMALLEST = {"float32": mpf(2) ** -126, "float64": mpf(2) ** -1022}


def ulp(exact: mpf, dtype: str) -> mpf:
    """The distance between neighbours of the type at `exact`; below the normal numbers that of the smallest one."""
    size = max(abs(exact), SMALLEST[dtype])
    return mpf(2) ** (int(mp.floor(mp.log(size, 2))) + 1 - BITS[dtype])


def errors(got: Numbers, exact: Exact, dtype: str, of_largest: bool) -> float:
    """The largest error. `of_largest`: in ulps of the largest result, for sums whose terms may cancel."""
    got = np.asarray(got, dtype=np.float64).ravel()
    assert len(got) == len(exact), (len(got), len(exact))
    largest = max((abs(number) for number in exact), default=mpf(0))
    worst = mpf(0)
    for one, right in zip(got, exact):
        if not np.isfinite(one):
            return float("inf")
        unit = ulp(largest if of_largest else right, dtype)
        worst = max(worst, abs(mpf(float(one)) - right) / unit)
    return float(worst)


@dataclass
class Formula:
    """A formula with its exact version, inputs to try, and what another library computes."""

    name: str
    #: ulps of the largest result of a call rather than of each result
    of_largest: bool
    random: Callable[[np.random.Generator, str], Iterator[Inputs]]
    adversarial: Callable[[str], Iterator[Inputs]]
    ours: Callable[[Inputs], Numbers]
    exact: Callable[[Inputs], Exact]
    #: name and call
    peer: tuple[str, Callable[[Inputs], Numbers]] | None = None
    found: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def search(self, dtype: str, rounds: int) -> None:
        rng = np.random.default_rng(sum(self.name.encode()) + BITS[dtype])
        sources = {
            "random": (inputs for _ in range(rounds) for inputs in self.random(rng, dtype)),
            "adversarial": self.adversarial(dtype),
        }
        calls = {"ours": self.ours} | ({"peer": self.peer[1]} if self.peer else {})
        for kind, source in sources.items():
            for inputs in source:
                exact = self.exact(inputs)
                for who, call in calls.items():
                    key = (who, dtype, kind)
                    error = errors(call(inputs), exact, dtype, self.of_largest)
                    self.found[key] = max(self.found.get(key, 0.0), error)
