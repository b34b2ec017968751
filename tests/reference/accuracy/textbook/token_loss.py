"""Policy losses of one token at a time."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, magnitude
from .loss import ONE, ZERO, Term, beyond, bounded, log_ratios, only, total, usual_aggregate


def detached(call: Call, factor: Callable[[int], tuple[mpf, bool, bool]], bound: mpf | None = None) -> Results:
    """−A log π times a factor that is a constant; the factor comes with both kinds of being held."""
    new, advantages, d = call.column("log_probs"), call.column("advantages"), log_ratios(call)

    def term(slot: int) -> Term:
        value, held, held_below = factor(slot)
        slope = -value * advantages[slot]
        return Term(slope * new[slot], slope, held, held_below, -bounded(d[slot], bound))

    return total(call, term)


@textbook("reinforce", of="result")
def reinforce(call: Call) -> Results:
    return detached(call, lambda slot: (ONE, False, False))


@textbook("cispo", of="result")
def cispo(call: Call) -> Results:
    bound = call.setting("log_ratio_bound", mpf(20))
    bounds = call.setting("bounds", {"kind": "relative", "low": 0.2, "high": 0.2})
    d, advantages = log_ratios(call), call.column("advantages")
    relative = bounds["kind"] == "relative"
    low = 1 - mpf(bounds["low"]) if relative else ZERO
    high = 1 + mpf(bounds["high"]) if relative else mpf(bounds["high"])

    def factor(slot: int) -> tuple[mpf, bool, bool]:
        ratio = mp.exp(bounded(d[slot], bound))
        held = call.less(ratio, low) or call.less(high, ratio)
        return max(low, min(high, ratio)), held and bool(relative or advantages[slot] > 0), False

    return detached(call, factor, bound)


@textbook("tis_loss", of="result")
def tis_loss(call: Call) -> Results:
    d = log_ratios(call)
    return detached(call, lambda slot: (mp.exp(min(d[slot], ZERO)), call.less(ONE, mp.exp(d[slot])), False))


@textbook("sapo", of="result")
def sapo(call: Call) -> Results:
    usual_aggregate(call, {"mode": "seq-mean-token-mean"})
    bound = call.setting("log_ratio_bound", mpf(20))
    taus = call.setting("tau_positive", mpf(1)), call.setting("tau_negative", mpf(1.05))
    d, advantages = log_ratios(call), call.column("advantages")

    def term(slot: int) -> Term:
        a, held = advantages[slot], bounded(d[slot], bound)
        ratio, tau = mp.exp(held), taus[0] if a > 0 else taus[1]
        tail = mp.exp(-tau * (ratio - 1))
        sigma = 1 / (1 + tail)
        # 1 − σ would cancel, whatever the precision
        slope = ZERO if beyond(call, d[slot], bound) else -4 * sigma * (tail * sigma) * ratio * a
        return Term(-4 / tau * sigma * a, slope, kl=-held)

    return total(call, term)


@textbook("dro", of="result")
def dro(call: Call) -> Results:
    beta, d = call.setting("beta"), log_ratios(call)
    new, advantages = call.column("log_probs"), call.column("advantages")

    def term(slot: int) -> Term:
        parts = -advantages[slot] * new[slot], beta * d[slot] ** 2 / 2
        slopes = -advantages[slot], beta * d[slot]
        return Term(sum(parts), sum(slopes), kl=-d[slot], size=magnitude(parts), slope_size=magnitude(slopes))

    return total(call, term)


def dppo(call: Call, keep: Callable[[mpf, mpf, mpf, mpf, mpf], bool]) -> Results:
    """−sg(min(ρ, cap)) A log π on the tokens that are kept."""
    bound, cap = call.setting("log_ratio_bound", mpf(20)), call.setting("ratio_cap", mpf(3))
    low, high = call.setting("clip_low", mpf(0.2)), call.setting("clip_high", mpf(0.2))
    new, old, advantages = (call.column(name) for name in ("log_probs", "old_log_probs", "advantages"))
    d = log_ratios(call)

    def factor(slot: int) -> tuple[mpf, bool, bool]:
        kept = keep(new[slot], old[slot], advantages[slot], low, high)
        ratio = mp.exp(bounded(d[slot], bound))
        return min(ratio, cap) if kept else ZERO, not kept, call.less(cap, ratio) and kept

    return detached(call, factor, bound)


@textbook("dppo_tv", of="result")
def dppo_tv(call: Call) -> Results:
    def keep(new: mpf, old: mpf, advantage: mpf, low: mpf, high: mpf) -> bool:
        p, q = mp.exp(new), mp.exp(old)
        # to the side of the update
        moved, most = (p - q, high) if advantage > 0 else (q - p, low)
        return not call.less(most, moved, max(p, q))

    return dppo(call, keep)


@textbook("dppo_kl", of="result")
def dppo_kl(call: Call) -> Results:
    def keep(new: mpf, old: mpf, advantage: mpf, low: mpf, high: mpf) -> bool:
        p, q, small = mp.exp(new), mp.exp(old), mpf(1e-8)
        rests = 1 - q + small, 1 - p + small
        towards = bool(new <= old) if advantage > 0 else bool(new >= old)
        if towards or min(rests) <= 0:
            return towards
        first, second = q * (old - new), (1 - q) * mp.log(rests[0] / rests[1])
        # 1 − p is rounded like p
        rounding = abs(first) + abs(second) + abs(1 - q) * (q / rests[0] + p / rests[1])
        return not call.less(high if advantage > 0 else low, first + second, rounding)

    return dppo(call, keep)


def of_slots(call: Call, name: str) -> Exact:
    """The number of each slot's sequence."""
    return call.spread(call.column(name))


@textbook("topr", of="result")
def topr(call: Call) -> Results:
    scores, d = of_slots(call, "scores"), log_ratios(call)
    good, bad = call.setting("positive", ONE), call.setting("negative", ONE)

    def factor(slot: int) -> tuple[mpf, bool, bool]:
        return good if scores[slot] > 0 else bad * mp.exp(min(d[slot], ZERO)), False, False

    return only(detached(call, factor), "loss", "grad")


@textbook("positive_nll", of="result")
def positive_nll(call: Call) -> Results:
    scores, new = of_slots(call, "scores"), call.column("log_probs")
    good = [slot for slot in call.kept() if scores[slot] > 0]
    share = call.setting("mu", mpf(0.1)) / max(len(good), 1)
    loss = call.total("loss", [-share * new[slot] for slot in good])
    return {"loss": [loss], "grad": call.fill(lambda slot: -share if scores[slot] > 0 else ZERO)}
