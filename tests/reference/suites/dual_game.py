"""The dual game of docs/bnto.md in plain torch, gradients by autograd: no framework has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from cases import BY_NAME, GARBAGE, GRIDS, SINGLE, Grid, grid, rng_for
from golden import Case

MODES = (
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
    "prompt-mean",
)
WEIGHTS = ("plain", "kl-gated", "structural")
GRADIENTS = ("detached", "through")
SETTINGS = (  # gamma, lambda, beta, clip_low, clip_high
    (1.2, 0.5, 0.05, 0.2, 0.2),
    (0.8, 2.0, 0.5, 0.2, 0.28),
    (1.5, 0.0, 1.0, 0.1, 0.3),
    (1.0, 3.0, 0.0, 0.3, 0.1),
    (1.0, 0.0, 0.0, 0.2, 0.2),
)
E = 1e-6


def aggregate(losses: torch.Tensor, mask: torch.Tensor, mode: str, scale: float, groups: list[int]) -> torch.Tensor:
    """Over non-empty rows; prompts without a kept token count as one."""
    kept, lengths = losses * mask, mask.sum(-1)
    rows = int((lengths > 0).sum())
    if mode == "prompt-mean":
        sums = [(kept[i := [r for r, g in enumerate(groups) if g == p]].sum(), lengths[i].sum()) for p in set(groups)]
        return sum(total / max(float(n), 1.0) for total, n in sums) / len(set(groups))
    return {
        "token-mean": lambda: kept.sum() / mask.sum(),
        "token-sum": lambda: kept.sum(),
        "seq-mean-token-sum": lambda: kept.sum() / rows,
        "seq-mean-token-mean": lambda: (kept.sum(-1) / lengths.clamp(min=1)).sum() / rows,
        "seq-mean-token-sum-norm": lambda: kept.sum() / rows / scale,
    }[mode]()


def jump(advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """|A_t − A_{t−1}| over the kept tokens of a row."""
    out = torch.zeros_like(advantages)
    for r in range(mask.shape[0]):
        at = mask[r].nonzero().flatten()
        out[r, at[1:]] = (advantages[r, at[1:]] - advantages[r, at[:-1]]).abs()
    return out


def trie(
    tokens: torch.Tensor, rewards: torch.Tensor, mask: torch.Tensor, groups: list[int], params: dict
) -> torch.Tensor:
    """The spread of the branches of a group at each position."""
    out, scores = torch.zeros_like(rewards), (rewards * mask).sum(-1)
    for r in range(mask.shape[0]):
        for t in range(mask.shape[1]):
            if mask[r, t] == 0:
                continue
            branches: dict[int, list[float]] = {}
            for o in range(mask.shape[0]):
                prefix = torch.equal(mask[o, :t], mask[r, :t]) and torch.equal(
                    (tokens * mask)[o, :t], (tokens * mask)[r, :t]
                )
                if groups[o] == groups[r] and mask[o, t] > 0 and (params.get("prefix") != "same" or prefix):
                    branches.setdefault(int(tokens[o, t]), []).append(float(scores[o]))
            kept = [
                torch.tensor(b, dtype=torch.float64) for b in branches.values() if len(b) >= params["min_branch_size"]
            ]
            if len(branches) < 2 or not kept:
                continue
            values = torch.stack([b.median() if params["branch_value"] == "median" else b.mean() for b in kept])
            out[r, t] = {
                "variance": lambda: values.var(unbiased=False),
                "iqr": lambda: torch.quantile(values, 0.75) - torch.quantile(values, 0.25),
                "range": lambda: values.max() - values.min(),
            }[params["branch_spread"]]()
    return out


def structural(
    new: torch.Tensor, advantages: torch.Tensor, complexity: torch.Tensor, mask: torch.Tensor, params: dict
) -> torch.Tensor:
    """max(0, c·z(C) + α·z(S) + β·z(D)) over the batch or each sequence."""
    alone = params.get("scope") == "sequence"

    def mean(x: torch.Tensor) -> torch.Tensor:
        if alone:
            return (x * mask).sum(-1, keepdim=True) / (mask.sum(-1, keepdim=True) + E)
        return (x * mask).sum() / mask.sum().clamp(min=1)

    def z(x: torch.Tensor) -> torch.Tensor:
        mu = mean(x)
        sigma = torch.sqrt(mean((x - mu) ** 2) + E)
        return ((x - mu) / (sigma + E)).clamp(-3.0, 3.0)

    s = -new
    d = advantages * (s - mean(s))
    c, alpha, beta = params.get("c", 1.0), params.get("alpha", 0.3), params.get("structural_beta", 0.2)
    return (c * z(complexity) + alpha * z(s) + beta * z(d)).clamp(min=0.0).detach()


def loss_and_grad(data: dict[str, torch.Tensor], mask: torch.Tensor, params: dict, groups: list[int]) -> dict[str, Any]:
    """The equations; dropped slots are removed first."""
    data = {key: torch.where(mask > 0, x, torch.zeros_like(x)) for key, x in data.items()}
    new = data["log_probs"].clone().requires_grad_(True)
    old, ref, a = data["old_log_probs"], data.get("ref_log_probs"), data["advantages"]
    p = torch.exp(new)
    if params["weight"] == "structural":
        if "importance" in data:
            w = data["importance"]
        else:
            by_trie = params.get("complexity") == "trie"
            c = trie(data["tokens"], data["rewards"], mask, groups, params) if by_trie else jump(a, mask)
            w = structural(new.detach(), a, c, mask, params)
    else:
        w = p * (1 - p) * a.abs()
        if params["weight"] == "kl-gated" and ref is not None:
            w = w * (new - ref).abs()
    base = a.clamp(min=0) + params["gamma"] * a.clamp(max=0)
    modified = base - params["lambda"] * w * (-new - 1)
    if ref is not None:
        modified = modified - params["beta"] * (new - ref)
    if params["gradient"] == "detached":
        modified = modified.detach()
    x = (new - old).clamp(-20, 20)
    ratio = torch.exp(x)
    inside = ratio.clamp(1 - params["clip_low"], 1 + params["clip_high"])
    first, second = -modified * ratio, -modified * inside
    loss = aggregate(torch.maximum(first, second), mask, params["aggregate"], params.get("scale_factor", 1.0), groups)
    n = mask.sum()
    # no token may be where the derivative is ambiguous; A_mod is 0 only where its derivative is 0 too
    edges = [ratio - (1 - params["clip_low"]), ratio - (1 + params["clip_high"]), (new - old).abs() - 20]
    for edge in edges:
        assert float(edge.detach()[mask > 0].abs().min()) > 1e-6
    return {
        "loss": loss,
        "grad": torch.autograd.grad(loss, new)[0],
        "clip_fraction": ((second > first) * mask).sum() / n,
        "clip_fraction_upper": ((second > first) * (modified > 0) * mask).sum() / n,
        "clip_fraction_lower": ((second > first) * (modified < 0) * mask).sum() / n,
        "kl": (-x * mask).sum() / n,
        "weights": w,
    }


def drawn(name: str, item: Grid) -> dict[str, list[float]]:
    """Log-probabilities of three policies, advantages, tokens and rewards; garbage in dropped slots."""
    rng = rng_for(f"dual_game/{name}")
    old = -rng.uniform(0.01, 4.0, len(item.mask))
    columns = {
        "log_probs": old + rng.normal(0.0, 0.35, len(old)),
        "old_log_probs": old,
        "ref_log_probs": old + rng.normal(0.0, 0.5, len(old)),
        "advantages": rng.normal(0.0, 1.0, len(old)),
        "rewards": rng.normal(0.0, 1.0, len(old)),
    }
    out = {
        key: [round(float(v), 4) if m else GARBAGE for v, m in zip(values, item.mask)]
        for key, values in columns.items()
    }
    return out | {"tokens": [float(v) for v in rng.integers(0, 3, len(old))]}


def case(name: str, item: Grid, data: dict[str, list[float]], params: dict, dtype: str = "f64") -> Case:
    groups = [r % max(1, (item.rows + 1) // 2) for r in range(item.rows)]
    wanted = ["log_probs", "old_log_probs", "ref_log_probs", "advantages"]
    wanted += ["tokens", "rewards"] if params.get("complexity") == "trie" else []
    wanted += [key for key in ("importance",) if key in data]
    inputs = {key: data[key] for key in wanted if key in data}
    # always in float64: the test is about our rounding, not torch's
    expect = loss_and_grad(
        {
            key: item.tensor(x).to(torch.float32).double() if dtype == "f32" else item.tensor(x)
            for key, x in inputs.items()
        },
        item.mask_tensor(),
        params,
        groups,
    )
    needs = params["aggregate"] == "prompt-mean" or params.get("complexity") == "trie"
    return Case(
        "dual_game",
        **item.base(),
        inputs=inputs,
        params=params,
        expect=expect,
        groups=groups if needs else None,
        name=f"{name}-{dtype}",
        dtype=dtype,
    )


def settings(number: int, weight: str, gradient: str, mode: str) -> dict[str, Any]:
    gamma, lam, beta, low, high = SETTINGS[number % len(SETTINGS)]
    params = {"gamma": gamma, "lambda": lam, "beta": beta, "clip_low": low, "clip_high": high}
    params |= {"weight": weight, "gradient": gradient, "aggregate": mode}
    return params | ({"scale_factor": 7.0} if mode == "seq-mean-token-sum-norm" else {})


def plain_and_gated(weight: str) -> Iterator[Case]:
    number = 0
    for gradient in GRADIENTS:
        for item in GRIDS:
            params = settings(number, weight, gradient, MODES[number % len(MODES)])
            yield case(f"{item.name}-{gradient}-{number}", item, drawn(item.name, item), params)
            number += 1
        for mode in MODES:
            item = BY_NAME["rows-5"]
            data = drawn(f"rows-5/{mode}", item)
            yield case(f"rows-5-{gradient}-{mode}", item, data, settings(number % 2, weight, gradient, mode))
        for item in SINGLE:
            yield case(
                f"{item.name}-{gradient}", item, drawn(item.name, item), settings(0, weight, gradient, MODES[0]), "f32"
            )
        # log-ratios beyond ±20, tokens with p near 1 and near 0, an advantage of 0
        far = [25.0, -25.0, 19.0, -19.0, 0.05, -0.05] * 3
        old = [-26.0, -0.5, -21.0, -1.0, -1.0, -1.0] * 3
        data = {
            "log_probs": [o + f for o, f in zip(old, far)],
            "old_log_probs": old,
            "ref_log_probs": [-3.0, -24.0, -1.5, -22.0, -0.25, -2.0] * 3,
            "advantages": [1.0] * 6 + [-1.0] * 6 + [0.0] * 6,
        }
        yield case(f"far-{gradient}", grid("far", 3, 6), data, settings(0, weight, gradient, "token-sum"))
        without = {key: x for key, x in drawn("no-reference", BY_NAME["rows-5"]).items() if key != "ref_log_probs"}
        yield case(f"no-reference-{gradient}", BY_NAME["rows-5"], without, settings(1, weight, gradient, "token-mean"))


def structured() -> Iterator[Case]:
    number = 0
    for item in GRIDS:
        for scope in ("batch", "sequence"):
            params = settings(number, "structural", GRADIENTS[number % 2], MODES[number % len(MODES)]) | {
                "scope": scope
            }
            yield case(f"{item.name}-jump-{scope}", item, drawn(item.name, item), params)
            number += 1
    for item in [item for item in GRIDS if item.rows > 1]:
        for value in ("mean", "median"):
            for spread in ("variance", "iqr", "range"):
                params = settings(number, "structural", GRADIENTS[number % 2], MODES[number % len(MODES)])
                params |= {"complexity": "trie", "branch_value": value, "branch_spread": spread}
                params |= {"min_branch_size": 1 + number % 3 // 2, "prefix": ("any", "same")[number // 3 % 2]}
                params |= {"c": 0.5, "alpha": -0.25, "structural_beta": 0.75} if number % 4 == 0 else {}
                yield case(f"{item.name}-trie-{value}-{spread}", item, drawn(item.name, item), params)
                number += 1
    for gradient in GRADIENTS:
        item = BY_NAME["rows-5"]
        data = drawn("given", item)
        data |= {"importance": [abs(x) for x in data["rewards"]]}
        yield case(f"given-{gradient}", item, data, settings(0, "structural", gradient, "token-mean"))
    for item in SINGLE:
        yield case(
            f"{item.name}-jump", item, drawn(item.name, item), settings(0, "structural", "through", MODES[0]), "f32"
        )


FILES = {
    "loss/dual_game.plain.json": ("equations", lambda: plain_and_gated("plain")),
    "loss/dual_game.kl-gated.json": ("equations", lambda: plain_and_gated("kl-gated")),
    "loss/dual_game.structural.json": ("equations", structured),
}
