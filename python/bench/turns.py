"""Times of functions that take turns in one process, so that other work on the machine disturbs all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

#: Seconds of a sample: long beside the clock, short beside the time that a processor is left to one process.
SAMPLE = 1e-3


class Times(NamedTuple):
    """Seconds per call, one entry per sample: by the clock, and of all processors."""

    wall: list[float]
    cpu: list[float]


def alternate(
    functions: dict[str, Callable[[], Any]],
    rounds: int,
    before: Callable[[Callable[[], Any]], Any] = lambda function: None,
) -> dict[str, Times]:
    """Calls the functions in turns; short ones are repeated within a sample.

    ``before`` gets the function ahead of each sample, and is not timed. Without it a function finds in the caches what
    the one before it has left there, which favours those that come after a short one.
    """
    repeats = {}
    for name, function in functions.items():
        function()
        start = time.process_time()
        function()
        repeats[name] = max(1, int(SAMPLE / max(time.process_time() - start, 1e-7)))
    times = {name: Times([], []) for name in functions}
    gc.disable()
    for _ in range(rounds):
        for name, function in functions.items():
            before(function)
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(repeats[name]):
                function()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            times[name].wall.append(wall / repeats[name])
            times[name].cpu.append(cpu / repeats[name])
    gc.enable()
    return times


def table(title: str, times: dict[str, Times], base: str) -> None:
    """Least and median, in microseconds and as multiples of those of ``base``.

    On a busy machine the median by the clock says how busy it is; the least, and the time of the processors, say more.
    """
    print(f"\n{title}\n{'':34}least {'':14}median {'':13}least, processor    median, processor")
    for name, found in times.items():
        line = f"  {name:30}"
        for kind in range(2):
            for what in (min, statistics.median):
                seconds, against = what(found[kind]), what(times[base][kind])
                line += f"{seconds * 1e6:10.1f} {seconds / against:7.3f} x"
        print(line, flush=True)
