"""The controllers of docs/bnto.md, step by step in Python floats: no framework has them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from cases import rng_for
from golden import Case


def series(name: str, length: int, low: float, high: float) -> list[float]:
    return [round(float(x), 4) for x in rng_for(f"control/{name}").uniform(low, high, length)]


def case(
    op: str, name: str, inputs: dict[str, Any], params: dict[str, Any], expect: dict[str, Any], **more: Any
) -> Case:
    length = len(next(iter(inputs.values())))
    return Case(
        op, rows=1, cols=length, mask=[1] * length, inputs=inputs, params=params, expect=expect, name=name, **more
    )


def linear() -> Iterator[Case]:
    settings = [
        {"beta": 0.001, "target": 0.02},
        {"beta": 0.5, "target": 0.05, "learning_rate": 0.02},
        {"beta": 0.0, "target": 0.05, "learning_rate": 0.5, "beta_min": 0.001},
        {"beta": 0.1, "target": 0.02, "adaptive_target": True},
        {"beta": 0.1, "target": 0.02, "learning_rate": 1.0, "adaptive_target": True, "window": 4},
    ]
    for number, params in enumerate(settings):
        kl = series(f"linear/{number}", 40, 0.0, 0.12)
        floor, rate = params.get("beta_min", 1e-6), params.get("learning_rate", 0.01)
        beta, target, window = max(params["beta"], floor), params["target"], params.get("window", 10)
        betas, targets = [], []
        for i, value in enumerate(kl):
            if params.get("adaptive_target") and i + 1 >= window:
                target = 1.1 * sum(kl[i + 1 - window : i + 1]) / window
            beta = max(floor, beta + rate * (value - target))
            betas.append(beta)
            targets.append(target)
        yield case("linear_kl", f"setting-{number}", {"kl": kl}, params, {"beta": betas, "target": targets})


def budget(inputs: dict[str, list[float]], params: dict[str, Any]) -> dict[str, list[float]]:
    """The equations of the budget, step by step."""
    lam, rate = params.get("lambda", 0.0), params.get("learning_rate", 0.02)
    kind = params.get("schedule", "constant")
    b0, usage, sigma_max, ema, best, waited, plateaus = params.get("B0"), None, 0.0, None, 0.0, 0, 0
    out: dict[str, list[float]] = {
        "lambda": [],
        "B": [],
        "B_token": [],
        "usage_ratio": [],
        "plateau": [],
        "collapse": [],
    }
    seen: list[float] = []
    for step, (wh, n) in enumerate(zip(inputs["wH_sum"], inputs["token_count"])):
        std, reward = inputs["reward_std"][step], inputs["reward_sum_mean"][step]
        known = b0 is not None
        seen.append(wh)
        if params.get("adaptive") and known and len(seen) >= 10:
            b0 = 1.1 * sum(seen[-10:]) / 10
        if kind == "reward-std-usage" and step < min(100, params["total_steps"] // 10):
            sigma_max = max(sigma_max, std)
        reached = False
        if kind == "plateau":
            if ema is None:
                ema = best = reward
            else:
                ema = params.get("ema_decay", 0.95) * ema + (1 - params.get("ema_decay", 0.95)) * reward
                if ema > best + params["min_delta"]:
                    best, waited = ema, 0
                elif known:
                    waited += 1
                if waited >= params["patience"]:
                    reached, waited, plateaus = True, 0, plateaus + 1
        if not known and step + 1 == params["warmup"]:
            b0 = params["rho"] * sum(seen) / params["warmup"]
        b = math.nan
        if known:
            b = b0
            if kind == "reward-std-usage":
                sigma = min(max(std / sigma_max, 0.0), 1.0) if sigma_max > 0 else 0.0
                u = 1.0 if usage is None or usage < 0 else min(usage, 1.0)
                a = params.get("a", 0.5)
                b = b0 * max(0.1, a * sigma + (1 - a) * u)
            elif kind == "exponential":
                b = b0 * math.exp(-params["alpha"] * step / params["total_steps"])
            elif kind == "plateau":
                b = max(params.get("B_min", 0.0), b0 * params.get("kappa", 0.8) ** plateaus)
            used = min(max(wh / n, params.get("wH_min", -math.inf)), params.get("wH_max", math.inf))
            lam = min(max(0.0, lam + rate * (used - b / n)), params.get("lambda_max", math.inf))
            usage = wh / max(b, 1e-8)
        collapsed = params.get("collapse_guard", False) and step >= 3 and wh / n < 1e-4
        ratio = usage if known else math.nan
        if collapsed:
            lam, b = 0.1 * lam, max(0.001, 2 * wh / n) if known else b
        for key, value in zip(out, (lam, b, b / n, ratio, float(reached), float(collapsed))):
            out[key].append(value)
    return out


def budgets() -> Iterator[Case]:
    settings: dict[str, dict[str, Any]] = {
        "constant": {"B0": 1.5, "lambda": 0.1},
        "capped": {"B0": 0.5, "learning_rate": 5.0, "lambda_max": 0.4, "wH_min": 0.005, "wH_max": 0.06},
        "warm-up": {"warmup": 5, "rho": 0.3, "learning_rate": 0.05},
        "adaptive": {"B0": 1.0, "adaptive": True, "lambda": 0.2},
        "warm-up-adaptive": {"warmup": 3, "rho": 0.6, "adaptive": True},
        "usage": {"B0": 2.0, "schedule": "reward-std-usage", "total_steps": 100, "lambda": 0.3},
        "usage-share": {
            "B0": 2.0,
            "schedule": "reward-std-usage",
            "total_steps": 2000,
            "a": 0.8,
            "warmup": 2,
            "rho": 0.45,
        },
        "usage-short": {"B0": 2.0, "schedule": "reward-std-usage", "total_steps": 9},
        "exponential": {"B0": 2.0, "schedule": "exponential", "alpha": 2.5, "total_steps": 40, "lambda": 0.1},
        "plateau": {"B0": 2.0, "schedule": "plateau", "min_delta": 0.01, "patience": 3, "B_min": 0.8},
        "plateau-fast": {
            "warmup": 4,
            "rho": 0.45,
            "schedule": "plateau",
            "min_delta": 0.0,
            "patience": 2,
            "ema_decay": 0.6,
            "kappa": 0.5,
        },
        "guard": {"B0": 1.0, "lambda": 0.5, "collapse_guard": True},
    }
    for name, params in settings.items():
        wh = series(f"{name}/wh", 40, 0.0, 4.0)
        if params.get("collapse_guard"):
            wh = [x * 1e-3 if i % 5 in (1, 2) else x for i, x in enumerate(wh)]
        inputs = {
            "wH_sum": wh,
            "token_count": [int(x) for x in series(f"{name}/n", 40, 20, 200)],
            "reward_std": series(f"{name}/std", 40, 0.0, 0.6),
            "reward_sum_mean": series(f"{name}/reward", 40, 0.0, 1.0),
        }
        yield case("entropy_budget", name, inputs, params, budget(inputs, params))
    bad = {"wH_sum": [1.0], "token_count": [0]}
    yield Case("entropy_budget", 1, 1, [1], bad, params={"B0": 1.0}, name="no-tokens", error="N ≤ 0")


FILES = {
    "control/linear_kl.equations.json": ("steps", linear),
    "control/entropy_budget.equations.json": ("steps", budgets),
}
