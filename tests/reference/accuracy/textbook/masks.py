"""Masks, filters and draws around a rollout, and the gap between probabilities."""

from __future__ import annotations

from mpmath import mp, mpf

from . import textbook
from .call import Call, Results, mean_and_variance, quantile_of
from .covariance_loss import draws
from .loss import ONE, ZERO
from .rollout import deltas

PROBS = "training/rollout_probs_diff"


@textbook("kl_mask", copies="flags")
def kl_mask(call: Call) -> Results:
    tau, d = call.setting("tau"), deltas(call)
    return {"keep": call.fill(lambda slot: int(not call.less(tau, d[slot] ** 2 / 2)), 0)}


@textbook("sequence_veto", copies="flags")
def sequence_veto(call: Call) -> Results:
    lower, upper, d = call.setting("lower", mpf(1e-4)), call.setting("upper", mp.inf), deltas(call)
    outside = lambda slot: call.less(mp.exp(d[slot]), lower) or call.less(upper, mp.exp(d[slot]))
    vetoed = [any([outside(slot) for slot in call.kept_of(row)]) for row in range(call.rows)]
    return {"keep": call.fill(lambda slot: int(not vetoed[slot // call.width]), 0)}


@textbook("m2po_mask", copies="flags")
def m2po_mask(call: Call) -> Results:
    """The largest squared log-ratio is dropped until their mean is below τ or one is left."""
    tau, d = call.setting("tau"), deltas(call)
    # ascending; among equals the earlier is dropped first, so it comes last
    left = sorted(call.kept(), key=lambda slot: (d[slot] ** 2, -slot))
    total = mp.fsum(d[slot] ** 2 for slot in left)
    while len(left) > 1 and not call.less(total / len(left), tau):
        call.less(d[left[-2]] ** 2, d[left[-1]] ** 2)
        total -= d[left.pop()] ** 2
    kept = set(left)
    return {"keep": call.fill(lambda slot: int(slot in kept), 0)}


@textbook("off_policy_sequence_mask", copies="flags")
def off_policy_sequence_mask(call: Call) -> Results:
    new, old, advantages = (call.column(name) for name in ("log_probs", "old_log_probs", "advantages"))
    threshold = call.setting("threshold", mpf(1e-4))
    k = call.fill(lambda slot: old[slot] - new[slot])
    if call.setting("unscored", "nan") == "ignore":
        k = [ZERO if mp.isnan(x) else x for x in k]
    far = []
    for row in range(call.rows):
        kept = call.kept_of(row)
        mean, size = (mp.fsum(of(k[slot]) for slot in kept) / max(len(kept), 1) for of in (mpf, abs))
        far.append(call.less(threshold, mean, size))
    return {"keep": call.fill(lambda slot: int(advantages[slot] >= 0 or not far[slot // call.width]), 0)}


@textbook("high_entropy_mask", copies="flags")
def high_entropy_mask(call: Call) -> Results:
    entropies, kept = call.column("entropies"), call.kept()
    if not kept:
        return {"keep": [0] * len(call.mask)}
    bound = quantile_of(sorted(entropies[slot] for slot in kept), 1 - call.setting("share", mpf(0.2)))
    return {"keep": call.fill(lambda slot: int(not call.less(entropies[slot], bound)), 0)}


@textbook("dynamic_sampling_filter", copies="flags")
def dynamic_sampling_filter(call: Call) -> Results:
    kind, scores, ids = call.setting("kind", "not-constant"), call.column("scores"), call.ids()
    keep = []
    for group in range(max(ids, default=-1) + 1):
        own = [score for score, label in zip(scores, ids) if label == group]
        size = max(abs(score) for score in own)
        if kind == "not-constant":
            keep.append(len(own) == 1 or any(score != own[0] for score in own))
        elif kind == "spread":
            root = mp.sqrt(mean_and_variance(own)[1]) if len(own) > 1 else -ONE
            keep.append(call.less(call.setting("at_least"), root, size))
        else:
            mean = mp.fsum(own) / len(own)
            keep.append(call.less(call.setting("low"), mean, size) and call.less(mean, call.setting("high"), size))
    return {"keep": [int(flag) for flag in keep]}


@textbook("pf_ppo_weights", of="result")
def pf_ppo_weights(call: Call) -> Results:
    kind, scores = call.setting("kind", "power"), call.column("scores")
    power = call.setting("power", mpf(2))
    raw = {
        "power": lambda x: abs(x) ** power if x or power else ONE,
        "max-min": lambda x: mpf(x in (max(scores), min(scores))),
        "max-random": lambda x: mpf(0.4) if x == max(scores) else mpf(0.1),
    }[kind]
    return {"weights": [raw(x) + mpf(1e-8) for x in scores]}


@textbook("pf_ppo_indices", copies="indices")
def pf_ppo_indices(call: Call) -> Results:
    weights, random = call.column("weights"), draws(int(call.setting("seed", mpf(0))))
    sums = [mp.fsum(weights[: place + 1]) for place in range(len(weights))]
    out = []
    for _ in range(int(call.inputs["draws"])):
        place = mpf(next(random) >> 11) / 2**53 * sums[-1]
        # every comparison, for those that are too close
        passed = [not call.less(place, edge, sums[-1] / 16) for edge in sums[:-1]]
        out.append(sum(passed))
    return {"indices": out}


@textbook("response_mask_from_eos", copies="flags")
def response_mask_from_eos(call: Call) -> Results:
    tokens, eos = call.integers("tokens"), call.integers("eos")
    keep = []
    for row in range(call.rows):
        ended = False
        for slot in call.row(row):
            keep.append(int(not ended))
            ended = ended or tokens[slot] in eos
    return {"keep": keep}


@textbook("probability_difference", of="result")
def probability_difference(call: Call) -> Results:
    columns = call.column("old_log_probs"), call.column("rollout_log_probs")
    p, q = ([mp.exp(column[slot]) for slot in call.kept()] for column in columns)
    gaps = [abs(x - y) for x, y in zip(p, q)]
    out: Results = {
        f"{PROBS}_valid": [ONE],
        f"{PROBS}_max": [max(gaps)],
        f"{PROBS}_mean": [mp.fsum(gaps) / len(gaps)],
        f"{PROBS}_std": [None],
        "training/rollout_actor_probs_pearson_corr": [None],
    }
    # a gap is rounded like the probabilities
    for name in ("max", "mean", "std"):
        call.scale[f"{PROBS}_{name}"] = max(p + q)
    if len(gaps) > 1:
        out[f"{PROBS}_std"] = [mp.sqrt(mean_and_variance(gaps)[1])]
        spreads = [mean_and_variance(numbers) for numbers in (p, q)]
        product = mp.fsum((x - spreads[0][0]) * (y - spreads[1][0]) for x, y in zip(p, q)) / (len(p) - 1)
        if spreads[0][1] and spreads[1][1]:
            root = mp.sqrt(spreads[0][1] * spreads[1][1])
            out["training/rollout_actor_probs_pearson_corr"] = [product / root]
            # the deviations from the means are rounded like the probabilities
            sizes = [max(numbers) / mp.sqrt(spread[1]) for numbers, spread in zip((p, q), spreads)]
            call.scale["training/rollout_actor_probs_pearson_corr"] = max(ONE, *sizes)
    return out
