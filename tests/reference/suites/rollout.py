"""Stages 5 and 6: the correction of the mismatch between sampler and trainer, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from cases import BY_NAME, FEW, GRIDS, SINGLE, Grid, grid, log_probs, near, rng_for
from frameworks import verl_rollout as verl
from golden import F32, Case

EMPTY = Grid("empty", 2, 3, (0,) * 6)
FAR = grid("far", 3, 4)
FAR_RATIOS = (25.0, -25.0, 0.3, -0.25, 8.0, 9.0, 7.0, -0.5, -12.0, -9.0, 0.04, 21.0)


def _draw(op: str, item: Grid, scale: float) -> tuple[list[float], list[float]]:
    rng = rng_for(f"{op}/{item.name}/{scale}")
    rollout = log_probs(rng, item)
    return near(rng, item, rollout, scale, -1e6), rollout


def _far() -> tuple[list[float], list[float]]:
    return [-30.0 + x for x in FAR_RATIOS], [-30.0] * len(FAR_RATIOS)


def _case(
    op: str,
    name: str,
    item: Grid,
    data: tuple[list[float], list[float]],
    params: dict,
    run: Callable,
    dtype: str = "f64",
) -> Case:
    """A rejected call becomes an expected error. No value may be on a bound: small changes must not switch a branch."""
    old, rollout = data
    inputs = {"old_log_probs": old, "rollout_log_probs": rollout}
    case = Case(
        op, **item.base(), inputs=inputs, params=params, name=f"{name}-{dtype}", profile=verl.PROFILE, dtype=dtype
    )
    call = lambda x, dtype: run(item.tensor(x, dtype), item.tensor(rollout, dtype), item.mask_tensor(dtype), params)
    try:
        case.expect = call(old, dtype)
    except (ValueError, AssertionError) as error:
        case.error = str(error)
        return case
    metrics = case.expect.pop("metrics", None)
    if params and metrics:
        case.logged = metrics
    for key in ("weights", "mask"):
        for move in (1e-5, -1e-5):
            if key in case.expect:
                a, b = (call([y + m for y in old], "f64")[key] for m in (move, 0.0))
                assert bool(((a - b).abs() <= 1e-2 * torch.maximum(a, b)).all()), (op, name)
    return case


def rollout_is() -> Iterator[Case]:
    """Redraws until a weight is left: without any, verl divides by zero in its effective sample size."""
    bounds = ((None, 2.0), (None, 1.1), (0.5, 5.0), (0.92, 1.1))

    def case(item: Grid, number: int, level: str, normalize: bool, data=None, dtype: str = "f64") -> Case:
        lower, upper = bounds[number % 4]
        params = {"level": level, "lower": lower, "upper": upper, "batch_normalize": normalize}
        name = f"{level}-{'tis' if lower is None else 'icepop'}-{item.name}"
        for attempt in range(20):
            drawn = data or _draw(f"rollout_is/{attempt}", item, (0.1, 0.5)[number // 4 % 2])
            try:
                return _case("rollout_is", name, item, drawn, params, verl.rollout_is, dtype)
            except ZeroDivisionError:
                continue
        raise AssertionError(name)

    for number, item in enumerate(GRIDS):
        yield case(item, number, "token", number % 3 == 0)
        yield case(item, number + 1, "sequence", number % 3 == 1)
    for number, level in enumerate(("token", "sequence")):
        for bound in range(4):
            yield case(FAR, bound, level, bool((bound + number) % 2), _far())
        for item in SINGLE:
            yield case(item, number + 1, level, True, None, "f32")
        yield case(EMPTY, number, level, False, ([-1.0] * 6, [-1.2] * 6))
    for spec in (1.5, "2", " 1.2 ", "0.5_5.0", "0.92_1.1", "much", "2_", "_2", "3_2", "-1_2", ""):
        params, data = {"level": "token", "threshold": spec}, _draw("rollout_is/spelled", FEW[1], 0.06)
        yield _case("rollout_is", f"spelled-{spec}", FEW[1], data, params, verl.rollout_is)
    refused = (("negative", None, -1.0), ("zero", None, 0.0), ("negative-lower", -0.5, 2.0), ("crossed", 3.0, 2.0))
    for name, lower, upper in refused:
        params = {"level": "token", "lower": lower, "upper": upper, "batch_normalize": False}
        case_ = _case("rollout_is", name, FEW[1], _draw("rollout_is", FEW[1], 0.1), params, verl.rollout_is)
        assert case_.error, name
        yield case_


def logged(cases: Iterator[Case]) -> Iterator[Case]:
    """The metrics of the same calls. verl computes some in float32, so they are compared with that tolerance."""
    for case in cases:
        if case.dtype == "f64" and hasattr(case, "logged"):
            case.expect, case.name = case.logged, f"metrics-{case.name}"
            case.rtol, case.atol = F32["rtol"], F32["atol"]
            yield case


TIGHT = {
    "token_k1": "0.9_1.12",
    "token_k2": "0.01",
    "token_k3": "0.02",
    "seq_sum_k1": "0.9_1.15",
    "seq_sum_k2": "0.03",
    "seq_sum_k3": "0.03",
    "seq_mean_k1": "0.95_1.02",
    "seq_mean_k2": "0.012",
    "seq_mean_k3": "0.011",
    "seq_max_k2": "0.03",
    "seq_max_k3": "0.02",
}
COMBINED = (
    ("token_k1,seq_mean_k3,seq_max_k2", "0.9_1.12,0.02,0.05"),
    ("token_k2,token_k3", "0.02"),
    ("seq_sum_k1, seq_mean_k1", "0.5_2.0, 0.9_1.1"),
    ("token_k1,seq_max_k3", "1.25, 0.03"),
    ("token_k2,token_k2,seq_sum_k2", "0.01,0.2"),
    ("seq_mean_k1,seq_sum_k1", "1.2"),
)
REFUSED = (
    ("token_k4", "1.0"),
    ("token_k2", "0.5_2.0"),
    ("token_k1,token_k2,token_k3", "1.1,0.5"),
    ("token_k2", "-0.5"),
    ("token_k1", "1.5_0.5"),
    ("token_k1", "0.0_2.0"),
    ("", "1.0"),
    ("token_k2", "much"),
)


def rollout_rejection() -> Iterator[Case]:
    def case(name: str, item: Grid, options: str, thresholds: str, scale: float, dtype: str = "f64") -> Case:
        params = {"options": options, "thresholds": thresholds}
        data = _far() if item is FAR else _draw("rollout_rejection", item, scale)
        return _case("rollout_rejection", name, item, data, params, verl.rollout_rejection, dtype)

    grids = [item for item in GRIDS if item.rows > 1]
    for number, (option, spec) in enumerate(TIGHT.items()):
        for item in (grids[number % len(grids)], BY_NAME["empty-rows"], BY_NAME["rows-5"]):
            yield case(f"{option}-{item.name}", item, option, spec, 0.15)
    for number, (options, spec) in enumerate(COMBINED):
        yield case(f"combined-{number}", BY_NAME["rows-5"], options, spec, 0.15)
        yield case(f"combined-{number}", FEW[number], options, spec, 0.1)
    for number, option in enumerate(("token_k1", "seq_sum_k1", "seq_mean_k1")):
        item = SINGLE[number % 3]
        yield case(f"one-bound-{option}", item, option, ("1.15", "1.3", "1.02")[number], 0.15)
        yield case(f"lopsided-{option}", item, option, "0.99_1.5", 0.15)
        yield case(f"{option}", item, option, TIGHT[option], 0.15, "f32")
    for option, spec in (
        ("token_k1", "1e-9_1e9"),
        ("token_k2", "150"),
        ("seq_sum_k1", "0.01_1e20"),
        ("seq_max_k3", "1e9"),
    ):
        yield case(f"far-{option}", FAR, option, spec, 0.0)
    for number, (options, spec) in enumerate(REFUSED):
        case_ = case(f"refused-{number}", FEW[1], options, spec, 0.15)
        assert case_.error, (options, spec)
        yield case_
    yield case("empty-mask", EMPTY, "token_k1", "0.5_2.0", 0.15)


def rollout_metrics() -> Iterator[Case]:
    """Tokens beyond ±20 enter the χ² clamped and k3 not."""
    run = lambda old, rollout, mask, _params: verl.rollout_metrics(old, rollout, mask)
    for number, item in enumerate(GRIDS):
        data = _draw("rollout_metrics", item, (0.1, 0.5, 1.5)[number % 3])
        yield _case("rollout_metrics", item.name, item, data, {}, run)
    for item in SINGLE:
        yield _case("rollout_metrics", item.name, item, _draw("rollout_metrics", item, 0.1), {}, run, "f32")
    yield _case("rollout_metrics", "far", FAR, _far(), {}, run)
    same = log_probs(rng_for("rollout_metrics/same"), BY_NAME["rows-5"])
    yield _case("rollout_metrics", "same", BY_NAME["rows-5"], (same, same), {}, run)
    yield _case("rollout_metrics", "empty-mask", EMPTY, ([-1.0] * 6, [-1.2] * 6), {}, run)


FILES = {
    "loss/rollout_is.verl.json": ("verl", rollout_is),
    "loss/rollout_rejection.verl.json": ("verl", rollout_rejection),
    "metric/rollout_is.verl.json": ("verl", lambda: logged(rollout_is())),
    "metric/rollout_rejection.verl.json": ("verl", lambda: logged(rollout_rejection())),
    "metric/rollout_metrics.verl.json": ("verl", rollout_metrics),
}
