"""Formulas of rlax, DI-engine, TorchRL, AReaL and SkyRL that verl, TRL and OpenRLHF lack. No profile: our defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from cases import BY_NAME, GRIDS, Grid, log_probs, near, normal, rng_for
from frameworks import others
from golden import F32, Case

GAMMAS, LAMBDAS = (1.0, 0.99, 0.9, 0.5, 0.0), (0.95, 1.0, 0.5, 0.0)


def _by_row(
    item: Grid, run: Callable[[int, list[int]], tuple[list[float], ...]], outputs: int = 1
) -> list[list[float]]:
    """Runs each row on its kept tokens only; zeros in dropped slots."""
    flat = [[0.0] * len(item.mask) for _ in range(outputs)]
    for row in range(item.rows):
        slots = [row * item.cols + c for c in range(item.cols) if item.mask[row * item.cols + c]]
        if slots:
            for target, values in zip(flat, run(row, slots)):
                for slot, value in zip(slots, values):
                    target[slot] = value
    return flat


def _data(op: str, item: Grid) -> tuple[list[float], list[float], list[float]]:
    rng = rng_for(f"{op}/{item.name}")
    bootstrap = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
    return normal(rng, item), normal(rng, item), bootstrap


def _case(op: str, name: str, item: Grid, inputs: dict, params: dict, expect: dict, **more: object) -> Case:
    return Case(op, **item.base(), inputs=inputs, params=params, expect=expect, name=name, **more)


def returns(op: str) -> Iterator[Case]:
    """td_lambda, n_step_returns, discounted_returns or gae (without whitening) of rlax."""
    for number, item in enumerate(GRIDS):
        for draw in range(2):
            rewards, values, bootstrap = _data(f"{op}/rlax/{draw}", item)
            gamma, lam = GAMMAS[(number + draw) % 5], LAMBDAS[(number + 2 * draw) % 4]
            params = {"gamma": gamma, "lambda": lam}
            inputs = {"rewards": rewards, "values": values, "bootstrap": bootstrap}
            if op == "n_step_returns":
                params = {"n": (1, 2, 3, 7, 40)[number % 5]} | params
            if op == "discounted_returns":
                params, inputs = {"gamma": gamma}, {"rewards": rewards, "bootstrap": bootstrap}

            def run(row: int, slots: list[int]) -> tuple[list[float], ...]:
                of = lambda x: [x[slot] for slot in slots]
                if op == "discounted_returns":
                    return (others.discounted_returns(of(rewards), bootstrap[row], gamma),)
                settings = (params["n"], gamma, lam) if op == "n_step_returns" else (gamma, lam)
                return (getattr(others, op)(of(rewards), of(values), bootstrap[row], *settings),)

            output = "advantages" if op == "gae" else "returns"
            more = {"whiten": False} if op == "gae" else {}
            yield _case(op, f"{item.name}-{draw}", item, inputs, params | more, {output: _by_row(item, run)[0]})


def retrace() -> Iterator[Case]:
    kinds = ("retrace", "importance", "lambda", "tree-backup")
    for number, item in enumerate(GRIDS):
        for kind in kinds if item.name in ("holes", "cols-17") else (kinds[number % 4],):
            rewards, values, bootstrap = _data("retrace", item)
            rng = rng_for(f"retrace/{item.name}/more")
            old = log_probs(rng, item, 3.0)
            new, action_values = near(rng, item, old, 0.5, 3.0), normal(rng, item)
            gamma, lam = GAMMAS[number % 5], LAMBDAS[number % 4]

            def run(row: int, slots: list[int]) -> tuple[list[float], ...]:
                of = lambda x: [x[slot] for slot in slots]
                ratio = [math.exp(a - b) for a, b in zip(of(new), of(old))]
                c = {
                    "retrace": [lam * min(1.0, x) for x in ratio],
                    "importance": ratio,
                    "lambda": [lam] * len(slots),
                    "tree-backup": [lam * math.exp(x) for x in of(new)],
                }[kind]
                return (others.retrace(of(rewards), of(values), of(action_values), bootstrap[row], gamma, c),)

            inputs = {"rewards": rewards, "values": values, "bootstrap": bootstrap}
            inputs |= {"action_values": action_values, "log_probs": new, "old_log_probs": old}
            params = {"gamma": gamma, "lambda": lam, "coefficient": kind}
            yield _case("retrace", f"{kind}-{item.name}", item, inputs, params, {"returns": _by_row(item, run)[0]})


def vtrace(peer: str) -> Iterator[Case]:
    for number, item in enumerate(GRIDS):
        rewards, values, bootstrap = _data(f"vtrace/{peer}", item)
        rng = rng_for(f"vtrace/{peer}/{item.name}/more")
        old = log_probs(rng, item, 3.0)
        new = near(rng, item, old, 0.5, 3.0)
        params = {"gamma": GAMMAS[number % 5], "rho_bar": (1.0, 2.0, 0.7)[number % 3]}
        params |= {"lambda": LAMBDAS[number % 4]} if peer == "rlax" else {"c_bar": (1.0, 0.6, 1.5)[number % 3]}

        def run(row: int, slots: list[int]) -> tuple[list[float], ...]:
            of = lambda x: [x[slot] for slot in slots]
            if peer == "rlax":
                ratios = [a - b for a, b in zip(of(new), of(old))]
                return others.vtrace(of(rewards), of(values), bootstrap[row], ratios, params)
            return others.vtrace_torchrl(of(rewards), of(values), bootstrap[row], of(new), of(old), params)

        inputs = {"rewards": rewards, "values": values, "bootstrap": bootstrap, "log_probs": new, "old_log_probs": old}
        targets, advantages = _by_row(item, run, 2)
        yield _case("vtrace", item.name, item, inputs, params, {"targets": targets, "advantages": advantages})


def upgo() -> Iterator[Case]:
    for item in GRIDS:
        rewards, values, bootstrap = _data("upgo/ding", item)
        of = lambda x, slots: [x[slot] for slot in slots]
        run = lambda row, slots: (others.upgo_returns(of(rewards, slots), of(values, slots), bootstrap[row]),)
        inputs = {"rewards": rewards, "values": values, "bootstrap": bootstrap}
        yield _case("upgo", item.name, item, inputs, {}, {"returns": _by_row(item, run)[0]})


def _rows(count: int) -> Grid:
    return Grid("rows", count, 1, (1,) * count)


def normalize_scores() -> Iterator[Case]:
    number = 0
    for mean in ("batch", "group", "none"):
        for deviation in ("batch", "group", "none"):
            for leave_one_out in (False, True):
                size = (2, 3, 4, 1)[number % 4]
                number += 1
                rows = 12 if size > 1 else 3
                scores = [round(float(x), 4) for x in rng_for(f"normalize/{number}").normal(0.0, 1.0, rows)]
                params = {"mean": mean, "deviation": deviation, "leave_one_out": leave_one_out}
                params |= {"unbiased": bool(number % 3), "epsilon": 1e-5}
                yield _case(
                    "normalize_scores",
                    f"{mean}-{deviation}-{'others' if leave_one_out else 'all'}-{size}",
                    _rows(rows),
                    {"scores": scores},
                    params,
                    others.normalize_scores(scores, size, params),
                    groups=[row // size for row in range(rows)],
                    dtype="f32",
                )


def m2po_mask() -> Iterator[Case]:
    for item in GRIDS:
        for threshold in (0.04, 0.2, 1e-9):
            rng = rng_for(f"m2po/{item.name}")
            rollout = log_probs(rng, item, -3.0)
            old = near(rng, item, rollout, 0.5, -3.0)
            out = others.m2po_mask(item.tensor(old), item.tensor(rollout), item.mask_tensor(), threshold)
            inputs = {"old_log_probs": old, "rollout_log_probs": rollout}
            yield _case("m2po_mask", f"{item.name}-{threshold}", item, inputs, {"threshold": threshold}, out)


def sequence_veto() -> Iterator[Case]:
    bands = ((1e-4, None), (0.5, None), (1e-4, 1.5), (0.6, 2.0), (0.3, 100.0))
    for number, item in enumerate(GRIDS):
        for lower, upper in (bands[number % 5], bands[(number + 2) % 5]):
            rng = rng_for(f"veto/{item.name}")
            rollout = log_probs(rng, item, -3.0)
            old = near(rng, item, rollout, 0.4, -3.0)
            params = {"lower": lower, "upper": upper}
            out = others.sequence_veto(item.tensor(old), item.tensor(rollout), item.mask_tensor(), params)
            inputs = {"old_log_probs": old, "rollout_log_probs": rollout}
            yield _case("sequence_veto", f"{item.name}-{lower}-{upper}", item, inputs, params, out)


def max_rl() -> Iterator[Case]:
    draws = {
        "binary": ([1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0, 0, 0, 1, 1, 1]),
        "interleaved": ([0.5, 0.25, 1.0, 0.125, 2.0], [4, 9, 4, 9, 4]),
        "alone": ([0.5, -1.0, 3.0], [0, 1, 2]),
        "none-scored": ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]),
    }
    for name, (scores, groups) in draws.items():
        out = others.max_rl(scores, groups)
        yield _case("max_rl", name, _rows(len(scores)), {"scores": scores}, {}, out, groups=groups, dtype="f32", **F32)


def adaptive_kl() -> Iterator[Case]:
    params = {"beta": 0.2, "target": 0.1, "horizon": 50.0, "samples": 64}
    series, values = [0.0, 0.5, 0.1, 0.02, 3.0, 0.11, 0.1, -0.2], []
    controller = others.controller(params)
    for kl in series:
        controller.update(kl, params["samples"])
        values.append(float(controller.value))
    item = Grid("series", 1, len(series), (1,) * len(series))
    yield _case("adaptive_kl", "mixed", item, {"kl": series}, params, {"values": values})


FILES = {
    "advantage/td_lambda.rlax.json": ("rlax", lambda: returns("td_lambda")),
    "advantage/n_step_returns.rlax.json": ("rlax", lambda: returns("n_step_returns")),
    "advantage/discounted_returns.rlax.json": ("rlax", lambda: returns("discounted_returns")),
    "advantage/gae.rlax.json": ("rlax", lambda: returns("gae")),
    "advantage/retrace.rlax.json": ("rlax", retrace),
    "advantage/vtrace.rlax.json": ("rlax", lambda: vtrace("rlax")),
    "advantage/vtrace.torchrl.json": ("torchrl", lambda: vtrace("torchrl")),
    "advantage/upgo.ding.json": ("DI-engine", upgo),
    "advantage/normalize_scores.areal.json": ("areal", normalize_scores),
    "advantage/max_rl.skyrl.json": ("skyrl", max_rl),
    "rollout/m2po_mask.areal.json": ("areal", m2po_mask),
    "rollout/sequence_veto.skyrl.json": ("skyrl", sequence_veto),
    "control/adaptive_kl.skyrl.json": ("skyrl", adaptive_kl),
}
