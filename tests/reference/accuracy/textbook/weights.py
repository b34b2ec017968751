"""The dual game: token weights, structure, and the loss."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, mean, quantile_of, sign


def weight(call: Call, slot: int) -> tuple[mpf, mpf]:
    """w of a slot, and its derivative with respect to the log-probability."""
    kind = call.inputs.get("weight") or "plain"
    if kind == "structural":
        return call.column("structural")[slot], mpf(0)
    x = call.column("log_probs")[slot]
    p, a = mp.exp(x), abs(call.column("advantages")[slot])
    # 1 − p = −expm1(x): nothing cancels here, whatever the precision
    plain, slope = -p * mp.expm1(x) * a, (p - 2 * p * p) * a
    # without a reference there is no gate
    if kind == "kl-gated" and call.has("ref_log_probs"):
        d = x - call.column("ref_log_probs")[slot]
        return plain * abs(d), slope * abs(d) + plain * sign(d)
    return plain, slope


@textbook("token_weights", of="result")
def token_weights(call: Call) -> Results:
    return {"weights": call.fill(lambda slot: weight(call, slot)[0])}


@textbook("advantage_jump", of="result")
def advantage_jump(call: Call) -> Results:
    """|A_t − A_{t−1}| over kept tokens."""
    advantages, out = call.column("advantages"), [mpf(0)] * len(call.mask)
    for row in range(call.rows):
        kept = call.kept_of(row)
        for before, slot in zip(kept, kept[1:]):
            out[slot] = abs(advantages[slot] - advantages[before])
    return {"out": out}


def z_scores(call: Call, x: Exact, slots: list[int], n: mpf, factor: mpf) -> dict[int, mpf]:
    """Within ±3; measured by the numbers in units of the deviation."""
    middle = mp.fsum(x[slot] for slot in slots) / n
    deviation = mp.sqrt(mp.fsum((x[slot] - middle) ** 2 for slot in slots) / n + mpf(1e-6)) + mpf(1e-6)
    call.measure("weights", [factor * x[slot] / deviation for slot in slots])
    return {slot: call.clamp((x[slot] - middle) / deviation, -3, 3) for slot in slots}


@textbook("structural_weights")
def structural_weights(call: Call) -> Results:
    """max(0, c z(C) + α z(S) + β z(D))."""
    surprisal, advantages = [-x for x in call.column("log_probs")], call.column("advantages")
    scopes = [(call.kept(), mpf(max(len(call.kept()), 1)))]
    if call.setting("scope", "batch") == "sequence":
        rows = [call.kept_of(row) for row in range(call.rows)]
        scopes = [(row, len(row) + mpf(1e-6)) for row in rows]
    factors = [call.setting("complexity", 1.0), call.setting("surprisal", 0.3), call.setting("drift", 0.2)]
    out = [mpf(0)] * len(call.mask)
    for slots, n in scopes:
        if not slots:
            continue
        middle = mp.fsum(surprisal[slot] for slot in slots) / n
        drift = [a * (s - middle) for s, a in zip(surprisal, advantages)]
        columns = (call.column("complexity"), surprisal, drift)
        scores = [z_scores(call, x, slots, n, factor) for x, factor in zip(columns, factors)]
        for slot in slots:
            terms = [factor * z[slot] for factor, z in zip(factors, scores)]
            out[slot] = max(mp.fsum(terms), mpf(0))
            call.measure("weights", [mp.fsum(abs(term) for term in terms)])
    return {"weights": out}


@textbook("trie_complexity")
def trie_complexity(call: Call) -> Results:
    """How far the branches at each position are from each other."""
    ids, rewards = call.integers("tokens"), call.column("rewards")
    scores = [mp.fsum(rewards[slot] for slot in call.kept_of(row)) for row in range(call.rows)]
    least, any_prefix = int(call.setting("min_branch_size", 1)), call.setting("prefix", "any") == "any"

    def token(row: int, t: int) -> int | None:
        slot = row * call.width + t
        return ids[slot] if call.mask[slot] else None

    def branch(values: Exact) -> mpf:
        ascending = sorted(values)
        return mean(ascending) if call.setting("value", "mean") == "mean" else ascending[(len(ascending) - 1) // 2]

    def spread(values: Exact) -> mpf:
        kind = call.setting("spread", "variance")
        if kind == "variance":
            return mean([(x - mean(values)) ** 2 for x in values])
        if kind == "range":
            return values[-1] - values[0]
        return quantile_of(values, 0.75) - quantile_of(values, 0.25)

    def of(slot: int) -> mpf:
        row, t = divmod(slot, call.width)
        branches: dict[int, list[Any]] = {}
        before = [token(row, k) for k in range(t)]
        for other in call.members(row):
            chosen = token(other, t)
            if chosen is not None and (any_prefix or [token(other, k) for k in range(t)] == before):
                branches.setdefault(chosen, []).append(scores[other])
        values = sorted(branch(found) for found in branches.values() if len(found) >= least)
        return spread(values) if len(values) > 1 else mpf(0)

    return {"out": call.fill(of)}


@textbook("dual_game")
def dual_game(call: Call) -> Results:
    """A clipped surrogate whose advantages include the price of entropy and of the KL to the reference."""
    new, old, advantages = call.column("log_probs"), call.column("old_log_probs"), call.column("advantages")
    reference, given = call.optional("ref_log_probs"), call.optional("weights")
    gamma, lam, beta = call.setting("gamma", 1.2), call.setting("lambda", 0.0), call.setting("beta", 0.0)
    low, high = 1 - call.setting("clip_low", 0.2), 1 + call.setting("clip_high", 0.2)
    bound, through = call.setting("log_ratio_bound", 20.0), call.setting("gradient", "detached") == "through"
    losses, slopes, held, kl = ([mpf(0)] * len(call.mask) for _ in range(4))
    terms = [mpf(0)] * len(call.mask)
    signs = [0] * len(call.mask)
    for slot in call.kept():
        x, a = new[slot], advantages[slot]
        w, slope = weight(call, slot)
        parts = [a if a > 0 else gamma * a, lam * w * (x + 1)]
        slope = lam * (slope * (x + 1) + w)
        if reference is not None:
            parts.append(-beta * (x - reference[slot]))
            slope -= beta
        modified, d = mp.fsum(parts), x - old[slot]
        bounded = d if bound is None else call.clamp(d, -bound, bound)
        ratio, omega = mp.exp(bounded), mpf(1) if given is None else given[slot]
        inside = call.clamp(ratio, low, high)
        beyond = call.less(ratio, low) or call.less(high, ratio)
        # the sign of a sum decides, where the ratio is beyond the clip or the price counts
        size = mp.fsum(abs(part) for part in parts)
        signs[slot] = int(call.less(0, modified, size)) - int(call.less(modified, 0, size))
        held[slot] = mpf(beyond and (ratio > inside if signs[slot] > 0 else ratio < inside and signs[slot] < 0))
        used = inside if held[slot] else ratio
        losses[slot], terms[slot] = -omega * modified * used, omega * size * used
        free = bound is None or not (call.less(bound, d) or call.less(d, -bound))
        slopes[slot] = mpf(0) if held[slot] or not free else -omega * modified * ratio
        if through:
            slopes[slot] -= omega * slope * used
        kl[slot] = -bounded
    loss, weights = call.aggregate(losses)
    call.scale["loss"] = mp.fsum(abs(weights[slot] * terms[slot]) for slot in call.kept())
    call.scale["grad"] = max((abs(weights[slot] * terms[slot]) for slot in call.kept()), default=mpf(0))
    upper = call.mean("clip_fraction_upper", lambda slot: held[slot] * (signs[slot] > 0))
    lower = call.mean("clip_fraction_lower", lambda slot: held[slot] * (signs[slot] < 0))
    return {
        "grad": call.fill(lambda slot: weights[slot] * slopes[slot]),
        "loss": [loss],
        "clip_fraction": [upper + lower],
        "clip_fraction_upper": [upper],
        "clip_fraction_lower": [lower],
        "kl": [call.mean("kl", lambda slot: kl[slot])],
    }
