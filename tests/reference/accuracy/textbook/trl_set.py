"""Everything that TRL logs for a batch, by key."""

from __future__ import annotations

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, magnitude
from .divergence import K3, kl_value
from .loss import ONE, ZERO, Clip
from .metric import kept_of
from .sets import Keys, average, deviation, given, of_columns, share, summary


def rewards_of_trl(call: Call) -> Keys:
    out: Keys = {}
    n, weights = call.rows, call.column("rewards.source_weights")
    flat = call.column("rewards.sources")
    sources = [flat[k * n : (k + 1) * n] for k in range(len(weights))]
    for k, scores in enumerate(sources):
        scored = [x for x in scores if not mp.isnan(x)]
        out[f"rewards/{k}/mean"] = average(call, f"rewards/{k}/mean", scored)
        out[f"rewards/{k}/std"] = deviation(scored)
        call.scale[f"rewards/{k}/std"] = max(map(abs, scored), default=ZERO)
    rewards: list[mpf | None] = []
    for row in range(n):
        terms = [weight * scores[row] for weight, scores in zip(weights, sources) if not mp.isnan(scores[row])]
        rewards.append(mp.fsum(terms) if terms else None)
    every = [x for x in rewards if x is not None]
    size = max((abs(w * x) for w, scores in zip(weights, sources) for x in scores if not mp.isnan(x)), default=ZERO)
    out["reward"], out["reward_std"] = average(call, "reward", every), deviation(every)
    call.scale["reward"] = call.scale["reward_std"] = size * len(weights)
    ids = call.ids()

    def flat_group(members: Exact) -> bool:
        spread = deviation(members)
        return spread is not None and not call.less(mpf(1e-8), spread, size)

    if call.setting("scale", "group") == "batch":
        constant = [n == 1 or flat_group(every)] * n
    else:
        members = lambda group: [x for x, label in zip(rewards, ids) if label == group and x is not None]
        constant = [len(set(ids)) == n or flat_group(members(group)) for group in ids]
    out["frac_reward_zero_std"] = share(constant)
    return out


def lengths_of_trl(call: Call) -> Keys:
    if not call.has("completion_lengths"):
        return {}
    form, lengths = "completions/{name}_{prefix}", call.integers("completion_lengths")
    out = summary(call, "length", lengths, form)
    if call.has("truncated"):
        flags = call.integers("truncated")
        out["completions/clipped_ratio"] = share(flags)
        whole = [n for n, flag in zip(lengths, flags) if not flag]
        out |= summary(call, "terminated_length", whole or [0], form)
    if call.has("prompt_lengths"):
        total = sum(lengths) + sum(call.integers("prompt_lengths"))
        out["num_tokens"] = call.setting("tokens_seen", ZERO) + total
    return out


def clip_of_trl(call: Call) -> Keys:
    """Per sequence, how many of its units (tokens, or itself) the clip holds below and above."""
    new, advantages = call.column("log_probs"), call.column("advantages")
    old = call.column("old_log_probs") if call.has("old_log_probs") else new
    clip, per_token = Clip.of(call), call.setting("level", "token") == "token"
    rows = []
    for row in range(call.rows):
        kept = call.kept_of(row)
        d = [new[slot] - old[slot] for slot in kept]
        size = magnitude(d) / max(len(d), 1)
        if not per_token:
            d = [mp.fsum(d) / len(d)] if d else []
        held = [0, 0]
        for slot, ratio in zip(kept, map(mp.exp, d)):
            for bound in (clip.low, clip.high, clip.negative_only, clip.both_signs):
                if bound is not None:
                    call.less(ratio, bound, None if per_token else ratio * max(ONE, size))
            if clip.held(ratio, advantages[slot]):
                held[int(advantages[slot] > 0)] += 1
        units = len(kept) if per_token else 1
        if units:
            rows.append((*held, units))
    units = sum(row[2] for row in rows)
    low, high = (mpf(sum(row[side] for row in rows)) / max(units, 1) for side in (0, 1))
    return {
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "clip_ratio/region_mean": low + high,
        "clip_ratio/low_min": min((mpf(row[0]) / row[2] for row in rows), default=None),
        "clip_ratio/high_max": max((mpf(row[1]) / row[2] for row in rows), default=None),
    }


@textbook("trl_metrics", of="result")
def trl_metrics(call: Call) -> Results:
    out: Keys = rewards_of_trl(call) if call.has("rewards.sources") else {}
    out |= lengths_of_trl(call)
    if call.has("entropies"):
        out["entropy"] = call.mean("entropy", of_columns(call, "entropies"), "count")
    if call.has("log_probs") and call.has("ref_log_probs"):
        new, ref = call.column("log_probs"), call.column("ref_log_probs")
        out["kl"] = call.mean("kl", lambda slot: kl_value(call, K3, new[slot] - ref[slot]), "count")
    kind = call.inputs.get("loss.kind")
    if kind is not None:
        out["policy_loss"] = call.number("loss.loss")
        if kind == "cispo":
            out["cispo_clip_ratio"] = call.number("loss.clip_fraction")
        if kind == "vespo":
            out["vespo/phi_seq_mean"] = call.number("loss.phi_mean")
    if call.has("log_probs") and call.has("advantages") and kind in (None, "clipped"):
        out |= clip_of_trl(call)
    if call.has("old_log_probs") and call.has("rollout_log_probs"):
        old, rollout = kept_of(call, "old_log_probs"), kept_of(call, "rollout_log_probs")
        gaps = [abs(x - y) for x, y in zip(old, rollout) if not mp.isnan(x - y)] or [ZERO]
        prefix = "sampling/sampling_logp_difference"
        out |= {f"{prefix}/mean": average(call, f"{prefix}/mean", gaps), f"{prefix}/max": max(gaps)}
    if call.has("weights"):
        values = kept_of(call, "weights")
        if call.setting("weight_level", "token") == "sequence":
            column = call.column("weights")
            firsts = [kept[0] for kept in map(call.kept_of, range(call.rows)) if kept]
            values = [column[slot] for slot in firsts]
        out |= summary(call, "sampling/importance_sampling_ratio", values or [ZERO])
    if call.setting("entropy_coefficient", None) is not None:
        out["entropy_coef"] = call.setting("entropy_coefficient")
    return given(out)
