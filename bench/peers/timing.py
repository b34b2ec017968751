"""Medians of wall time; contestants are measured in turns."""

import gc
import statistics
import time

SAMPLE = 10e-3  # seconds; a call is repeated until a sample takes this long
LEAST = 3  # minimum number of samples


class Contestant:
    """`call` is timed and returns its result; `numbers` converts it to named numpy arrays, untimed."""

    def __init__(self, name, call, numbers=None):
        self.name, self.call, self.numbers = name, call, numbers
        self.times, self.firsts, self.cpu, self.repeats, self.every, self.made = [], [], [], 1, 1, None

    def once(self):
        """Wall and CPU time of one call. The first call is separate: caches hold data of the previous contestant."""
        first = self.timed(1)
        self.firsts.append(first[0] * 1e3)
        return first if self.repeats == 1 else self.timed(self.repeats)

    def timed(self, calls):
        begin, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            self.made = self.call()
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        return wall / calls, cpu / calls


def measure(contestants, budget):
    """Fills `times`; slow contestants skip some rounds."""
    for contestant in contestants:
        contestant.once()  # compiles, warms, allocates
        once = max(min(contestant.once()[0] for _ in range(3)), 1e-9)
        contestant.repeats = max(1, int(-(-SAMPLE // once)))
        contestant.every = max(1, int(once * contestant.repeats / (budget / 40)))
        contestant.firsts.clear()
    gc.disable()
    begin, round_ = time.perf_counter(), 0
    while time.perf_counter() - begin < budget or any(len(each.times) < LEAST for each in contestants):
        late = time.perf_counter() - begin >= budget
        for contestant in contestants:
            if (late and len(contestant.times) >= LEAST) or (not late and round_ % contestant.every):
                continue
            wall, cpu = contestant.once()
            contestant.times.append(wall * 1e3)
            contestant.cpu.append(cpu * 1e3)
        round_ += 1
    gc.enable()


def summary(contestant):
    median = statistics.median(contestant.times)
    return {
        "who": contestant.name,
        "ms": median,
        "least": min(contestant.times),
        "samples": len(contestant.times),
        "first": statistics.median(contestant.firsts),
        "cpu": statistics.median(contestant.cpu) / median,
    }
