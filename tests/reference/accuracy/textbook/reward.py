"""Scores and KL as token rewards."""

from __future__ import annotations

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, count
from .divergence import K1, distances, kl_value


def placed(call: Call, scores: Exact) -> Exact:
    """Each score on the last kept token of its sequence."""
    out = [mpf(0)] * len(call.mask)
    for row, score in enumerate(scores):
        kept = call.kept_of(row)
        if kept:
            out[kept[-1]] = score
    return out


def shaped(call: Call, scores: Exact, kl: Exact, beta: mpf) -> Results:
    """Measured by the larger of score and penalty."""
    pairs = [(scores[slot], beta * kl[slot]) for slot in call.kept()]
    call.scale["rewards"] = max((abs(x) for pair in pairs for x in pair), default=mpf(0))
    return {"rewards": call.fill(lambda slot: scores[slot] - beta * kl[slot])}


@textbook("place_scores", copies="copies the score")
def place_scores(call: Call) -> Results:
    return {"rewards": placed(call, call.column("scores"))}


@textbook("shape_rewards")
def shape_rewards(call: Call) -> Results:
    return shaped(call, call.column("scores"), call.column("kl"), call.setting("beta", 0.001))


@textbook("kl_in_reward")
def kl_in_reward(call: Call) -> Results:
    d, config = distances(call, "old_log_probs", "ref_log_probs"), call.setting("kl", K1)
    kl = call.fill(lambda slot: kl_value(call, config, d[slot]))
    terms = []
    for row in range(call.rows):
        kept = call.kept_of(row)
        n = count(len(kept), call.setting("divisor", "count")) * call.rows
        terms.extend(kl[slot] / n for slot in kept)
    made = shaped(call, call.column("scores"), kl, call.setting("beta", 0.001))
    return made | {"mean_kl": [call.total("mean_kl", terms)]}


@textbook("kl_in_scores")
def kl_in_scores(call: Call) -> Results:
    d, beta = distances(call, "old_log_probs", "ref_log_probs"), call.setting("beta", 0.05)
    penalties = [[-beta * d[slot] for slot in call.kept_of(row)] for row in range(call.rows)]
    return {"out": [call.total("out", [score, *terms]) for score, terms in zip(call.column("scores"), penalties)]}


@textbook("clipped_rewards")
def clipped_rewards(call: Call) -> Results:
    low, high = call.setting("low", -10.0), call.setting("high", 10.0)
    scores = placed(call, [call.clamp(score, low, high) for score in call.column("scores")])
    return shaped(call, scores, call.column("kl"), max(call.setting("beta", 0.01), mpf(0)))


@textbook("overlong_penalty")
def overlong_penalty(call: Call) -> Results:
    """(max_len − buffer) tokens are free, the next `buffer` cost up to `factor`."""
    longest, buffer = call.setting("max_len"), call.setting("buffer")
    factor, floor = call.setting("factor", 1.0), call.setting("floor", "unlimited")
    out = []
    for score, length in zip(call.column("scores"), call.integers("lengths")):
        excess = length - (longest - buffer)
        excess = min(excess, buffer) if floor == "factor" else excess
        out.append(call.total("out", [score, min(-excess / buffer * factor, mpf(0))]))
    return {"out": out}


@textbook("stop_properly_penalty", of="result")
def stop_properly_penalty(call: Call) -> Results:
    c = call.setting("coefficient")
    pairs = zip(call.column("scores"), call.integers("truncated"))
    return {"out": [(c if c < 0 else c * score) if cut else score for score, cut in pairs]}


@textbook("missing_eos_penalty")
def missing_eos_penalty(call: Call) -> Results:
    penalty = call.setting("penalty")
    pairs = zip(call.column("scores"), call.integers("ended"))
    return {"out": [call.total("out", [score] if ended else [score, -penalty]) for score, ended in pairs]}


@textbook("reward_scale_clip")
def reward_scale_clip(call: Call) -> Results:
    """Moved, clipped to a range, and for `map` stretched to another."""
    scores, kind = call.column("scores"), call.setting("kind")
    moved, out_of = scores, (lambda x: x)
    if kind == "clip":
        low, high = call.setting("low"), call.setting("high")
    elif kind == "shift-scale-clip":
        high = call.setting("bound")
        low, moved = -high, [(x + call.setting("bias")) * call.setting("scale") for x in scores]
    else:
        low, high = call.setting("from_low"), call.setting("from_high")
        to_low, to_high = call.setting("to_low"), call.setting("to_high")
        call.scale["scores"] = max(abs(to_low), abs(to_high))
        out_of = lambda x: to_low + (x - low) / (high - low) * (to_high - to_low)
    held = sum(call.less(x, low) or call.less(high, x) for x in moved)
    out = [out_of(call.clamp(x, low, high)) for x in moved]
    return {"scores": out, "clip_fraction": [mpf(held) / max(len(scores), 1)]}


@textbook("repetition_penalty", of="result")
def repetition_penalty(call: Call) -> Results:
    """The share of phrases that repeat an earlier one, times the penalty."""
    ids, n, penalty = call.integers("tokens"), int(call.setting("ngram", 3)), call.setting("penalty", -1.0)
    out = []
    for row in range(call.rows):
        said = [ids[slot] for slot in call.kept_of(row)]
        phrases = [tuple(said[start : start + n]) for start in range(len(said) - n + 1)]
        out.append((1 - mpf(len(set(phrases))) / len(phrases)) * penalty if phrases else mpf(0))
    return {"out": out}


@textbook("length_penalty_group")
def length_penalty_group(call: Call) -> Results:
    """Scores minus the group's mean times the weighted shares of the group's greatest lengths."""
    scores = call.column("scores")
    kinds = [(call.integers(f"{kind}s"), call.setting(f"{kind}_weight", 0.0)) for kind in ("output", "input", "turn")]
    out = []
    for row, score in enumerate(scores):
        group = call.members(row)
        longest = [max([1, *(lengths[other] for other in group)]) for lengths, _ in kinds]
        shares = [weight * lengths[row] / most for (lengths, weight), most in zip(kinds, longest)]
        mean = [scores[other] / len(group) for other in group]
        out.append(score - mp.fsum(mean) * mp.fsum(shares))
        terms = abs(score) + mp.fsum(abs(x) for x in mean) * mp.fsum(abs(x) for x in shares)
        call.scale["out"] = max(call.scale.get("out", mpf(0)), terms)
    return {"out": out}
