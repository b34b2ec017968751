"""Everything that OpenRLHF logs for a batch, by key."""

from __future__ import annotations

from . import textbook
from .call import Call, Results
from .divergence import K1, kl_value
from .loss import ZERO, usual_aggregate
from .metric import kept_of
from .sets import Keys, aggregated, average, deviation, given, of_columns, share


def kl_of_openrlhf(call: Call) -> Keys:
    kl = {**K1, "bounds": "every", **call.setting("kl", {})}
    new, ref = call.column("log_probs"), call.column("ref_log_probs")
    d = call.fill(lambda slot: new[slot] - ref[slot])
    values = call.fill(lambda slot: kl_value(call, kl, d[slot]))
    keys = "train/kl", "train/logprobs_diff"
    if call.setting("kl_use", "reward") == "loss":
        difference = call.mean(keys[1], lambda slot: d[slot], "count") if call.kept() else None
        return dict(zip(keys, (aggregated(call, keys[0], lambda slot: values[slot]), difference)))
    rows = [call.kept_of(row) for row in range(call.rows)]
    if not all(rows):
        return dict.fromkeys(keys)
    return {
        key: call.total(key, [column[slot] / len(kept) / call.rows for kept in rows for slot in kept])
        for key, column in zip(keys, (values, d))
    }


def of_sequences(call: Call) -> Keys:
    """The metrics of OpenRLHF for scores and lengths."""
    out: Keys = {}
    spans = [kept[-1] - kept[0] + 1 if kept else 0 for kept in map(call.kept_of, range(call.rows))]
    out["train/response_length"] = average(call, "train/response_length", spans)
    if call.has("scores"):
        scores = call.column("scores")
        out["train/reward"] = average(call, "train/reward", scores)
        if call.groups is not None:
            groups = [[scores[other] for other in call.members(row)] for row in range(call.rows)]
            spreads = [deviation(group) for group in groups]
            key = "train/group_reward_std"
            out[key] = None if None in spreads else average(call, key, spreads)
            call.scale[key] = max(map(abs, scores), default=ZERO)
    if call.has("total_lengths.tokens"):
        lengths, limit = call.integers("total_lengths.tokens"), int(call.inputs["total_lengths.limit"])
        out["train/total_length"] = average(call, "train/total_length", lengths)
        out["train/response_clip_ratio"] = share([n >= limit for n in lengths])
    if call.has("truncated"):
        out["train/truncated"] = share(call.integers("truncated"))
    return out


@textbook("openrlhf_metrics", of="result")
def openrlhf_metrics(call: Call) -> Results:
    usual_aggregate(call, {"divisor": "count-plus-epsilon"})
    out: Keys = of_sequences(call)
    if call.has("log_probs") and call.has("ref_log_probs"):
        out |= kl_of_openrlhf(call)
    if call.has("entropies"):
        out["train/entropy_loss"] = aggregated(call, "train/entropy_loss", of_columns(call, "entropies"))
    if call.has("rewards"):
        terms = [x / call.rows for x in kept_of(call, "rewards")]
        out["train/return"] = call.total("train/return", terms) if call.rows else None
    if call.has("predictions"):
        mean = call.mean("train/values", of_columns(call, "predictions"), "count")
        out["train/values"] = mean if call.kept() else None
    copied = {
        "train/policy_loss": "policy_loss.loss",
        "train/ppo_clip_ratio": "policy_loss.clip_fraction",
        "train/ppo_kl": "policy_loss.kl",
        "train/vllm_kl": "gate.kl",
        "train/is_filter_ratio": "gate.filtered",
        "train/critic_loss": "value_loss.loss",
    }
    out |= {key: call.number(name) for key, name in copied.items() if call.has(name)}
    return given(out)
