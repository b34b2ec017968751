"""A function of a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._calling import Adapter, Skip
from .._cases import library


@dataclass(frozen=True)
class Subject:
    """A function of a framework, with the operation it computes and how it is called."""

    profile: str
    op: str
    #: Its name in the framework.
    name: str
    function: Callable[..., Any]
    adapter: Adapter
    #: Whether it takes one score per sequence, for which the adapter sums the rewards of the case: what dropped slots
    #: hold is then the adapter's matter, not the framework's.
    of_scores: bool = False


@contextmanager
def doubles(like: Any) -> Iterator[None]:
    """Numbers that the framework makes without naming a type are double where the data are."""
    torch = library("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if like.dtype == torch.float64 else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def step(arguments: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The arguments that are there, under other names."""
    return {theirs: arguments[ours] for ours, theirs in names.items() if arguments.get(ours) is not None}


def without_bootstrap(arguments: dict[str, Any]) -> None:
    if arguments.get("bootstrap") is not None and bool((arguments["bootstrap"] != 0).any()):
        raise Skip("it takes no bootstrap values")
