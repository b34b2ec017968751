"""The worked examples of docs/chain.md §10 in exact rational arithmetic, checked against the printed digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import torch

from cases import Grid
from frameworks import openrlhf_ops, verl_ops
from golden import Case, plain
from suites.metric import analysis_keys

Exact = list[Fraction]


def exact(text: str) -> Exact:
    """Decimal numbers, as written, without rounding."""
    return [Fraction(word) for word in text.split()]


def floats(values: Exact) -> list[float]:
    return [float(x) for x in values]


def gae(rewards: Exact, values: Exact, gamma: Fraction, lam: Fraction) -> Exact:
    """A_t = δ_t + γλ A_{t+1}, δ_t = r_t + γ V_{t+1} − V_t."""
    out, after, value_after = [], Fraction(0), Fraction(0)
    for reward, value in zip(reversed(rewards), reversed(values)):
        after = reward + gamma * value_after - value + gamma * lam * after
        value_after = value
        out.append(after)
    return out[::-1]


def discounted(rewards: Exact, gamma: Fraction) -> Exact:
    out, after = [], Fraction(0)
    for reward in reversed(rewards):
        after = reward + gamma * after
        out.append(after)
    return out[::-1]


def plus(a: Exact, b: Exact, factor: Fraction = Fraction(1)) -> Exact:
    return [x + factor * y for x, y in zip(a, b)]


def agrees(values: list[float], printed: str) -> None:
    """Every value must round to the printed digits."""
    for value, word in zip(values, printed.split(), strict=True):
        digits = len(word.split(".")[1]) if "." in word else 0
        assert abs(value - float(word)) <= 0.5000001 * 10.0**-digits, (value, word)


ROW = Grid("row", 1, 6, (1,) * 6)
ONE = Fraction(1)
LAM = Fraction("0.95")
SCORES = exact("0 0 0 0 0 1")
VALUES = exact("0.20 0.25 0.30 0.35 0.45 0.60")
KL_1 = exact("0.1 0.05 -0.05 0.1 0.2 0.05")
KL_5 = exact("0.1 0.05 0.1 0.15 0.2 0.05")
BETA = Fraction("0.1")
REWARDS_1 = plus(SCORES, KL_1, -BETA)
REWARDS_3 = exact("-0.01 -0.01 -0.01 -0.01 -0.01 0.99")
REWARDS_5 = plus(SCORES, KL_5, -BETA)
RAW = exact("0.1 0.3 0.2 -0.1 0.05")
OLD = exact("-0.12 -0.08 -0.15 -0.10 -0.05 -0.02")
REF = exact("-0.15 -0.10 -0.18 -0.12 -0.08 -0.03")
CRITIC = exact("0.82 0.85 0.88 0.90 0.92 0.95")
KL_OWN = plus(OLD, REF, Fraction(-1))
REWARDS_OWN = plus(SCORES, KL_OWN, Fraction("-0.01"))
SHOWN = exact("0.13 0.10 0.08 0.05 0.03 0.05")


def _case(op: str, name: str, inputs: dict[str, list[float]], expect: dict, params: dict | None = None, **more) -> Case:
    item = more.pop("item", ROW)
    return Case(op, **item.base(), inputs=inputs, params=params or {}, expect=expect, name=name, **more)


def _gae_case(
    name: str, rewards: Exact, values: Exact, lam: Fraction, printed: str, printed_returns: str | None = None
) -> Case:
    advantages = gae(rewards, values, ONE, lam)
    returns = plus(advantages, values)
    agrees(floats(advantages), printed)
    if printed_returns:
        agrees(floats(returns), printed_returns)
    return _case(
        "gae",
        name,
        {"rewards": floats(rewards), "values": floats(values)},
        {"advantages": floats(advantages), "returns": floats(returns)},
        {"gamma": 1.0, "lambda": float(lam), "whiten": False},
    )


def gae_cases() -> list[Case]:
    return [
        _gae_case(
            "one-plus-one",
            REWARDS_1,
            VALUES,
            LAM,
            "0.621081 0.611664 0.596488 0.569987 0.505250 0.395000",
            "0.821081 0.861664 0.896488 0.919987 0.955250 0.995000",
        ),
        _gae_case("terminal-credit", REWARDS_3, VALUES, LAM, "0.607069 0.596915 0.586226 0.574975 0.510500 0.390000"),
        _gae_case("exact-indices", REWARDS_5, VALUES, LAM, "0.603256 0.592901 0.576738 0.564987 0.505250 0.395000"),
        _gae_case(
            "you-know-one-plus-one-lambda-1",
            REWARDS_OWN,
            CRITIC,
            ONE,
            "0.1786 0.1489 0.1191 0.0994 0.0796 0.0499",
            "0.9986 0.9989 0.9991 0.9994 0.9996 0.9999",
        ),
        _gae_case(
            "you-know-one-plus-one", REWARDS_OWN, CRITIC, LAM, "0.155568 0.132492 0.108097 0.093050 0.077105 0.049900"
        ),
    ]


def shape_cases() -> list[Case]:
    out = []
    for name, kl, rewards, printed in (
        ("one-plus-one", KL_1, REWARDS_1, "-0.01 -0.005 0.005 -0.01 -0.02 0.995"),
        ("exact-indices", KL_5, REWARDS_5, "-0.01 -0.005 -0.01 -0.015 -0.02 0.995"),
    ):
        agrees(floats(rewards), printed)
        out.append(
            _case(
                "shape_rewards",
                name,
                {"scores": floats(SCORES), "kl": floats(kl)},
                {"rewards": floats(rewards)},
                {"beta": 0.1},
            )
        )
    return out


def kl_cases() -> list[Case]:
    agrees(floats(KL_OWN), "0.03 0.02 0.03 0.02 0.03 0.01")
    inputs = {"log_probs": floats(OLD), "ref_log_probs": floats(REF)}
    return [
        _case("kl", "you-know-one-plus-one", inputs, {"kl": floats(KL_OWN), "grad": [1.0] * 6}, {"estimator": "k1"})
    ]


def kl_in_reward_cases() -> list[Case]:
    agrees(floats(REWARDS_OWN), "-0.0003 -0.0002 -0.0003 -0.0002 -0.0003 0.9999")
    inputs = {"scores": floats(SCORES), "old_log_probs": floats(OLD), "ref_log_probs": floats(REF)}
    expect = {"rewards": floats(REWARDS_OWN), "current_kl": float(sum(KL_OWN) / 6)}
    # current_kl: verl divides by 6 + 1e-8, the exact mean by 6
    return [
        _case("kl_in_reward", "you-know-one-plus-one", inputs, expect, {"beta": 0.01, "estimator": "k1"}, rtol=5e-9)
    ]


def returns_cases() -> list[Case]:
    gamma = Fraction("0.99")
    returns = discounted(REWARDS_5, gamma)
    agrees(floats(returns), "0.887718 0.906786 0.920996 0.940399 0.965050 0.995000")
    return [
        _case(
            "discounted_returns",
            "exact-indices",
            {"rewards": floats(REWARDS_5)},
            {"returns": floats(returns)},
            {"gamma": 0.99},
        )
    ]


def monte_carlo_cases() -> list[Case]:
    out = []
    for name, rewards, gamma in (("exact-indices", REWARDS_5, Fraction("0.99")), ("one-plus-one", REWARDS_1, ONE)):
        returns = discounted(rewards, gamma)
        expect = {"advantages": floats(plus(returns, VALUES, Fraction(-1))), "returns": floats(returns)}
        out.append(
            _case(
                "monte_carlo_advantage",
                name,
                {"rewards": floats(rewards), "values": floats(VALUES)},
                expect,
                {"gamma": float(gamma)},
            )
        )
    return out


def whiten_cases() -> list[Case]:
    """ddof 1 as verl computes it; ddof 0 as OpenRLHF's normalisation (variance floored, not shifted)."""
    item = Grid("row", 1, 5, (1,) * 5)
    x = floats(RAW)
    out = plain(verl_ops.masked_whiten(item.tensor(x), item.mask_tensor()), "f64")["out"]
    agrees(out, "-0.065938 1.252823 0.593442 -1.384699 -0.395628")
    mean = sum(RAW) / 5
    deviation = math.sqrt(sum((v - mean) ** 2 for v in RAW) / 5)
    population = [float(v - mean) / deviation for v in RAW]
    agrees([float(mean), deviation], "0.11 0.135647")
    agrees(population, "-0.07372 1.40070 0.66349 -1.54814 -0.44233")
    own = openrlhf_ops.gae_whitened(item.tensor(x), 0 * item.tensor(x), item.mask_tensor(), 1.0, 0.0)["advantages"]
    assert (own[0] - torch.tensor(population)).abs().max() < 1e-6
    params = {"shift_mean": True}
    return [
        _case("masked_whiten", "whiten-ddof-1", {"x": x}, {"out": out}, params, item=item, profile=verl_ops.PROFILE),
        _case(
            "masked_whiten",
            "whiten-ddof-0",
            {"x": x},
            {"out": population},
            params,
            item=item,
            profile=openrlhf_ops.PROFILE,
        ),
    ]


def credit_cases(op: str) -> list[Case]:
    """The other credit rules of docs/chain.md §6; the attention weights are made up."""
    one = [1.0]
    if op == "uniform_credit":
        agrees([1 / 6] * 6, "0.17 0.17 0.17 0.17 0.17 0.17")
        return [_case(op, "one-plus-one", {"scores": one}, {"advantages": [1 / 6] * 6})]
    if op == "last_k_credit":
        return [_case(op, "one-plus-one", {"scores": one}, {"advantages": [0.0] * 3 + [1 / 3] * 3}, {"k": 3})]
    weights = [1.0, 2.0, 1.0, 4.0, 6.0, 2.0]
    return [_case(op, "one-plus-one", {"scores": one, "weights": weights}, {"advantages": [w / 16.0 for w in weights]})]


def surrogate_cases() -> list[Case]:
    old = torch.tensor(floats(OLD), dtype=torch.float64)
    advantages = torch.tensor(floats(SHOWN), dtype=torch.float64)
    agrees(torch.exp(old).tolist(), "0.886920 0.923116 0.860708 0.904837 0.951229 0.980199")
    out = []
    for name, moved in (("you-know-one-plus-one", 0.0), ("you-know-one-plus-one-moved", 0.05)):
        leaf = (old + moved * torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, 0.0])).requires_grad_(True)
        loss = -(torch.exp(leaf - old) * advantages).mean()
        grad = torch.autograd.grad(loss, leaf)[0]
        if not moved:
            agrees([-loss.item()], "0.073333")
        inputs = {"log_probs": leaf.tolist(), "old_log_probs": floats(OLD), "advantages": floats(SHOWN)}
        out.append(_case("surrogate", name, inputs, {"loss": loss, "grad": grad}, {"aggregate": "token-mean"}))
    return out


def analysis_cases() -> list[Case]:
    inputs = {"old_log_probs": floats(OLD), "advantages": floats(SHOWN), "rewards": floats(REWARDS_OWN)}
    got = analysis_keys(*(ROW.tensor(x) for x in inputs.values()), ROW.mask_tensor())
    values = [
        got[f"analysis/{key}"].item() for key in ("entropy_per_token_mean", "covariance_mean", "wH_sum", "wH_per_token")
    ]
    agrees(values, "0.0778392 -0.000827778 0.00362483 0.000604139")
    return [_case("analysis", "you-know-one-plus-one", inputs, got)]


def correlation_cases() -> list[Case]:
    a, b = (torch.tensor(floats(x), dtype=torch.float64) for x in (SHOWN, OLD))
    value = torch.corrcoef(torch.stack([a, b]))[0, 1].item()
    agrees([value], "-0.565303")
    return [_case("correlation", "you-know-one-plus-one", {"x": floats(SHOWN), "y": floats(OLD)}, {"value": value})]


FILES: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    "advantage/gae.worked.json": ("chain", gae_cases),
    "advantage/discounted_returns.worked.json": ("chain", returns_cases),
    "advantage/monte_carlo_advantage.worked.json": ("chain", monte_carlo_cases),
    "advantage/uniform_credit.worked.json": ("chain", lambda: credit_cases("uniform_credit")),
    "advantage/last_k_credit.worked.json": ("chain", lambda: credit_cases("last_k_credit")),
    "advantage/attention_credit.worked.json": ("chain", lambda: credit_cases("attention_credit")),
    "divergence/kl.worked.json": ("chain", kl_cases),
    "reward/shape_rewards.worked.json": ("chain", shape_cases),
    "reward/kl_in_reward.worked.json": ("chain", kl_in_reward_cases),
    "loss/surrogate.worked.json": ("chain", surrogate_cases),
    "metric/masked_whiten.worked.json": ("chain", whiten_cases),
    "metric/analysis.worked.json": ("chain", analysis_cases),
    "metric/correlation.worked.json": ("chain", correlation_cases),
}
