"""Everything that a framework logs for a batch, by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, magnitude, mean_and_variance
from .divergence import K3, kl_value
from .loss import ZERO, inner, run_inner, usual_aggregate
from .metric import kept_of

Keys = dict[str, "mpf | None"]


def summary(call: Call, prefix: str, values: Sequence[Any], form: str = "{prefix}/{name}") -> Keys:
    """Mean, largest, smallest; not judged if there are none."""
    keys = [form.format(prefix=prefix, name=name) for name in ("mean", "max", "min")]
    if not values:
        return dict.fromkeys(keys)
    return dict(zip(keys, (call.total(keys[0], [mpf(x) / len(values) for x in values]), max(values), min(values))))


def average(call: Call, key: str, values: Sequence[Any]) -> mpf | None:
    return call.total(key, [mpf(x) / len(values) for x in values]) if values else None


def share(flags: Sequence[Any]) -> mpf | None:
    return mpf(sum(map(bool, flags))) / len(flags) if flags else None


def deviation(values: Sequence[Any]) -> mpf | None:
    """Not judged for fewer than two."""
    return mp.sqrt(mean_and_variance(values)[1]) if len(values) > 1 else None


def row_sums(call: Call, name: str) -> Exact:
    column = call.column(name)
    return [mp.fsum(column[slot] for slot in call.kept_of(row)) for row in range(call.rows)]


def row_sizes(call: Call, name: str) -> Exact:
    """The magnitudes of what is summed."""
    column = call.column(name)
    return [magnitude(column[slot] for slot in call.kept_of(row)) for row in range(call.rows)]


def aggregated(call: Call, key: str, value: Callable[[int], mpf]) -> mpf | None:
    return call.aggregate(call.fill(value), name=key)[0] if call.kept() else None


def of_columns(call: Call, name: str) -> Callable[[int], mpf]:
    column = call.column(name)
    return lambda slot: column[slot]


def length_keys(call: Call, prefix: str, lengths: list[int], limit: int) -> Keys:
    return {**summary(call, prefix, lengths), f"{prefix}/clip_ratio": share([n == limit for n in lengths])}


def lengths_of_verl(call: Call) -> Keys:
    out: Keys = {}
    both = [
        call.integers(f"{name}_lengths.tokens") for name in ("response", "prompt") if call.has(f"{name}_lengths.tokens")
    ]
    if call.has("response_lengths.tokens"):
        lengths, limit = call.integers("response_lengths.tokens"), int(call.inputs["response_lengths.limit"])
        out |= length_keys(call, "response_length", lengths, limit)
        out |= length_keys(call, "response_length_non_aborted", [n for n in lengths if n], limit)
        out["response/aborted_ratio"] = share([n == 0 for n in lengths])
        for prefix, name in (("critic/score", "scores"), ("critic/rewards", "rewards")):
            if call.has(name):
                sums = [x for x, n in zip(row_sums(call, name), lengths) if n]
                out |= summary(call, prefix, sums)
                sizes = [x for x, n in zip(row_sizes(call, name), lengths) if n]
                for key in ("max", "min", "mean"):
                    call.scale[f"{prefix}/{key}"] = max(sizes, default=ZERO)
        if len(both) > 1:
            out["perf/total_num_tokens"] = mpf(sum(map(sum, both)))
    if call.has("prompt_lengths.tokens"):
        limit = int(call.inputs["prompt_lengths.limit"])
        out |= length_keys(call, "prompt_length", call.integers("prompt_lengths.tokens"), limit)
    return out


def update_of_verl(call: Call) -> Keys:
    """The losses, and what is aggregated like them."""
    out: Keys = {}
    if call.has("entropies"):
        out["actor/entropy_loss"] = aggregated(call, "actor/entropy_loss", of_columns(call, "entropies"))
    if call.has("log_probs") and call.has("ref_log_probs"):
        kl = {**K3, "bounds": "k3-only", **call.setting("kl", {})}
        new, ref = call.column("log_probs"), call.column("ref_log_probs")
        value = lambda slot: kl_value(call, kl, new[slot] - ref[slot])
        out["actor/kl_loss"] = aggregated(call, "actor/kl_loss", value)
        out["actor/kl_coef"] = call.setting("kl_coefficient", mpf(1e-3))
    if call.has("policy_loss.loss"):
        names = ("actor/pg_loss", "loss"), ("actor/pg_clipfrac", "clip_fraction"), ("actor/ppo_kl", "kl")
        for key, name in (*names, ("actor/pg_clipfrac_lower", "clip_fraction_lower")):
            out[key] = call.number(f"policy_loss.{name}")
        terms = [out["actor/pg_loss"], ZERO, ZERO]
        if "actor/entropy_loss" in out:
            terms[1] = (out["actor/entropy_loss"] or ZERO) * -call.setting("entropy_coefficient", ZERO)
        if "actor/kl_loss" in out:
            terms[2] = (out["actor/kl_loss"] or ZERO) * out["actor/kl_coef"]
        out["actor/loss"] = call.total("actor/loss", terms)
        if not call.kept():
            out["actor/loss"] = None
    if call.has("value_loss.loss"):
        loss, fraction = call.number("value_loss.loss"), call.number("value_loss.clip_fraction")
        out |= {"critic/vf_loss": loss, "critic/loss": loss, "critic/vf_clipfrac": fraction}
    if call.has("reward_kl.kl"):
        out["actor/reward_kl_penalty"] = call.number("reward_kl.kl")
        out["actor/reward_kl_penalty_coeff"] = call.number("reward_kl.coefficient")
    return out


def given(keys: Keys) -> Results:
    return {key: [value] for key, value in keys.items()}


@textbook("verl_metrics", of="result")
def verl_metrics(call: Call) -> Results:
    call.config = {"divisor": "count-plus-epsilon", **call.config}
    usual_aggregate(call, {"divisor": "count-plus-epsilon"})
    out = lengths_of_verl(call)
    for name in ("advantages", "returns", "values"):
        if call.has(name):
            out |= summary(call, f"critic/{name}", kept_of(call, name))
    out |= update_of_verl(call)
    if call.has("predictions"):
        mean = call.mean("critic/vpred_mean", of_columns(call, "predictions"))
        out["critic/vpred_mean"] = mean if call.kept() else None
    results = given(out)
    if call.has("values") and call.has("returns"):
        results["critic/vf_explained_var"] = [None]
        if len(call.kept()) > 1:
            made = inner(call, "explained_variance", columns={}, config={})
            results["critic/vf_explained_var"] = run_inner(call, made)["explained_variance"]
            call.scale["critic/vf_explained_var"] = call.scale.pop("explained_variance")
    mask = call.mask
    if call.has("mask_before_rejection"):
        mask = [bool(flag) for flag in call.integers("mask_before_rejection")]
    divisor = {"divisor": call.setting("divisor")}

    def also(name: str, config: Any, mask: list[bool] = mask) -> Results:
        return run_inner(call, inner(call, name, columns={}, config=config, mask=mask))

    if call.has("old_entropies"):
        made = inner(
            call,
            "aggregate",
            columns={"losses": call.column("old_entropies")},
            config=call.config["aggregate"],
            mask=mask,
        )
        results["actor/entropy"] = run_inner(call, made)["loss"] if any(mask) else [None]
        call.scale["actor/entropy"] = call.scale.pop("loss", ZERO)
    if call.has("old_log_probs") and call.has("rollout_log_probs"):
        results |= also("probability_difference", {}) | also("rollout_mismatch", divisor)
        for setting, name in (
            ("rollout_weights", "rollout_weight_metrics"),
            ("rejection", "rollout_rejection_metrics"),
        ):
            if call.setting(setting, None) is not None:
                results |= also(name, call.setting(setting))
    needed = ("old_log_probs", "sum_pi_squared", "advantages", "gradient_norm")
    if all(call.has(name) for name in needed):
        config = {"gradient_norm": float(call.inputs["gradient_norm"]), **divisor}
        results |= also("variance_proxy", config, call.mask)
    return results
