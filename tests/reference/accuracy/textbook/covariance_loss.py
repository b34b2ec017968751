"""Losses that single out tokens by the covariance of advantage and log-probability."""

from __future__ import annotations

from collections.abc import Iterator

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, mean, sign
from .loss import ZERO, Clip, Term, log_ratios, total

MASK = 2**64 - 1


def covariances(call: Call, divisor: str) -> tuple[Exact, Exact]:
    """(A − Ā)(log π − mean log π) of every kept token, and what it is rounded like."""
    advantages, new, kept = call.column("advantages"), call.column("log_probs"), call.kept()
    if not kept:
        return [], []
    middles = [mean([column[slot] for slot in kept], divisor) for column in (advantages, new)]
    pairs = call.fill(lambda slot: (advantages[slot], new[slot]))
    out = call.fill(lambda slot: (pairs[slot][0] - middles[0]) * (pairs[slot][1] - middles[1]))
    sizes = [max(abs(column[slot]) for slot in kept) for column in (advantages, new)]
    rounding = call.fill(
        lambda slot: abs(pairs[slot][0] - middles[0]) * sizes[1] + abs(pairs[slot][1] - middles[1]) * sizes[0]
    )
    return out, rounding


def wanted(call: Call, ratio: mpf) -> int:
    return max(int(mp.floor(ratio * len(call.kept()))), 1)


@textbook("clip_cov", of="result")
def clip_cov(call: Call) -> Results:
    clip, d, advantages = Clip.of(call), log_ratios(call), call.column("advantages")
    selected = call.integers("selected")

    def term(slot: int) -> Term:
        ratio, chosen = mp.exp(d[slot]), bool(selected[slot])
        clip.decide(call, ratio)
        loss, plain = clip.loss(ratio, advantages[slot]), -advantages[slot] * ratio
        if chosen:
            return Term(ZERO, ZERO, True, kl=-d[slot])
        return Term(loss, plain if loss == plain else ZERO, kl=-d[slot])

    return total(call, term)


def draws(seed: int) -> Iterator[int]:
    """SplitMix64."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


@textbook("clip_cov_selection", copies="flags")
def clip_cov_selection(call: Call) -> Results:
    seed = int(call.setting("seed", mpf(0)))
    call.config = call.setting("clip", {})
    cov, rounding = covariances(call, call.setting("divisor", "count"))
    lower, upper = call.setting("lower", mpf(1)), call.setting("upper", mpf(5))
    clip, d, advantages = Clip.of(call), log_ratios(call), call.column("advantages")

    def may(slot: int) -> bool:
        ratio = mp.exp(d[slot])
        clip.decide(call, ratio)
        above = call.less(lower, cov[slot], rounding[slot])
        below = call.less(cov[slot], upper, rounding[slot])
        return not clip.held(ratio, advantages[slot]) and above and below

    candidates = [slot for slot in call.kept() if may(slot)]
    missing = min(wanted(call, call.setting("ratio", mpf(2e-4))), len(candidates))
    selected, random = [0] * len(call.mask), draws(seed)
    for index, slot in enumerate(candidates):
        # selection sampling: each with probability missing / left
        if (next(random) * (len(candidates) - index)) >> 64 < missing:
            selected[slot] = 1
            missing -= 1
    return {"selected": selected}


@textbook("kl_cov", of="result")
def kl_cov(call: Call) -> Results:
    cov, rounding = covariances(call, "count")
    kappa, d, advantages = call.setting("kl_coef", mpf(0.1)), log_ratios(call), call.column("advantages")
    # stable: among equals the earlier first
    largest = sorted(call.kept(), key=lambda slot: -cov[slot])
    n = wanted(call, call.setting("ratio", mpf(2e-4)))
    if 0 < n < len(largest):
        last, first = largest[n - 1], largest[n]
        call.less(cov[first], cov[last], max(rounding[first], rounding[last]))
    chosen = set(largest[:n])

    def term(slot: int) -> Term:
        plain = -advantages[slot] * mp.exp(d[slot])
        price = kappa if slot in chosen else ZERO
        loss, slope = plain + price * abs(d[slot]), plain + price * sign(d[slot])
        size, slope_size = abs(plain) + price * abs(d[slot]), abs(plain) + price
        return Term(loss, slope, slot in chosen, kl=abs(d[slot]), size=size, slope_size=slope_size)

    return total(call, term)
