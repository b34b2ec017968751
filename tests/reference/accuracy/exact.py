"""The formulas in exact arithmetic: mpmath with far more digits than either type has."""

from __future__ import annotations

import numpy as np
from mpmath import mp, mpf

from .measure import Exact, Inputs


def whole(array: np.ndarray) -> Exact:
    return [mpf(float(x)) for x in np.asarray(array).ravel()]


def rows(array: np.ndarray) -> list[Exact]:
    return [whole(row) for row in array.reshape(-1, array.shape[-1])]


def log_softmax(row: Exact) -> Exact:
    largest = max(row)
    log_sum = largest + mp.log(mp.fsum(mp.exp(x - largest) for x in row))
    return [x - log_sum for x in row]


def token_log_probs(inputs: Inputs) -> Exact:
    return [log_softmax(row)[int(t)] for row, t in zip(rows(inputs["logits"]), inputs["tokens"].ravel())]


def row_entropy(log_probs: Exact) -> mpf:
    return -mp.fsum(mp.exp(x) * x for x in log_probs)


def entropy(inputs: Inputs) -> Exact:
    return [row_entropy(log_softmax(row)) for row in rows(inputs["logits"])]


def sum_squared_probs(inputs: Inputs) -> Exact:
    return [mp.fsum(mp.exp(2 * x) for x in log_softmax(row)) for row in rows(inputs["logits"])]


def logits_gradient(inputs: Inputs) -> Exact:
    out: Exact = []
    given = (inputs[name].ravel() for name in ("tokens", "grad_log_probs", "grad_entropy"))
    for row, token, g, h in zip(rows(inputs["logits"]), *given):
        log_probs = log_softmax(row)
        spread = row_entropy(log_probs)
        for v, x in enumerate(log_probs):
            chosen = mpf(1) if v == int(token) else mpf(0)
            out.append(mpf(float(g)) * (chosen - mp.exp(x)) - mpf(float(h)) * mp.exp(x) * (x + spread))
    return out


def kl_rows(inputs: Inputs) -> list[tuple[Exact, Exact, mpf]]:
    """ln p, ln p − ln q and the divergence of every row."""
    made = []
    for row, other in zip(rows(inputs["logits"]), rows(inputs["ref_logits"])):
        p, q = log_softmax(row), log_softmax(other)
        ratios = [a - b for a, b in zip(p, q)]
        made.append((p, ratios, mp.fsum(mp.exp(a) * d for a, d in zip(p, ratios))))
    return made


def kl_exact(inputs: Inputs) -> Exact:
    return [kl for _, _, kl in kl_rows(inputs)]


def kl_exact_gradient(inputs: Inputs) -> Exact:
    out: Exact = []
    for (p, ratios, kl), g in zip(kl_rows(inputs), inputs["grad_kl"].ravel()):
        out.extend(mpf(float(g)) * mp.exp(a) * (d - kl) for a, d in zip(p, ratios))
    return out


def generalized_jsd(beta: float):
    """The token mean of the divergence, without its gradient."""

    def one(row: Exact, other: Exact) -> mpf:
        p, q = log_softmax(row), log_softmax(other)
        b = mpf(beta)
        if beta == 0.0:
            return mp.fsum(mp.exp(y) * (y - x) for x, y in zip(p, q))
        if beta == 1.0:
            return mp.fsum(mp.exp(x) * (x - y) for x, y in zip(p, q))
        mixed = [mp.log((1 - b) * mp.exp(x) + b * mp.exp(y)) for x, y in zip(p, q)]
        towards_teacher = mp.fsum(mp.exp(y) * (y - m) for y, m in zip(q, mixed))
        towards_student = mp.fsum(mp.exp(x) * (x - m) for x, m in zip(p, mixed))
        return b * towards_teacher + (1 - b) * towards_student

    def of(inputs: Inputs) -> Exact:
        pairs = list(zip(rows(inputs["logits"]), rows(inputs["ref_logits"])))
        return [mp.fsum(one(row, other) for row, other in pairs) / len(pairs)]

    return of


def differences(inputs: Inputs, first: str, second: str) -> Exact:
    return [a - b for a, b in zip(whole(inputs[first]), whole(inputs[second]))]


def kl_estimate(estimator: str):
    value = {
        "k1": lambda d: d,
        "abs": abs,
        "k2": lambda d: d * d / 2,
        "k3": lambda d: mp.exp(-d) - 1 + d,
    }[estimator]
    return lambda inputs: [value(d) for d in differences(inputs, "log_probs", "ref_log_probs")]


def kl_gradient_k3(inputs: Inputs) -> Exact:
    return [1 - mp.exp(-d) for d in differences(inputs, "log_probs", "ref_log_probs")]


def backwards(first: Exact, decay: mpf) -> Exact:
    """x_t + decay · (the result at t + 1)."""
    out, ahead = [], mpf(0)
    for x in reversed(first):
        ahead = x + decay * ahead
        out.append(ahead)
    return out[::-1]


def returns(gamma: float):
    return lambda inputs: [x for row in rows(inputs["rewards"]) for x in backwards(row, mpf(gamma))]


def gae(gamma: float, lam: float):
    """The advantages, then the returns."""

    def of(inputs: Inputs) -> Exact:
        advantages, targets = [], []
        for reward, value in zip(rows(inputs["rewards"]), rows(inputs["values"])):
            after = [*value[1:], mpf(0)]
            deltas = [r + mpf(gamma) * n - v for r, n, v in zip(reward, after, value)]
            made = backwards(deltas, mpf(gamma * lam))
            advantages.extend(made)
            targets.extend(a + v for a, v in zip(made, value))
        return advantages + targets

    return of


def moments(numbers: Exact) -> tuple[mpf, mpf]:
    """Mean, and variance divided by n − 1."""
    mean = mp.fsum(numbers) / len(numbers)
    return mean, mp.fsum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)


def mean(inputs: Inputs) -> Exact:
    return [moments(whole(inputs["values"]))[0]]


def variance(inputs: Inputs) -> Exact:
    return [moments(whole(inputs["values"]))[1]]


def whiten(inputs: Inputs) -> Exact:
    numbers = whole(inputs["values"])
    middle, spread = moments(numbers)
    return [(x - middle) / mp.sqrt(spread + mpf(1e-8)) for x in numbers]


def correlation(inputs: Inputs) -> Exact:
    x, y = whole(inputs["x"]), whole(inputs["y"])
    (mx, vx), (my, vy) = moments(x), moments(y)
    return [mp.fsum((a - mx) * (b - my) for a, b in zip(x, y)) / (len(x) - 1) / mp.sqrt(vx * vy)]


def explained_variance(inputs: Inputs) -> Exact:
    values, targets = whole(inputs["values"]), whole(inputs["returns"])
    return [1 - moments([a - b for a, b in zip(targets, values)])[1] / (moments(targets)[1] + mpf(1e-5))]


def group_relative(inputs: Inputs) -> Exact:
    out: Exact = []
    for group in rows(inputs["scores"]):
        middle, spread = moments(group)
        out.extend((x - middle) / (mp.sqrt(spread) + mpf(1e-6)) for x in group)
    return out


def leave_one_out(inputs: Inputs) -> Exact:
    out: Exact = []
    for group in rows(inputs["scores"]):
        total, n = mp.fsum(group), len(group)
        out.extend(x - (total - x) / (n - 1) for x in group)
    return out


def ppo_clip(inputs: Inputs) -> Exact:
    """The loss (token mean, clip 0.2, no dual clip), then its gradient."""
    low, high = mpf(0.8), mpf(1.2)
    losses, grads = [], []
    for d, advantage in zip(differences(inputs, "log_probs", "old_log_probs"), whole(inputs["advantages"])):
        ratio = mp.exp(max(mpf(-20), min(mpf(20), d)))
        plain, clipped = -advantage * ratio, -advantage * max(low, min(high, ratio))
        losses.append(max(plain, clipped))
        grads.append(plain if plain >= clipped and abs(d) <= 20 else mpf(0))
    return [mp.fsum(losses) / len(losses), *(g / len(losses) for g in grads)]


def value_loss(inputs: Inputs) -> Exact:
    """The loss (half the square, clip 0.5, token mean), then its gradient."""
    losses, grads = [], []
    given = (whole(inputs[name]) for name in ("predictions", "values", "returns"))
    for prediction, value, target in zip(*given):
        held = max(value - mpf(0.5), min(value + mpf(0.5), prediction))
        plain, clipped = (prediction - target) ** 2, (held - target) ** 2
        losses.append(max(plain, clipped) / 2)
        slope = prediction - target if plain >= clipped else (held - target if held == prediction else mpf(0))
        grads.append(slope)
    return [mp.fsum(losses) / len(losses), *(g / len(losses) for g in grads)]


def kl_loss_k3(inputs: Inputs) -> Exact:
    """The token mean of k3, without a coefficient, then its gradient."""
    ds = differences(inputs, "log_probs", "ref_log_probs")
    return [mp.fsum(mp.exp(-d) - 1 + d for d in ds) / len(ds), *((1 - mp.exp(-d)) / len(ds) for d in ds)]


def effective_sample_size(inputs: Inputs) -> Exact:
    weights = whole(inputs["weights"])
    return [mp.fsum(weights) ** 2 / mp.fsum(w * w for w in weights)]
