"""Scores of sequences as advantages of tokens."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, mean_and_variance
from .groups import centred, sources_together
from .returns import bootstrap, discounted


def whitened(call: Call, name: str, values: Exact, config: dict[str, Any]) -> Exact:
    """Mean 0 and deviation 1 over the kept tokens, measured by the values in units of the deviation."""
    kept = [values[slot] for slot in call.kept()]
    # verl's 1e-8 is rounded away in f32
    divisor = "count" if call.dtype == "float32" else config.get("divisor", "count")
    if len(kept) < 2:
        return call.fill(lambda slot: None)
    mean, variance = mean_and_variance(kept, config.get("spread", "sample"), divisor)
    epsilon, place = mpf(config.get("epsilon", 1e-8)), config.get("place", "inside-root")
    if config.get("scale", "standard-deviation") == "unit":
        deviation = mpf(1)
    elif place == "inside-root":
        deviation = mp.sqrt(variance + epsilon)
    elif place == "outside":
        deviation = mp.sqrt(variance) + epsilon
    else:
        deviation = mp.sqrt(max(variance, epsilon))
    back = mean if config.get("center", "shift") == "keep-mean" else mpf(0)
    terms = [*kept, call.scale.get(name, mpf(0)), back * deviation]
    call.scale[name] = mpf(0)
    call.measure(name, [x / deviation for x in terms])
    return call.fill(lambda slot: (values[slot] - mean) / deviation + back)


@textbook("whiten")
def whiten(call: Call) -> Results:
    return {"out": whitened(call, "out", call.column("values"), call.config)}


@textbook("broadcast", copies="copies the value of the sequence")
def broadcast(call: Call) -> Results:
    return {"out": call.spread(call.column("values"))}


@textbook("sequence_sums")
def sequence_sums(call: Call) -> Results:
    rewards = call.column("rewards")
    return {"out": [call.total("out", [rewards[slot] for slot in call.kept_of(row)]) for row in range(call.rows)]}


def last_k(call: Call, k: int) -> Exact:
    """The score shared by the last `k` kept tokens."""
    out = [mpf(0)] * len(call.mask)
    for row, score in enumerate(call.column("scores")):
        sharing = call.kept_of(row)[-k:]
        for slot in sharing:
            out[slot] = score / len(sharing)
    return out


@textbook("last_k_credit", of="result")
def last_k_credit(call: Call) -> Results:
    return {"out": last_k(call, int(call.setting("k")))}


@textbook("uniform_credit", of="result")
def uniform_credit(call: Call) -> Results:
    return {"out": last_k(call, call.width)}


@textbook("attention_credit", of="result")
def attention_credit(call: Call) -> Results:
    """The score shared in proportion to weights."""
    weights, scores = call.column("weights"), call.column("scores")
    totals = [mp.fsum(weights[slot] for slot in call.kept_of(row)) for row in range(call.rows)]
    return {"out": call.fill(lambda slot: scores[slot // call.width] * weights[slot] / totals[slot // call.width])}


@textbook("remax")
def remax(call: Call) -> Results:
    returns, baselines = discounted(call, mpf(1)), call.spread(call.column("baselines"))
    return {"advantages": call.fill(lambda slot: returns[slot] - baselines[slot]), "returns": returns}


@textbook("reinforce_plus_plus")
def reinforce_plus_plus(call: Call) -> Results:
    assert len(bootstrap(call)) == call.rows
    returns = discounted(call, call.setting("gamma", 1.0))
    return {"advantages": whitened(call, "advantages", returns, call.setting("whiten", {})), "returns": returns}


@textbook("reinforce_plus_plus_baseline")
def reinforce_plus_plus_baseline(call: Call) -> Results:
    scores = centred(call, call.column("scores"), call.setting("singleton", "zero"))
    call.measure("advantages", call.column("scores"))
    return {"advantages": whitened(call, "advantages", call.spread(scores), call.setting("whiten", {}))}


@textbook("gdpo")
def gdpo(call: Call) -> Results:
    single = call.setting("factors", "exact") == "single"
    scores = sources_together(call, call.setting("group", {}), single, "advantages")
    return {"advantages": whitened(call, "advantages", call.spread(scores), call.setting("whiten", {}))}


@textbook("opd_advantage")
def opd_advantage(call: Call) -> Results:
    """A + β (teacher − student)."""
    teacher, student = call.column("teacher_log_probs"), call.column("old_log_probs")
    own, beta = call.optional("advantages") or [mpf(0)] * len(call.mask), call.setting("coefficient", 1.0)
    return {"advantages": call.fill(lambda slot: own[slot] + beta * (teacher[slot] - student[slot]))}


@textbook("minillm_advantage")
def minillm_advantage(call: Call) -> Results:
    """Discounted sums of teacher − student over the rest of the response, by its discounted length if asked for."""
    teacher, student = call.column("teacher_log_probs"), call.column("old_log_probs")
    gamma, length = call.setting("gamma", 1.0), call.setting("length", "kept")
    from_start, across = call.setting("from", "token") == "start", call.setting("across", "step-over")
    padding = length == "kept-and-padding"
    out = [mpf(0)] * len(call.mask)
    for row in range(call.rows):
        total, steps = mpf(0), mpf(0)
        for slot in reversed(call.row(row)):
            moves = call.mask[slot] or across == "zero-step"
            if moves:
                total, steps = gamma * total, gamma * steps
            if call.mask[slot]:
                total, steps = total + teacher[slot] - student[slot], steps + 1
                out[slot] = total if length == "off" else total / steps
            elif padding:
                steps += mpf(1e-4)
        if length == "off" and from_start and gamma > 0:
            power = mpf(1)
            for slot in call.row(row):
                out[slot] *= power
                if call.mask[slot] or across == "zero-step":
                    power *= gamma
    return {"advantages": out}


def optimal(call: Call, by_kept: bool) -> Results:
    """Returns minus the mean return of a column, weighted by C_t = Σ s up to the token."""
    returns, old = discounted(call, mpf(1)), call.column("old_log_probs")
    squares, given = call.column("sum_pi_squared"), call.optional("is_weights")
    epsilon, keeps = call.setting("epsilon", 1e-8), call.setting("zero_tail", "no-baseline") == "no-baseline"
    # the tokens of a sequence by their column
    paths: list[dict[int, tuple[int, mpf]]] = []
    for row in range(call.rows):
        path, tokens = mpf(0), {}
        for k, slot in enumerate(call.kept_of(row)):
            weight = given[slot] if given else mpf(1)
            path += (1 - 2 * mp.exp(old[slot]) + squares[slot]) * weight * weight
            tokens[k if by_kept else slot % call.width] = slot, path
        paths.append(tokens)
    out = [mpf(0)] * len(call.mask)
    for row in range(call.rows):
        group = [other for other in call.members(row) if paths[other] or not by_kept]
        others = max((len(paths[other]) for other in group if other != row), default=0)
        for at, (slot, _) in paths[row].items():
            same = [paths[other][at] for other in group if at in paths[other]]
            if len(group) == 1 or (keeps and len(paths[row]) > others and at >= others):
                out[slot] = returns[slot]
                continue
            weight = mp.fsum(c for _, c in same) + epsilon
            out[slot] = returns[slot] - mp.fsum(returns[other] * c for other, c in same) / weight
    return {"advantages": out, "returns": returns}


@textbook("optimal_token_baseline")
def optimal_token_baseline(call: Call) -> Results:
    return optimal(call, by_kept=False)


@textbook("tir_optimal_token_baseline")
def tir_optimal_token_baseline(call: Call) -> Results:
    return optimal(call, by_kept=True)
