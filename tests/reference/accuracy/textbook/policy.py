"""Soft-max and the quantities computed from it."""

from __future__ import annotations

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, entropy_of, log_softmax


def distributions(call: Call, name: str = "logits") -> list[Exact | None]:
    """ln p of every entry, for each kept slot."""
    temperature = call.setting("temperature", 1.0)
    rows = call.table(name)
    return call.fill(lambda slot: log_softmax(rows[slot], temperature), None)


def chosen(call: Call) -> Exact:
    rows, ids = distributions(call), call.integers("tokens")
    return call.fill(lambda slot: rows[slot][ids[slot]])


def entropies(call: Call) -> Exact:
    rows = distributions(call)
    return call.fill(lambda slot: entropy_of(rows[slot]))


@textbook("token_log_probs", of="result")
def token_log_probs(call: Call) -> Results:
    return {"log_probs": chosen(call)}


@textbook("entropy", of="result")
def entropy(call: Call) -> Results:
    return {"entropy": entropies(call)}


@textbook("log_probs_and_entropy", of="result")
def log_probs_and_entropy(call: Call) -> Results:
    return {"log_probs": chosen(call), "entropy": entropies(call)}


@textbook("sum_squared_probs", of="result")
def sum_squared_probs(call: Call) -> Results:
    rows = distributions(call)
    return {"out": call.fill(lambda slot: mp.fsum(mp.exp(2 * x) for x in rows[slot]))}


@textbook("topk_log_probs", of="result")
def topk_log_probs(call: Call) -> Results:
    rows, ids = distributions(call), call.integers("tokens")
    k = len(ids) // max(len(rows), 1)
    of_slot = call.fill(lambda slot: [rows[slot][v] for v in ids[slot * k : (slot + 1) * k]], [mpf(0)] * k)
    return {"log_probs": [x for row in of_slot for x in row]}


def flat(call: Call, rows: list[Exact | None]) -> Exact:
    vocab = len(call.table("logits")[0]) if rows else 0
    return [x for row in rows for x in (row or [mpf(0)] * vocab)]


@textbook("topk_logits_gradient")
def topk_logits_gradient(call: Call) -> Results:
    """∂ ln p_j / ∂z_v = 1[v = j] − p_v, summed over the entries with their gradients."""
    rows, ids, grads = distributions(call), call.integers("tokens"), call.column("grad_log_probs")
    k, temperature = len(ids) // max(len(rows), 1), call.setting("temperature", 1.0)

    def row(slot: int) -> Exact:
        entries = range(slot * k, (slot + 1) * k)
        total = mp.fsum(grads[j] for j in entries)
        direct = [mpf(0)] * len(rows[slot])
        for j in entries:
            direct[ids[j]] += grads[j]
        return [(direct[v] - total * mp.exp(x)) / temperature for v, x in enumerate(rows[slot])]

    return {"grad_logits": flat(call, call.fill(row, None))}


@textbook("logits_gradient", of="result")
def logits_gradient(call: Call) -> Results:
    rows, ids = distributions(call), call.integers("tokens")
    grads, entropy_grads = call.column("grad_log_probs"), call.column("grad_entropy")
    temperature = call.setting("temperature", 1.0)

    def row(slot: int) -> Exact:
        spread, out = entropy_of(rows[slot]), []
        for v, x in enumerate(rows[slot]):
            p = mp.exp(x)
            through = mpf(0) if mp.isinf(x) else entropy_grads[slot] * p * (x + spread)
            out.append((grads[slot] * ((v == ids[slot]) - p) - through) / temperature)
        return out

    return {"grad_logits": flat(call, call.fill(row, None))}


@textbook("shift", copies="copies")
def shift(call: Call) -> Results:
    """The response ends where the raw sequence ends; its first token was predicted by the position before it."""
    rows = call.table("raw")
    raw_len = len(rows) // max(call.rows, 1)
    out: Exact = []
    for row in range(call.rows):
        for t in range(call.width):
            out.extend(rows[row * raw_len + raw_len - call.width - 1 + t])
    return {"out": out}
