"""The formulas of the catalogue as a textbook writes them, in exact arithmetic: mpmath with far more digits than f64.

A version takes a `Call` and returns its results by name, those of the catalogue's outputs and numbers:

    @textbook("kl_estimate")
    def kl_estimate(call: Call) -> Results:
        ...
        return {"kl": call.fill(lambda slot: ...)}

A result is a list of `mpf` (flat, one number for a returned number), or of integers or flags, which have to be equal.
An entry that is `None` is not judged. Dropped slots are 0, as the library writes them. A number of a nested report is
named `report.key`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from .call import Call, Results


@dataclass(frozen=True)
class Textbook:
    """A version and the unit of its errors."""

    name: str
    exact: Callable[[Call], Results]
    #: "result": ulps of each result. "largest": of the largest number of that output, or of the sum of the magnitudes
    #: of the terms where the version recorded one (`Call.total`), for sums whose terms may cancel.
    of: str
    #: Why there is no error to find: what the results are, if they are copied, selected or counted.
    copies: str | None


TEXTBOOK: dict[str, Textbook] = {}


Version = Callable[[Call], Results]


def textbook(name: str, *, of: str = "largest", copies: str | None = None) -> Callable[[Version], Version]:
    """Registers the version of a formula."""
    assert of in ("result", "largest")

    def register(version: Version) -> Version:
        assert name not in TEXTBOOK, name
        TEXTBOOK[name] = Textbook(name, version, of, copies)
        return version

    return register


def load() -> dict[str, Textbook]:
    """All versions."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return TEXTBOOK
