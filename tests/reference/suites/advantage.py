"""Stage 4, advantage: returns, GAE and the group estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cases import BY_NAME, GRIDS, MANY, SINGLE, Grid, grid, normal, outcome, rng_for
from frameworks import openrlhf_ops, verl_ops
from golden import Case

SETTINGS = ((1.0, 1.0), (0.99, 0.95), (0.9, 0.8), (1.0, 0.95), (0.5, 0.0), (1.0, 0.0))
ONE_KEPT = Grid("one-kept", 2, 2, (0, 0, 1, 0))


def _gae_case(item: Grid, number: int, dtype: str, whiten: bool, profile: str, run: Callable, **more: object) -> Case:
    rng = rng_for(f"gae/{item.name}")
    rewards = normal(rng, item) if number % 3 else outcome(rng, item)
    values = normal(rng, item)
    gamma, lam = SETTINGS[number % len(SETTINGS)]
    params = {"gamma": gamma, "lambda": lam, "whiten": whiten}
    case = Case(
        "gae",
        **item.base(),
        inputs={"rewards": rewards, "values": values},
        params=params,
        profile=profile,
        name=f"{item.name}-{'whitened' if whiten else 'raw'}-{dtype}",
        dtype=dtype,
        **more,
    )
    try:
        case.expect = run(item.tensor(rewards, dtype), item.tensor(values, dtype), item.mask_tensor(dtype), gamma, lam)
    except ValueError as error:
        case.error = str(error)
    return case


def gae_verl() -> Iterator[Case]:
    def case(item: Grid, number: int, dtype: str, whiten: bool) -> Case:
        run = lambda r, v, m, gamma, lam: verl_ops.gae(r, v, m, gamma, lam, whiten)
        return _gae_case(item, number, dtype, whiten, verl_ops.PROFILE, run)

    for number, item in enumerate(GRIDS):
        yield case(item, number, "f64", True)
        yield case(item, number, "f64", False)
    for item in SINGLE:
        yield case(item, 1, "f32", True)
    yield case(ONE_KEPT, 1, "f64", True)
    yield case(ONE_KEPT, 1, "f64", False)


def gae_openrlhf() -> Iterator[Case]:
    """Raw advantages in float64; normalised ones in float32, because OpenRLHF's statistics are."""
    for number, item in enumerate(GRIDS):
        yield _gae_case(item, number, "f64", False, openrlhf_ops.PROFILE, openrlhf_ops.gae)
        if item in MANY and item.name not in ("cols-31", "cols-33"):
            yield _gae_case(item, number, "f32", True, openrlhf_ops.PROFILE, openrlhf_ops.gae_whitened)


def discounted_returns(ops) -> Iterator[Case]:
    for number, item in enumerate(GRIDS):
        for dtype in ("f64", "f32") if item in SINGLE else ("f64",):
            rng = rng_for(f"returns/{item.name}")
            rewards = normal(rng, item) if number % 2 else outcome(rng, item)
            gamma = (1.0, 0.99, 0.9, 0.5, 0.0)[number % 5]
            out = ops.discounted_returns(item.tensor(rewards, dtype), item.mask_tensor(dtype), gamma)
            yield Case(
                "discounted_returns",
                **item.base(),
                inputs={"rewards": rewards},
                params={"gamma": gamma},
                expect=out,
                name=f"{item.name}-{dtype}",
                profile=ops.PROFILE,
                dtype=dtype,
            )


GROUPS: tuple[tuple[str, Grid, list[int]], ...] = (
    ("one-row", BY_NAME["one-row"], [0]),
    ("one-group", BY_NAME["padded"], [5, 5, 5]),
    ("two-and-one", BY_NAME["holes"], [1, 0, 1]),
    ("all-alone", BY_NAME["padded"], [2, 0, 1]),
    ("one-column", BY_NAME["one-column"], [0, 0, 0, 0, 0]),
    ("interleaved", BY_NAME["rows-5"], [7, 3, 7, 3, 7]),
    ("large-ids", BY_NAME["rows-5"], [1000000, 4, 4, 1000000, 123]),
    ("empty-rows", BY_NAME["empty-rows"], [0, 0, 1, 1]),
    ("pair-cols-8", BY_NAME["cols-8"], [1, 1]),
    ("pair-cols-9", BY_NAME["cols-9"], [0, 0]),
    ("pair-cols-17", grid("pair", 2, 17, "holes"), [9, 9]),
    ("four", grid("four", 4, 3, "right"), [1, 0, 0, 1]),
)


def by_row(item: Grid, scores: list[float]) -> list[float]:
    """Each score on its row's last kept slot."""
    flat = [0.0] * len(item.mask)
    for row, score in enumerate(scores):
        kept = [c for c in range(item.cols) if item.mask[row * item.cols + c]]
        flat[row * item.cols + kept[-1]] = score
    return flat


def group_draws(op: str) -> Iterator[tuple[str, Grid, list[int], list[float], str]]:
    for name, item, groups in GROUPS:
        for dtype in ("f64", "f32") if name in ("one-group", "interleaved", "pair-cols-17") else ("f64",):
            rewards = outcome(rng_for(f"{op}/{name}"), item)
            yield f"{name}-{dtype}", item, groups, rewards, dtype
    item = grid("plain", 4, 2)
    dense = normal(rng_for(f"{op}/dense"), BY_NAME["rows-5"], garbage=0.0)
    yield "dense-rewards", BY_NAME["rows-5"], [0, 1, 0, 1, 1], dense, "f64"
    yield "binary", item, [0, 0, 0, 0], by_row(item, [1.0, 0.0, 0.0, 1.0]), "f64"
    yield "tied", item, [0, 0, 1, 1], by_row(item, [0.1, 0.1, -3.0, -3.0]), "f64"
    yield "near-tied", item, [0, 0, 0, 0], by_row(item, [1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.0 + 2e-9]), "f64"
    yield "near-tied-zero", item, [0, 1, 0, 1], by_row(item, [0.0, 1e-9, 1e-9, -1e-9]), "f64"


def grpo() -> Iterator[Case]:
    for norm_by_std in (True, False):
        for name, item, groups, rewards, dtype in group_draws("grpo"):
            out = verl_ops.grpo(item.tensor(rewards, dtype), item.mask_tensor(dtype), groups, norm_by_std)
            yield Case(
                "grpo",
                **item.base(),
                groups=groups,
                inputs={"rewards": rewards},
                params={"norm_by_std": norm_by_std},
                expect=out,
                name=f"{name}-{'std' if norm_by_std else 'plain'}",
                profile=verl_ops.PROFILE,
                dtype=dtype,
            )


def rloo() -> Iterator[Case]:
    for name, item, groups, rewards, dtype in group_draws("rloo"):
        out = verl_ops.rloo(item.tensor(rewards, dtype), item.mask_tensor(dtype), groups)
        yield Case(
            "rloo",
            **item.base(),
            groups=groups,
            inputs={"rewards": rewards},
            params={},
            expect=out,
            name=name,
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )


OPENRLHF_GROUPS = (
    ("pairs", grid("four", 4, 3, "right"), 2, [0, 1, 2, 3]),
    ("pairs-mixed-order", grid("four", 4, 3, "right"), 2, [2, 0, 3, 1]),
    ("triples", grid("six", 6, 4, "holes"), 3, [5, 0, 3, 1, 4, 2]),
    ("one-group", BY_NAME["rows-5"], 5, [4, 3, 2, 1, 0]),
    ("pair-cols-9", BY_NAME["cols-9"], 2, [1, 0]),
)


def group_openrlhf(op: str, estimators: dict[str, dict[str, bool]]) -> Iterator[Case]:
    """OpenRLHF needs groups of equal size; `index` may reorder their rows."""
    for estimator, params in estimators.items():
        for name, item, size, index in OPENRLHF_GROUPS:
            scores = [round(float(x), 4) for x in rng_for(f"openrlhf/{name}").normal(0.0, 1.0, item.rows)]
            tensor = item.tensor([0.0] * len(item.mask))[:, 0].clone()
            tensor[:] = tensor.new_tensor(scores)
            out = openrlhf_ops.group_advantage(estimator, tensor, item.mask_tensor(), index, size)
            yield Case(
                op,
                **item.base(),
                groups=[i // size for i in index],
                inputs={"rewards": by_row(item, scores)},
                params=params,
                expect=out,
                name=f"{estimator}-{name}",
                profile=openrlhf_ops.PROFILE,
            )


FILES = {
    "advantage/gae.verl.json": ("verl", gae_verl),
    "advantage/gae.openrlhf.json": ("openrlhf", gae_openrlhf),
    "advantage/discounted_returns.verl.json": ("verl", lambda: discounted_returns(verl_ops)),
    "advantage/discounted_returns.openrlhf.json": ("openrlhf", lambda: discounted_returns(openrlhf_ops)),
    "advantage/grpo.verl.json": ("verl", grpo),
    "advantage/grpo.openrlhf.json": (
        "openrlhf",
        lambda: group_openrlhf("grpo", {"group_norm": {"norm_by_std": True}, "dr_grpo": {"norm_by_std": False}}),
    ),
    "advantage/rloo.verl.json": ("verl", rloo),
    "advantage/rloo.openrlhf.json": ("openrlhf", lambda: group_openrlhf("rloo", {"rloo": {}})),
}
