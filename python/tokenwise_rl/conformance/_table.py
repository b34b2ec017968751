"""Which formulas each operation runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._operations import LOSSES, Run, Settings, _settings, reads, setting_names

_VALUE = {
    "values": "x",
    "rewards": "x",
    "mean": "value",
    "variance": "value",
    "quantile": "value",
    "correlation": "value",
    "effective_sample_size": "value",
}
_LOSS = {"weights": "rollout_weights", "tau_positive": "tau_pos", "tau_negative": "tau_neg", "ratio_cap": "dual_clip"}
_SCORES = {"out": "scores"}
_MASK = {"keep": "mask"}


def _one(
    formula: str, usual: Settings | None = None, names: dict[str, str] | None = None, empty: tuple[str, ...] = ()
) -> Callable[[Run], None]:
    """One formula, with its settings under the profile, or with these usual ones."""

    def operation(run: Run) -> None:
        known = names or {}
        config = run.of(formula, **known) if usual is None else run.with_params(dict(usual), **known)
        run.step(formula, config, names, empty=empty)

    return operation


def _two(formula: str, gradient: str, usual: Settings | None = None) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        for name in (formula, gradient):
            run.step(name, run.of(name) if usual is None else run.with_params(dict(usual)))

    return operation


def _sums(run: Run) -> None:
    """One score per sequence, counted as the profile counts."""
    slots = np.ones_like(run.case.mask) if run.conventions["score_slots"] == "All" else None
    run.step("sequence_sums", None, _SCORES, mask=slots)


def _of_scores(run: Run, formula: str, config: Settings) -> None:
    _sums(run)
    run.step(formula, config)
    _broadcast(run)


def _broadcast(run: Run) -> None:
    run.step("broadcast", None, {"values": "out", "out": "advantages"})


def _over_batch(run: Run, epsilon: float) -> None:
    config = {"mean": "batch", "own": "included", "deviation": "batch", "spread": "sample", "epsilon": epsilon}
    run.step("normalize_scores", config, {"scores": "out"})


def _gae(run: Run) -> None:
    config = run.of("gae")
    config["lambda"] = run.case.params.get("lambda", 1.0)
    run.step("gae", config)
    if run.case.params.get("whiten", True):
        run.step("whiten", run.of("whiten"), {"values": "advantages", "out": "advantages"})


def _masked_whiten(run: Run) -> None:
    config = run.of("whiten")
    config["center"] = "shift" if run.case.params.get("shift_mean", True) else "keep-mean"
    run.step("whiten", config, _VALUE)


def _reinforce_plus_plus_baseline(run: Run) -> None:
    _sums(run)
    run.step("reinforce_plus_plus_baseline", run.of("reinforce_plus_plus_baseline"))


def _grpo(run: Run) -> None:
    params = run.case.params
    scale = params.get("scale") or ("group" if params.get("norm_by_std", True) else "none")
    config = run.of("group_relative")
    config["scale"] = {"group": "standard-deviation", "batch": "batch-deviation", "none": "unit"}[scale]
    _of_scores(run, "group_relative", config)


def _grpo_passk(run: Run) -> None:
    config = run.of("best_of_group")
    config["scale"] = "standard-deviation" if run.case.params.get("norm_by_std", True) else "unit"
    _of_scores(run, "best_of_group", config)


def _rloo(run: Run) -> None:
    _sums(run)
    run.step("leave_one_out", run.of("leave_one_out"))
    if run.case.params.get("normalize", False):
        _over_batch(run, 1e-4)
    _broadcast(run)


def _gdpo(run: Run) -> None:
    sources = run.case.inputs["reward_sources"]
    run.made["weights"] = run.case.params.get("weights") or [1.0] * len(sources)
    config = run.of("gdpo")
    names = {"sources": "reward_sources"}
    if run.case.profile != "trl-1.16":
        run.step("gdpo", config, names)
        return
    # over the sequences of the batch, not over their tokens
    run.step("decoupled_scores", config["group"], names)
    _over_batch(run, config["group"]["epsilon"])
    _broadcast(run)


def _optimal(formula: str) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        zero_tail = "no-baseline" if run.case.params.get("handle_zero_tail", True) else "own-return"
        run.step(formula, {"zero_tail": zero_tail, "epsilon": 1e-8})

    return operation


def _aggregate(run: Run) -> None:
    usual = _settings(run.case.profile, "reinforce")["aggregate"]
    run.step("aggregate", run.aggregate("mode", usual), {"loss": "value"}, empty=("loss",))


def _loss(formula: str, of: str | None = None) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        run.step(formula, run.of(formula, of, **_LOSS), _LOSS, empty=("loss",))

    return operation


def _shared(run: Run, more: Settings) -> Settings:
    """Aggregation and divisor under the profile, and other settings."""
    usual = _settings(run.case.profile, "reinforce")
    return run.with_params({**more, "aggregate": dict(usual["aggregate"]), "divisor": usual["divisor"]}, **_LOSS)


def _dro(run: Run) -> None:
    run.step("dro", _shared(run, {"beta": run.case.params["beta"]}), _LOSS, empty=("loss",))


def _by_score(formula: str) -> Callable[[Run], None]:
    """A loss of good and bad responses: the sign of the advantage stands for that of the score."""

    def operation(run: Run) -> None:
        case = run.case
        usual = _settings(case.profile, "reinforce")["aggregate"]
        config = {name: case.params[name] for name in setting_names(formula) if name in case.params}
        config["aggregate"] = run.aggregate("aggregate", usual)
        found = []
        for score in (1.0, 0.0):
            part = Run(case, run.variation)
            part.made["scores"] = np.full(case.rows, score)
            part.step(formula, config, _LOSS, empty=("loss",))
            found.append(part.made)
        run.used[formula] = config
        good, bad = found
        if "grad" not in good:
            run.made.update(good)
            return
        grad = np.where(np.asarray(case.inputs["advantages"]) > 0, good["grad"], bad["grad"])
        kept = np.where(case.mask, grad * np.asarray(case.inputs["log_probs"]), 0.0)
        run.made.update({"grad": grad, "loss": float(np.sum(kept))})

    return operation


def _cispo(run: Run) -> None:
    config = run.of("cispo", **_LOSS)
    low, high = (run.case.params.get(name, 0.2) for name in ("clip_low", "clip_high"))
    absolute = config["bounds"]["kind"] == "absolute"
    config["bounds"] = (
        {"kind": "absolute", "high": high} if absolute else {"kind": "relative", "low": low, "high": high}
    )
    run.step("cispo", config, _LOSS, empty=("loss",))


def _mode(config: Settings, mode: str) -> Settings:
    config["aggregate"].pop("scale", None)
    config["aggregate"]["mode"] = mode
    return config


def _sapo(run: Run) -> None:
    config = run.of("sapo", **_LOSS)
    if not run.case.params.get("aggregate") or run.case.profile == "verl-0.9.1":
        config = _mode(config, "seq-mean-token-mean")
    run.step("sapo", config, _LOSS, empty=("loss",))


def _gspo(run: Run) -> None:
    case = run.case
    config = run.of("gspo", **_LOSS)
    if case.profile == "openrlhf-0.11":  # equal weights for all sequences, whatever the configured mode
        config = _mode(config, "seq-mean-token-mean")
    run.step("gspo", config, _LOSS, empty=("loss",))
    if case.profile == "trl-1.16":
        _share_of_rows(run, config)


def _luspo(run: Run) -> None:
    run.step("luspo", run.with_params({"clip_low": 0.2, "clip_high": 0.2}), _LOSS, empty=("loss",))
    if run.case.profile == "trl-1.16":
        _share_of_rows(run, run.of("gspo", **_LOSS))


def _share_of_rows(run: Run, config: Settings) -> None:
    """TRL reports the share of clipped sequences; we and the others count tokens."""
    if "clip_fraction" not in run.made:
        return
    held = 0
    for row in range(run.case.rows):
        alone = np.zeros_like(run.case.mask)
        alone[row] = run.case.mask[row]
        if alone.any():
            part = Run(run.case)
            part.step("gspo", _mode({**config, "aggregate": dict(config["aggregate"])}, "token-sum"), _LOSS, mask=alone)
            held += part.made.get("clip_fraction", 0.0) > 0
    run.made["clip_fraction"] = held / run.case.rows


def _vespo(run: Run) -> None:
    run.step("vespo", run.of("vespo", **_LOSS), _LOSS, empty=("loss",))
    if "phi_mean" in run.made:  # TRL counts rows without kept tokens, whose ratio is 1
        rows, kept = run.case.rows, int(run.case.mask.any(axis=1).sum())
        run.made["phi_mean"] = (run.made["phi_mean"] * kept + (rows - kept)) / rows


def _kl_loss(run: Run) -> None:
    usual = _settings(run.case.profile, "reinforce")["aggregate"]
    kl = dict(_settings(run.case.profile, "kl_estimate"))
    run.step("kl_loss", run.with_params({"kl": kl, "coefficient": 1e-3, "aggregate": dict(usual)}))


def _opd_loss(run: Run) -> None:
    more = {
        "kl": dict(_settings(run.case.profile, "kl_estimate")),
        "max_loss": 10.0,
        "route": "clipped",
        "coefficient": 1.0,
        "clip_low": 0.2,
        "clip_high": 0.2,
    }
    run.step("opd_loss", _shared(run, more))


def _with_aggregate(formula: str, more: Settings) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        usual = {"mode": "token-mean", "empty_rows": "excluded", "divisor": "count", "counts": None}
        run.step(formula, run.with_params({**more, "aggregate": usual}))

    return operation


def _rollout_is(run: Run) -> None:
    params = run.case.params
    lower, upper = params.get("lower"), params.get("upper") or 2.0
    spelled = params.get("threshold")
    if spelled is not None:
        parts = [float(part) for part in str(spelled).split("_")]
        lower, upper = (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    mode = params.get("mode") or ("truncate" if lower is None else "mask")
    if mode == "mask":
        bound: Settings = {"kind": "zero", "lower": lower or 0.0, "upper": upper}
    elif lower is None:
        bound = {"kind": "truncate", "upper": upper}
    else:
        bound = {"kind": "clamp", "lower": lower, "upper": upper}
    config = dict(_settings(run.case.profile, "rollout_weights"))
    config |= {"bound": bound, "normalize": "by-level" if params.get("batch_normalize") else "off"}
    config["level"] = params.get("level") or "token"
    run.step("rollout_weights", config)
    run.step("rollout_weight_metrics", config)


def _rollout_gate(run: Run) -> None:
    config = run.with_params({"level": "off", "statistic": "ratio", "mode": "mask", "lower": 0.5, "upper": 5.0})
    config["statistic"] = {"tv": "total-variation"}.get(config["statistic"], config["statistic"])
    config["level"] = {"seq": "sequence"}.get(config["level"], config["level"])
    run.step("rollout_gate", config)


def _normalize_scores(run: Run) -> None:
    params = run.case.params
    level = {"batch": "batch", "group": "group", "none": "off"}
    config = {
        "mean": level[params.get("mean") or "group"],
        "own": "left-out" if params.get("leave_one_out") else "included",
        "deviation": level[params.get("deviation") or "group"],
        "spread": "sample" if params.get("unbiased", True) else "population",
        "epsilon": params.get("epsilon", 1e-5),
    }
    run.step("normalize_scores", config, _SCORES)


def _masked_mean(run: Run) -> None:
    run.step("mean", {"divisor": _divisor(run)}, _VALUE, empty=("mean",))


def _divisor(run: Run) -> str:
    return "count-plus-epsilon" if run.conventions["divisor"] == "CountPlusEpsilon" else "count"


def _with_divisor(
    formula: str, names: dict[str, str], empty: tuple[str, ...] = (), **more: Any
) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        run.step(formula, {**more, "divisor": _divisor(run)}, names, empty=empty)

    return operation


def _clip_fractions(run: Run) -> None:
    run.step("clip_fractions", run.of("clip_fractions"), empty=("clipped", "low", "high", "dual"))


def _kl_in_scores(run: Run) -> None:
    run.step("kl_in_scores", run.with_params({"beta": float(run.conventions["kl_reward.beta"])}), _SCORES)


def _td_lambda(run: Run) -> None:
    config = run.of("td_lambda")
    config["lambda"] = run.case.params.get("lambda", 1.0)
    run.step("td_lambda", config)


def _entropy_bonus(run: Run) -> None:
    config = run.of("entropy_bonus")
    config["coefficient"] = run.case.params.get("coefficient", 0.01)
    run.step("entropy_bonus", config, empty=("loss",))


def _rloo_vectorized(run: Run) -> None:
    _of_scores(run, "leave_one_out", {"singleton": "zero"})  # unlike rloo, a lone score gets 0


def _clipped_rewards(run: Run) -> None:
    run.step("clipped_rewards", run.with_params({"beta": 0.01, "low": -10.0, "high": 10.0}))


def _kl_importance_weighted(run: Run) -> None:
    kl = {**_settings(run.case.profile, "kl_estimate"), "estimator": "k3"}
    config = {"weight": run.case.params.get("level") or "token", "kl": kl}
    for formula in ("kl_importance_weighted", "kl_importance_weighted_gradient"):
        run.step(formula, config)


def _max_rl(run: Run) -> None:
    run.step("max_rl", run.with_params({"divisor": "plus-epsilon", "epsilon": 1e-6, "singleton": "raw"}), _SCORES)


def _off_policy(run: Run) -> None:
    unscored = "ignore" if run.conventions["rollout.unscored"] == "Ignore" else "nan"
    config = run.with_params({"threshold": 1e-4})
    run.step("off_policy_sequence_mask", {**config, "unscored": unscored}, _MASK)


def _threshold(formula: str) -> Callable[[Run], None]:
    def operation(run: Run) -> None:
        run.step(formula, {"tau": run.case.params["threshold"]}, _MASK)

    return operation


#: Policy losses that have no form here: their cases name weights of tokens.
_NO_FORM = ("dual_game",)


def operation_of(op: str) -> Callable[[Run], None] | None:
    """What an operation runs. A policy loss that has no row is the formula of its name."""
    policy = op in LOSSES and reads(op, "log_probs", "old_log_probs", "advantages")
    if op in TABLE or op in _NO_FORM or not policy:
        return TABLE.get(op)
    return _by_score(op) if reads(op, "scores") else _loss(op)


#: The operations that are not just a policy loss.
TABLE: dict[str, Callable[[Run], None]] = {
    "gae": _gae,
    "grpo": _grpo,
    "grpo_vectorized": _grpo,
    "grpo_passk": _grpo_passk,
    "rloo": _rloo,
    "rloo_vectorized": _rloo_vectorized,
    "opo": lambda run: _of_scores(run, "length_weighted_baseline", run.of("length_weighted_baseline")),
    "gpg_advantage": lambda run: _of_scores(run, "gpg_advantage", run.of("gpg_advantage")),
    "gdpo": _gdpo,
    "reinforce_plus_plus": _one("reinforce_plus_plus"),
    "reinforce_plus_plus_baseline": _reinforce_plus_plus_baseline,
    "remax": lambda run: run.step("remax"),
    "optimal_token_baseline": _optimal("optimal_token_baseline"),
    "tir_optimal_token_baseline": _optimal("tir_optimal_token_baseline"),
    "discounted_returns": _one("discounted_returns"),
    "monte_carlo_advantage": _one("monte_carlo_advantage"),
    "td_lambda": _td_lambda,
    "n_step_returns": lambda run: run.step("n_step_returns", run.of("n_step_returns")),
    "upgo": lambda run: run.step("upgo"),
    "vtrace": _one(
        "vtrace",
        {"gamma": 1.0, "lambda": 1.0, "rho_bar": 1.0, "rho_bar_pg": 1.0, "c_bar": 1.0},
        {"rho_bar_pg": "rho_bar"},
    ),
    "retrace": _one("retrace", {"gamma": 1.0, "lambda": 1.0, "coefficient": "retrace"}, {"targets": "returns"}),
    "uniform_credit": lambda run: run.step("uniform_credit", None, {"out": "advantages"}),
    "attention_credit": lambda run: run.step("attention_credit", None, {"out": "advantages"}),
    "last_k_credit": _one("last_k_credit", {"k": 1}, {"out": "advantages"}),
    "normalize_scores": _normalize_scores,
    "max_rl": _max_rl,
    "masked_whiten": _masked_whiten,
    "masked_mean": _masked_mean,
    "masked_var": _with_divisor("variance", _VALUE, spread="sample"),
    "row_sums": lambda run: run.step("sequence_sums", None, _VALUE),
    "row_means": _with_divisor("row_means", _VALUE),
    "row_normalize": _one("row_normalize", {"floor": 1e-8}, _VALUE),
    "quantile": _one("quantile", {"level": 0.5}, _VALUE),
    "correlation": lambda run: run.step("correlation", None, _VALUE),
    "explained_variance": lambda run: run.step(
        "explained_variance", {"epsilon": 1e-5, "spread": "sample"}, {"explained_variance": "value"}
    ),
    "kl_means": _with_divisor("kl_means", {}, ("k1", "abs", "k2", "k3")),
    "clip_fractions": _clip_fractions,
    "token_log_probs": _one("token_log_probs", {"temperature": 1.0}),
    "entropy": _one("entropy", {"temperature": 1.0}),
    "sum_pi_squared": _one("sum_squared_probs", {"temperature": 1.0}),
    "logits_grad": _one("logits_gradient", {"temperature": 1.0}),
    "kl": _two("kl_estimate", "kl_gradient"),
    "kl_full": _two("kl_exact", "kl_exact_gradient", {"temperature": 1.0}),
    "kl_importance_weighted": _kl_importance_weighted,
    "kl_in_reward": _one("kl_in_reward", None, {"mean_kl": "current_kl"}),
    "kl_in_scores": _kl_in_scores,
    "place_scores": lambda run: run.step("place_scores"),
    "shape_rewards": _one("shape_rewards", {"beta": 1e-3}),
    "clipped_rewards": _clipped_rewards,
    "overlong_penalty": _one("overlong_penalty", None, _SCORES),
    "stop_properly_penalty": _one("stop_properly_penalty", {"coefficient": 0.0}, _SCORES),
    "repetition_penalty": _one("repetition_penalty", {"ngram": 3, "penalty": -1.0}, _SCORES),
    "aggregate": _aggregate,
    "tis_loss": _loss("tis_loss", "reinforce"),
    "dro": _dro,
    "surrogate": _with_aggregate("surrogate", {"log_ratio_bound": None}),
    "cispo": _cispo,
    "sapo": _sapo,
    "gspo": _gspo,
    "luspo": _luspo,
    "vespo": _vespo,
    "value_loss": _one("value_loss", None, None, ("loss",)),
    "entropy_bonus": _entropy_bonus,
    "kl_loss": _kl_loss,
    "opd_loss": _opd_loss,
    "iw_opd": _with_aggregate("iw_opd", {"gamma": 0.5, "epsilon": 1e-8}),
    "generalized_jsd": _with_aggregate("generalized_jsd", {"beta": 0.5, "temperature": 1.0}),
    "rollout_is": _rollout_is,
    "rollout_metrics": _with_divisor("rollout_mismatch", {}),
    "rollout_gate": _rollout_gate,
    "off_policy_sequence_mask": _off_policy,
    "sequence_veto": _one("sequence_veto", {"lower": 1e-4, "upper": float("inf")}, _MASK),
    "high_entropy_mask": _one("high_entropy_mask", {"share": 0.2}, {"entropies": "entropy", "keep": "mask"}),
    "kl_mask": _threshold("kl_mask"),
    "m2po_mask": _threshold("m2po_mask"),
}
