"""Losses towards a teacher or a reference by the sampled token alone, and verl's bypass mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Results, magnitude
from .divergence import K3, kl_slope, kl_value
from .loss import ONE, ZERO, inner, log_ratios, omegas, run_inner


def extremes(call: Call, value: Callable[[int], Any]) -> tuple[mpf, mpf]:
    """The smallest and the largest; 0 if there are none."""
    values = [value(slot) for slot in call.kept()]
    return min(values, default=ZERO), max(values, default=ZERO)


@textbook("kl_loss", of="result")
def kl_loss(call: Call) -> Results:
    kl = {**K3, **call.setting("kl", {})}
    beta = call.setting("coefficient", mpf(1e-3))
    new, ref = call.column("log_probs"), call.column("ref_log_probs")
    d = call.fill(lambda slot: new[slot] - ref[slot])
    values = call.fill(lambda slot: kl_value(call, kl, d[slot]))
    aggregated, weights = call.aggregate(values, name="aggregated")
    call.scale["loss"] = abs(beta) * call.scale["aggregated"]
    return {
        "loss": [beta * aggregated],
        "aggregated": [aggregated],
        "mean": [call.mean("mean", lambda slot: values[slot], "count")],
        "grad": call.fill(lambda slot: beta * weights[slot] * kl_slope(call, kl, d[slot])),
    }


@textbook("opd_loss", of="result")
def opd_loss(call: Call) -> Results:
    kl, most = call.setting("kl", {}), call.setting("max_loss", mpf(10))
    new, old, teacher = (call.column(name) for name in ("log_probs", "old_log_probs", "teacher_log_probs"))
    route, coefficient = call.setting("route", "clipped"), call.setting("coefficient", ONE)
    bound = call.setting("log_ratio_bound", mpf(20))
    estimates = call.fill(lambda slot: kl_value(call, kl, new[slot] - teacher[slot]))
    held = [x if most is None else max(-most, min(most, x)) for x in estimates]
    if route == "supervised":
        omega = omegas(call)
        loss, weights = call.aggregate(call.fill(lambda slot: held[slot] * omega[slot]))

        def slope(slot: int) -> mpf:
            if most is not None and call.less(most, abs(estimates[slot])):
                return ZERO
            return weights[slot] * omega[slot] * kl_slope(call, kl, new[slot] - teacher[slot])

        made: Results = {"loss": [loss], "grad": call.fill(slope)}
    else:
        name = {"clipped": "ppo_clip"}.get(route, route)
        columns = {"advantages": call.fill(lambda slot: -held[slot])}
        shared = ("clip_low", "clip_high", "dual_clip", "log_ratio_bound", "divisor", "aggregate")
        config = {key: call.config[key] for key in shared if key in call.config}
        made = run_inner(call, inner(call, name, columns=columns, config={"log_ratio_bound": 20.0, **config}))
    for name in ("loss", "grad"):
        made[name] = [coefficient * x for x in made[name]]
        if name in call.scale:
            call.scale[name] *= abs(coefficient)
    reported = bound if route in ("clipped", "surrogate") and bound is not None else mp.inf
    kl_of = lambda slot: max(-reported, min(reported, old[slot] - new[slot]))
    clipped = route == "clipped"
    smallest, largest = extremes(call, lambda slot: estimates[slot])
    return {
        "loss": made["loss"],
        "grad": made["grad"],
        "clip_fraction": made["clip_fraction"] if clipped else [ZERO],
        "clip_fraction_lower": made["clip_fraction_lower"] if clipped else [ZERO],
        "kl": [call.mean("kl", kl_of)],
        "abs_loss": [call.mean("abs_loss", lambda slot: abs(estimates[slot]), "count")],
        "loss_min": [smallest],
        "loss_max": [largest],
    }


@textbook("ref_kl", of="result")
def ref_kl(call: Call) -> Results:
    fall, drift = call.setting("fall", mpf(0.2)), call.setting("drift", mpf(1e-3))
    new, old, ref = (call.column(name) for name in ("log_probs", "old_log_probs", "ref_log_probs"))
    d, omega, kept = log_ratios(call), omegas(call), call.kept()
    fallen = {}
    for slot in kept:
        p, q = mp.exp(new[slot]), mp.exp(old[slot])
        fallen[slot] = call.less(fall, q - p, max(p, q))
    gains = call.fill(lambda slot: ZERO if fallen[slot] else mp.exp(d[slot]) * (ref[slot] - new[slot]))
    penalties = call.fill(lambda slot: drift * d[slot] ** 2)
    loss, weights = call.aggregate(call.fill(lambda slot: (penalties[slot] - gains[slot]) * omega[slot]))
    factors = call.fill(lambda slot: abs(weights[slot] * omega[slot]))
    call.measure("loss", [mp.fsum(factors[slot] * (penalties[slot] + abs(gains[slot])) for slot in kept)])
    call.measure("grad", [factors[slot] * max(abs(2 * drift * d[slot]), abs(gains[slot])) for slot in kept])

    def mean_of(name: str, slots: list[int], value: Callable[[int], mpf]) -> list[mpf]:
        return [call.total(name, [value(slot) / len(slots) for slot in slots])]

    mismatch = lambda slot: mp.expm1(d[slot]) - d[slot]
    return {
        "loss": [loss],
        "grad": call.fill(lambda slot: weights[slot] * omega[slot] * (2 * drift * d[slot] - gains[slot])),
        "ref_kl": mean_of("ref_kl", kept, lambda slot: ref[slot] - new[slot]),
        "fallen": mean_of("fallen", kept, lambda slot: mpf(fallen[slot])),
        "mismatch_fallen": mean_of("mismatch_fallen", [slot for slot in kept if fallen[slot]], mismatch),
        "mismatch_kept": mean_of("mismatch_kept", [slot for slot in kept if not fallen[slot]], mismatch),
    }


@textbook("iw_opd", of="result")
def iw_opd(call: Call) -> Results:
    """Early tokens have more weight."""
    gamma, epsilon = call.setting("gamma", mpf(0.5)), call.setting("epsilon", mpf(1e-8))
    new, old, teacher = (call.column(name) for name in ("log_probs", "old_log_probs", "teacher_log_probs"))
    a = call.fill(lambda slot: teacher[slot] - old[slot])
    factors = [ZERO] * len(call.mask)
    for row in range(call.rows):
        kept = call.kept_of(row)
        whole, before = max(magnitude(a[slot] for slot in kept), epsilon), ZERO
        for slot in kept:
            factors[slot] = 1 + gamma * (1 - before / whole)
            before += abs(a[slot])
    weighed = call.fill(lambda slot: factors[slot] * a[slot])
    loss, weights = call.aggregate(call.fill(lambda slot: -new[slot] * weighed[slot]))
    smallest, largest = extremes(call, lambda slot: factors[slot])
    means = {
        "mean_advantage": lambda slot: weighed[slot],
        "mean_abs_advantage": lambda slot: abs(a[slot]),
        "mean_weight": lambda slot: factors[slot],
    }
    return {
        "loss": [loss],
        "grad": call.fill(lambda slot: -weights[slot] * weighed[slot]),
        **{name: [call.mean(name, value, "count")] for name, value in means.items()},
        "min_weight": [smallest],
        "max_weight": [largest],
    }


@textbook("bypass_loss", of="result")
def bypass_loss(call: Call) -> Results:
    pair = {"old_log_probs": call.column("log_probs"), "rollout_log_probs": call.column("old_log_probs")}
    weights, rejection = call.setting("weights", None), call.setting("rejection", {})
    divisor = {"divisor": call.setting("divisor", "count")}

    def of_pair(name: str, config: dict[str, Any]) -> Results:
        made = inner(call, name, columns=pair, config=config)
        out = run_inner(call, made)
        call.scale |= {f"metrics.{key}": call.scale.pop(key) for key in made.scale}
        return out

    metrics = of_pair("rollout_mismatch", divisor)
    omega = call.fill(lambda slot: ONE)
    if weights is not None:
        omega = of_pair("rollout_weights", weights)["weights"]
        metrics |= of_pair("rollout_weight_metrics", weights)
    keep = call.mask
    if rejection.get("criteria"):
        metrics |= of_pair("rollout_rejection_metrics", rejection)
        keep = [bool(flag) for flag in of_pair("rollout_rejection", rejection)["keep"]]
    policy: Results = {name: [ZERO] for name in ("loss", "clip_fraction", "clip_fraction_lower", "kl")}
    policy["grad"] = [ZERO] * len(call.mask)
    if any(keep):
        form = {"ppo-clip": "ppo_clip"}.get(call.setting("form", "ppo-clip"), "reinforce")
        made = inner(call, form, columns={}, config=call.setting("policy", {}), mask=keep)
        if form == "reinforce":
            made.inputs["weights"] = made._columns["weights"] = omega
        policy = run_inner(call, made)
    return {
        **policy,
        "weights": omega,
        "keep": [int(flag) for flag in keep],
        **{f"metrics.{key}": value for key, value in metrics.items()},
    }
