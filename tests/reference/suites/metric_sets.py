"""Stage 6: everything that a trainer logs for a batch, and how verl merges micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np

from cases import BY_NAME, GRIDS, SINGLE, Grid, log_probs, near, normal, rng_for
from frameworks import metric_sets, openrlhf_ops, openrlhf_status, trl_ops, verl_ops
from golden import Case

EMPTY = Grid("empty", 2, 2, (0, 0, 0, 0))
ONE_KEPT = Grid("one-kept", 2, 2, (0, 0, 1, 0))
POLICIES = ("log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs")


def _draw(op: str, item: Grid, names: tuple[str, ...]) -> tuple[np.random.Generator, dict[str, list[float]]]:
    """Similar policies and moderate values; zeros in dropped slots, because verl sums those too."""
    rng = rng_for(f"{op}/{item.name}")
    old = log_probs(rng, item, 0.0)
    data = {name: old if name == "old_log_probs" else near(rng, item, old, 0.3, 0.0) for name in POLICIES}
    data |= {name: normal(rng, item, 1.0, 0.0) for name in names}
    data |= {name: [abs(x) for x in data[name]] for name in names if name in ("entropies", "sum_pi_squared")}
    return rng, data


def _far_from_bounds(data: dict[str, list[float]], item: Grid) -> None:
    for new, old, keep in zip(data["log_probs"], data["old_log_probs"], item.mask):
        assert not keep or all(abs(math.exp(new - old) - bound) > 1e-6 for bound in (0.8, 1.2, 3.0)), item.name


def verl() -> Iterator[Case]:
    names = ("scores", "rewards", "advantages", "returns", "values", "predictions", "entropies", "sum_pi_squared")
    for number, item in enumerate(GRIDS + (EMPTY, ONE_KEPT) + SINGLE):
        dtype = "f64" if number < len(GRIDS) + 2 else "f32"
        rng, data = _draw("verl_metrics", item, names)
        _far_from_bounds(data, item)
        rows = [item.mask[i * item.cols : (i + 1) * item.cols] for i in range(item.rows)]
        # a response includes dropped tokens; an aborted one has no kept token
        lengths = [max((t + 1 for t, keep in enumerate(row) if keep), default=0) for row in rows]
        prompts = [int(n) for n in rng.integers(1, 5, item.rows)]
        params = {
            "prompt_limit": 4,
            "kl_coefficient": 0.01,
            "entropy_coefficient": 0.1 * (number % 2),
            "gradient_norm": 0.25 + number / 8,
        }
        tensors = {name: item.tensor(values, dtype) for name, values in data.items()}
        if item is EMPTY:  # verl rejects it with sampler log-probabilities
            del data["rollout_log_probs"]
        yield Case(
            "verl_metrics",
            **item.base(),
            inputs=data | {"response_lengths": lengths, "prompt_lengths": prompts},
            params=params,
            expect=metric_sets.verl_metrics(tensors, item.mask_tensor(dtype), lengths, prompts, params),
            name=f"{item.name}-{dtype}",
            profile=verl_ops.PROFILE,
            dtype=dtype,
            # differences of float32 sums
            rtol=None if dtype == "f64" else 1e-4,
            atol=None if dtype == "f64" else 2e-5,
        )


def reductions() -> Iterator[Case]:
    values = [0.5, -2.25, 3.0, 0.125]
    keys = ("critic/score/mean", "critic/score/max", "critic/score/min", "actor/pg_loss", "global_seqlen/minmax_diff")
    for key in keys:
        expect = metric_sets.reduce(key, values)
        inputs = {"values": values}
        yield Case("reduce_metrics", 1, 4, [1] * 4, inputs, expect, {"key": key}, name=key, profile=verl_ops.PROFILE)


def trl() -> Iterator[Case]:
    """Every row has a kept token, and more than one column: TRL takes a single column for a per-sequence value."""
    modes = ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
    grids = tuple(item for item in GRIDS if item.cols > 1 and item.name != "empty-rows")
    for number, item in enumerate(grids + SINGLE):
        dtype = "f64" if number < len(grids) else "f32"
        rng, data = _draw("trl_metrics", item, ("entropies",))
        _far_from_bounds(data, item)
        level, mode = ("token", "sequence")[number // 2 % 2], modes[number % 4]
        generations = item.rows if number % 3 else 1
        one = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
        sources = [one if number % 4 else [0.5] * item.rows, [math.nan if i % 2 else 0.25 for i in range(item.rows)]]
        advantages = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
        more = SimpleNamespace(
            prompts=[int(n) for n in rng.integers(1, 5, item.rows)],
            truncated=[bool(x) for x in rng.integers(0, 2, item.rows)],
            sources=sources,
            advantages=advantages,
        )
        params = {
            "clip_low": 0.2,
            "clip_high": 0.2,
            "dual_clip": (None, 3.0)[number % 2],
            "level": level,
            "mode": mode,
            "generations": generations,
            "scale": ("group", "batch")[number // 3 % 2],
            "source_weights": [1.0, 0.5],
            "entropy_coefficient": 0.05,
            "tokens_seen": 10 * number,
        }
        if number % 5 == 1:  # the sampler did not score the first kept token
            data["rollout_log_probs"] = list(data["rollout_log_probs"])
            data["rollout_log_probs"][item.mask.index(1)] = math.nan
        if number % 2:
            del data["ref_log_probs"]
        tensors = {name: item.tensor(values, dtype) for name, values in data.items()}
        expect, weights = metric_sets.trl_metrics(tensors, item.mask_tensor(dtype), more, params)
        yield Case(
            "trl_metrics",
            **item.base(),
            groups=[i // generations for i in range(item.rows)],
            inputs=data
            | {
                "weights": weights.reshape(-1).tolist(),
                "advantages": [a for a in advantages for _ in range(item.cols)],
                "sources": [x for source in sources for x in source],
                "prompt_lengths": more.prompts,
                "completion_lengths": [sum(item.mask[i * item.cols : (i + 1) * item.cols]) for i in range(item.rows)],
                "truncated": [int(x) for x in more.truncated],
            },
            params=params,
            expect=expect,
            name=f"{item.name}-{level}-{mode}-{dtype}",
            profile=trl_ops.PROFILE,
            dtype=dtype,
        )


def openrlhf() -> Iterator[Case]:
    """Every row has a kept token: the gate would count an empty row as filtered, with mean NaN."""
    names = ("advantages", "returns", "values", "predictions", "entropies", "rewards")
    grids = tuple(item for item in GRIDS if item.name != "empty-rows")
    for number, item in enumerate(grids + SINGLE):
        dtype = "f64" if number < len(grids) else "f32"
        rng, data = _draw("openrlhf_metrics", item, names)
        _far_from_bounds(data, item)
        rows = [item.mask[i * item.cols : (i + 1) * item.cols] for i in range(item.rows)]
        # as its samples_generator counts them
        kept = [[t for t, keep in enumerate(row) if keep] for row in rows]
        lengths = [slots[-1] - slots[0] + 1 for slots in kept]
        more = SimpleNamespace(
            scores=[round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)],
            response_lengths=lengths,
            total_lengths=[int(a + b) for a, b in zip(lengths, rng.integers(1, 5, item.rows))],
            truncated=[bool(x) for x in rng.integers(0, 2, item.rows)],
        )
        params = {
            "kl_use": ("reward", "loss")[number % 2],
            "samples": item.rows,
            "limit": 8,
            "gate": ("token", "seq", "off")[number % 3],
        }
        tensors = {name: item.tensor(values, dtype) for name, values in data.items()}
        yield Case(
            "openrlhf_metrics",
            **item.base(),
            groups=[0] * item.rows,
            inputs=data
            | {
                "scores": more.scores,
                "total_lengths": more.total_lengths,
                "truncated": [int(x) for x in more.truncated],
            },
            params=params,
            expect=openrlhf_status.openrlhf_metrics(tensors, item.mask_tensor(dtype), more, params),
            name=f"{item.name}-{params['kl_use']}-{params['gate']}-{dtype}",
            profile=openrlhf_ops.PROFILE,
            dtype=dtype,
        )


FILES = {
    "metric/verl_metrics.verl.json": ("verl", verl),
    "metric/reduce_metrics.verl.json": ("verl", reductions),
    "metric/trl_metrics.trl.json": ("trl", trl),
    "metric/openrlhf_metrics.openrlhf.json": ("openrlhf", openrlhf),
}
