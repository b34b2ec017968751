"""The numbers that a trainer logs."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, count, magnitude, mean_and_variance, quantile_of
from .call import mean as mean_of
from .divergence import K1, K3, kl_value
from .loss import ONE, ZERO, Clip, log_ratios


def product_size(x: Exact, y: Exact, means: Exact) -> mpf:
    """What Σ (x − x̄)(y − ȳ) is measured by: a deviation from the mean is rounded like the number itself."""
    first, second = ([abs(value - mean) for value in column] for column, mean in zip((x, y), means))
    unit = mpf(2) ** -53
    return mp.fsum(a * abs(v) + b * abs(u) + unit * abs(u * v) for a, b, u, v in zip(first, second, x, y))


def kept_of(call: Call, name: str) -> Exact:
    column = call.column(name)
    return [column[slot] for slot in call.kept()]


@textbook("mean", of="result")
def mean(call: Call) -> Results:
    values = call.column("values")
    return {"mean": [call.mean("mean", lambda slot: values[slot])]}


@textbook("variance", of="result")
def variance(call: Call) -> Results:
    values = kept_of(call, "values")
    spread, divisor = call.setting("spread", "sample"), call.setting("divisor", "count")
    middle, variance = mean_and_variance(values, spread, divisor)
    call.measure("variance", [product_size(values, values, [middle, middle]) / max(len(values) - 1, 1)])
    return {"variance": [variance]}


@textbook("moments", of="result")
def moments(call: Call) -> Results:
    values = kept_of(call, "values")
    middle = call.total("mean", [x / len(values) for x in values]) if values else ZERO
    call.measure("m2", [product_size(values, values, [middle, middle])])
    return {"count": [mpf(len(values))], "mean": [middle], "m2": [mp.fsum((x - middle) ** 2 for x in values)]}


def joint_moments(call: Call, first: str, second: str, prefix: str = "") -> Results:
    x, y = kept_of(call, first), kept_of(call, second)
    n = max(len(x), 1)
    means = [
        call.total(f"{prefix}mean_{name}", [value / n for value in column]) for name, column in (("x", x), ("y", y))
    ]
    pairs = {"m2_x": (x, x, 0, 0), "m2_y": (y, y, 1, 1), "co_moment": (x, y, 0, 1)}
    for name, (first, second, one, other) in pairs.items():
        call.measure(f"{prefix}{name}", [product_size(first, second, [means[one], means[other]])])
    return {
        f"{prefix}count": [mpf(len(x))],
        f"{prefix}mean_x": [means[0]],
        f"{prefix}mean_y": [means[1]],
        f"{prefix}m2_x": [mp.fsum((a - means[0]) ** 2 for a in x)],
        f"{prefix}m2_y": [mp.fsum((b - means[1]) ** 2 for b in y)],
        f"{prefix}co_moment": [mp.fsum((a - means[0]) * (b - means[1]) for a, b in zip(x, y))],
    }


@textbook("co_moments", of="result")
def co_moments(call: Call) -> Results:
    return joint_moments(call, "x", "y")


@textbook("correlation", of="result")
def correlation(call: Call) -> Results:
    made = joint_moments(call, "x", "y")
    root = mp.sqrt(made["m2_x"][0] * made["m2_y"][0])
    if not root:
        return {"correlation": [None]}
    value = made["co_moment"][0] / root
    relative = [call.scale[name] / made[name][0] for name in ("m2_x", "m2_y")]
    call.scale = {"correlation": call.scale["co_moment"] / root + abs(value) * max(relative)}
    return {"correlation": [value]}


@textbook("explained_variance", of="result")
def explained_variance(call: Call) -> Results:
    values, returns, spread = kept_of(call, "values"), kept_of(call, "returns"), call.setting("spread", "sample")
    residuals = [g - v for g, v in zip(returns, values)]
    spreads = [mean_and_variance(numbers, spread)[1] for numbers in (residuals, returns)]
    whole = spreads[1] + call.setting("epsilon", mpf(1e-5))
    share = spreads[0] / whole
    columns = [(numbers, mean_of(numbers)) for numbers in (residuals, returns)]
    sizes = [product_size(numbers, numbers, [middle, middle]) / len(numbers) for numbers, middle in columns]
    call.measure("explained_variance", [ONE + share + (sizes[0] + share * sizes[1]) / whole])
    return {"explained_variance": [ONE - share]}


@textbook("kl_means", of="result")
def kl_means(call: Call) -> Results:
    new, ref = call.column("log_probs"), call.column("ref_log_probs")
    estimators = {"k1": K1, "abs": {"estimator": "abs"}, "k2": {"estimator": "k2"}, "k3": K3}
    means = {}
    for name, kl in estimators.items():
        means[name] = [call.mean(name, lambda slot, kl=kl: kl_value(call, kl, new[slot] - ref[slot]))]
    return means


def shares(call: Call, yes: dict[str, Callable[[int], bool]]) -> Results:
    return {name: [call.mean(name, lambda slot, of=of: mpf(of(slot)))] for name, of in yes.items()}


@textbook("clip_fractions", of="result")
def clip_fractions(call: Call) -> Results:
    clip, advantages = Clip.of(call), call.column("advantages")
    ratios = [mp.exp(d) for d in log_ratios(call)]
    for slot in call.kept():
        clip.decide(call, ratios[slot])
    held = lambda slot: clip.held(ratios[slot], advantages[slot])
    out = {
        "clipped": held,
        "low": lambda slot: advantages[slot] < 0 and held(slot),
        "high": lambda slot: advantages[slot] > 0 and held(slot),
        "dual": lambda slot: clip.held_below(ratios[slot], advantages[slot]),
    }
    return shares(call, out)


ANALYSIS = "entropy_per_token_mean", "covariance_mean", "wH_sum", "wH_per_token", "reward_sum_mean"


def analysis_terms(call: Call) -> tuple[Exact, Exact, Exact]:
    """The entropy, the weighted entropy and the reward of each kept token."""
    old, advantages, rewards = (kept_of(call, name) for name in ("old_log_probs", "advantages", "rewards"))
    entropies = [-mp.exp(x) * x if x > -mp.inf else ZERO for x in old]
    weighted = [mp.exp(x) * -mp.expm1(x) * abs(a) * h for x, a, h in zip(old, advantages, entropies)]
    return entropies, weighted, rewards


@textbook("analysis", of="result")
def analysis(call: Call) -> Results:
    entropies, weighted, rewards = analysis_terms(call)
    made = joint_moments(call, "advantages", "old_log_probs")
    n, prefix = len(call.kept()), "analysis/"
    covariance = made["co_moment"][0] / n
    size = call.scale["co_moment"] / n
    call.scale = {f"{prefix}covariance_mean": size}
    out = [
        call.total(f"{prefix}{ANALYSIS[0]}", [h / n for h in entropies]),
        covariance,
        call.total(f"{prefix}{ANALYSIS[2]}", weighted),
        call.total(f"{prefix}{ANALYSIS[3]}", [x / n for x in weighted]),
        call.total(f"{prefix}{ANALYSIS[4]}", [x / call.rows for x in rewards]),
    ]
    return {f"{prefix}{name}": [value] for name, value in zip(ANALYSIS, out)}


@textbook("analysis_sums", of="result")
def analysis_sums(call: Call) -> Results:
    entropies, weighted, rewards = analysis_terms(call)
    sums = {"entropy_sum": entropies, "wh_sum": weighted, "reward_sum": rewards}
    return {
        **joint_moments(call, "advantages", "old_log_probs", "moments."),
        **{name: [call.total(name, terms)] for name, terms in sums.items()},
        "sequences": [mpf(call.rows)],
    }


@textbook("effective_sample_size", of="result")
def effective_sample_size(call: Call) -> Results:
    weights = kept_of(call, "weights")
    square = mp.fsum(w * w for w in weights)
    return {"effective_sample_size": [mp.fsum(weights) ** 2 / square if square else ZERO]}


@textbook("quantile", of="result")
def quantile(call: Call) -> Results:
    level = call.setting("level", mpf(0.5))
    return {"quantile": [quantile_of(sorted(kept_of(call, "values")), level)]}


@textbook("row_means", of="result")
def row_means(call: Call) -> Results:
    values, divisor = call.column("values"), call.setting("divisor", "count")
    rows = [[values[slot] for slot in call.kept_of(row)] for row in range(call.rows)]
    sizes = [magnitude(row) / len(row) for row in rows if row]
    call.scale["out"] = max(sizes, default=ZERO)
    return {"out": [mp.fsum(row) / count(len(row), divisor) if row else ZERO for row in rows]}


@textbook("row_normalize", of="result")
def row_normalize(call: Call) -> Results:
    values, floor = call.column("values"), call.setting("floor", mpf(1e-8))
    out = [ZERO] * len(call.mask)
    for row in range(call.rows):
        kept = call.kept_of(row)
        if kept:
            middle, spread = mean_and_variance([values[slot] for slot in kept], "population")
            for slot in kept:
                root = mp.sqrt(max(spread, floor))
                call.measure("out", [values[slot] / root])
                out[slot] = (values[slot] - middle) / root
    return {"out": out}


PROXIES = "proxy1_signal_strength", "proxy2_total_power", "proxy3_pure_noise", "expected_a_squared", "expected_w"


@textbook("variance_proxy", of="result")
def variance_proxy(call: Call) -> Results:
    old, squares, advantages = (call.column(name) for name in ("old_log_probs", "sum_pi_squared", "advantages"))
    weights, divisor = call.optional("weights"), call.setting("divisor", "count")
    signal, b = call.setting("gradient_norm") ** 2, mpf(call.rows)
    w = lambda slot: ONE if weights is None else weights[slot]
    # 1 − 2p + Σ p², which cancels for a nearly certain token, and its magnitude
    s = lambda slot: 1 - 2 * mp.exp(old[slot]) + squares[slot]
    size = lambda slot: 1 + 2 * mp.exp(old[slot]) + abs(squares[slot])
    sums = [[ZERO, ZERO, ZERO], [ZERO, ZERO, ZERO]]
    for row in range(call.rows):
        kept = call.kept_of(row)
        if not kept:
            continue
        n = count(len(kept), divisor)
        for place, of, plain in ((0, s, mpf), (1, size, abs)):
            a = mp.fsum(plain(advantages[slot]) for slot in kept) / n
            mean_weight = mp.fsum(w(slot) for slot in kept) / n if weights is not None else ONE
            factor = lambda slot: w(slot) ** 2 / max(w(slot) ** 2, mpf(1e-10))
            whole = max(ZERO, mp.fsum(of(slot) * factor(slot) for slot in kept))
            terms = (mean_weight * a) ** 2 * whole, a * a, mp.fsum(w(slot) ** 2 * of(slot) for slot in kept)
            sums[place] = [total + term / b for total, term in zip(sums[place], terms)]
    (power, a_squared, expected_w), sizes = sums
    names = [f"variance_proxy/{name}" for name in PROXIES]
    noise = max(ZERO, (power - signal) / (b - 1)) if b > 1 else ZERO
    for name, scale in zip(names[1:], (sizes[0], (sizes[0] + signal) / max(b - 1, 1), *sizes[1:])):
        call.scale[name] = scale
    return {name: [value] for name, value in zip(names, (signal, power, noise, a_squared, expected_w))}
