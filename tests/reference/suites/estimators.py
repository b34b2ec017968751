"""Stage 4, advantage: the estimators beside GAE, GRPO and RLOO."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from cases import BY_NAME, DTYPES, GRIDS, SINGLE, Grid, grid, log_probs, normal, outcome, rng_for
from frameworks import openrlhf_ops
from frameworks import verl_estimators as verl
from golden import Case
from suites.advantage import GROUPS, ONE_KEPT, OPENRLHF_GROUPS, by_row, group_draws

Draw = tuple[str, Grid, list[int], list[float], str]
GAMMAS = (1.0, 0.99, 0.9, 0.5, 0.0)
# with equal scores, whitening divides rounding errors by 1e-4
EQUAL = {"one-row-f64", "tied", "near-tied", "near-tied-zero"}


def _draws(op: str) -> Iterator[Draw]:
    """The cases of GRPO, and scores on dropped slots: groups sum over all slots."""
    yield from group_draws(op)
    item = Grid("dropped", 4, 3, (1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1))
    yield "on-dropped-slots", item, [3, 1, 3, 1], normal(rng_for(f"{op}/dropped"), grid("any", 4, 3)), "f64"
    if op == "gpg_advantage":  # α = 5/3, 7/6, 5/4, 7/3 and 5: verl rounds it to float32
        for number, scored in enumerate((3, 6, 4, 3, 1)):
            item = grid("uneven", 7 if number % 2 else 5, 2)
            drawn = [round(float(x), 4) for x in rng_for(f"{op}/uneven").normal(0.0, 1.0, item.rows)]
            scores = [x if row < scored else 0.0 for row, x in enumerate(drawn)]
            yield (
                f"uneven-{scored}-of-{item.rows}",
                item,
                [row % 2 for row in range(item.rows)],
                by_row(item, scores),
                "f64",
            )


def _case(op: str, name: str, item: Grid, dtype: str, run: Callable, inputs: dict, **more: object) -> Case:
    """A rejected call becomes an expected error. Values that are not finite in dropped slots are written as 0."""
    case = Case(op, **item.base(), inputs=inputs, name=name, dtype=dtype, **({"profile": verl.PROFILE} | more))
    try:
        out = run()
        dropped = item.mask_tensor() == 0
        case.expect = {key: torch.where(dropped & ~x.isfinite(), torch.zeros_like(x), x) for key, x in out.items()}
    except ValueError as error:
        case.error = str(error)
    return case


def grouped(op: str, norms: tuple[bool | None, ...] = (None,), whitens: bool = False) -> Iterator[Case]:
    for norm in norms:
        for name, item, groups, rewards, dtype in _draws(op):
            if op == "grpo_vectorized":  # its statistics are float32
                name, dtype = name.removesuffix("-f64"), "f32"
                if name.startswith("near-tied") or name.endswith("-f32"):
                    continue
            yield _case(
                op,
                name if norm is None else f"{name}-{'std' if norm else 'plain'}",
                item,
                dtype,
                lambda: verl.grouped(op, item.tensor(rewards, dtype), item.mask_tensor(dtype), groups, norm),
                {"rewards": rewards},
                groups=groups,
                params={} if norm is None else {"norm_by_std": norm},
                atol=1e-10 if whitens and name in EQUAL else None,
            )
    if whitens:
        run = lambda: verl.grouped(op, ONE_KEPT.tensor([1.0, 0.0, 2.0, 0.0]), ONE_KEPT.mask_tensor(), [0, 0])
        yield _case(op, "one-kept", ONE_KEPT, "f64", run, {"rewards": [1.0, 0.0, 2.0, 0.0]}, groups=[0, 0])


def gdpo() -> Iterator[Case]:
    settings = (
        (2, None),
        (3, [1.0, 0.5, 0.25]),
        (2, [0.7, 0.3]),
        (1, None),
        (2, [1.0, -0.5]),
        (4, [1.0, 0.0, 2.0, 1.0]),
    )
    plain = grid("plain", 4, 2)
    draws = [
        (f"{name}-{dtype}", item, groups, number, dtype)
        for number, (name, item, groups) in enumerate(GROUPS)
        for dtype in (("f64", "f32") if name in ("one-group", "interleaved", "pair-cols-17") else ("f64",))
    ]
    draws += [
        ("one-kept", ONE_KEPT, [0, 0], 0, "f64"),
        ("six", grid("six", 6, 4, "right"), [2, 0, 1, 2, 2, 0], 1, "f64"),
    ]
    fixed = {
        "binary": [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        "one-source-tied": [0.5, 0.5, 0.5, 0.5, 0.1, 0.9, -0.3, 0.2],
        "near-tied": [1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.0 + 2e-9, 0.3, 0.1, 0.2, 0.8],
    }
    draws += [(name, plain, [0, 0, 1, 1] if name == "binary" else [7, 7, 7, 7], 0, "f64") for name in fixed]
    for name, item, groups, number, dtype in draws:
        count, weights = settings[number % len(settings)]
        drawn = rng_for(f"gdpo/{name}").normal(0.0, 1.0, count * item.rows)
        sources = fixed.get(name, [round(float(x), 4) for x in drawn])
        tensor = torch.tensor(sources, dtype=DTYPES[dtype]).reshape(-1, item.rows)
        yield _case(
            "gdpo",
            name,
            item,
            dtype,
            lambda: verl.gdpo(tensor, item.mask_tensor(dtype), groups, weights),
            {"reward_sources": sources},
            groups=groups,
            params={} if weights is None else {"weights": weights},
            atol=1e-9 if name in ("near-tied", "one-row-f64") else None,
        )


def reinforce_plus_plus(ops, dtypes: tuple[str, ...]) -> Iterator[Case]:
    """OpenRLHF in float32 only, because its statistics are."""
    grids = GRIDS if ops is openrlhf_ops else (*GRIDS, ONE_KEPT)
    for number, item in enumerate(grids):
        for dtype in dtypes if item in SINGLE else dtypes[:1]:
            rng = rng_for(f"reinforce_plus_plus/{item.name}")
            rewards = normal(rng, item) if number % 2 else outcome(rng, item)
            if item.kept == 1 and ops is openrlhf_ops:
                continue
            gamma = GAMMAS[number % len(GAMMAS)]
            yield _case(
                "reinforce_plus_plus",
                f"{item.name}-{dtype}",
                item,
                dtype,
                lambda: ops.reinforce_plus_plus(item.tensor(rewards, dtype), item.mask_tensor(dtype), gamma),
                {"rewards": rewards},
                params={"gamma": gamma},
                profile=ops.PROFILE,
            )


def baseline_openrlhf() -> Iterator[Case]:
    """Groups of one get 0 here."""
    alone = (("alone", BY_NAME["padded"], 1, [2, 0, 1]), ("alone-mixed", BY_NAME["rows-5"], 1, [0, 1, 2, 4, 3]))
    more = (("pairs-wide", grid("four-wide", 4, 17, "holes"), 2, [3, 0, 2, 1]),)
    for name, item, size, index in OPENRLHF_GROUPS + more + alone:
        for draw in range(2):
            scores = [round(float(x), 4) for x in rng_for(f"rf-baseline/{name}/{draw}").normal(0.0, 1.0, item.rows)]
            tensor = torch.tensor(scores, dtype=torch.float32)
            yield _case(
                "reinforce_plus_plus_baseline",
                f"{name}-{draw}",
                item,
                "f32",
                lambda: openrlhf_ops.group_advantage(
                    "reinforce_baseline", tensor, item.mask_tensor("f32"), index, size
                ),
                {"rewards": by_row(item, scores)},
                groups=[i // size for i in index],
                profile=openrlhf_ops.PROFILE,
            )


def remax() -> Iterator[Case]:
    for number, item in enumerate(GRIDS):
        for dtype in ("f64", "f32") if item in SINGLE else ("f64",):
            rng = rng_for(f"remax/{item.name}")
            rewards = normal(rng, item) if number % 2 else outcome(rng, item)
            baselines = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
            tensor = torch.tensor(baselines, dtype=DTYPES[dtype])
            yield _case(
                "remax",
                f"{item.name}-{dtype}",
                item,
                dtype,
                lambda: verl.remax(item.tensor(rewards, dtype), item.mask_tensor(dtype), tensor),
                {"rewards": rewards, "baselines": baselines},
            )


def optimal(op: str) -> Iterator[Case]:
    """Σπ² between what the chosen token alone gives and 1. Garbage small enough for verl's exp and product."""
    more = (
        ("one-longest", Grid("longest", 3, 6, (1,) * 6 + (1, 1, 1, 0, 0, 0) + (1, 1, 0, 0, 0, 0)), [4, 4, 4]),
        ("longest-with-holes", Grid("gaps", 3, 6, (1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0)), [4, 4, 4]),
        ("two-longest", Grid("even", 3, 5, (1,) * 5 + (0, 1, 1, 1, 1) + (1, 1, 1, 1, 1)), [0, 0, 0]),
        ("six", grid("six", 6, 4, "right"), [2, 0, 1, 2, 2, 0]),
    )
    for number, (name, item, groups) in enumerate(GROUPS + more):
        rng = rng_for(f"otb/{name}")
        rewards = normal(rng, item, 1.0, 1e3) if number % 2 else outcome(rng, item)
        old = log_probs(rng, item, 20.0)
        share = rng.random(len(item.mask))
        pi = [2.718281828 ** min(x, 0.0) for x in old]
        squares = [round(p * p + (1 - p) * (1 - p) * float(u), 4) for p, u in zip(pi, share)]
        squares = [x if keep else 1e3 for x, keep in zip(squares, item.mask)]
        for dtype in ("f64", "f32") if name in ("one-group", "interleaved", "pair-cols-17") else ("f64",):
            for zero_tail in (True, False) if dtype == "f64" else (True,):
                if not zero_tail and number < len(GROUPS) and number % 3:
                    continue
                data = [item.tensor(x, dtype) for x in (rewards, old, squares)]
                yield _case(
                    op,
                    f"{name}-{'tail' if zero_tail else 'plain'}-{dtype}",
                    item,
                    dtype,
                    lambda: verl.optimal(op, data[0], item.mask_tensor(dtype), groups, *data[1:], zero_tail),
                    {"rewards": rewards, "old_log_probs": old, "sum_pi_squared": squares},
                    groups=groups,
                    params={"handle_zero_tail": zero_tail},
                )


FILES = {
    "advantage/grpo_passk.verl.json": ("verl", lambda: grouped("grpo_passk", (True, False))),
    "advantage/grpo_vectorized.verl.json": ("verl", lambda: grouped("grpo_vectorized", (True, False))),
    "advantage/rloo_vectorized.verl.json": ("verl", lambda: grouped("rloo_vectorized")),
    "advantage/opo.verl.json": ("verl", lambda: grouped("opo")),
    "advantage/gpg_advantage.verl.json": ("verl", lambda: grouped("gpg_advantage")),
    "advantage/reinforce_plus_plus_baseline.verl.json": (
        "verl",
        lambda: grouped("reinforce_plus_plus_baseline", whitens=True),
    ),
    "advantage/reinforce_plus_plus_baseline.openrlhf.json": ("openrlhf", baseline_openrlhf),
    "advantage/reinforce_plus_plus.verl.json": ("verl", lambda: reinforce_plus_plus(verl, ("f64", "f32"))),
    "advantage/reinforce_plus_plus.openrlhf.json": ("openrlhf", lambda: reinforce_plus_plus(openrlhf_ops, ("f32",))),
    "advantage/gdpo.verl.json": ("verl", gdpo),
    "advantage/remax.verl.json": ("verl", remax),
    "advantage/optimal_token_baseline.verl.json": ("verl", lambda: optimal("optimal_token_baseline")),
    "advantage/tir_optimal_token_baseline.verl.json": ("verl", lambda: optimal("tir_optimal_token_baseline")),
}
