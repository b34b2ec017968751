"""The clipped losses, their aggregation, and what all losses of single tokens share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpmath import mp, mpf

from . import TEXTBOOK, textbook
from .call import Call, Exact, Results

ZERO, ONE = mpf(0), mpf(1)


@dataclass
class Term:
    """The result of a formula for one token."""

    loss: mpf
    #: The derivative of the loss with respect to the log-probability.
    slope: mpf
    #: Counts in `clip_fraction`.
    held: bool = False
    #: Counts in `clip_fraction_lower`.
    held_below: bool = False
    #: The term of the mean `kl`.
    kl: mpf = ZERO
    #: The magnitudes of what the loss and the slope are differences of.
    size: mpf = ZERO
    slope_size: mpf = ZERO


def usual_aggregate(call: Call, usual: dict[str, Any]) -> None:
    """Fills in the entries of the aggregation that differ from the default of an aggregation alone."""
    call.config = {**call.config, "aggregate": {**usual, **call.config.get("aggregate", {})}}


def inner(call: Call, name: str, *, columns: dict[str, Exact], config: Any, mask: list[bool] | None = None) -> Call:
    """A call of another formula with some inputs replaced, which tells `call` if a comparison was too close."""
    mask = call.mask if mask is None else mask
    inputs = {**call.inputs, **columns}
    made = Call(name, inputs, rows=call.rows, mask=mask, groups=call.groups, config=config, dtype=call.dtype)
    made._columns = {**call._columns, **columns}
    return made


def run_inner(call: Call, made: Call) -> Results:
    out = TEXTBOOK[made.name].exact(made)
    call.close |= made.close
    for name, scale in made.scale.items():
        call.scale[name] = max(call.scale.get(name, ZERO), scale)
    return out


def omegas(call: Call) -> Exact:
    """The rollout weights."""
    given = call.optional("weights")
    return [ONE] * len(call.mask) if given is None else given


def log_ratios(call: Call) -> Exact:
    """log π − log π_old at the kept slots."""
    new, old = call.column("log_probs"), call.column("old_log_probs")
    return call.fill(lambda slot: new[slot] - old[slot])


def bounded(d: mpf, bound: mpf | None) -> mpf:
    return d if bound is None else max(-bound, min(bound, d))


def beyond(call: Call, d: mpf, bound: mpf | None) -> bool:
    return bound is not None and call.less(bound, abs(d))


def total(call: Call, term: Callable[[int], Term]) -> Results:
    """The terms weighted by the rollout weights, aggregated, and their metrics."""
    omega = omegas(call)
    terms = {slot: term(slot) for slot in call.kept()}
    loss, weights = call.aggregate(call.fill(lambda slot: terms[slot].loss * omega[slot]))
    factors = call.fill(lambda slot: abs(weights[slot] * omega[slot]))
    sizes = [factors[slot] * max(term.size, abs(term.loss)) for slot, term in terms.items()]
    call.measure("loss", [mp.fsum(sizes)])
    call.measure("grad", [factors[slot] * term.slope_size for slot, term in terms.items()])
    return {
        "loss": [loss],
        "grad": call.fill(lambda slot: weights[slot] * omega[slot] * terms[slot].slope),
        "clip_fraction": [call.mean("clip_fraction", lambda slot: mpf(terms[slot].held))],
        "clip_fraction_lower": [call.mean("clip_fraction_lower", lambda slot: mpf(terms[slot].held_below))],
        "kl": [call.mean("kl", lambda slot: terms[slot].kl)],
    }


def only(results: Results, *names: str) -> Results:
    return {name: results[name] for name in names}


@textbook("aggregate", of="result")
def aggregate(call: Call) -> Results:
    loss, weights = call.aggregate(call.column("losses"), None)
    return {"loss": [loss], "weights": weights}


@textbook("group_tokens", copies="counts")
def group_tokens(call: Call) -> Results:
    ids = call.ids()
    tokens = [0] * len(set(ids))
    for row, group in enumerate(ids):
        tokens[group] += len(call.kept_of(row))
    return {"tokens": tokens}


@textbook("entropy_bonus", of="result")
def entropy_bonus(call: Call) -> Results:
    c = call.setting("coefficient", mpf(0.01))
    entropy = call.column("entropy")
    loss, weights = call.aggregate(call.fill(lambda slot: -c * entropy[slot]))
    return {"loss": [loss], "grad": [-c * weight for weight in weights]}


@textbook("surrogate", of="result")
def surrogate(call: Call) -> Results:
    bound = call.setting("log_ratio_bound", None)
    d, advantages = log_ratios(call), call.column("advantages")

    def term(slot: int) -> Term:
        loss = -advantages[slot] * mp.exp(bounded(d[slot], bound))
        return Term(loss, ZERO if beyond(call, d[slot], bound) else loss)

    return only(total(call, term), "loss", "grad")


@dataclass
class Clip:
    """The two clips of the surrogate."""

    low: mpf
    high: mpf
    #: Of the loss of a negative advantage, in units of its magnitude.
    negative_only: mpf | None
    #: Of the ratio that is not clipped, for both signs.
    both_signs: mpf | None

    @classmethod
    def of(cls, call: Call) -> Clip:
        dual = call.setting("dual_clip", "off")
        dual = dual if isinstance(dual, dict) else {}
        bounds = [mpf(dual[name]) if name in dual else None for name in ("negative_only", "both_signs")]
        low, high = call.setting("clip_low", mpf(0.2)), call.setting("clip_high", mpf(0.2))
        return cls(1 - low, 1 + high, *bounds)

    def free(self, ratio: mpf) -> mpf:
        """The ratio after a bound on both signs."""
        return ratio if self.both_signs is None else min(ratio, self.both_signs)

    def loss(self, ratio: mpf, advantage: mpf) -> mpf:
        inside = max(self.low, min(self.high, ratio))
        loss = max(-advantage * self.free(ratio), -advantage * inside)
        if self.negative_only is not None and advantage < 0:
            loss = min(loss, -advantage * self.negative_only)
        return loss

    def decide(self, call: Call, ratio: mpf) -> None:
        """Notes whether rounding may put the ratio on the other side of a bound."""
        for bound in (self.low, self.high, self.negative_only, self.both_signs):
            if bound is not None:
                call.less(ratio, bound)

    def held(self, ratio: mpf, advantage: mpf) -> bool:
        free = self.free(ratio)
        return bool((advantage < 0 and free < self.low) or (advantage > 0 and free > self.high))

    def held_below(self, ratio: mpf, advantage: mpf) -> bool:
        """Held by the second clip."""
        if self.both_signs is not None:
            return bool(ratio > self.both_signs)
        return bool(self.negative_only is not None and advantage < 0 and ratio > self.negative_only)


@textbook("ppo_clip", of="result")
def ppo_clip(call: Call) -> Results:
    clip, bound = Clip.of(call), call.setting("log_ratio_bound", mpf(20))
    d, advantages = log_ratios(call), call.column("advantages")
    kl_bound = bound if call.setting("reported_kl", "bounded") == "bounded" else None

    def term(slot: int) -> Term:
        ratio, a = mp.exp(bounded(d[slot], bound)), advantages[slot]
        clip.decide(call, ratio)
        loss, plain = clip.loss(ratio, a), -a * ratio
        # the loss depends on the ratio exactly where it still is −ρA
        slope = plain if loss == plain and not beyond(call, d[slot], bound) else ZERO
        return Term(loss, slope, clip.held(ratio, a), clip.held_below(ratio, a), -bounded(d[slot], kl_bound))

    return total(call, term)


@textbook("value_loss", of="result")
def value_loss(call: Call) -> Results:
    clip = call.setting("clip", mpf(0.5))
    factor = mpf(0.5) if call.setting("factor", "half") == "half" else ONE
    predictions, values, targets = (call.column(name) for name in ("predictions", "values", "returns"))
    held: dict[int, bool] = {}
    sizes: dict[int, mpf] = {}

    def loss(slot: int) -> mpf:
        v, old, target = predictions[slot], values[slot], targets[slot]
        inside = v if clip is None else max(old - clip, min(old + clip, v))
        errors = abs(v - target), abs(inside - target)
        size = None if inside == v else max(abs(old), abs(target), clip)
        held[slot] = call.less(errors[0], errors[1], size)
        # a bound of the clip is rounded like the value
        sizes[slot] = factor * max(errors) * (max(errors) + (size or ZERO))
        return factor * max(errors) ** 2

    total_loss, weights = call.aggregate(call.fill(loss))
    call.measure("loss", [mp.fsum(abs(weights[slot]) * size for slot, size in sizes.items())])

    def slope(slot: int) -> mpf:
        return ZERO if held[slot] else weights[slot] * 2 * factor * (predictions[slot] - targets[slot])

    fraction = call.mean("clip_fraction", lambda slot: mpf(held[slot]))
    return {"loss": [total_loss], "grad": call.fill(slope), "clip_fraction": [fraction]}
