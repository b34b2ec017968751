"""Importance weights where trainer and sampler disagree, and how far they do."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, count, magnitude, mean_and_variance
from .loss import ONE, ZERO

IS = "rollout_corr/rollout_is"


def deltas(call: Call, ignore_nan: bool = False) -> Exact:
    """log π_old − log π_rollout at the kept slots."""
    old, rollout = call.column("old_log_probs"), call.column("rollout_log_probs")
    d = call.fill(lambda slot: old[slot] - rollout[slot])
    return [ZERO if mp.isnan(x) else x for x in d] if ignore_nan else d


def sample_std(numbers: Exact) -> mpf:
    return mp.sqrt(mean_and_variance(numbers)[1]) if len(numbers) > 1 else ZERO


def held_std(call: Call, name: str, numbers: Exact, low: Any, high: Any, n: mpf) -> mpf:
    """The deviation, divided by the count, of numbers held to a band: verl's difference of mean squares."""
    if len(numbers) < 2:
        return ZERO
    held = [max(mpf(low), min(mpf(high), x)) for x in numbers]
    mean, square = mp.fsum(held) / n, mp.fsum(x * x for x in held) / n
    root = mp.sqrt(max(ZERO, square - mean * mean))
    # what is left of the difference is as exact as the mean square
    call.measure(name, [square / (root + mp.sqrt(square) * mpf(2) ** -26)] if square else [])
    return root


class Weighing:
    """The config of the weights."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.level = call.setting("level", "token")
        bound = call.setting("bound", {"kind": "truncate", "upper": 2.0})
        self.kind = bound["kind"]
        self.lower = mpf(bound["lower"]) if "lower" in bound else -mp.inf
        self.upper = mpf(bound["upper"]) if "upper" in bound else mp.inf
        self.log_bound = call.setting("log_bound", mpf(20))
        self.divisor = call.setting("divisor", "count")
        self.normalize = call.setting("normalize", "off")
        self.d = deltas(call, call.setting("unscored", "nan") == "ignore")

    def band(self) -> tuple[mpf, mpf]:
        if self.kind == "unbounded":
            return ZERO, mp.inf
        return (1 / self.upper, self.upper) if self.kind == "truncate" else (self.lower, self.upper)

    def ratio(self, d: mpf) -> mpf:
        return mp.exp(d if self.log_bound is None else self.call.clamp(d, -self.log_bound, self.log_bound))

    def outside(self, w: mpf, size: mpf | None = None) -> bool:
        return self.call.less(w, self.lower, size) or self.call.less(self.upper, w, size)

    def applied(self, w: mpf, size: mpf | None = None) -> mpf:
        if self.kind == "zero":
            return ZERO if self.outside(w, size) else w
        return max(self.lower, min(self.upper, w))

    def log_ratio(self, row: int) -> tuple[mpf, mpf]:
        """Of a sequence, and the magnitude of its terms."""
        kept = self.call.kept_of(row)
        d = [self.d[slot] for slot in kept]
        n = count(len(kept), self.divisor) if self.level == "geometric" and kept else ONE
        return mp.fsum(d) / n, magnitude(d) / n

    def raw(self, row: int) -> list[tuple[mpf, mpf | None]]:
        """The weights of the kept tokens within no bound, and what they are rounded like."""
        kept = self.call.kept_of(row)
        if self.level == "token":
            return [(self.ratio(self.d[slot]), None) for slot in kept]
        log_ratio, size = self.log_ratio(row)
        w = self.ratio(log_ratio)
        return [(w, w * max(ONE, size))] * len(kept)

    def rows(self) -> list[Exact]:
        """The weights applied to the kept tokens."""
        return [[self.applied(*raw) for raw in self.raw(row)] for row in range(self.call.rows)]

    def mean_weight(self, applied: list[Exact]) -> mpf:
        if self.normalize == "by-level" and self.level != "token":
            means = [mp.fsum(row) / count(len(row), self.divisor) for row in applied if row]
            return mp.fsum(means) / max(len(means), 1)
        flat = [w for row in applied for w in row]
        return mp.fsum(flat) / count(len(flat), self.divisor) if flat else ZERO


@textbook("rollout_weights", of="result")
def rollout_weights(call: Call) -> Results:
    weighing = Weighing(call)
    applied = weighing.rows()
    factor = ONE
    if weighing.normalize != "off":
        mean = weighing.mean_weight(applied)
        factor = mean if call.less(mpf(1e-8), mean) else ONE
    flat = iter([w for row in applied for w in row])
    return {"weights": call.fill(lambda slot: next(flat) / factor), "factor": [factor]}


@textbook("rollout_weight_metrics", of="result")
def rollout_weight_metrics(call: Call) -> Results:
    weighing = Weighing(call)
    lower, upper = weighing.band()
    raw, applied = [weighing.raw(row) for row in range(call.rows)], weighing.rows()
    logs = [weighing.log_ratio(row) for row in range(call.rows)]
    every_raw, every = [pair for row in raw for pair in row], [w for row in applied for w in row]
    n, b = count(len(every), weighing.divisor), mpf(call.rows)
    row_mean = lambda row: mp.fsum(row) / count(len(row), weighing.divisor) if row else ZERO
    means, raw_means = [row_mean(row) for row in applied], [row_mean([w for w, _ in row]) for row in raw]
    held = [max(ZERO, min(upper, w)) for w in every]
    held_mean, square = mp.fsum(held) / n, mp.fsum(w * w for w in held) / n
    above = lambda pairs, bound, of: mpf(sum(call.less(bound, x, size) for x, size in pairs)) / of
    below = lambda pairs, bound, of: mpf(sum(call.less(x, bound, size) for x, size in pairs)) / of
    high, low = above(every_raw, upper, n), below(every_raw, lower, n)
    token = weighing.level == "token"
    row_pairs = [(w, w or ONE) for w in raw_means]
    log_lower = mp.log(lower) if lower > 0 else -mp.inf
    out = {
        "mean": mp.fsum(every) / n,
        "std": held_std(call, f"{IS}_std", every, 0, upper, n),
        "max": max(every) if token else mp.exp(min(mpf(20), max(log for log, _ in logs))),
        "min": min(every) if token else mp.exp(min(log for log, _ in logs)),
        "eff_sample_size": (held_mean + mpf(1e-8)) ** 2 / square if square else ZERO,
        "ratio_fraction_high": high if token else above(logs, mp.log(upper), b),
        "ratio_fraction_low": low if token else below(logs, log_lower, b),
        "seq_mean": mp.fsum(means) / b,
        "seq_std": sample_std(means),
        "seq_max": max(means),
        "seq_min": min(means),
        "seq_max_deviation": max(abs(mean - 1) for mean in means),
        "seq_fraction_high": above(row_pairs, upper, b),
        "seq_fraction_low": below(row_pairs, lower, b),
    }
    # sequences of about the same weight, or of weight 1, leave little
    call.scale[f"{IS}_seq_std"] = call.scale[f"{IS}_seq_max_deviation"] = max(*map(abs, means), ONE)
    if weighing.kind == "zero":
        out["oob_ratio"] = high + low
    if weighing.normalize != "off":
        mean = weighing.mean_weight(applied)
        out["batch_norm_factor"] = mean if mean > mpf(1e-8) else ONE
    return {f"{IS}_{name}": [value] for name, value in out.items()}


@textbook("rollout_mismatch", of="result")
def rollout_mismatch(call: Call) -> Results:
    divisor, d = call.setting("divisor", "count"), deltas(call)
    rows = [call.kept_of(row) for row in range(call.rows)]
    sums = [mp.fsum(d[slot] for slot in kept) for kept in rows]

    def means(name: str) -> Exact:
        column = call.column(name)
        return [mp.fsum(column[slot] for slot in kept) / count(len(kept), divisor) if kept else ZERO for kept in rows]

    old, rollout = means("old_log_probs"), means("rollout_log_probs")
    gaps = [r - o for r, o in zip(rollout, old)]
    average = lambda name, terms: call.total(f"rollout_corr/{name}", [x / call.rows for x in terms])
    of_tokens = lambda name, value: call.mean(f"rollout_corr/{name}", value, divisor)
    squared = lambda x: mp.exp(2 * call.clamp(x, -20, 20))
    out = {
        "training_ppl": average("training_ppl", [mp.exp(-x) for x in old]),
        "training_log_ppl": average("training_log_ppl", [-x for x in old]),
        "kl": of_tokens("kl", lambda slot: -d[slot]),
        "k3_kl": of_tokens("k3_kl", lambda slot: mp.expm1(d[slot]) - d[slot]),
        "rollout_ppl": average("rollout_ppl", [mp.exp(-x) for x in rollout]),
        "rollout_log_ppl": average("rollout_log_ppl", [-x for x in rollout]),
        "log_ppl_diff": average("log_ppl_diff", gaps),
        "log_ppl_abs_diff": average("log_ppl_abs_diff", [abs(x) for x in gaps]),
        "log_ppl_diff_max": max(gaps),
        "log_ppl_diff_min": min(gaps),
        "ppl_ratio": average("ppl_ratio", [mp.exp(x) for x in gaps]),
        "chi2_token": of_tokens("chi2_token", lambda slot: squared(d[slot])) - 1,
        "chi2_seq": average("chi2_seq", [squared(x) for x in sums]) - 1,
    }
    # differences of means, which are rounded like the means
    size = max((abs(x) for x in old + rollout), default=ZERO)
    for name in ("log_ppl_diff", "log_ppl_abs_diff", "log_ppl_diff_max", "log_ppl_diff_min"):
        call.scale[f"rollout_corr/{name}"] = size
    for name in ("chi2_token", "chi2_seq"):
        call.scale[f"rollout_corr/{name}"] += 1
    return {f"rollout_corr/{name}": [value] for name, value in out.items()}
