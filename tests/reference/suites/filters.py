"""Gates, masks and filters of tokens, sequences and prompts, and what verl logs about them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import BY_NAME, DTYPES, GRIDS, SINGLE, Grid, grid, log_probs, near, normal, rng_for
from frameworks import openrlhf_ops, trl_generation, verl_filters
from golden import Case

EMPTY = Grid("empty", 2, 3, (0,) * 6)


def _pair(op: str, item: Grid, scale: float = 0.4, garbage: float = 20.0) -> tuple[list[float], list[float]]:
    """Old and rollout log-probabilities, both below 0."""
    rng = rng_for(f"{op}/{item.name}")
    rollout = log_probs(rng, item, -garbage)
    return [min(x, -0.0012) for x in near(rng, item, rollout, scale, -garbage)], rollout


GATES = (
    {"level": "token", "statistic": "ratio", "mode": "clip", "lower": 0.7, "upper": 1.35},
    {"level": "token", "statistic": "ratio", "mode": "mask", "lower": 0.7, "upper": 1.35},
    {"level": "token", "statistic": "binary_kl", "mode": "mask", "lower": 0.0, "upper": 0.02},
    {"level": "token", "statistic": "tv", "mode": "mask", "lower": 0.0, "upper": 0.08},
    {"level": "sequence", "statistic": "ratio", "mode": "mask", "lower": 0.85, "upper": 1.2},
    {"level": "sequence", "statistic": "binary_kl", "mode": "mask", "lower": 0.0, "upper": 0.03},
    {"level": "sequence", "statistic": "tv", "mode": "mask", "lower": 0.0, "upper": 0.07},
)
GATES_REFUSED = (
    {"level": "sequence", "statistic": "ratio", "mode": "clip", "lower": 0.5, "upper": 5.0},
    {"level": "token", "statistic": "tv", "mode": "clip", "lower": 0.0, "upper": 0.5},
    {"level": "token", "statistic": "binary_kl", "mode": "mask", "lower": 0.5, "upper": 5.0},
)


def rollout_gate() -> Iterator[Case]:
    """OpenRLHF counts a row without kept tokens as filtered; such rows are left out here."""

    def case(item: Grid, params: dict, dtype: str) -> Case:
        name = f"{params['level']}-{params['statistic']}-{params['mode']}-{item.name}-{dtype}"
        old, rollout = _pair("rollout_gate", item)
        made = Case(
            "rollout_gate",
            **item.base(),
            inputs={"old_log_probs": old, "rollout_log_probs": rollout},
            params=params,
            name=name,
            profile=openrlhf_ops.PROFILE,
            dtype=dtype,
        )
        run = lambda x, dtype: openrlhf_ops.rollout_gate(
            item.tensor(x, dtype), item.tensor(rollout, dtype), item.mask_tensor(dtype), params
        )
        try:
            made.expect = run(old, dtype)
        except ValueError as error:
            made.error = str(error)
            return made
        for move in (1e-5, -1e-5):  # no value is on a bound
            moved = run([x + move for x in old], "f64")
            assert abs(float(moved["filtered"]) - float(run(old, "f64")["filtered"])) < 1e-9, name
        return made

    grids = [item for item in GRIDS if item.name != "empty-rows"]
    for number, item in enumerate(grids):
        for params in GATES if item.name in ("holes", "rows-5") else (GATES[number % 7], GATES[(number + 3) % 7]):
            yield case(item, params, "f64")
    for item in SINGLE:
        for params in GATES[1::3]:
            yield case(item, params, "f32")
    for params in GATES_REFUSED:
        yield case(BY_NAME["padded"], params, "f64")


def off_policy_sequence_mask() -> Iterator[Case]:
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        for threshold in (0.1, 0.0):
            old, new = _pair("off_policy", item)
            rows = [
                round(float(x), 3) for x in rng_for(f"off_policy/{item.name}/{threshold}").normal(0.0, 1.0, item.rows)
            ]
            tensors = [item.tensor(x, dtype) for x in (new, old)]
            per_row = torch.tensor(rows, dtype=DTYPES[dtype])
            yield Case(
                "off_policy_sequence_mask",
                **item.base(),
                inputs={
                    "log_probs": new,
                    "old_log_probs": old,
                    "advantages": [rows[slot // item.cols] for slot in range(len(item.mask))],
                },
                params={"threshold": threshold},
                expect=trl_generation.off_policy_sequence_mask(*tensors, per_row, item.mask_tensor(dtype), threshold),
                name=f"{item.name}-{threshold}-{dtype}",
                profile=trl_generation.PROFILE,
                dtype=dtype,
            )
    # a token without a sampler score is not counted
    item = BY_NAME["padded"]
    old, new = _pair("off_policy", item)
    old[0] = float("nan")
    rows = torch.full((item.rows,), -1.0, dtype=torch.float64)
    out = trl_generation.off_policy_sequence_mask(item.tensor(new), item.tensor(old), rows, item.mask_tensor(), 0.05)
    yield Case(
        "off_policy_sequence_mask",
        **item.base(),
        inputs={"log_probs": new, "old_log_probs": old, "advantages": [-1.0] * len(item.mask)},
        params={"threshold": 0.05},
        expect=out,
        name="unscored",
        profile=trl_generation.PROFILE,
    )


def high_entropy_mask() -> Iterator[Case]:
    """No share has its quantile exactly on a token, where rounding would decide whether it is kept."""
    for number, item in enumerate(GRIDS + SINGLE + (EMPTY,)):
        dtype = "f32" if len(GRIDS) <= number < len(GRIDS) + 3 else "f64"
        for share in (0.2, 0.55, 1.0):
            entropy = [abs(x) for x in normal(rng_for(f"high_entropy/{item.name}"), item, 1.0, 50.0)]
            place = (1 - share) * max(item.kept - 1, 0)
            if share < 1.0 and abs(place - round(place)) < 1e-6:
                continue
            yield Case(
                "high_entropy_mask",
                **item.base(),
                inputs={"entropy": entropy},
                params={"share": share},
                expect=trl_generation.high_entropy_mask(item.tensor(entropy, dtype), item.mask_tensor(dtype), share),
                name=f"{item.name}-{share}-{dtype}",
                profile=trl_generation.PROFILE,
                dtype=dtype,
            )


def response_mask_from_eos() -> Iterator[Case]:
    for item in GRIDS:
        full = grid(item.name, item.rows, item.cols)
        tokens = [int(x) for x in rng_for(f"eos/{item.name}").integers(0, 6, len(item.mask))]
        for eos in ([2], [1, 4], [9]):
            tensor = torch.tensor(tokens).reshape(item.rows, item.cols)
            yield Case(
                "response_mask_from_eos",
                **full.base(),
                inputs={"tokens": tokens, "eos": eos},
                expect=verl_filters.response_mask_from_eos(tensor, eos),
                name=f"{item.name}-{len(eos)}-{eos[0]}",
                profile=verl_filters.PROFILE,
            )


def probability_difference() -> Iterator[Case]:
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        old, rollout = _pair("probability", item, 0.3)
        out = verl_filters.probability_difference(
            item.tensor(old, dtype), item.tensor(rollout, dtype), item.mask_tensor(dtype)
        )
        yield Case(
            "probability_difference",
            **item.base(),
            inputs={"old_log_probs": old, "rollout_log_probs": rollout},
            expect=out,
            name=f"{item.name}-{dtype}",
            profile=verl_filters.PROFILE,
            dtype=dtype,
        )


def variance_proxy() -> Iterator[Case]:
    for number, item in enumerate(GRIDS + SINGLE):
        dtype = "f64" if number < len(GRIDS) else "f32"
        for weighted in (False, True):
            rng = rng_for(f"variance_proxy/{item.name}/{weighted}")
            old = log_probs(rng, item, -3.0)
            inputs = {
                "old_log_probs": old,
                "sum_pi_squared": [round(float(x), 4) for x in rng.random(len(item.mask))],
                "advantages": normal(rng, item),
            }
            if weighted:
                weights = [round(float(x), 4) for x in rng.uniform(0.0, 2.0, len(item.mask))]
                inputs["rollout_weights"] = [0.0 if slot % 5 == 4 else x for slot, x in enumerate(weights)]
            norm = (0.05, 0.7, 30.0)[number % 3]
            tensors = [item.tensor(x, dtype) for x in inputs.values()]
            out = verl_filters.variance_proxy(
                *tensors[:3], item.mask_tensor(dtype), norm, tensors[3] if weighted else None
            )
            yield Case(
                "variance_proxy",
                **item.base(),
                inputs=inputs,
                params={"gradient_norm": norm},
                expect=out,
                name=f"{item.name}-{'weighted' if weighted else 'plain'}-{dtype}",
                profile=verl_filters.PROFILE,
                dtype=dtype,
            )


# eighths: their sums are exact, so equal scores have deviation 0 in verl too
FILTERS = (
    ("mixed", [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.5], [0, 0, 1, 1, 2, 2, 3]),
    ("interleaved", [1.0, 0.25, 1.0, 0.25, 1.0, 0.375], [7, 3, 7, 3, 7, 3]),
    ("all-alone", [0.0, 1.0, -2.5], [5, 6, 1000000]),
    ("all-equal", [0.125] * 8, [0, 0, 0, 0, 1, 1, 1, 1]),
    ("barely-different", [1.0, 1.0 + 2.0**-40, 1.0, 1.0], [0, 0, 1, 1]),
    ("negative", [-1.0, -1.0, -1.0, 1.0], [0, 0, 1, 1]),
)


def dynamic_sampling_filter() -> Iterator[Case]:
    for name, scores, groups in FILTERS:
        yield Case(
            "dynamic_sampling_filter",
            rows=len(scores),
            cols=1,
            mask=[1] * len(scores),
            groups=groups,
            inputs={"scores": scores},
            expect=verl_filters.dynamic_sampling_filter(scores, groups),
            name=name,
            profile=verl_filters.PROFILE,
        )


def pf_ppo_weights() -> Iterator[Case]:
    methods = ({"method": "pow"}, {"method": "pow", "power": 1.0}, {"method": "pow", "power": 0.5})
    methods += ({"method": "pow", "power": 3.0}, {"method": "max_min"}, {"method": "max_random"})
    for rows in (1, 2, 5, 9):
        scores = [round(float(x), 4) for x in rng_for(f"pf_ppo/{rows}").normal(0.0, 2.0, rows)]
        if rows > 4:
            scores[3], scores[4] = 0.0, max(scores)
        for params in methods:
            for dtype in ("f64", "f32") if rows == 5 and "power" not in params else ("f64",):
                out = verl_filters.pf_ppo_weights(torch.tensor(scores, dtype=DTYPES[dtype]), params)
                yield Case(
                    "pf_ppo_weights",
                    rows=rows,
                    cols=1,
                    mask=[1] * rows,
                    inputs={"scores": scores},
                    params=params,
                    expect=out,
                    name=f"{params['method']}-{params.get('power', 'default')}-{rows}-{dtype}",
                    profile=verl_filters.PROFILE,
                    dtype=dtype,
                )


FILES = {
    "rollout/rollout_gate.openrlhf.json": ("openrlhf", rollout_gate),
    "rollout/off_policy_sequence_mask.trl.json": ("trl", off_policy_sequence_mask),
    "rollout/high_entropy_mask.trl.json": ("trl", high_entropy_mask),
    "rollout/response_mask_from_eos.verl.json": ("verl", response_mask_from_eos),
    "rollout/probability_difference.verl.json": ("verl", probability_difference),
    "rollout/dynamic_sampling_filter.verl.json": ("verl", dynamic_sampling_filter),
    "rollout/pf_ppo_weights.verl.json": ("verl", pf_ppo_weights),
    "metric/variance_proxy.verl.json": ("verl", variance_proxy),
}
