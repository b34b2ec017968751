"""What TRL computes from scores before its loss: group advantages, KL penalty, clipped scores, sampler weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import DTYPES, Grid, grid, log_probs, near, rng_for
from frameworks import trl_generation as trl
from golden import Case
from suites.advantage import by_row

# rows in groups of one size, one after the other, every row with a kept token: (grid, size)
SHAPES = (
    (grid("pair", 2, 3), 2),
    (grid("pairs", 4, 3, "right"), 2),
    (grid("triples", 6, 4, "right"), 3),
    (grid("fours", 8, 2), 4),
    (grid("one-group", 5, 4, "right"), 5),
    (grid("columns", 6, 1), 2),
)


def _scores(name: str, item: Grid) -> list[float]:
    if name == "binary":
        return [float(x) for x in rng_for("trl/binary").integers(0, 2, item.rows)]
    if name == "tied":
        return [0.25] * item.rows
    return [round(float(x), 4) for x in rng_for(f"trl/{name}/{item.name}").normal(0.0, 1.0, item.rows)]


def _draws() -> Iterator[tuple[str, Grid, int, list[float], str]]:
    for item, size in SHAPES:
        for dtype in ("f64", "f32") if item.name in ("pairs", "triples") else ("f64",):
            yield f"{item.name}-{dtype}", item, size, _scores("normal", item), dtype
    for name in ("binary", "tied"):
        yield name, SHAPES[3][0], 4, _scores(name, SHAPES[3][0]), "f64"


def _case(op: str, name: str, item: Grid, size: int, inputs: dict, params: dict, out: dict, dtype: str) -> Case:
    return Case(
        op,
        **item.base(),
        groups=[row // size for row in range(item.rows)],
        inputs=inputs,
        params=params,
        expect=out,
        name=name,
        profile=trl.PROFILE,
        dtype=dtype,
    )


def grpo() -> Iterator[Case]:
    for name, item, size, scores, dtype in _draws():
        for scale in ("group", "batch", "none"):
            out = trl.grpo(torch.tensor(scores, dtype=DTYPES[dtype]), item.mask_tensor(dtype), size, scale)
            inputs = {"rewards": by_row(item, scores)}
            params = {"scale": scale}
            if scale != "batch":
                params = {"norm_by_std": scale == "group"}
            yield _case("grpo", f"{scale}-{name}", item, size, inputs, params, out, dtype)


def rloo() -> Iterator[Case]:
    for name, item, size, scores, dtype in _draws():
        for normalize in (False, True):
            out = trl.rloo(torch.tensor(scores, dtype=DTYPES[dtype]), item.mask_tensor(dtype), size, normalize)
            kind, params = ("normalized", {"normalize": True}) if normalize else ("plain", {})
            yield _case("rloo", f"{kind}-{name}", item, size, {"rewards": by_row(item, scores)}, params, out, dtype)


def gdpo() -> Iterator[Case]:
    for number, (item, size) in enumerate(SHAPES):
        for sources in (1, 2, 3):
            rng = rng_for(f"trl/gdpo/{item.name}/{sources}")
            flat = [round(float(x), 4) for x in rng.normal(0.0, 1.0, sources * item.rows)]
            weights = [1.0, 0.5, 2.0][:sources]
            tensor = torch.tensor(flat, dtype=torch.float64).reshape(sources, item.rows)
            out = trl.gdpo(tensor, item.mask_tensor(), size, weights)
            params = {"weights": weights}
            yield _case("gdpo", f"{sources}-{item.name}", item, size, {"reward_sources": flat}, params, out, "f64")


PADDED = (
    grid("one-token", 1, 1),
    grid("padded", 3, 5, "right"),
    grid("cols-17", 2, 17, "right"),
    grid("rows-5", 5, 4, "right"),
)


def _lengths(item: Grid) -> list[int]:
    return [sum(item.mask[row * item.cols : (row + 1) * item.cols]) for row in range(item.rows)]


def kl_in_scores() -> Iterator[Case]:
    """TRL's padding is on the right, and some row is as long as the batch is wide."""
    for number, item in enumerate(PADDED + (PADDED[1],)):
        dtype = "f64" if number < len(PADDED) else "f32"
        item = Grid(item.name, item.rows, item.cols, (1,) * item.cols + item.mask[item.cols :])
        for beta in (0.05, 1.0):
            rng = rng_for(f"kl_in_scores/{item.name}")
            old = log_probs(rng, item, 20.0)
            ref = near(rng, item, old, 0.5, -20.0)
            scores = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
            tensors = [torch.tensor(scores, dtype=DTYPES[dtype]), item.tensor(old, dtype), item.tensor(ref, dtype)]
            yield Case(
                "kl_in_scores",
                **item.base(),
                inputs={"scores": scores, "old_log_probs": old, "ref_log_probs": ref},
                params={"beta": beta},
                expect=trl.kl_in_scores(*tensors, _lengths(item), beta),
                name=f"{item.name}-{beta}-{dtype}",
                profile=trl.PROFILE,
                dtype=dtype,
            )


def reward_scale_clip() -> Iterator[Case]:
    for low, high in ((-1.0, 1.0), (0.0, 0.5), (-0.1, 3.0)):
        for rows in (1, 4, 9):
            scores = [round(float(x), 4) for x in rng_for(f"clip/{rows}").normal(0.0, 1.5, rows)]
            yield Case(
                "reward_scale_clip",
                rows=rows,
                cols=1,
                mask=[1] * rows,
                inputs={"scores": scores},
                params={"low": low, "high": high},
                expect=trl.reward_scale_clip(torch.tensor(scores, dtype=torch.float64), low, high),
                name=f"{low}-{high}-{rows}",
                profile=trl.PROFILE,
            )


def rollout_is() -> Iterator[Case]:
    bounds = ((None, 3.0), (None, 1.2), (0.8, 1.25), (0.5, 2.0))
    for number, item in enumerate(PADDED):
        item = Grid(item.name, item.rows, item.cols, (1,) * item.cols + item.mask[item.cols :])
        for level in ("token", "sequence"):
            for mode in ("truncate", "mask"):
                for lower, upper in bounds:
                    rng = rng_for(f"trl/rollout_is/{item.name}")
                    rollout = log_probs(rng, item, -1.0)
                    old = near(rng, item, rollout, 0.3, -1.0)
                    params = {"level": level, "mode": mode, "lower": lower, "upper": upper}
                    run = lambda x: trl.rollout_is(item.tensor(x), item.tensor(rollout), _lengths(item), params)
                    out = run(old)
                    moved = run([x + 1e-6 for x in old])["weights"]
                    assert bool(((moved - out["weights"]).abs() < 1e-2).all()), item.name
                    yield Case(
                        "rollout_is",
                        **item.base(),
                        inputs={"old_log_probs": old, "rollout_log_probs": rollout},
                        params=params,
                        expect=out,
                        name=f"{level}-{mode}-{lower}-{upper}-{item.name}",
                        profile=trl.PROFILE,
                    )


def repetition_penalty() -> Iterator[Case]:
    for ngram, penalty, alphabet in (
        (3, -1.0, 2),
        (2, -0.5, 3),
        (1, -1.0, 4),
        (4, -2.0, 2),
        (3, 0.0, 2),
        (20, -1.0, 2),
    ):
        for item in PADDED:
            tokens = [int(x) for x in rng_for(f"repeat/{item.name}/{alphabet}").integers(0, alphabet, len(item.mask))]
            rows = [tokens[row * item.cols :][:length] for row, length in enumerate(_lengths(item))]
            yield Case(
                "repetition_penalty",
                **item.base(),
                inputs={"tokens": tokens},
                params={"ngram": ngram, "penalty": penalty},
                expect=trl.repetition_penalty(rows, ngram, penalty),
                name=f"{ngram}-{penalty}-{item.name}",
                profile=trl.PROFILE,
            )


FILES = {
    "advantage/grpo.trl.json": ("trl", grpo),
    "advantage/rloo.trl.json": ("trl", rloo),
    "advantage/gdpo.trl.json": ("trl", gdpo),
    "reward/kl_in_scores.trl.json": ("trl", kl_in_scores),
    "reward/reward_scale_clip.trl.json": ("trl", reward_scale_clip),
    "reward/repetition_penalty.trl.json": ("trl", repetition_penalty),
    "rollout/rollout_is.trl.json": ("trl", rollout_is),
}
