"""Tokens and sequences that are rejected where trainer and sampler disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Results, count, magnitude
from .loss import ONE, ZERO
from .rollout import deltas, held_std, sample_std


class Criterion:
    """One condition of a rejection."""

    def __init__(self, call: Call, given: dict[str, Any]) -> None:
        self.call = call
        self.option = given.get("option", "token-k1")
        self.statistic = self.option[-1]
        self.scope = next((scope for scope in ("sum", "mean", "max") if scope in self.option), "token")
        upper = mpf(given.get("upper", 2.0))
        ratios = self.statistic == "1"
        self.low = mp.log(mpf(given.get("lower", 0.5))) if ratios else -mp.inf
        self.high = mp.log(upper) if ratios else upper
        self.d = [call.clamp(d, -20, 20) for d in deltas(call)]

    def token(self, slot: int) -> mpf:
        d = self.d[slot]
        return {"1": -d, "2": d * d / 2, "3": mp.expm1(d) - d}[self.statistic]

    def of_rows(self) -> list[tuple[list[tuple[mpf, mpf | None]], mpf, mpf]]:
        """Per sequence, what its tokens are judged by and how that is rounded; then the same of the sequence."""
        divisor, out = self.call.setting("divisor", "count"), []
        for row in range(self.call.rows):
            tokens = [self.token(slot) for slot in self.call.kept_of(row)]
            n = count(len(tokens), divisor) if self.scope != "sum" and tokens else ONE
            whole, size = mp.fsum(tokens) / n, magnitude(tokens) / n
            if self.scope == "max" and tokens:
                whole = size = max(tokens)
            judged = [(x, None) for x in tokens] if self.scope == "token" else [(whole, size)] * len(tokens)
            out.append((judged, whole, size))
        return out

    def above(self, statistic: tuple[mpf, mpf | None]) -> bool:
        return self.call.less(self.high, *statistic)

    def below(self, statistic: tuple[mpf, mpf | None]) -> bool:
        return self.call.less(statistic[0], self.low, statistic[1])


def criteria_of(call: Call) -> list[Criterion]:
    return [Criterion(call, given) for given in call.setting("criteria", [])]


@textbook("rollout_rejection", copies="flags")
def rollout_rejection(call: Call) -> Results:
    keep = [int(flag) for flag in call.mask]
    for criterion in criteria_of(call):
        for row, (judged, _, _) in enumerate(criterion.of_rows()):
            for slot, statistic in zip(call.kept_of(row), judged):
                if criterion.above(statistic) or criterion.below(statistic):
                    keep[slot] = 0
    return {"keep": keep}


@textbook("rollout_rejection_metrics", of="result")
def rollout_rejection_metrics(call: Call) -> Results:
    n = count(len(call.kept()), call.setting("divisor", "count"))
    out: dict[str, mpf] = {}
    for criterion in criteria_of(call):
        prefix = f"rollout_corr/rollout_rs_{criterion.option.replace('-', '_')}_"
        rows = [row for row in criterion.of_rows() if row[0]]
        judged, sequences = [x for row in rows for x in row[0]], [row[1:] for row in rows]
        wholes, b = [whole for whole, _ in sequences], mpf(len(rows))
        units, of = (judged, n) if criterion.scope == "token" else (sequences, b)
        all_of = [x for x, _ in judged]
        low = criterion.low if criterion.statistic == "1" else ZERO
        share = lambda yes, pairs, of: mpf(sum(yes(pair) for pair in pairs)) / of
        outside = lambda pair: criterion.above(pair) or criterion.below(pair)
        made = {
            "mean": mp.fsum(all_of) / n,
            "max": max(x for x, _ in units),
            "min": min(x for x, _ in units),
            "fraction_high": share(criterion.above, units, of),
            "fraction_low": share(criterion.below, units, of),
            "std": held_std(call, f"{prefix}std", all_of, low, criterion.high, n),
            "seq_mean": mp.fsum(wholes) / b,
            "seq_std": sample_std(wholes),
            "seq_max": max(wholes),
            "seq_min": min(wholes),
            "seq_max_deviation": max(abs(x) for x in wholes),
            "seq_fraction_high": share(criterion.above, sequences, b),
            "masked_fraction": share(outside, judged, n),
            "seq_masked_fraction": mpf(sum(any(outside(x) for x in row[0]) for row in rows)) / b,
        }
        if criterion.statistic == "1":
            made["seq_fraction_low"] = share(criterion.below, sequences, b)
        out |= {f"{prefix}{name}": value for name, value in made.items()}
        # log-ratios of both signs cancel
        size = max(size for _, size in sequences)
        token_sizes = [abs(x) if of_token is None else of_token for x, of_token in judged]
        call.scale[f"{prefix}mean"] = mp.fsum(token_sizes) / n
        for name in ("seq_mean", "seq_std", "seq_max", "seq_min", "seq_max_deviation"):
            call.scale[f"{prefix}{name}"] = size
        if criterion.scope != "token":
            call.scale[f"{prefix}max"] = call.scale[f"{prefix}min"] = size
    keep = rollout_rejection(call)["keep"]
    dropped = [any(not keep[slot] for slot in call.kept_of(row)) for row in range(call.rows)]
    out["rollout_corr/rollout_rs_masked_fraction"] = mpf(sum(not keep[slot] for slot in call.kept())) / n
    out["rollout_corr/rollout_rs_seq_masked_fraction"] = mpf(sum(dropped)) / call.rows
    return {name: [value] for name, value in out.items()}


@textbook("rollout_gate", of="result")
def rollout_gate(call: Call) -> Results:
    level, mode = call.setting("level", "off"), call.setting("mode", "mask")
    statistic = call.setting("statistic", "ratio")
    lower, upper = call.setting("lower", mpf(0.5)), call.setting("upper", mpf(5))
    old, rollout, d = call.column("old_log_probs"), call.column("rollout_log_probs"), deltas(call)
    held = lambda log: call.clamp(mp.exp(log), mpf(1e-6), 1 - mpf(1e-6))

    def of_token(slot: int) -> tuple[mpf, mpf]:
        """The statistic, and the magnitude of its terms."""
        p, q = held(rollout[slot]), held(old[slot])
        if statistic == "ratio":
            return d[slot], abs(d[slot])
        if statistic == "total-variation":
            return abs(p - q), max(p, q)
        terms = p * mp.log(p / q), (1 - p) * mp.log((1 - p) / (1 - q))
        return mp.fsum(terms), magnitude(terms) + p + q

    def of_unit(slots: Sequence[int]) -> tuple[mpf, mpf]:
        tokens = [of_token(slot) for slot in slots]
        mean, size = (mp.fsum(x[place] for x in tokens) / len(slots) for place in (0, 1))
        return (mp.exp(mean), mp.exp(mean) * max(ONE, size)) if statistic == "ratio" else (mean, size)

    out, filtered, units = [ZERO] * len(call.mask), 0, 0
    for row in range(call.rows):
        kept = call.kept_of(row)
        parts = ([kept] if kept else []) if level == "sequence" else [[slot] for slot in kept]
        for part in parts:
            s, size = of_unit(part)
            below = statistic == "ratio" and call.less(s, lower, size)
            inside = not below and not call.less(upper, s, size)
            units += 1
            filtered += not inside and level != "off"
            for slot in part:
                if level == "off":
                    out[slot] = ONE
                elif mode == "clip":
                    out[slot] = call.clamp(s, lower, upper)
                else:
                    out[slot] = mp.exp(d[slot]) if inside else ZERO
    kl = call.mean("kl", lambda slot: -d[slot], "count")
    return {"weights": out, "filtered": [mpf(filtered) / max(units, 1)], "kl": [kl]}
