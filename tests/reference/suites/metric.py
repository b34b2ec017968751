"""Stage 6, metric: masked statistics, KL means, clip fractions, the analysis keys, explained variance, correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from cases import BY_NAME, GRIDS, MANY, SINGLE, Grid, grid, log_probs, near, normal, outcome, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_ops
from golden import Case

EMPTY = Grid("empty", 2, 2, (0, 0, 0, 0))
ONE_KEPT = Grid("one-kept", 2, 2, (0, 0, 1, 0))


def _case(
    op: str, name: str, item: Grid, x: list[float], run: Callable, ops, dtype: str = "f64", **more: object
) -> Case:
    """One statistic of x; where the framework raises, its message is the expected error."""
    case = Case(op, **item.base(), inputs={"x": x}, name=f"{name}-{dtype}", profile=ops.PROFILE, dtype=dtype, **more)
    try:
        case.expect = run(item.tensor(x, dtype), item.mask_tensor(dtype))
    except ValueError as error:
        case.error = str(error)
    return case


def masked_mean(ops) -> Iterator[Case]:
    for item in GRIDS:
        yield _case("masked_mean", item.name, item, normal(rng_for(f"mean/{item.name}"), item), ops.masked_mean, ops)
    for item in SINGLE:
        yield _case(
            "masked_mean", item.name, item, normal(rng_for(f"mean/{item.name}"), item), ops.masked_mean, ops, "f32"
        )
    cancelling = [1e8, 1.0, -1e8, 1.0, 1e8, -1e8, 0.5, 0.25]
    yield _case("masked_mean", "cancelling", grid("row", 1, 8), cancelling, ops.masked_mean, ops, atol=1e-8)
    if ops is verl_ops:
        yield _case("masked_mean", "empty", EMPTY, [1.0, -2.0, 3.0, 1e6], ops.masked_mean, ops)


def masked_var() -> Iterator[Case]:
    for item in GRIDS + (EMPTY, ONE_KEPT):
        x = normal(rng_for(f"var/{item.name}"), item)
        yield _case("masked_var", item.name, item, x, verl_ops.masked_var, verl_ops)
    for item in SINGLE:
        x = normal(rng_for(f"var/{item.name}"), item)
        yield _case("masked_var", item.name, item, x, verl_ops.masked_var, verl_ops, "f32")
    item = BY_NAME["padded"]
    far = [x + 1000.0 for x in normal(rng_for("var/far"), item)]
    yield _case("masked_var", "far-from-zero", item, far, verl_ops.masked_var, verl_ops, rtol=1e-8)


def masked_whiten() -> Iterator[Case]:
    for shift_mean in (True, False):
        run = lambda x, mask: verl_ops.masked_whiten(x, mask, shift_mean)
        kind, params = "shifted" if shift_mean else "mean-kept", {"shift_mean": shift_mean}
        for item in GRIDS if shift_mean else MANY[:8]:
            x = normal(rng_for(f"whiten/{item.name}"), item)
            yield _case("masked_whiten", f"{item.name}-{kind}", item, x, run, verl_ops, params=params)
        for item in SINGLE:
            x = normal(rng_for(f"whiten/{item.name}"), item)
            yield _case("masked_whiten", f"{item.name}-{kind}", item, x, run, verl_ops, "f32", params=params)
    run, params = (lambda x, mask: verl_ops.masked_whiten(x, mask)), {"shift_mean": True}
    for item in (EMPTY, ONE_KEPT):
        yield _case("masked_whiten", item.name, item, [1.0, 2.0, 3.0, 4.0], run, verl_ops, params=params)
    constant = [0.0] * 3, [2.0] * 3
    for name, x in zip(("all-zero", "constant"), constant):
        yield _case("masked_whiten", name, grid("row", 1, 3), x, run, verl_ops, params=params, atol=1e-10)
    tiny = [1e-9, -2e-9, 3e-9, 0.0]
    yield _case("masked_whiten", "tiny", grid("row", 1, 4), tiny, run, verl_ops, params=params)


def kl_means() -> Iterator[Case]:
    """Differences within the clamps of verl's k3, so that the clamps have no effect."""
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        rng = rng_for(f"kl_means/{item.name}")
        lp = log_probs(rng, item, 1e4)
        ref = near(rng, item, lp, 0.6, -1e4)
        assert all(abs(a - b) < 2.5 for a, b, keep in zip(lp, ref, item.mask) if keep), item.name
        yield Case(
            "kl_means",
            **item.base(),
            inputs={"log_probs": lp, "ref_log_probs": ref},
            expect=verl_ops.kl_means(item.tensor(lp, dtype), item.tensor(ref, dtype), item.mask_tensor(dtype)),
            name=f"{item.name}-{dtype}",
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )


def clip_fractions(ops, duals: tuple[float | None, ...]) -> Iterator[Case]:
    def case(name: str, item: Grid, data: tuple[list[float], ...], number: int, dtype: str = "f64") -> Case:
        low, high = ((0.2, 0.28), (0.1, 0.3), (0.2, 0.2))[number % 3]
        params = {"clip_low": low, "clip_high": high, "dual_clip": duals[number % len(duals)]}
        for new, old in ((a, b) for a, b, keep in zip(*data[:2], item.mask) if keep):
            bounds = (1 - low, 1 + high, params["dual_clip"] or 0.0)
            assert abs(new - old) <= 15.0 and all(abs(math.exp(new - old) - x) > 1e-7 for x in bounds), (name, new, old)
        out = ops.clip_fractions(*(item.tensor(x, dtype) for x in data), item.mask_tensor(dtype), params)
        return Case(
            "clip_fractions",
            **item.base(),
            inputs=dict(zip(("log_probs", "old_log_probs", "advantages"), data)),
            params=params,
            expect=out,
            name=f"{name}-{dtype}",
            profile=ops.PROFILE,
            dtype=dtype,
        )

    def draw(item: Grid, scale: float) -> tuple[list[float], ...]:
        rng = rng_for(f"clip_fractions/{item.name}/{scale}")
        old = log_probs(rng, item, 15.0)
        return near(rng, item, old, scale, 7.5), old, normal(rng, item, 1.0, 15.0)

    grids = tuple(item for item in GRIDS if item.cols > 1 or ops is verl_ops)
    for number, item in enumerate(grids):
        yield case(item.name, item, draw(item, 0.5), number)
    for number, item in enumerate(SINGLE):
        yield case(item.name, item, draw(item, 0.5), number, "f32")
        yield case(f"{item.name}-wide", item, draw(item, 3.0), number)
    # large log-ratios with positive, negative and zero advantages
    far = [15.0, 15.0, 15.0, -15.0, -15.0, -15.0, 1.3, 1.3, 1.3, -0.9, -0.9, -0.9, 0.0, 0.0]
    advantages = [1.0, -1.0, 0.0] * 4 + [1.0, -1.0]
    for number in range(3):
        data = ([x - 15.5 for x in far], [-15.5] * len(far), advantages)
        yield case(f"far-{number}", grid("far", 1, len(far)), data, number)


def analysis_keys(
    logp: torch.Tensor, adv: torch.Tensor, rewards: torch.Tensor, resp_mask: torch.Tensor
) -> dict[str, object]:
    """The five keys as docs/bnto.md §2 defines them."""
    valid = resp_mask.bool()
    prob = torch.exp(logp)
    H = -(prob * logp)
    cov_mean = ((adv - adv[valid].mean()) * (logp - logp[valid].mean()))[valid].mean()
    wH = prob * (1 - prob) * torch.abs(adv) * H
    wH_sum = (wH * resp_mask).sum()
    token_cnt = resp_mask.sum().clamp_min(1)
    return {
        "analysis/entropy_per_token_mean": (H * resp_mask).sum() / token_cnt,
        "analysis/covariance_mean": cov_mean,
        "analysis/wH_sum": wH_sum,
        "analysis/wH_per_token": wH_sum / token_cnt,
        "analysis/reward_sum_mean": (rewards * resp_mask).sum(dim=-1).mean(),
    }


def analysis() -> Iterator[Case]:
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        rng = rng_for(f"analysis/{item.name}")
        old, advantages = log_probs(rng, item, 5.0), normal(rng, item)
        rewards = normal(rng, item) if number % 2 else outcome(rng, item)
        out = analysis_keys(*(item.tensor(x, dtype) for x in (old, advantages, rewards)), item.mask_tensor(dtype))
        yield Case(
            "analysis",
            **item.base(),
            inputs={"old_log_probs": old, "advantages": advantages, "rewards": rewards},
            expect=out,
            name=f"{item.name}-{dtype}",
            dtype=dtype,
        )


def explained_variance() -> Iterator[Case]:
    for number, item in enumerate(MANY):
        rng = rng_for(f"explained/{item.name}")
        returns = normal(rng, item)
        values = [round(0.7 * g + 0.3 * v, 4) for g, v in zip(returns, normal(rng, item))]
        for dtype in ("f64", "f32") if item in SINGLE else ("f64",):
            out = verl_ops.explained_variance(
                item.tensor(values, dtype), item.tensor(returns, dtype), item.mask_tensor(dtype)
            )
            yield Case(
                "explained_variance",
                **item.base(),
                inputs={"values": values, "returns": returns},
                expect=out,
                name=f"{item.name}-{dtype}",
                profile=verl_ops.PROFILE,
                dtype=dtype,
            )


def correlation() -> Iterator[Case]:
    for item in MANY:
        rng = rng_for(f"correlation/{item.name}")
        x = normal(rng, item)
        y = [round(0.5 * a + b, 4) for a, b in zip(x, normal(rng, item))]
        kept = item.mask_tensor().bool()
        pair = torch.stack([item.tensor(x)[kept], item.tensor(y)[kept]])
        yield Case(
            "correlation",
            **item.base(),
            inputs={"x": x, "y": y},
            expect={"value": torch.corrcoef(pair)[0, 1]},
            name=item.name,
        )


FILES = {
    "metric/masked_mean.verl.json": ("verl", lambda: masked_mean(verl_ops)),
    "metric/masked_mean.openrlhf.json": ("openrlhf", lambda: masked_mean(openrlhf_ops)),
    "metric/masked_var.verl.json": ("verl", masked_var),
    "metric/masked_whiten.verl.json": ("verl", masked_whiten),
    "metric/kl_means.verl.json": ("verl", kl_means),
    "metric/clip_fractions.verl.json": ("verl", lambda: clip_fractions(verl_ops, (3.0, 1.5, 10.0))),
    "metric/clip_fractions.trl.json": ("trl", lambda: clip_fractions(trl_ops, (None, 1.5, 3.0))),
    "metric/analysis.bnto.json": ("bnto", analysis),
    "metric/explained_variance.verl.json": ("verl", explained_variance),
    "metric/correlation.torch.json": ("torch", correlation),
}
