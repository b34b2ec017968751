"""Stage 5, loss: aggregation, clipped policy loss, value loss, entropy bonus."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from cases import BY_NAME, FEW, GRIDS, SINGLE, Grid, grid, log_probs, near, normal, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_ops
from golden import Case
from suites.advantage import GROUPS

MODES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
CLIPS = ((0.2, 0.2), (0.2, 0.28), (0.1, 0.3))
# log-ratios on and beyond the clamp at ±20, each with advantages of both signs, and a zero advantage
FAR = (25.0, 25.0, -25.0, -25.0, 20.5, -20.5, 19.5, -19.5, 21.0, 1.2, 1.2, -1.0, 0.0, 0.3, 0.05, 5.0)
FAR_ADVANTAGES = (1.0, -1.0, 1.0, -1.0, -0.5, -0.5, 0.7, -0.7, 0.3, -1.5, 1.5, -1.0, 1.0, 0.0, -0.4, -2.0)
EDGE = grid("far", 1, len(FAR))
EMPTY = Grid("empty", 2, 3, (0,) * 6)
# one micro-batch of a larger step
TOTALS = {"global_tokens": 37, "global_sequences": 12, "ranks": 4}


def aggregate(ops, modes: tuple[str, ...]) -> Iterator[Case]:
    def case(item: Grid, mode: str, dtype: str, note: str = "", **extra: float) -> Case:
        losses = normal(rng_for(f"aggregate/{item.name}"), item)
        out = ops.aggregate(item.tensor(losses, dtype), item.mask_tensor(dtype), mode, **extra)
        return Case(
            "aggregate",
            **item.base(),
            inputs={"losses": losses},
            params={"mode": mode} | extra,
            expect=out,
            name=f"{mode}-{item.name}-{dtype}{note}",
            profile=ops.PROFILE,
            dtype=dtype,
        )

    for number, item in enumerate(GRIDS):
        for mode in modes if item in FEW[:5] else (modes[number % len(modes)],):
            yield case(item, mode, "f64")
    for mode in modes:
        yield case(BY_NAME["empty-rows"], mode, "f32")
        if mode == "seq-mean-token-sum-norm":
            yield case(BY_NAME["padded"], mode, "f64", "-8", scale_factor=8)
            yield case(BY_NAME["empty-rows"], mode, "f64", "-1024", scale_factor=1024)
            if ops is verl_ops:
                yield case(BY_NAME["padded"], mode, "f64", "-8-global", scale_factor=8, **TOTALS)
        for item in (BY_NAME["padded"], BY_NAME["empty-rows"], BY_NAME["cols-17"], EMPTY) if ops is verl_ops else ():
            yield case(item, mode, "f64", "-global", **TOTALS)
        if ops is verl_ops:
            yield case(BY_NAME["holes"], mode, "f32", "-global", **TOTALS)


def prompt_mean() -> Iterator[Case]:
    """The mean over prompts of their token means; a prompt without kept tokens counts as 0."""
    more = (
        ("half-empty", BY_NAME["empty-rows"], [0, 1, 0, 1]),
        ("six", grid("six", 6, 4, "right"), [2, 0, 1, 2, 2, 0]),
    )
    for name, item, groups in GROUPS + more:
        for dtype in ("f64", "f32") if name in ("interleaved", "half-empty") else ("f64",):
            losses = normal(rng_for(f"prompt-mean/{name}"), item)
            leaf, mask = item.tensor(losses, dtype).requires_grad_(True), item.mask_tensor(dtype)
            prompts = [torch.tensor([g == prompt for g in groups]) for prompt in sorted(set(groups))]
            means = [(leaf[rows] * mask[rows]).sum() / mask[rows].sum().clamp(min=1.0) for rows in prompts]
            value = torch.stack(means).mean()
            yield Case(
                "aggregate",
                **item.base(),
                groups=groups,
                inputs={"losses": losses},
                params={"mode": "prompt-mean"},
                expect={"value": value, "weights": torch.autograd.grad(value, leaf)[0]},
                name=f"prompt-mean-{name}-{dtype}",
                dtype=dtype,
            )


def _check_margin(item: Grid, ratio: list[float], bounds: tuple[float, ...]) -> None:
    """No kept token may be on a bound, where the gradient depends on the torch version."""
    for slot, keep in enumerate(item.mask):
        for bound in bounds:
            assert not keep or abs(ratio[slot] - bound) > 1e-6, (item.name, ratio[slot], bound)


def ppo_clip(ops, modes: tuple[str, ...], duals: tuple[float | None, ...], garbage: float) -> Iterator[Case]:
    def case(name: str, item: Grid, data: tuple[list[float], ...], params: dict, dtype: str = "f64") -> Case:
        lp, old, advantages = data
        log_ratio = [a - b for a, b in zip(lp, old)]
        _check_margin(item, log_ratio, (-20.0, 20.0))
        bounds = (1 - params["clip_low"], 1 + params["clip_high"], params["dual_clip"] or 0.0)
        _check_margin(item, [math.exp(min(x, 30.0)) + (x < -10) for x in log_ratio], bounds)
        out = ops.ppo_clip(*(item.tensor(x, dtype) for x in data), item.mask_tensor(dtype), params)
        inputs = {"log_probs": lp, "old_log_probs": old, "advantages": advantages}
        return Case(
            "ppo_clip",
            **item.base(),
            inputs=inputs,
            params=params,
            expect=out,
            name=f"{name}-{dtype}",
            profile=ops.PROFILE,
            dtype=dtype,
        )

    def draw(item: Grid) -> tuple[list[float], ...]:
        rng = rng_for(f"ppo_clip/{item.name}")
        old = log_probs(rng, item, garbage)
        return near(rng, item, old, 0.5, -garbage), old, normal(rng, item, 1.0, garbage)

    def settings(number: int, mode: str) -> dict:
        low, high = CLIPS[number % 3]
        base = {"clip_low": low, "clip_high": high, "dual_clip": duals[number % len(duals)], "aggregate": mode}
        return base | ({"scale_factor": 8} if mode == "seq-mean-token-sum-norm" and number % 2 else {})

    for number, item in enumerate(GRIDS):
        yield case(item.name, item, draw(item), settings(number, modes[number % len(modes)]))
    for number, mode in enumerate(modes):
        yield case(f"empty-rows-{mode}", BY_NAME["empty-rows"], draw(BY_NAME["empty-rows"]), settings(number + 1, mode))
        yield case(f"rows-5-{mode}", BY_NAME["rows-5"], draw(BY_NAME["rows-5"]), settings(number, mode))
    for number, item in enumerate(SINGLE):
        yield case(item.name, item, draw(item), settings(number, modes[number % len(modes)]), "f32")
    far = ([-30.0 + x for x in FAR], [-30.0] * len(FAR), list(FAR_ADVANTAGES))
    for number in range(3):
        yield case(f"far-{number}", EDGE, far, settings(number, modes[0]))
    for number, mode in enumerate(modes if ops is verl_ops else ()):
        for item in (BY_NAME["empty-rows"], BY_NAME["rows-5"], EMPTY):
            yield case(f"global-{item.name}-{mode}", item, draw(item), settings(number, mode) | TOTALS)
    if ops is verl_ops:
        yield case("global-padded", BY_NAME["padded"], draw(BY_NAME["padded"]), settings(0, modes[0]) | TOTALS, "f32")


def value_loss(ops, modes: tuple[str, ...], clips: tuple[float | None, ...]) -> Iterator[Case]:
    for number, item in enumerate(GRIDS + SINGLE + FEW):
        dtype = "f32" if len(GRIDS) <= number < len(GRIDS) + len(SINGLE) else "f64"
        rng = rng_for(f"value_loss/{item.name}/{number}")
        values, returns = normal(rng, item, 1.0, 1e4), normal(rng, item, 1.0, -1e4)
        predictions = near(rng, item, values, 0.5, 1e4)
        clip, mode = clips[number % len(clips)], modes[number % len(modes)]
        _check_margin(item, [abs(p - v) for p, v in zip(predictions, values)], (clip or -1.0,))
        tensors = [item.tensor(x, dtype) for x in (predictions, values, returns)]
        out = ops.value_loss(*tensors, item.mask_tensor(dtype), clip, mode)
        yield Case(
            "value_loss",
            **item.base(),
            inputs={"predictions": predictions, "values": values, "returns": returns},
            params={"clip": clip, "aggregate": mode},
            expect=out,
            name=f"{item.name}-{number}-{dtype}",
            profile=ops.PROFILE,
            dtype=dtype,
        )


def entropy_bonus(ops, modes: tuple[str, ...]) -> Iterator[Case]:
    for number, item in enumerate(FEW):
        entropy = [abs(x) for x in normal(rng_for(f"entropy_bonus/{item.name}"), item)]
        coefficient, mode = (0.01, 0.001, 1.0)[number % 3], modes[number % len(modes)]
        extra = (mode,) if len(modes) > 1 else ()
        out = ops.entropy_bonus(item.tensor(entropy), item.mask_tensor(), coefficient, *extra)
        yield Case(
            "entropy_bonus",
            **item.base(),
            inputs={"entropy": entropy},
            expect=out,
            name=f"{mode}-{item.name}",
            params={"coefficient": coefficient, "aggregate": mode},
            profile=ops.PROFILE,
        )


TRL_MODES = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm")
RLHF_MODES = ("token-mean", "seq-mean-token-mean")
FILES = {
    "loss/aggregate.verl.json": ("verl", lambda: aggregate(verl_ops, MODES)),
    "loss/aggregate.trl.json": ("trl", lambda: aggregate(trl_ops, TRL_MODES)),
    "loss/aggregate.openrlhf.json": ("openrlhf", lambda: aggregate(openrlhf_ops, RLHF_MODES)),
    "loss/aggregate.textbook.json": ("textbook", prompt_mean),
    "loss/ppo_clip.verl.json": ("verl", lambda: ppo_clip(verl_ops, MODES, (3.0, 1.5, 10.0), 1e6)),
    "loss/ppo_clip.trl.json": ("trl", lambda: ppo_clip(trl_ops, TRL_MODES, (None, 1.5, 3.0), 30.0)),
    "loss/ppo_clip.openrlhf.json": ("openrlhf", lambda: ppo_clip(openrlhf_ops, RLHF_MODES, (None, 3.0, 1.5), 1e6)),
    "loss/value_loss.verl.json": ("verl", lambda: value_loss(verl_ops, MODES, (0.2, 0.5, 10.0))),
    "loss/value_loss.openrlhf.json": ("openrlhf", lambda: value_loss(openrlhf_ops, RLHF_MODES, (0.2, None, 0.5))),
    "loss/entropy_bonus.verl.json": ("verl", lambda: entropy_bonus(verl_ops, MODES)),
    "loss/entropy_bonus.trl.json": ("trl", lambda: entropy_bonus(trl_ops, ("token-mean",))),
}
