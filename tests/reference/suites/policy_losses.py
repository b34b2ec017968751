"""Stage 5, loss: the policy losses beside the clipped surrogate."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from cases import BY_NAME, GRIDS, SINGLE, Grid, grid, log_probs, near, normal, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_losses
from golden import Case
from suites.loss import CLIPS, EDGE, EMPTY, FAR, FAR_ADVANTAGES, MODES, TOTALS, TRL_MODES

Data = tuple[list[float], ...]
Params = dict[str, object]
METRICS = ("clip_fraction", "clip_fraction_lower", "phi_mean")
SEQ = {"aggregate": "seq-mean-token-mean"}
# rows with mean log-ratios beyond verl's cap of 10 for GSPO, far below 1, just inside the cap, and mixed
STEEP = grid("steep", 4, 3)
STEEP_RATIOS = (12.0, 11.0, 13.0, -22.0, -25.0, -21.0, 9.0, 9.5, 8.0, 25.0, -25.0, 0.45)
STEEP_ADVANTAGES = (-1.0, 0.5, -0.2, -0.7, 0.7, -0.1, -1.0, -0.3, 0.4, 1.0, -1.0, 0.8)
# the clamp of each token at ±20 shows in the sum of a row
SUMS = (25.0, -24.0, 0.45, -21.0, 21.5, -0.3, 0.1, 0.2, 0.3, -3.0, -2.0, -4.0)
FAR_DATA = ([-30.0 + (x or 0.01) for x in FAR], [-30.0] * len(FAR), list(FAR_ADVANTAGES))
SUMS_DATA = ([-30.0 + x for x in SUMS], [-30.0] * len(SUMS), list(STEEP_ADVANTAGES))
STEEP_DATA = ([-30.0 + x for x in STEEP_RATIOS], [-30.0] * len(STEEP_RATIOS), list(STEEP_ADVANTAGES))


def draw(op: str, item: Grid, garbage: float, by_row: bool = False, scale: float = 0.5) -> Data:
    """Log-probabilities below 0; advantages of each token, or the same for the tokens of a row."""
    rng = rng_for(f"{op}/{item.name}/{by_row}")
    old = log_probs(rng, item, garbage)
    new = near(rng, item, old, scale, -garbage)
    new = [min(x, -0.0015) if keep else x for x, keep in zip(new, item.mask)]
    advantages = normal(rng, item, 1.0, garbage)
    if by_row:
        rows = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
        advantages = [rows[i // item.cols] if keep else garbage for i, keep in enumerate(item.mask)]
    return new, old, advantages


def _advantages(item: Grid, flat: list[float], dtype: str, by_row: bool) -> torch.Tensor:
    """(rows,) if the framework takes one per sequence; rows without kept tokens get 1."""
    full = item.tensor(flat, dtype)
    if not by_row:
        return full
    first = [next((c for c in range(item.cols) if item.mask[r * item.cols + c]), None) for r in range(item.rows)]
    return torch.stack([full.new_tensor(1.0) if c is None else full[r, c] for r, c in enumerate(first)])


def _run(ops, op: str, item: Grid, data: Data, params: Params, dtype: str, by_row: bool) -> dict:
    new, old = (item.tensor(x, dtype) for x in data[:2])
    advantages = _advantages(item, data[2], dtype, by_row)
    return ops.policy_loss(op, new, old, advantages, item.mask_tensor(dtype), params)


def check_margin(
    run: Callable[[list[float]], dict], new: list[float], mask: tuple[int, ...], out: dict, name: str
) -> None:
    """Small changes of the log-probabilities must change neither a metric nor the branch of any token."""
    noise = rng_for(f"margin/{name}").choice([-1.0, 1.0], len(new))
    for signs in ([1.0] * len(new), [-1.0] * len(new), noise):
        moved = run([x + 2e-5 * s for x, s in zip(new, signs)])
        for key in ("clip_fraction", "clip_fraction_lower"):
            assert key not in out or abs(float(moved[key]) - float(out[key])) < 1e-6, (name, key)
        kept = torch.tensor(mask) > 0
        a, b = (x["grad"].detach().double().reshape(-1)[kept] for x in (moved, out))
        limit = 2e-2 * torch.maximum(a.abs(), b.abs()) + (1e-4 * b.abs().max() if b.numel() else 0.0)
        assert bool(((a - b).abs() <= limit).all()), (name, a, b)


def case(
    ops, op: str, name: str, item: Grid, data: Data, params: Params, dtype: str = "f64", by_row: bool = False
) -> Case:
    out = _run(ops, op, item, data, params, dtype, by_row)
    if item.kept and not bool(torch.as_tensor(out["loss"]).isnan()):
        exact = _run(ops, op, item, data, params, "f64", by_row)
        assert all(abs(float(exact[key]) - float(out[key])) < 1e-4 for key in METRICS if key in out), name
        check_margin(
            lambda x: _run(ops, op, item, (x, *data[1:]), params, "f64", by_row), data[0], item.mask, exact, name
        )
    dropped = item.mask_tensor(dtype) == 0
    out["grad"] = torch.where(dropped & ~out["grad"].isfinite(), torch.zeros_like(out["grad"]), out["grad"])
    return Case(
        op,
        **item.base(),
        inputs=dict(zip(("log_probs", "old_log_probs", "advantages"), data)),
        params=params,
        expect=out,
        name=f"{name}-{dtype}",
        profile=ops.PROFILE,
        dtype=dtype,
    )


def _with_factor(params: Params, mode: str, number: int) -> Params:
    return params | {"aggregate": mode} | ({"scale_factor": 8} if mode == MODES[4] and number % 2 else {})


def verl(
    op: str, settings: tuple[Params, ...], garbage: float = 1e6, far: tuple[Grid, Data] | None = (EDGE, FAR_DATA)
) -> Iterator[Case]:
    """All aggregations, with and without the counts of a whole step."""
    ops = verl_losses
    pick = lambda number: settings[number % len(settings)]
    for number, item in enumerate(GRIDS):
        params = _with_factor(pick(number), MODES[number % 5], number)
        yield case(ops, op, item.name, item, draw(op, item, garbage), params)
    for number, mode in enumerate(MODES):
        item = BY_NAME["empty-rows"]
        params = _with_factor(pick(number), mode, number + 1)
        yield case(ops, op, f"empty-rows-{mode}", item, draw(op, item, garbage), params)
        item = BY_NAME["rows-5"] if number else EMPTY
        yield case(ops, op, f"global-{item.name}-{mode}", item, draw(op, item, garbage), params | TOTALS)
    for number, item in enumerate(SINGLE):
        yield case(
            ops, op, item.name, item, draw(op, item, garbage), pick(number) | {"aggregate": MODES[number]}, "f32"
        )
    if far:
        for number in range(2):
            params = pick(number) | {"aggregate": ("token-mean", "token-sum")[number]}
            yield case(ops, op, f"far-{number}", *far, params)


def fixed(
    ops, op: str, settings: tuple[Params, ...], garbage: float, far: tuple[Grid, Data], tokens: bool
) -> Iterator[Case]:
    """Losses with a fixed aggregation. TRL takes one advantage per row; `tokens` adds cases with one per token."""
    by_row = ops is trl_ops
    pick = lambda number: settings[number % len(settings)]
    for number, item in enumerate(GRIDS):
        yield case(ops, op, item.name, item, draw(op, item, garbage, by_row), pick(number), by_row=by_row)
    for number, item in enumerate(SINGLE):
        yield case(ops, op, item.name, item, draw(op, item, garbage, by_row), pick(number), "f32", by_row)
    for number, item in enumerate((BY_NAME["empty-rows"], BY_NAME["rows-5"], BY_NAME["cols-9"])):
        data = draw(op, item, garbage, by_row, 0.2)
        yield case(ops, op, f"near-{item.name}", item, data, pick(number + 1), by_row=by_row)
        if by_row and tokens:
            yield case(ops, op, f"tokens-{item.name}", item, draw(op, item, garbage), pick(number))
    yield case(ops, op, "far", *far, pick(0))


def gspo_trl() -> Iterator[Case]:
    for number, mode in enumerate(TRL_MODES):
        for item in (*GRIDS[:6], *GRIDS[7:9], BY_NAME["rows-5"]):
            params = _with_factor(clip(number + item.cols), mode, item.rows)
            data = draw("gspo", item, 30.0, True, 0.5 if item.cols < 8 else 1.0)
            yield case(trl_ops, "gspo", f"{mode}-{item.name}", item, data, params, by_row=True)
        for item in (BY_NAME["empty-rows"], BY_NAME["holes"]):
            params = clip(number) | {"aggregate": mode}
            yield case(trl_ops, "gspo", f"tokens-{mode}-{item.name}", item, draw("gspo", item, 30.0), params)
        params = clip(number) | {"aggregate": mode}
        yield case(
            trl_ops, "gspo", f"{mode}-padded", SINGLE[0], draw("gspo", SINGLE[0], 30.0, True), params, "f32", True
        )
    yield case(trl_ops, "gspo", "steep", STEEP, STEEP_DATA, clip(0) | SEQ)


def gspo_openrlhf() -> Iterator[Case]:
    yield from fixed(openrlhf_ops, "gspo", tuple(clip(i) | SEQ for i in range(3)), 1e6, (STEEP, STEEP_DATA), False)
    for number, item in enumerate((BY_NAME["padded"], BY_NAME["empty-rows"])):
        data = draw("gspo", item, 1e6)
        yield case(openrlhf_ops, "gspo", f"forced-{item.name}", item, data, clip(number) | {"aggregate": "token-mean"})


def own_aggregation(op: str, settings: tuple[Params, ...], garbage: float = 1e6) -> Iterator[Case]:
    """verl's sapo and geo_mean: the configured aggregation changes nothing."""
    yield from fixed(verl_losses, op, settings, garbage, (EDGE, FAR_DATA), False)
    for mode in ("token-mean", "token-sum"):
        item = BY_NAME["rows-5"]
        yield case(verl_losses, op, f"ignored-{mode}", item, draw(op, item, garbage), settings[0] | {"aggregate": mode})


def sapo_verl() -> Iterator[Case]:
    yield from own_aggregation("sapo", SAPO)
    for number, item in enumerate((BY_NAME["empty-rows"], BY_NAME["holes"], EMPTY)):
        yield case(verl_losses, "sapo", f"global-{item.name}", item, draw("sapo", item, 1e6), SAPO[number] | TOTALS)


def clip_cov() -> Iterator[Case]:
    """`selected` are the tokens verl chose by its random permutation, drawn here with a fixed seed."""
    bounds = ((0.1, 5.0), (-0.2, 0.5), (1.0, 5.0), (0.0, 1.0))

    def one(name: str, item: Grid, data: Data, mode: str, number: int, dtype: str = "f64", **more: int) -> Case:
        lower, upper = bounds[number % 4]
        params = _with_factor(clip(number), mode, number) | {"lower": lower, "upper": upper} | more
        ratio = {"ratio": (0.3, 2e-4, 0.15)[number % 3]}

        def run(new: list[float], dtype: str = "f64") -> dict:
            tensors = [item.tensor(x, dtype) for x in (new, *data[1:])]
            out, chosen = verl_losses.clip_cov(*tensors, item.mask_tensor(dtype), params | ratio)
            return out | {"selected": chosen}

        out = run(data[0], dtype)
        if item.kept:
            exact = run(data[0])
            assert torch.equal(exact["selected"], out["selected"]), name
            check_margin(run, data[0], item.mask, exact, name)
        inputs = dict(zip(("log_probs", "old_log_probs", "advantages"), data)) | {"selected": out.pop("selected")}
        grad = out["grad"]
        out["grad"] = torch.where((item.mask_tensor(dtype) == 0) & ~grad.isfinite(), torch.zeros_like(grad), grad)
        return Case(
            "clip_cov",
            **item.base(),
            inputs=inputs,
            params=params,
            expect=out,
            name=f"{name}-{dtype}",
            profile=verl_losses.PROFILE,
            dtype=dtype,
        )

    for number, item in enumerate(GRIDS):
        yield one(item.name, item, draw("clip_cov", item, 30.0), MODES[number % 5], number)
    for number, mode in enumerate(MODES):
        yield one(
            f"empty-rows-{mode}", BY_NAME["empty-rows"], draw("clip_cov", BY_NAME["empty-rows"], 30.0), mode, number
        )
        item = BY_NAME["rows-5"] if number else EMPTY
        yield one(f"global-{item.name}-{mode}", item, draw("clip_cov", item, 30.0), mode, number, **TOTALS)
    for number, item in enumerate(SINGLE):
        yield one(item.name, item, draw("clip_cov", item, 30.0), MODES[number], number, "f32")


def clip(number: int) -> Params:
    low, high = CLIPS[number % 3]
    return {"clip_low": low, "clip_high": high}


CLIP = tuple(clip(i) for i in range(3))
NARROW = (
    {"clip_low": 0.05, "clip_high": 0.05},
    {"clip_low": 0.02, "clip_high": 0.03},
    {"clip_low": 0.2, "clip_high": 0.28},
)
WIDE = ({"clip_low": 0.4, "clip_high": 0.4}, {"clip_low": 0.2, "clip_high": 0.28}, {"clip_low": 0.1, "clip_high": 0.6})
TAUS = ({"tau_pos": 1.0, "tau_neg": 1.05}, {"tau_pos": 0.5, "tau_neg": 2.0}, {"tau_pos": 3.0, "tau_neg": 1.0})
SAPO = tuple(taus | SEQ for taus in TAUS)
KL_COV = tuple({"ratio": ratio, "kl_coef": coef} for ratio, coef in ((0.2, 0.1), (2e-4, 1.0), (0.5, 0.3)))
DRO = tuple({"beta": beta} for beta in (0.5, 0.1, 2.0))
CAPS = tuple({"clip_high": cap, "aggregate": "token-mean"} for cap in (1.2, 2.0, 0.9))
MEAN = ({"aggregate": "token-mean"},)
FILES = {
    "loss/gspo.verl.json": ("verl", lambda: verl("gspo", CLIP, far=(STEEP, STEEP_DATA))),
    "loss/gspo.trl.json": ("trl", gspo_trl),
    "loss/gspo.openrlhf.json": ("openrlhf", gspo_openrlhf),
    "loss/gmpo.verl.json": ("verl", lambda: own_aggregation("gmpo", WIDE)),
    "loss/cispo.verl.json": ("verl", lambda: verl("cispo", CLIP)),
    "loss/cispo.trl.json": ("trl", lambda: fixed(trl_ops, "cispo", CAPS, 30.0, (EDGE, FAR_DATA), True)),
    "loss/sapo.verl.json": ("verl", sapo_verl),
    "loss/sapo.trl.json": ("trl", lambda: fixed(trl_ops, "sapo", SAPO, 30.0, (EDGE, FAR_DATA), True)),
    "loss/dppo_tv.verl.json": ("verl", lambda: verl("dppo_tv", CLIP)),
    "loss/dppo_kl.verl.json": ("verl", lambda: verl("dppo_kl", NARROW)),
    "loss/clip_cov.verl.json": ("verl", clip_cov),
    "loss/kl_cov.verl.json": ("verl", lambda: verl("kl_cov", KL_COV, 30.0)),
    "loss/dro.verl.json": ("verl", lambda: verl("dro", DRO)),
    "loss/reinforce.verl.json": ("verl", lambda: verl("reinforce", ({},), far=None)),
    "loss/vespo.trl.json": ("trl", lambda: fixed(trl_ops, "vespo", MEAN, 30.0, (STEEP, SUMS_DATA), True)),
    "loss/luspo.trl.json": ("trl", lambda: fixed(trl_ops, "luspo", CLIP, 30.0, (STEEP, STEEP_DATA), True)),
}
