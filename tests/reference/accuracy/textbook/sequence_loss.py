"""Losses whose tokens share one ratio."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, count, magnitude
from .loss import ONE, ZERO, Term, log_ratios, omegas, total, usual_aggregate


def row_means(call: Call, numbers: Exact, divisor: str = "count") -> Exact:
    """The mean over the kept slots of each row; 0 without any."""
    rows = [call.kept_of(row) for row in range(call.rows)]
    return [mp.fsum(numbers[slot] for slot in kept) / count(len(kept), divisor) if kept else ZERO for kept in rows]


def gspo_of(call: Call, low: mpf, high: mpf, cap: mpf | None, per_sequence: bool) -> Results:
    d, advantages = log_ratios(call), call.column("advantages")
    means = call.spread(row_means(call, d))
    sizes = call.spread(row_means(call, [abs(x) for x in d]))

    def term(slot: int) -> Term:
        mean, a = means[slot], advantages[slot]
        capped = cap is not None and call.less(cap, mean, sizes[slot])
        ratio = mp.exp(mean if cap is None else min(mean, cap))
        # the mean is rounded like its terms
        call.less(ratio, low, ratio * max(ONE, sizes[slot]))
        call.less(ratio, high, ratio * max(ONE, sizes[slot]))
        plain, clipped = -a * ratio, -a * max(low, min(high, ratio))
        held = bool(clipped > plain)
        return Term(max(plain, clipped), ZERO if held or capped else plain, held, kl=-d[slot])

    out = total(call, term)
    if per_sequence:
        # ∂s/∂log π_t = s / n: every token contributes to the slope of every other
        grad = out["grad"]
        out["grad"] = call.spread(row_means(call, grad))
        call.scale["grad"] = max(row_means(call, [abs(x) for x in grad]), default=ZERO)
    return out


@textbook("gspo", of="result")
def gspo(call: Call) -> Results:
    usual_aggregate(call, {"mode": "seq-mean-token-mean"})
    low, high = 1 - call.setting("clip_low", mpf(3e-4)), 1 + call.setting("clip_high", mpf(4e-4))
    per_sequence = call.setting("form", "sequence") == "sequence"
    return gspo_of(call, low, high, call.setting("log_ratio_cap", None), per_sequence)


@textbook("luspo", of="result")
def luspo(call: Call) -> Results:
    low, high = 1 - call.setting("clip_low", mpf(0.2)), 1 + call.setting("clip_high", mpf(0.2))
    call.config = {"aggregate": {"mode": "seq-mean-token-sum", "empty_rows": "counted"}}
    return gspo_of(call, low, high, None, True)


@textbook("gmpo", of="result")
def gmpo(call: Call) -> Results:
    low, high = call.setting("clip_low", mpf(0.4)), call.setting("clip_high", mpf(0.4))
    divisor, counts = call.setting("divisor", "count"), call.setting("counts", None)
    share = mpf(counts.get("ranks", 1)) / counts.get("sequences", 0) if counts else ONE / call.rows
    d, advantages = log_ratios(call), call.column("advantages")

    def held(slot: int) -> mpf:
        """Clipped in log space, on the side of the advantage."""
        a = advantages[slot]
        if a > 0:
            return min(d[slot], high)
        return max(d[slot], -low) if a < 0 else ZERO

    outside = call.fill(lambda slot: call.less(d[slot], -low) or call.less(high, d[slot]))
    clipped = call.fill(held)
    means, exponents = row_means(call, advantages_of(call), divisor), row_means(call, clipped, divisor)
    factors = [ONE] * call.rows
    if call.has("weights"):
        given = omegas(call)
        logs = row_means(call, call.fill(lambda slot: mp.log(given[slot] + mpf(1e-10))), divisor)
        factors = [mp.exp(log) for log in logs]
    values = [-mean * mp.exp(log) * factor * share for mean, log, factor in zip(means, exponents, factors)]
    # the mean advantage may cancel
    sizes = row_means(call, [abs(a) for a in advantages_of(call)], divisor)
    units = [size * mp.exp(log) * factor * share for size, log, factor in zip(sizes, exponents, factors)]
    lens = [count(max(len(call.kept_of(row)), 1), divisor) for row in range(call.rows)]
    call.scale["loss"] = magnitude(units)
    call.scale["grad"] = max((unit / n for unit, n in zip(units, lens)), default=ZERO)
    shared = call.spread([value / n for value, n in zip(values, lens)])

    def fraction(name: str, positive: bool) -> list[mpf]:
        yes = lambda slot: outside[slot] and (advantages[slot] > 0 if positive else advantages[slot] < 0)
        return [call.mean(name, lambda slot: mpf(bool(yes(slot))), divisor)]

    return {
        "loss": [mp.fsum(values)],
        "grad": call.fill(lambda slot: shared[slot] if advantages[slot] and clipped[slot] == d[slot] else ZERO),
        "clip_fraction": fraction("clip_fraction", True),
        "clip_fraction_lower": fraction("clip_fraction_lower", False),
        "kl": [call.mean("kl", lambda slot: -d[slot], divisor)],
    }


def advantages_of(call: Call) -> Exact:
    """The advantages, 0 in dropped slots."""
    advantages = call.column("advantages")
    return call.fill(lambda slot: advantages[slot])


@textbook("vespo", of="result")
def vespo(call: Call) -> Results:
    least, most = mp.log(mpf(1e-8)), mpf(20)
    d, advantages, new = log_ratios(call), call.column("advantages"), call.column("log_probs")
    given = omegas(call)

    def log_weight(kept: list[int]) -> mpf:
        ratios = mp.fsum(call.clamp(d[slot], -20, 20) for slot in kept)
        logs = [mp.log(given[slot]) if given[slot] > 0 else least for slot in kept]
        return call.clamp(ratios + mp.fsum(call.clamp(log, least, most) for log in logs), least, most)

    logs = call.spread([log_weight(call.kept_of(row)) for row in range(call.rows)])
    positive = call.setting("k_positive", mpf(2)), call.setting("lambda_positive", mpf(3))
    negative = call.setting("k_negative", mpf(3)), call.setting("lambda_negative", mpf(2))

    def phi(slot: int) -> mpf:
        k, scale = negative if advantages[slot] < 0 else positive
        return mp.exp(scale + k * logs[slot] - scale * mp.exp(logs[slot]))

    phis = call.fill(phi)
    firsts = [kept[0] for kept in (call.kept_of(row) for row in range(call.rows)) if kept]
    loss, weights = call.aggregate(call.fill(lambda slot: -phis[slot] * advantages[slot] * new[slot]))
    return {
        "loss": [loss],
        "phi_mean": [mp.fsum(phis[slot] for slot in firsts) / len(firsts) if firsts else ZERO],
        "grad": call.fill(lambda slot: -weights[slot] * phis[slot] * advantages[slot]),
    }


@textbook("gvpo", of="result")
def gvpo(call: Call) -> Results:
    beta, d = call.setting("beta", mpf(0.1)), log_ratios(call)

    def error(row: int, value: Any) -> mpf:
        """(u − ū) − Ā of a row, or the sum of the magnitudes in it."""
        kept = call.kept_of(row)
        mean_advantage = mp.fsum(value(advantages[slot]) for slot in kept) / max(len(kept), 1)
        u = [beta * mp.fsum(value(d[slot]) for slot in call.kept_of(other)) for other in range(call.rows)]
        members = call.members(row)
        center = mp.fsum(u[other] for other in members) / len(members)
        # plain numbers are subtracted, magnitudes added
        return u[row] - center - mean_advantage if value(mpf(-1)) < 0 else u[row] + center + mean_advantage

    advantages = call.column("advantages")
    others = [len(call.members(row)) - 1 for row in range(call.rows)]
    errors = [error(row, lambda x: x) for row in range(call.rows)]
    sizes = [error(row, abs) for row in range(call.rows)]
    call.scale["loss"] = mp.fsum(size**2 / 2 / n for size, n in zip(sizes, others))
    call.scale["grad"] = beta * max((size / n for size, n in zip(sizes, others)), default=ZERO)
    return {
        "loss": [mp.fsum(e**2 / 2 / n for e, n in zip(errors, others))],
        "grad": call.spread([beta * e / n for e, n in zip(errors, others)]),
    }
