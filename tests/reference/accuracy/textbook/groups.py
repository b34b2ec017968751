"""Scores compared with those of the same prompt, one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, mean, mean_and_variance


def single(x: Any) -> mpf:
    """Rounded to single precision."""
    return mpf(float(np.float32(float(x))))


def compared(call: Call, scores: Exact, singleton: str, compare: Callable[[mpf, Exact], mpf]) -> list[Any]:
    """A number per sequence from the scores of its group; `singleton` decides that of a lone score. A difference of
    scores is measured by the scores."""
    out: list[Any] = []
    for row, score in enumerate(scores):
        group = [scores[other] for other in call.members(row)]
        if len(group) > 1:
            out.append(compare(score, group))
        else:
            out.append({"zero": mpf(0), "raw": score, "undefined": None}[singleton])
    return out


def centred(call: Call, scores: Exact, singleton: str) -> list[Any]:
    return compared(call, scores, singleton, lambda score, group: score - mean(group))


def deviation(numbers: Exact, config: dict[str, Any]) -> mpf:
    # one score has no sample deviation: taken as 0
    return mp.sqrt(mean_and_variance(numbers, config.get("spread", "sample"))[1]) if len(numbers) > 1 else mpf(0)


def relative(
    call: Call, scores: Exact, config: dict[str, Any], lone: mpf, name: str = "out", weight: Any = 1
) -> list[Any]:
    """Against mean and deviation of the group; `lone` is the divisor of a lone raw score."""
    epsilon, scale = mpf(config.get("epsilon", 1e-6)), config.get("scale", "standard-deviation")
    singleton = config.get("singleton", "zero")
    of_all = deviation(scores, config) + epsilon

    def divisor(group: Exact) -> mpf:
        if scale == "unit":
            return mpf(1)
        if scale == "batch-deviation":
            return of_all
        return deviation(group, config) + epsilon if len(group) > 1 else lone

    def compare(score: mpf, group: Exact) -> mpf:
        by = divisor(group)
        call.measure(name, [weight * score / by])
        return (score - mean(group)) / by

    out = compared(call, scores, singleton, compare)
    if singleton == "raw":
        lonely = [len(call.members(row)) == 1 for row in range(len(scores))]
        out = [x / divisor([x]) if alone else x for x, alone in zip(out, lonely)]
    return out


@textbook("group_relative")
def group_relative(call: Call) -> Results:
    # a lone score is divided in single precision, as in the framework that defines this rule
    lone = single(1 + call.setting("epsilon", 1e-6))
    return {"out": relative(call, call.column("scores"), call.config, lone)}


def sources_together(call: Call, config: dict[str, Any], in_single: bool, name: str = "out") -> list[Any]:
    """The weighted sum of each source's own comparison."""
    sources, weights = call.column("sources"), call.column("weights")
    sequences = len(sources) // len(weights)
    lone = 1 + mpf(config.get("epsilon", 1e-6))
    if in_single:
        lone, weights = single(lone), [single(weight) for weight in weights]
    parts = []
    for source, weight in enumerate(weights):
        scores = sources[source * sequences : (source + 1) * sequences]
        parts.append([x if x is None else weight * x for x in relative(call, scores, config, lone, name, weight)])
    return [None if None in column else mp.fsum(column) for column in zip(*parts)]


@textbook("decoupled_scores")
def decoupled_scores(call: Call) -> Results:
    return {"out": sources_together(call, call.config, False)}


@textbook("leave_one_out")
def leave_one_out(call: Call) -> Results:
    def against_others(score: mpf, group: Exact) -> mpf:
        call.measure("out", [score, *group])
        return score - (mp.fsum(group) - score) / (len(group) - 1)

    return {"out": compared(call, call.column("scores"), call.setting("singleton", "zero"), against_others)}


@textbook("leave_one_out_scaled")
def leave_one_out_scaled(call: Call) -> Results:
    """Against mean and sample deviation of the others; others without deviation do not divide."""
    scores, epsilon, out = call.column("scores"), call.setting("epsilon", 1e-6), []
    for row, score in enumerate(scores):
        others = [scores[other] for other in call.members(row) if other != row]
        if not others:
            out.append(mpf(0))
            continue
        spread = deviation(others, {})
        difference = score - mean(others)
        call.measure("out", [max(abs(x) for x in [score, *others]) / (spread + epsilon if spread > 0 else 1)])
        out.append(difference / (spread + epsilon) if spread > 0 else difference)
    return {"out": out}


@textbook("normalize_scores")
def normalize_scores(call: Call) -> Results:
    """Centred, then divided by the root mean square of the result."""
    scores, every = call.column("scores"), list(range(len(call.column("scores"))))
    mean_of, deviation_of = call.setting("mean", "group"), call.setting("deviation", "group")

    def over(level: str, row: int) -> list[int]:
        return every if level == "batch" else call.members(row)

    def centre(row: int) -> mpf:
        if mean_of == "off":
            return scores[row]
        own = call.setting("own", "included") == "included"
        others = [other for other in over(mean_of, row) if own or other != row]
        return scores[row] - (mean([scores[other] for other in others]) if others else 0)

    middle = [centre(row) for row in every]

    def scaled(row: int) -> mpf:
        if deviation_of == "off":
            return middle[row]
        rows = over(deviation_of, row)
        square = mp.fsum(middle[other] ** 2 for other in rows)
        if call.setting("spread", "sample") == "population":
            divisor = mp.sqrt(square / len(rows))
        else:
            divisor = mp.sqrt(square / (len(rows) - 1)) if len(rows) > 1 else mpf(1)
        call.measure("out", [scores[row] / (divisor + call.setting("epsilon", 1e-5))])
        return middle[row] / (divisor + call.setting("epsilon", 1e-5))

    return {"out": [scaled(row) for row in every]}


@textbook("gpg_advantage")
def gpg_advantage(call: Call) -> Results:
    """Centred, times samples over samples that scored."""
    scores = call.column("scores")
    scored = max(sum(score != 0 for score in scores), 1)
    factor = mpf(len(scores)) / scored
    if call.setting("factor", "exact") == "single":
        factor = mpf(float(np.float32(1) / np.float32(scored) * np.float32(len(scores))))
    made = centred(call, scores, call.setting("singleton", "zero"))
    call.measure("out", [factor * score / call.setting("norm", 1.0) for score in scores])
    return {"out": [None if x is None else factor * x / call.setting("norm", 1.0) for x in made]}


@textbook("max_rl")
def max_rl(call: Call) -> Results:
    """Centred, in units of the mean."""
    positive, epsilon = call.setting("divisor", "plus-epsilon") == "if-positive", call.setting("epsilon", 1e-6)

    def compare(score: mpf, group: Exact) -> mpf:
        middle = mean(group)
        call.measure("out", [score / (middle if positive and middle > 0 else middle + epsilon)])
        if not positive:
            return (score - middle) / (middle + epsilon)
        above = call.less(0, middle, mean([abs(x) for x in group]))
        return (score - middle) / middle if above else mpf(0)

    return {"out": compared(call, call.column("scores"), call.setting("singleton", "zero"), compare)}


@textbook("best_of_group")
def best_of_group(call: Call) -> Results:
    """The lead of the best over the second best; 0 for all others."""
    scores, epsilon = call.column("scores"), call.setting("epsilon", 1e-6)
    scale = call.setting("scale", "standard-deviation")
    out = [mpf(0)] * len(scores)
    for row, score in enumerate(scores):
        group = [scores[other] for other in call.members(row)]
        others = [scores[other] for other in call.members(row) if other != row]
        if others and score > max(others):
            lead = score - max(others)
            if scale != "unit":
                lead /= deviation(group if scale == "standard-deviation" else scores, call.config) + epsilon
            out[row] = lead
    return {"out": out}


@textbook("length_weighted_baseline")
def length_weighted_baseline(call: Call) -> Results:
    """Against the mean over the tokens of the group."""
    scores, lengths = call.column("scores"), [len(call.kept_of(row)) for row in range(call.rows)]
    out = centred(call, scores, call.setting("singleton", "zero"))
    call.measure("out", scores)
    for row, score in enumerate(scores):
        group = call.members(row)
        total = sum(lengths[other] for other in group)
        if len(group) > 1:
            weighted = mp.fsum(lengths[other] * scores[other] for other in group)
            out[row] = score - weighted / total if total else mpf(0)
    return {"out": out}
