"""Stage 3, reward: scores on tokens, the KL penalty inside the reward, the overlong penalty."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import BY_NAME, DTYPES, GRIDS, Grid, log_probs, near, normal, rng_for
from frameworks import openrlhf_ops, verl_ops
from golden import Case

ESTIMATORS = ("k1", "abs", "k2", "k3", "k1+", "k3+")


def kl_in_reward() -> Iterator[Case]:
    def case(item: Grid, estimator: str, beta: float, dtype: str) -> Case:
        rng = rng_for(f"kl_in_reward/{item.name}")
        scores, old = normal(rng, item), log_probs(rng, item, 1e4)
        ref = near(rng, item, old, 0.5, -1e4)
        tensors = [item.tensor(x, dtype) for x in (scores, old, ref)]
        out = verl_ops.kl_in_reward(*tensors, item.mask_tensor(dtype), beta, estimator)
        return Case(
            "kl_in_reward",
            **item.base(),
            inputs={"scores": scores, "old_log_probs": old, "ref_log_probs": ref},
            params={"beta": beta, "estimator": estimator},
            expect=out,
            name=f"{estimator}-beta-{beta}-{item.name}-{dtype}",
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )

    for number, item in enumerate(GRIDS):
        yield case(item, ESTIMATORS[number % 6], (0.1, 0.001, 1.0, 0.0)[number % 4], "f64")
    for estimator in ESTIMATORS:
        yield case(BY_NAME["empty-rows"], estimator, 0.05, "f64")
    for name in ("padded", "cols-17"):
        yield case(BY_NAME[name], "k3", 0.1, "f32")


def place_scores() -> Iterator[Case]:
    """No row without a kept token: OpenRLHF would place its score on the last column."""
    left = Grid("left-padded", 3, 4, (0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1))
    for item in (*(item for item in GRIDS if item.name != "empty-rows"), left):
        for dtype in ("f64", "f32") if item.name in ("padded", "holes") else ("f64",):
            rng = rng_for(f"place_scores/{item.name}")
            scores = [round(float(x), 4) for x in rng.uniform(-9.9, 9.9, item.rows)]
            out = openrlhf_ops.place_scores(torch.tensor(scores, dtype=DTYPES[dtype]), item.mask_tensor(dtype))
            yield Case(
                "place_scores",
                **item.base(),
                inputs={"scores": scores},
                expect=out,
                name=f"{item.name}-{dtype}",
                profile=openrlhf_ops.PROFILE,
                dtype=dtype,
            )


OVERLONG = (
    ("below-and-above", [1.0, 0.0, -0.5, 1.0, 0.25], [1, 11, 12, 13, 20], 20, 8, 1.0),
    ("beyond-max-len", [1.0, 1.0, 0.0], [21, 28, 40], 20, 8, 1.0),
    ("factor-half", [1.0, 0.5], [15, 19], 20, 8, 0.5),
    ("buffer-is-all", [0.0, 1.0, 1.0], [1, 7, 16], 16, 16, 1.0),
    ("buffer-one", [1.0, 1.0, 1.0], [15, 16, 17], 16, 1, 2.0),
    ("one-row", [-1.0], [19], 20, 6, 1.0),
    ("factor-zero", [0.75, 0.75], [20, 2], 20, 8, 0.0),
    ("thirds", [0.1, 0.2, 0.3], [10, 11, 12], 12, 3, 0.7),
)


def overlong(ops, dtype: str) -> Iterator[Case]:
    """verl's manager computes in float32, OpenRLHF's function keeps float64."""
    for name, scores, lengths, max_len, buffer, factor in OVERLONG:
        out = ops.overlong_penalty(scores, lengths, max_len, buffer, factor)
        yield Case(
            "overlong_penalty",
            rows=len(scores),
            cols=1,
            mask=[1] * len(scores),
            inputs={"scores": scores, "lengths": lengths},
            params={"max_len": max_len, "buffer": buffer, "factor": factor},
            expect=out,
            name=name,
            profile=ops.PROFILE,
            dtype=dtype,
        )


FILES = {
    "reward/kl_in_reward.verl.json": ("verl", kl_in_reward),
    "reward/place_scores.openrlhf.json": ("openrlhf", place_scores),
    "reward/overlong_penalty.verl.json": ("verl", lambda: overlong(verl_ops, "f32")),
    "reward/overlong_penalty.openrlhf.json": ("openrlhf", lambda: overlong(openrlhf_ops, "f64")),
}
