"""The conventions that people differ on, as changes to our own formula: what explains somebody's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import profiles
from ._cases import Case
from ._operations import ADVANTAGES, LOSSES, OUTPUTS, Settings, Variation, _settings, ran, with_inputs

#: Other values of a setting, with what they mean. A formula in front of the key narrows it.
_ALTERNATIVES: dict[str, dict[Any, str]] = {
    "spread": {
        "population": "variance divided by n (ddof 0, no Bessel correction)",
        "sample": "variance divided by n − 1 (ddof 1, Bessel's correction)",
    },
    "place": {
        "inside-root": "ε added to the variance, inside the root",
        "outside": "ε added to the standard deviation, outside the root",
        "floor-variance": "the variance held at ε or above, instead of adding ε",
    },
    "divisor": {
        "count": "means divided by the exact count",
        "count-plus-epsilon": "means divided by the count + 1e-8",
        "plus-epsilon": "divided by the mean + ε",
        "if-positive": "divided by the mean only if it is positive",
    },
    "across": {
        "step-over": "dropped tokens are stepped over: no discount, the next kept value",
        "zero-step": "dropped tokens are steps with reward 0 and value 0",
    },
    "singleton": {
        "zero": "the only answer to a prompt gets 0",
        "raw": "the only answer to a prompt keeps its raw score",
        "undefined": "the only answer to a prompt gets NaN",
    },
    "epsilon": {number: f"ε = {number:g}" for number in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)},
    "center": {"keep-mean": "the mean is not subtracted", "shift": "the mean is subtracted"},
    "group_relative.scale": {
        "standard-deviation": "divided by the group's standard deviation",
        "batch-deviation": "divided by the standard deviation of the batch",
        "unit": "not divided by a standard deviation",
    },
    "best_of_group.scale": {
        "standard-deviation": "divided by the group's standard deviation",
        "unit": "not divided by a standard deviation",
    },
    "whiten.scale": {
        "standard-deviation": "divided by the standard deviation",
        "unit": "not divided by the standard deviation",
    },
    "mode": {
        "token-mean": "mean over all kept tokens",
        "token-sum": "sum over all kept tokens",
        "seq-mean-token-sum": "sums of sequences, then their mean",
        "seq-mean-token-mean": "means of sequences, then their mean",
    },
    "empty_rows": {
        "excluded": "sequences without kept tokens do not count in the mean over sequences",
        "counted": "sequences without kept tokens count in the mean over sequences",
    },
    "estimator": {name: f"KL estimate {name}" for name in ("k1", "abs", "k2", "k3")},
    "gradient": {
        "own": "the gradient of the estimate itself",
        "straight-through": "the gradient of k2 under the value of another estimate",
    },
    "kl.bounds": {
        "unbounded": "KL estimates are not clamped",
        "k3-only": "k3 clamped to ±10 and its exponent to ±20, the others not clamped",
        "every": "every KL estimate clamped to ±10",
    },
    "form": {
        "sequence": "the gradient of the sequence's ratio flows through all of its tokens",
        "token": "the gradient of the sequence's ratio flows through the token alone",
    },
    "log_ratio_cap": {None: "the log of the sequence's ratio is not capped", 10.0: "the log of it capped at 10"},
    "log_ratio_bound": {
        None: "log-ratios are not clamped",
        20.0: "log-ratios clamped to ±20",
        10.0: "log-ratios clamped to ±10",
    },
    "reported_kl": {
        "bounded": "the reported KL averages the clamped log-ratio",
        "unbounded": "the reported KL averages the log-ratio before it is clamped",
    },
    "value_loss.factor": {"half": "the squared error is halved", "whole": "the squared error is not halved"},
    "value_loss.clip": {None: "the predictions are not clipped", 0.2: "clip 0.2", 0.5: "clip 0.5"},
    "gpg_advantage.factor": {"single": "the factor kept in float32", "exact": "the factor in double precision"},
    "gamma": {1.0: "γ = 1, whatever was given"},
    "lambda": {1.0: "λ = 1, whatever was given", 0.95: "λ = 0.95, whatever was given", 0.0: "λ = 0"},
    "clip_low": {0.2: "lower clip 0.2, whatever was given"},
    "clip_high": {0.2: "upper clip 0.2, whatever was given"},
    "temperature": {1.0: "the temperature is ignored"},
    "zero_tail": {
        "no-baseline": "no baseline where the other answers have ended",
        "own-return": "the own return as the baseline where the other answers have ended",
    },
    "overlong_penalty.floor": {"unlimited": "no lower bound of the penalty", "factor": "the penalty held at −factor"},
    "level": {
        "token": "one weight per token",
        "sequence": "one weight per sequence: the product of its ratios",
        "geometric": "one weight per sequence: the geometric mean of its ratios",
    },
    "normalize": {"off": "weights not divided by their mean", "by-level": "weights divided by their mean"},
    "factors": {"single": "weights of the sources in float32", "exact": "weights of the sources in double precision"},
    "coefficient": {1.0: "coefficient 1, whatever was given"},
    "beta": {0.0: "β = 0"},
}
#: Gradients that share the settings of their formula.
_GRADIENTS = {
    "kl_estimate": "kl_gradient",
    "kl_exact": "kl_exact_gradient",
    "kl_importance_weighted": "kl_importance_weighted_gradient",
}
_TOKEN = (
    "rewards",
    "values",
    "advantages",
    "returns",
    "log_probs",
    "old_log_probs",
    "ref_log_probs",
    "x",
    "losses",
    "predictions",
    "entropy",
    "kl",
    "teacher_log_probs",
    "rollout_log_probs",
)


def variations(cases: Sequence[Case]) -> list[Variation]:
    """Every change that may explain the numbers of a function for these cases."""
    if not cases:
        return []
    used: dict[str, list[Settings]] = {}
    for case in cases:
        for formula, config in ran(case)[1].items():
            used.setdefault(formula, []).append(config)
    found = [
        one
        for formula, configs in used.items()
        if formula not in _GRADIENTS.values()
        for one in _of_settings(formula, configs)
    ]
    return [*found, *_structural(cases), *_late(cases[0].op)]


def _of_settings(formula: str, configs: Sequence[Settings], outer: str = "") -> Iterator[Variation]:
    """Every known alternative of every setting; if it is not the same in all cases, also where it has one value."""
    for key, value in configs[0].items():
        path = f"{outer}{key}"
        if isinstance(value, dict) and key != "counts":
            inner = [config[key] for config in configs if isinstance(config.get(key), dict)]
            yield from _of_settings(formula, inner, f"{path}.")
        if key == "dual_clip":
            yield from _dual_clip(formula)
            continue
        known = _known(formula, path, key, value)
        now = {config[key] for config in configs if isinstance(config.get(key), str)}
        for other, text in known.items():
            words = text + _held(formula, path, other)
            change = {(one, path): other for one in (formula, _GRADIENTS.get(formula, formula))}
            yield Variation(f"{formula}.{path}", words, change)
            for one in sorted(now - {other}) if len(now) > 1 else ():
                yield Variation(f"{formula}.{path}", f"{words}, where it should be {one}", change, only=one)


def _known(formula: str, path: str, key: str, value: Any) -> dict[Any, str]:
    if key == "bounds":
        return _ALTERNATIVES["kl.bounds"] if isinstance(value, str) else {}
    for narrow in (f"{formula}.{key}", path, key):
        if narrow in _ALTERNATIVES:
            return _ALTERNATIVES[narrow]
    return {}


def _dual_clip(formula: str) -> Iterator[Variation]:
    for value, text in (
        ("off", "no second clip for negative advantages"),
        ({"negative_only": 3.0}, "second clip at 3 for negative advantages"),
    ):
        yield Variation(
            f"{formula}.dual_clip", text + _held(formula, "dual_clip", value), {(formula, "dual_clip"): value}
        )


def _held(formula: str, path: str, value: Any) -> str:
    """The profiles that have this value, if they differ on it."""
    values: dict[str, Any] = {}
    for profile in profiles():
        place: Any = _settings(profile, formula)
        for part in path.split("."):
            place = place.get(part) if isinstance(place, dict) else None
        values[profile] = place
    by = [profile for profile, held in values.items() if held == value and type(held) is type(value)]
    return f" [{', '.join(by)}]" if by and len(by) < len(values) else ""


def _params(name: str, text: str, **changed: Any) -> Variation:
    def inputs(case: Case) -> Case:
        return replace(case, params={**case.params, **changed})

    return Variation(name, text, inputs=inputs)


def _swapped(name: str, text: str, one: str, two: str) -> Variation:
    def inputs(case: Case) -> Case:
        if one in case.inputs and two in case.inputs:
            return with_inputs(case, **{one: case.inputs[two], two: case.inputs[one]})
        if one in case.params and two in case.params:
            return replace(case, params={**case.params, one: case.params[two], two: case.params[one]})
        return case

    return Variation(name, text, inputs=inputs)


def _tokens(case: Case, change: Callable[[Any], Any], names: Sequence[str] = _TOKEN) -> Case:
    shape = (case.rows, case.cols)
    return with_inputs(
        case,
        **{
            name: change(case.inputs[name])
            for name in names
            if name in case.inputs and np.shape(case.inputs[name]) == shape
        },
    )


def _shifted(array: Any, by: int) -> Any:
    made = np.zeros_like(array)
    if by > 0:
        made[:, by:] = array[:, :-by]
    else:
        made[:, :by] = array[:, -by:]
    return made


def _all_kept(case: Case) -> Case:
    return replace(case, mask=np.ones_like(case.mask))


def _dropped_as_zero(case: Case) -> Case:
    mask = case.mask
    return _all_kept(_tokens(case, lambda array: np.where(mask, array, 0.0)))


def _structural(cases: Sequence[Case]) -> Iterator[Variation]:
    op = cases[0].op
    params = {name for case in cases for name in case.params}
    inputs = {name for case in cases for name in case.inputs}
    if op in ADVANTAGES:
        yield Variation(
            "score_slots", "scores are the rewards of kept tokens only", conventions={"score_slots": "Kept"}
        )
        yield Variation(
            "score_slots",
            "scores are the rewards of all slots, dropped ones included",
            conventions={"score_slots": "All"},
        )
    yield Variation("mask", "the mask is ignored: dropped slots count like kept ones", inputs=_all_kept)
    yield Variation(
        "mask",
        "dropped slots count as zeros: multiplied by the mask, but divided by all slots",
        inputs=_dropped_as_zero,
    )
    for name in ("rewards", "values", "advantages", "old_log_probs", "ref_log_probs"):
        if name in inputs:
            for by, side in ((1, "late"), (-1, "early")):
                yield Variation(
                    f"shift.{name}",
                    f"{name} are one token too {side}",
                    inputs=lambda case, name=name, by=by: _tokens(  # type: ignore[misc]
                        case, lambda array: _shifted(array, by), (name,)
                    ),
                )
    if op == "gae":
        yield from _of_gae()
    if "lambda" in params and "gamma" in params:
        yield _swapped("gamma", "γ and λ are exchanged", "gamma", "lambda")
    if {"clip_low", "clip_high"} <= params:
        yield _swapped("clip", "the lower and the upper clip are exchanged", "clip_low", "clip_high")
        yield Variation(
            "clip",
            "one clip for both sides: the lower one",
            inputs=lambda case: replace(case, params={**case.params, "clip_high": case.params.get("clip_low", 0.2)}),
        )
        yield Variation(
            "clip",
            "one clip for both sides: the upper one",
            inputs=lambda case: replace(case, params={**case.params, "clip_low": case.params.get("clip_high", 0.2)}),
        )
        if op == "ppo_clip":
            yield _params("clip", "ratios are not clipped", clip_low=1.0, clip_high=1e9)
    if {"log_probs", "old_log_probs"} <= inputs:
        yield _swapped("ratio", "the ratio is inverted: π_old / π", "log_probs", "old_log_probs")
        yield Variation(
            "ratio",
            "the ratio is 1: old log-probabilities are the current ones",
            inputs=lambda case: with_inputs(case, old_log_probs=case.inputs["log_probs"]),
        )
    if {"log_probs", "ref_log_probs"} <= inputs:
        yield _swapped("kl.direction", "the KL has its arguments exchanged: KL(ref ‖ π)", "log_probs", "ref_log_probs")
    if {"old_log_probs", "ref_log_probs"} <= inputs:
        yield _swapped("kl.direction", "the KL has its arguments exchanged", "old_log_probs", "ref_log_probs")
    if "estimator" in params:
        for name in ("k1", "abs", "k2", "k3"):
            yield _params("estimator", f"the KL estimate is {name}, whatever was given", estimator=name)
    if "advantages" in inputs:
        yield Variation(
            "advantages.sign",
            "the advantages have the opposite sign",
            inputs=lambda case: _tokens(case, np.negative, ("advantages",)),
        )
    if any(case.groups is not None for case in cases):
        yield Variation(
            "groups",
            "the groups are ignored: the whole batch is one",
            inputs=lambda case: replace(case, groups=None if case.groups is None else np.zeros_like(case.groups)),
        )
        yield Variation(
            "groups",
            "every row is a group of its own",
            inputs=lambda case: replace(case, groups=None if case.groups is None else np.arange(case.rows)),
        )
    for name in ("norm_by_std", "normalize", "whiten", "shift_mean", "batch_normalize", "handle_zero_tail"):
        if name in params:
            for value in (True, False):
                yield _params(name, f"{name} is {str(value).lower()}, whatever was given", **{name: value})


def _of_gae() -> Iterator[Variation]:
    def last(case: Case) -> Case:
        places = [np.flatnonzero(row) for row in case.mask]
        values = [case.inputs["values"][row, kept[-1]] if len(kept) else 0.0 for row, kept in enumerate(places)]
        return with_inputs(case, bootstrap=np.array(values))

    def final(case: Case) -> Case:
        return with_inputs(case, bootstrap=case.inputs["values"][:, -1])

    def from_whitened(case: Case, made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "returns": np.asarray(made["advantages"]) + np.asarray(case.inputs["values"])}

    def whitened_returns(case: Case, made: dict[str, Any]) -> dict[str, Any]:
        from ._operations import Run

        run = Run(case)
        run.made["returns"] = made["returns"]
        run.step("whiten", run.of("whiten"), {"values": "returns", "out": "returns"})
        return {**made, "returns": run.made["returns"]}

    yield Variation("bootstrap", "the value of the last kept token stands for the value after it", inputs=last)
    yield Variation("bootstrap", "the value in the last column stands for the value after the last token", inputs=final)
    yield Variation(
        "bootstrap",
        "bootstrap values are ignored: 0 after the last token",
        inputs=lambda case: with_inputs(case, bootstrap=np.zeros(case.rows)),
    )
    yield Variation(
        "whiten.mask", "statistics of the whitening over all slots, dropped ones as 0", unmasked=("whiten",)
    )
    yield Variation(
        "gae.mask", "the recursion runs over dropped tokens too; only the whitening is masked", unmasked=("gae",)
    )
    yield Variation("returns", "returns = whitened advantages + values", outputs=from_whitened)
    yield Variation("returns", "the returns are whitened too", outputs=whitened_returns)


def _each(names: Sequence[str] | None, change: Callable[[Case, Any], Any]) -> Callable[..., dict[str, Any]]:
    """A change of outputs: all numbers and arrays, or the named ones."""

    def outputs(case: Case, made: dict[str, Any]) -> dict[str, Any]:
        return {
            name: change(case, np.asarray(value, dtype=np.float64))
            if (names is None or name in names) and np.asarray(value).dtype.kind == "f"
            else value
            for name, value in made.items()
        }

    return outputs


def _on_tokens(change: Callable[[Any], Any]) -> Callable[[Case, Any], Any]:
    return lambda case, array: change(array) if array.shape == (case.rows, case.cols) else array


def _late(op: str) -> Iterator[Variation]:
    """Changes of the result."""
    if op in LOSSES:
        parts = ("loss", "grad")
        yield Variation("sign", "the loss has the opposite sign", outputs=_each(parts, lambda _, x: -x))
        yield Variation("sign", "the gradient alone has the opposite sign", outputs=_each(("grad",), lambda _, x: -x))
        yield Variation(
            "aggregate",
            "divided by all slots, not by the kept ones",
            outputs=_each(parts, lambda case, x: x * case.mask.sum() / max(case.mask.size, 1)),
        )
        yield Variation(
            "aggregate",
            "divided by the rows of the batch, not by the tokens",
            outputs=_each(parts, lambda case, x: x * case.mask.sum() / max(case.rows, 1)),
        )
        yield Variation(
            "aggregate", "multiplied by the rows of the batch", outputs=_each(parts, lambda case, x: x * case.rows)
        )
        yield Variation("gradient", "no gradient at all", outputs=_each(("grad",), lambda _, x: x * 0.0))
    else:
        yield Variation("sign", "the result has the opposite sign", outputs=_each(None, lambda _, x: -x))
        for name in OUTPUTS.get(op, ()) if len(OUTPUTS.get(op, ())) > 1 else ():
            yield Variation("sign", f"{name} have the opposite sign", outputs=_each((name,), lambda _, x: -x))
    yield Variation(
        "shift", "the result is one token too late", outputs=_each(None, _on_tokens(lambda x: _shifted(x, 1)))
    )
    early = _on_tokens(lambda x: _shifted(x, -1))
    yield Variation("shift", "the result is one token too early", outputs=_each(None, early))
    if op in ADVANTAGES:
        yield Variation("broadcast", "the advantage is on the last kept token only", outputs=_each(None, _last_only))


def _last_only(case: Case, array: Any) -> Any:
    if array.shape != (case.rows, case.cols):
        return array
    made = np.zeros_like(array)
    for row, kept in enumerate(case.mask):
        places = np.flatnonzero(kept)
        if len(places):
            made[row, places[-1]] = array[row, places[-1]]
    return made


def both(one: Variation, two: Variation) -> Variation:
    """Two changes at once."""

    def inputs(case: Case) -> Case:
        for change in (one.inputs, two.inputs):
            case = change(case) if change is not None else case
        return case

    def outputs(case: Case, made: dict[str, Any]) -> dict[str, Any]:
        for change in (one.outputs, two.outputs):
            made = change(case, made) if change is not None else made
        return made

    return Variation(
        f"{one.name} + {two.name}",
        f"{one.text}; and {two.text}",
        {**one.change, **two.change},
        inputs,
        outputs,
        {**one.conventions, **two.conventions},
        one.unmasked + two.unmasked,
        one.only if one.only is not ... else two.only,
    )
