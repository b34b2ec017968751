"""KL, estimated from one token or summed over the vocabulary."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, sign
from .policy import distributions, flat

K1: dict[str, Any] = {"estimator": "k1"}
K3: dict[str, Any] = {"estimator": "k3"}


def kl_value(call: Call, config: dict[str, Any], d: mpf) -> mpf:
    """The estimate for d = log π − log π_ref."""
    estimator, bounds = config.get("estimator", "k1"), config.get("bounds", "unbounded")
    if estimator == "k3":
        if bounds == "k3-only":
            return call.clamp(k3(call.clamp(-d, -20, 20)), -10, 10)
        return call.clamp(k3(min(-d, mpf(10))), -10, 10) if bounds == "every" else k3(-d)
    value = {"k1": d, "abs": abs(d), "k2": d * d / 2}[estimator]
    return call.clamp(value, -10, 10) if bounds == "every" else value


def k3(u: mpf) -> mpf:
    """e^u − 1 − u."""
    return mp.expm1(u) - u


def kl_slope(call: Call, config: dict[str, Any], d: mpf) -> mpf:
    """The derivative that goes with the estimate; 0 strictly beyond a bound."""
    if config.get("gradient", "own") == "straight-through":
        return d
    estimator, bounds = config.get("estimator", "k1"), config.get("bounds", "unbounded")
    if bounds == "every" or (bounds == "k3-only" and estimator == "k3"):
        if call.less(10, abs(kl_value(call, {"estimator": estimator}, d))):
            return mpf(0)
    return {"k1": mpf(1), "abs": mpf(sign(d)), "k2": d, "k3": -mp.expm1(-d)}[estimator]


def distances(call: Call, first: str = "log_probs", second: str = "ref_log_probs") -> Exact:
    one, other = call.column(first), call.column(second)
    return call.fill(lambda slot: one[slot] - other[slot])


@textbook("kl_estimate", of="result")
def kl_estimate(call: Call) -> Results:
    d = distances(call)
    return {"kl": call.fill(lambda slot: kl_value(call, call.config, d[slot]))}


@textbook("kl_gradient", of="result")
def kl_gradient(call: Call) -> Results:
    d = distances(call)
    return {"grad": call.fill(lambda slot: kl_slope(call, call.config, d[slot]))}


def kl_weights(call: Call) -> Exact:
    kind = call.setting("weight", "token")
    if kind == "score-function":
        return call.fill(lambda slot: mpf(1))
    d = distances(call, "log_probs", "old_log_probs")
    if kind != "sequence":
        return call.fill(lambda slot: mp.exp(d[slot]))
    rows = [call.kept_of(row) for row in range(call.rows)]
    return call.spread([mp.exp(mp.fsum(d[slot] for slot in row) / len(row)) if row else mpf(0) for row in rows])


@textbook("kl_importance_weighted", of="result")
def kl_importance_weighted(call: Call) -> Results:
    weights, d, kl = kl_weights(call), distances(call), call.setting("kl", K3)
    bounded = call.setting("weight", "token") == "token-bounded"

    def product(slot: int) -> mpf:
        made = weights[slot] * kl_value(call, kl, d[slot])
        return call.clamp(made, -10, 10) if bounded else made

    return {"kl": call.fill(product)}


@textbook("kl_importance_weighted_gradient")
def kl_importance_weighted_gradient(call: Call) -> Results:
    """g w k' plus the term through the weight."""
    weights, d, kl = kl_weights(call), distances(call), call.setting("kl", K3)
    grads, kind = call.column("grad_kl"), call.setting("weight", "token")
    values = call.fill(lambda slot: weights[slot] * kl_value(call, kl, d[slot]))
    through = call.fill(lambda slot: grads[slot] * values[slot])
    if kind == "sequence":
        rows = [call.kept_of(row) for row in range(call.rows)]
        through = call.spread([mp.fsum(through[slot] for slot in row) / max(len(row), 1) for row in rows])

    def slope(slot: int) -> mpf:
        if kind == "token-bounded" and call.less(10, abs(values[slot])):
            return mpf(0)
        return grads[slot] * weights[slot] * kl_slope(call, kl, d[slot]) + through[slot]

    made = call.fill(slope)
    call.measure("grad", through)
    return {"grad": made}


def kl_of(p: Exact, q: Exact) -> mpf:
    return mp.fsum(mp.exp(a) * (a - b) for a, b in zip(p, q) if not mp.isinf(a))


@textbook("kl_exact", of="result")
def kl_exact(call: Call) -> Results:
    p, q = distributions(call), distributions(call, "ref_logits")
    # below the rounding of the sums the rows are equal
    call.measure("kl", [call.epsilon])
    return {"kl": call.fill(lambda slot: kl_of(p[slot], q[slot]))}


@textbook("kl_exact_gradient")
def kl_exact_gradient(call: Call) -> Results:
    p, q = distributions(call), distributions(call, "ref_logits")
    grads, temperature = call.column("grad_kl"), call.setting("temperature", 1.0)
    call.measure("grad_logits", [call.epsilon * grads[slot] / temperature for slot in call.kept()])

    def row(slot: int) -> Exact:
        kl = kl_of(p[slot], q[slot])
        pairs = zip(p[slot], q[slot])
        return [mpf(0) if mp.isinf(a) else grads[slot] * mp.exp(a) * (a - b - kl) / temperature for a, b in pairs]

    return {"grad_logits": flat(call, call.fill(row, None))}
