"""What the formulas are tried on: the calls of the golden cases, the same with noise, and calls made up in their shapes
and configs from random numbers and from numbers in which something cancels."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
Rng = np.random.Generator

VOCAB, TOP_K = 40, 4
#: Calls per formula and type: golden ones, with noise, made up at random; configs for hard ones.
GOLDEN, COPIES, RANDOM, CONFIGS = 12, 1, 16, 3
LAYOUT = {"Token": ("rows", "width"), "Logit": ("rows", "width", -1), "TopK": ("rows", "width", -1)}


@dataclass
class Given:
    """A call before it has a type: arrays of f64, numbers, names."""

    name: str
    rows: int
    mask: list[bool]
    groups: list[int] | None
    inputs: dict[str, Any]
    kinds: dict[str, str]
    config: Any

    @property
    def width(self) -> int:
        return len(self.mask) // self.rows if self.rows else 0


def token(*names: str) -> dict[str, str]:
    return {name: "Token" for name in names}


def sequence(*names: str) -> dict[str, str]:
    return {name: "Sequence" for name in names}


POLICY = token("log_probs", "old_log_probs", "advantages")
#: Formulas without a golden call: the kinds of their inputs, and configs.
OTHERS: dict[str, tuple[dict[str, str], list[Any]]] = {
    "shift": ({"raw": "Raw"}, [{}]),
    "log_probs_and_entropy": ({"logits": "Logit", "tokens": "Token"}, [{}, {"temperature": 0.75}]),
    "missing_eos_penalty": (sequence("scores", "ended"), [{"penalty": 1.0}, {"penalty": 0.3}]),
    "length_penalty_group": (
        sequence("scores", "outputs", "inputs", "turns"),
        [{"output_weight": 0.5}, {"output_weight": 0.25, "input_weight": 0.125, "turn_weight": 0.3}],
    ),
    "gae_decoupled": (
        token("rewards", "values") | sequence("bootstrap"),
        [
            {"gamma": 0.99, "lambda_value": 1.0, "lambda_policy": 0.95},
            {"gamma": 1.0, "lambda_value": 0.9, "lambda_policy": {"alpha": 0.05}},
            {"gamma": 0.95, "lambda_policy": {"alpha": 0.5}, "across": "zero-step"},
        ],
    ),
    "puffer_advantage": (
        token("rewards", "values", "ratios") | sequence("bootstrap"),
        [{"gamma": 0.99, "lambda": 0.95}, {"gamma": 0.99, "lambda": 0.8, "variant": "v4", "rho_bar": 2.0}],
    ),
    "opd_advantage": (token("teacher_log_probs", "old_log_probs", "advantages"), [{}, {"coefficient": 0.3}]),
    "minillm_advantage": (
        token("teacher_log_probs", "old_log_probs"),
        [
            {"gamma": 1.0, "length": "kept"},
            {"gamma": 0.9, "length": "off", "from": "start"},
            {"gamma": 0.9, "length": "off"},
            {"gamma": 0.9, "length": "kept-and-padding", "across": "zero-step"},
        ],
    ),
    "leave_one_out_scaled": (sequence("scores"), [{}, {"epsilon": 0.01}]),
    "kl_mask": (token("old_log_probs", "rollout_log_probs"), [{"tau": 0.5}, {"tau": 0.001}]),
    "pf_ppo_indices": (sequence("weights"), [{"seed": 0}, {"seed": 7}]),
    "clip_cov_selection": (POLICY, [{"clip": {"lower": 0.0, "upper": 5.0, "ratio": 0.1}, "seed": 3}]),
    "gvpo": (POLICY | token("weights"), [{}, {"beta": 0.5}]),
    "positive_nll": (token("log_probs") | sequence("scores"), [{}, {"mu": 0.7}]),
    "ref_kl": (token("log_probs", "old_log_probs", "ref_log_probs"), [{}, {"fall": 0.05, "drift": 0.1}]),
    "mixed_kl_topk": (
        {"log_probs": "TopK", "teacher_log_probs": "TopK", "entropies": "Token"},
        [{"forward": 1.0}, {"forward": 0.5}, {"forward": 0.0}, {"forward": 0.25, "outside": -0.5}],
    ),
    "analysis_sums": (token("old_log_probs", "advantages", "rewards"), [{}]),
    "moments": (token("values"), [{}]),
    "co_moments": (token("x", "y"), [{}]),
    "effective_sample_size": (token("weights"), [{}]),
}
#: Those of them that compare the sequences of a prompt, or aggregate by prompt.
GROUPED = {"length_penalty_group", "leave_one_out_scaled", "gvpo"}
#: Not over tokens, yet long rows say nothing new about them.
SETS = {"verl_metrics", "trl_metrics", "openrlhf_metrics"}


def settings(value: Any) -> Any:
    """A config, its numbers rounded to single precision: the same in both types."""
    if isinstance(value, dict):
        return {key: settings(item) for key, item in value.items()}
    if isinstance(value, list):
        return [settings(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**31 else float(np.float32(value))
    return value


def golden(path: Path) -> dict[str, list[Given]]:
    """The recorded calls by formula."""
    out: dict[str, list[Given]] = defaultdict(list)
    for line in path.read_text().splitlines():
        recorded = json.loads(line)
        if "error" in recorded or recorded["name"] == "shift":
            continue
        given = Given(
            recorded["name"],
            recorded["rows"],
            recorded["mask"],
            recorded["groups"],
            {},
            recorded["kinds"],
            settings(recorded["config"]),
        )
        sizes = {"rows": given.rows, "width": given.width}
        for name, value in recorded["inputs"].items():
            if name in ("vocab", "k"):
                continue
            if isinstance(value, list):
                whole = bool(value) and all(isinstance(item, int) for item in value)
                value = np.array(value) if whole else np.array([float(item) for item in value], dtype=np.float32)
                if value.size and given.kinds[name] in LAYOUT:
                    value = value.reshape([sizes.get(size, size) for size in LAYOUT[given.kinds[name]]])
                elif value.size and given.kinds[name] == "Source":
                    value = value.reshape(-1, given.rows)
            elif value in ("inf", "-inf", "nan"):
                value = float(value)
            given.inputs[name] = value.astype(np.float64) if is_real(value) else value
        out[given.name].append(given)
    for name, (kinds, configs) in OTHERS.items():
        rows, width = 4, 6
        groups = [0, 0, 1, 1] if name in GROUPED else None
        for config in configs:
            empty = {column: np.zeros(0) for column in kinds}
            if name == "pf_ppo_indices":
                empty["draws"] = 16
            shell = Given(name, rows, [True] * (rows * width), groups, empty, kinds, settings(config))
            out[name].append(remade(shell, np.random.default_rng(1), 4, 6, at_random))
    return dict(out)


def is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def noisy(given: Given, rng: Rng) -> Given:
    """Each number times 1 + 0.1 noise: signs, zeros and infinities stay."""
    inputs = {
        name: value * (1 + 0.1 * rng.standard_normal(value.shape)) if is_real(value) else value
        for name, value in given.inputs.items()
    }
    return replace(given, inputs=inputs)


# columns

Style = Callable[[str, tuple[int, ...], Rng, dict[str, Array]], Array]

LOGITS = ("logits", "ref_logits", "teacher_logits")
POSITIVE = ("weights", "ratios", "is_weights", "structural", "source_weights", "rewards.source_weights")
NOT_NEGATIVE = ("kl", "entropy", "entropies", "old_entropies", "complexity")


def is_log_prob(name: str) -> bool:
    return name.endswith("log_probs") and not name.startswith("grad")


def scaled(rng: Rng, shape: tuple[int, ...], low: float, high: float) -> Array:
    """Normal numbers times a power of ten between `low` and `high`."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(low, high)


def at_random(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """Numbers of any scale; log-probabilities and logits at a distance of any scale from those before them."""
    if is_log_prob(name):
        first = next((before[other] for other in before if is_log_prob(other)), None)
        if first is None:
            return -np.abs(scaled(rng, shape, -4, 1))
        return np.minimum(first + scaled(rng, shape, -8, 0.7), 0)
    if name in LOGITS:
        first = next((before[other] for other in before if other in LOGITS), None)
        return scaled(rng, shape, -2, 1.5) if first is None else first + scaled(rng, shape, -4, 0.5)
    if name == "sum_pi_squared":
        return rng.uniform(0, 1, shape)
    if name in POSITIVE:
        return np.exp(scaled(rng, shape, -3, 0))
    if name in NOT_NEGATIVE:
        return np.abs(scaled(rng, shape, -3, 1))
    return scaled(rng, shape, -3, 2)


def distances(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """Log-ratios from 1e-15 to 20 of both signs, with advantages of both."""
    if is_log_prob(name):
        sizes = np.concatenate([10.0 ** np.arange(-15.0, 1.5, 0.25), [1.0, 1 - 1e-6, 1 + 1e-6, 9.99, 19.9]])
        d = np.resize(np.stack([sizes, -sizes], 1).ravel(), shape)
        is_first = not any(is_log_prob(other) for other in before)
        # the differences themselves are exact: one side is 0
        return np.where(d < 0, d, 0) if is_first else np.where(d > 0, -d, 0)
    if name == "advantages":
        return np.resize([1.0, 1.0, -1.0, -1.0], shape)
    return at_random(name, shape, rng, before)


def certain(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """Nearly certain tokens, and distributions that are close to each other or to one token."""
    if is_log_prob(name):
        sizes = np.resize(-(10.0 ** -np.arange(1.0, 16.0)), shape)
        return sizes * (1 + sum(is_log_prob(other) for other in before) * 0.5)
    if name in LOGITS:
        z = 3.0 * np.sin(np.arange(shape[-1]) * 1.7) + np.zeros(shape)
        z[..., 5 % shape[-1]] += np.resize([0.0, 5.0, 12.0, 16.5, 20.0, 30.0], shape[:-1])
        if any(other in LOGITS for other in before):
            z += np.resize(10.0 ** -np.arange(1.0, 8.0), shape[:-1])[..., None] * np.cos(np.arange(shape[-1]) * 2.3)
        return z
    if name == "sum_pi_squared":
        return 1 - np.resize(10.0 ** -np.arange(1.0, 8.0), shape)
    return at_random(name, shape, rng, before)


def offset(size: float) -> Style:
    """A spread that is small beside the mean."""

    def made(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
        if is_log_prob(name) or name in LOGITS or name in POSITIVE or name in NOT_NEGATIVE or name == "sum_pi_squared":
            return at_random(name, shape, rng, before)
        k = 1 + len(before) % 3
        return size + k * np.sin(np.arange(np.prod(shape)) * 1.3).reshape(shape) ** k

    return made


def constant(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """The same number everywhere, whose rounding errors all have one sign."""
    if is_log_prob(name):
        return np.full(shape, -0.1 - 0.03 * sum(is_log_prob(other) for other in before))
    if name in LOGITS:
        return np.full(shape, 0.1 * (1 + len(before)))
    if name == "sum_pi_squared":
        return np.full(shape, 0.7)
    return np.full(shape, 1 / 3 if name in ("values", "predictions", "y") else 0.1)


def cancelling(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """Large numbers whose sum is small, and log-probabilities from certain to impossible."""
    if is_log_prob(name):
        return np.resize([-1e-6, -30.0, -0.7, -3.0, -80.0], shape) * (1 + 1e-3 * len(before))
    if name in LOGITS:
        return np.resize([0.0, 80.0, -80.0, 1.0, 3.0, -20.0, 79.0], shape) * (1 + 0.01 * len(before))
    if name in POSITIVE or name in NOT_NEGATIVE or name == "sum_pi_squared":
        return np.resize([1e-6, 1.0, 1e4] if name != "sum_pi_squared" else [1e-6, 1.0, 0.5], shape)
    return np.resize([1e4, -1e4, 0.1], shape)


def tiny(name: str, shape: tuple[int, ...], rng: Rng, before: dict[str, Array]) -> Array:
    """Magnitudes from 1e-9 to 1e6 in one call."""
    made = at_random(name, shape, rng, before)
    if is_log_prob(name) or name in LOGITS or name == "sum_pi_squared" or name in POSITIVE:
        return made
    return np.abs(made) ** 0 * np.sign(made) * np.resize(10.0 ** np.arange(-9.0, 7.0), shape)


#: Style, rows and slots of a row.
HARD: tuple[tuple[Style, int, int], ...] = (
    (distances, 2, 71),
    (certain, 4, 15),
    (offset(1.0), 8, 6),
    (offset(1e3), 8, 6),
    (offset(1e6), 8, 6),
    (constant, 8, 6),
    (cancelling, 4, 21),
    (tiny, 4, 16),
)
LONG: tuple[tuple[Style, int, int], ...] = ((constant, 1, 3000), (cancelling, 1, 900), (at_random, 1, 300))


def integers(name: str, like: Any, shape: tuple[int, ...], rng: Rng, vocab: int, inputs: dict[str, Any]) -> Array:
    if isinstance(like, np.ndarray) and like.dtype.kind == "b":
        return rng.random(shape) < 0.4
    if name in ("teacher_ids", "student_ids") or (name == "tokens" and len(shape) == 3):
        picks = [rng.permutation(max(vocab, shape[-1]))[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]
        return np.array(picks).reshape(shape)
    if name in ("truncated", "ended", "selected"):
        return rng.random(shape) < 0.4
    limit = inputs.get(name.replace(".tokens", ".limit"))
    most = limit if isinstance(limit, int) else 24
    return rng.integers(0, vocab if name == "tokens" else most, shape, endpoint=name != "tokens")


WHOLE = ("tokens", "lengths", "truncated", "ended", "outputs", "inputs", "turns", "selected")


def remade(template: Given, rng: Rng, rows: int, width: int, style: Style, full: bool = False) -> Given:
    """A call like the template with other numbers in another shape."""
    groups = None
    if template.groups is not None:
        groups = [row // 4 for row in range(rows)] if rows > 1 else [0]
    keep = np.ones((rows, width), dtype=bool)
    if not full and width > 2:
        keep = rng.random((rows, width)) < 0.85
        keep[:, 0] = True
    shapes = {"Token": (rows, width), "Logit": (rows, width, VOCAB), "TopK": (rows, width, TOP_K), "Sequence": (rows,)}
    inputs: dict[str, Any] = {}
    vocab = VOCAB if any(kind == "Logit" for name, kind in template.kinds.items() if name in template.inputs) else 6
    for name, value in template.inputs.items():
        kind = template.kinds.get(name, "Single")
        if kind == "Raw":
            inputs[name] = scaled(rng, (rows, width + 3, 5), -2, 2)
            continue
        if name == "group_tokens" or not isinstance(value, np.ndarray):
            if name != "group_tokens":
                inputs[name] = value
            continue
        if kind == "List":
            inputs[name] = value
            continue
        shape = shapes.get(kind)
        if kind == "Source":
            shape = (value.shape[0] if value.ndim == 2 and value.size else 2, rows)
        if shape is None:
            inputs[name] = value
        elif value.dtype.kind in "iub" or name in WHOLE:
            inputs[name] = integers(name, value, shape, rng, vocab, template.inputs)
        else:
            inputs[name] = style(name, shape, rng, {n: v for n, v in inputs.items() if is_real(v) and v.shape == shape})
    for name, kind in template.kinds.items():
        if kind == "TopK" and name in inputs and is_log_prob(name):
            inputs[name] = parts_of_a_distribution(inputs[name])
    if template.name == "pf_ppo_indices":
        inputs["draws"] = template.inputs["draws"]
    return replace(template, rows=rows, mask=[bool(x) for x in keep.ravel()], groups=groups, inputs=inputs)


def parts_of_a_distribution(log_probs: Array) -> Array:
    """Entries of a top-k list: their probabilities do not sum to more than 1."""
    total = np.log(np.sum(np.exp(log_probs), axis=-1, keepdims=True) + 0.05)
    return np.minimum(log_probs - np.maximum(total, 0) - 1e-6, -1e-9)


def different(calls: list[Given], limit: int) -> list[Given]:
    """Calls with configs as different as there are, spread over the list."""
    by_config: dict[str, Given] = {}
    for given in calls:
        present = sorted(given.inputs)
        if given.rows:
            by_config.setdefault(json.dumps([given.config, present, given.groups is not None]), given)
    found = list(by_config.values())
    step = max(1, -(-len(found) // limit))
    return found[::step]


def random_calls(calls: list[Given], rng: Rng, scale: float = 1.0) -> Iterator[Given]:
    """Golden calls as they are and with noise, then random numbers."""
    for given in calls[:: max(1, len(calls) // GOLDEN)]:
        yield given
        for _ in range(COPIES):
            yield noisy(given, rng)
    templates = different(calls, RANDOM)
    wide = any(kind == "Logit" for name, kind in calls[0].kinds.items() if name in calls[0].inputs)
    for index in range(int(RANDOM * scale)):
        rows, width = (2, 3) if wide else ((8, 6), (3, 17), (4, 9), (12, 2))[index % 4]
        yield remade(templates[index % len(templates)], rng, rows, width, at_random)


def hard_calls(calls: list[Given], rng: Rng) -> Iterator[Given]:
    kinds = {kind for name, kind in calls[0].kinds.items() if name in calls[0].inputs}
    wide = bool(kinds & {"Logit", "TopK", "Raw"})
    over_tokens = bool(kinds & {"Token"}) and not wide and calls[0].name not in SETS
    for template in different(calls, CONFIGS):
        for style, rows, width in HARD:
            if wide:
                rows, width = 2, 7
            yield remade(template, rng, rows, width, style)
    for template in different(calls, 1) if over_tokens else []:
        for style, rows, width in LONG:
            yield remade(template, rng, rows, width, style, full=True)
