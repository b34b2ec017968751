"""Smaller formulas: row statistics, score penalties, importance-weighted KL, the adaptive KL coefficient."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import BY_NAME, GRIDS, SINGLE, Grid, grid, log_probs, near, normal, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_filters
from golden import Case


def rows(op: str, ops) -> Iterator[Case]:
    """OpenRLHF's mean of an empty row is NaN; ours is 0."""
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        if ops is openrlhf_ops and item.name == "empty-rows" and op == "row_means":
            continue
        x = normal(rng_for(f"rows/{item.name}"), item)
        yield Case(
            op,
            **item.base(),
            inputs={"x": x},
            expect=getattr(ops, op)(item.tensor(x, dtype), item.mask_tensor(dtype)),
            name=f"{item.name}-{dtype}",
            profile=ops.PROFILE,
            dtype=dtype,
            atol=1e-5 if dtype == "f32" else None,
        )


def quantile() -> Iterator[Case]:
    for item in GRIDS:
        x = normal(rng_for(f"quantile/{item.name}"), item)
        kept = item.tensor(x)[item.mask_tensor().bool()]
        for level in (0.0, 0.1, 0.5, 0.77, 1.0):
            yield Case(
                "quantile",
                **item.base(),
                inputs={"x": x},
                params={"level": level},
                expect={"value": torch.quantile(kept, level)},
                name=f"{item.name}-{level}",
            )


def stop_properly_penalty() -> Iterator[Case]:
    for coefficient in (0.0, 0.25, 1.0, -0.5, 1.5):
        for count in (1, 4, 7):
            rng = rng_for(f"stop/{count}")
            scores = [round(float(x), 4) for x in rng.normal(0.0, 1.0, count)]
            truncated = [int(x) for x in rng.integers(0, 2, count)]
            case = Case(
                "stop_properly_penalty",
                rows=count,
                cols=1,
                mask=[1] * count,
                inputs={"scores": scores, "truncated": truncated},
                params={"coefficient": coefficient},
                name=f"{coefficient}-{count}",
                profile=openrlhf_ops.PROFILE,
            )
            try:
                case.expect = openrlhf_ops.stop_properly_penalty(scores, truncated, coefficient)
            except AssertionError as error:
                case.error = str(error)
            yield case


def clipped_rewards() -> Iterator[Case]:
    """No row without a kept token: OpenRLHF would place its score on the last column."""
    for number, item in enumerate(item for item in GRIDS if item.name != "empty-rows"):
        rng = rng_for(f"clipped_rewards/{item.name}")
        scores = [round(float(x), 4) for x in rng.normal(0.0, 8.0, item.rows)]
        kl = normal(rng, item, 0.3, 100.0)
        beta, low, high = ((0.01, -10.0, 10.0), (0.5, -1.0, 2.0), (-0.5, -10.0, 10.0))[number % 3]
        yield Case(
            "clipped_rewards",
            **item.base(),
            inputs={"scores": scores, "kl": kl},
            params={"beta": beta, "low": low, "high": high},
            expect=openrlhf_ops.clipped_rewards(scores, item.tensor(kl), item.mask_tensor(), beta, (low, high)),
            name=f"{item.name}-{beta}",
            profile=openrlhf_ops.PROFILE,
        )


def kl_importance_weighted() -> Iterator[Case]:
    """TRL's `use_bias_correction_kl`, on by default there."""
    for number, item in enumerate(GRIDS):
        for level in ("token", "sequence"):
            rng = rng_for(f"kl_weighted/{item.name}")
            new = log_probs(rng, item, 5.0)
            old, ref = near(rng, item, new, 0.4, 5.0), near(rng, item, new, 0.6, -5.0)
            tensors = [item.tensor(x) for x in (new, ref, old)]
            yield Case(
                "kl_importance_weighted",
                **item.base(),
                inputs={"log_probs": new, "ref_log_probs": ref, "old_log_probs": old},
                params={"level": level},
                expect=trl_ops.kl_importance_weighted(*tensors, item.mask_tensor(), level),
                name=f"{level}-{item.name}",
                profile=trl_ops.PROFILE,
            )


SERIES = {
    "around": [0.1, 0.105, 0.09, 0.119, 0.081, 0.12, 0.08],
    "far-above": [5.0] * 6,
    "far-below": [0.0, 1e-9, -0.3, -5.0],
    "one": [0.07],
    "mixed": [0.0, 0.5, 0.1, 0.02, 3.0, 0.11, 0.1, -0.2],
}
SETTINGS = (
    {"beta": 0.001, "target": 0.1, "horizon": 10000.0, "samples": 1024},
    {"beta": 0.2, "target": 0.1, "horizon": 50.0, "samples": 64},
    {"beta": 1.5, "target": 6.0, "horizon": 128.0, "samples": 7},
    {"beta": 0.0, "target": 0.1, "horizon": 10.0, "samples": 10},
)


def adaptive_kl(ops) -> Iterator[Case]:
    """The coefficient after each measured KL of a series."""
    for name, series in SERIES.items():
        for number, params in enumerate(SETTINGS):
            controller, values = ops.controller(params), []
            for kl in series:
                controller.update(kl, params["samples"])
                values.append(float(controller.value))
            yield Case(
                "adaptive_kl",
                rows=1,
                cols=len(series),
                mask=[1] * len(series),
                inputs={"kl": series},
                params=params,
                expect={"values": values},
                name=f"{name}-{number}",
                profile=ops.PROFILE,
            )


FILES = {
    "metric/row_sums.verl.json": ("verl", lambda: rows("row_sums", verl_filters)),
    "metric/row_means.verl.json": ("verl", lambda: rows("row_means", verl_filters)),
    "metric/row_means.openrlhf.json": ("openrlhf", lambda: rows("row_means", openrlhf_ops)),
    "metric/row_normalize.openrlhf.json": ("openrlhf", lambda: rows("row_normalize", openrlhf_ops)),
    "metric/quantile.torch.json": ("torch", quantile),
    "reward/stop_properly_penalty.openrlhf.json": ("openrlhf", stop_properly_penalty),
    "reward/clipped_rewards.openrlhf.json": ("openrlhf", clipped_rewards),
    "divergence/kl_importance_weighted.trl.json": ("trl", kl_importance_weighted),
    "control/adaptive_kl.verl.json": ("verl", lambda: adaptive_kl(verl_filters)),
    "control/adaptive_kl.openrlhf.json": ("openrlhf", lambda: adaptive_kl(openrlhf_ops)),
}
