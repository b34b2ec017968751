"""A fixture of four rows of five tokens with results of verl 0.9.1 in float32, printed with six decimals.

Each printed number is checked against the installed framework before it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cases import Grid
from fixture16_numbers import GAE_A, GAE_G, GROUPS, MASK, NEW, OLD, REF, RETURNS
from fixture16_numbers import REWARDS, ROW_ADVANTAGES, VALUES, VANILLA_GRAD, ZERO_A, ZERO_G
from frameworks import openrlhf_ops, trl_ops, verl_ops
from golden import Case, plain

ATOL = 1.5e-6  # six printed decimals of float32 results
FIX = Grid("fixture", 4, 5, MASK)


def _check(case: Case, got: dict[str, Any]) -> Case:
    """Checks the printed numbers against the framework, on kept slots."""
    got = plain(got, "f64")
    for key, printed in (case.expect or {}).items():
        pairs = zip(printed, got[key], case.mask) if isinstance(printed, list) else [(printed, got[key], 1)]
        for want, have, keep in pairs:
            assert not keep or abs(want - have) <= case.atol, (case.op, case.name, key, want, have)
    return case


def checked(
    op: str, name: str, ops, got: dict[str, Any], inputs: dict, params: dict, expect: dict, item: Grid = FIX, **more
) -> Case:
    more = {"rtol": 0.0, "atol": ATOL} | more
    case = Case(op, **item.base(), inputs=inputs, params=params, expect=expect, name=name, profile=ops.PROFILE, **more)
    return _check(case, got)


def tensor(flat: list[float], item: Grid = FIX) -> torch.Tensor:
    return item.tensor([float(x) for x in flat])


M = FIX.mask_tensor()


def gae() -> list[Case]:
    inputs, params = {"rewards": REWARDS, "values": VALUES}, {"gamma": 0.9, "lambda": 0.8, "whiten": True}
    verl = verl_ops.gae(tensor(REWARDS), tensor(VALUES), M, 0.9, 0.8, True)
    zero = openrlhf_ops.gae_whitened(tensor(REWARDS), tensor(VALUES), M, 0.9, 0.8)
    return [
        checked("gae", "verl", verl_ops, verl, inputs, params, {"advantages": GAE_A, "returns": GAE_G}),
        checked("gae", "openrlhf", openrlhf_ops, zero, inputs, params, {"advantages": ZERO_A, "returns": ZERO_G}),
    ]


def discounted_returns() -> list[Case]:
    got = verl_ops.discounted_returns(tensor(REWARDS), M, 0.9)
    return [
        checked("discounted_returns", "rf++", verl_ops, got, {"rewards": REWARDS}, {"gamma": 0.9}, {"returns": RETURNS})
    ]


def spread(rows: list[float], item: Grid = FIX) -> list[float]:
    """Repeats a scalar of each row on its kept slots."""
    return [rows[slot // item.cols] * keep for slot, keep in enumerate(item.mask)]


def grpo() -> list[Case]:
    def case(name: str, groups: list[int], norm: bool, rows: list[float]) -> Case:
        got = verl_ops.grpo(tensor(REWARDS), M, groups, norm)
        expect = {"advantages": spread(rows)}
        return checked("grpo", name, verl_ops, got, {"rewards": REWARDS}, {"norm_by_std": norm}, expect, groups=groups)

    dropped = Grid("dropped", 2, 2, (1, 0, 1, 1))
    rewards = [0.0, 1.0, 0.0, 0.0]
    got = verl_ops.grpo(tensor(rewards, dropped), dropped.mask_tensor(), [0, 0])
    expect = {"advantages": spread([0.707106, -0.707106], dropped)}
    return [
        case("two-pairs", GROUPS, True, [0.707103, -0.707103, -0.707106, 0.707106]),
        case("two-pairs-no-std", GROUPS, False, [0.125, -0.125, -1.5, 1.5]),
        case("two-alone", [0, 0, 1, 2], True, [0.707103, -0.707103, -0.999999, 1.999998]),
        checked(
            "grpo",
            "reward-on-dropped-slot",
            verl_ops,
            got,
            {"rewards": rewards},
            {"norm_by_std": True},
            expect,
            dropped,
            groups=[0, 0],
        ),
    ]


def rloo() -> list[Case]:
    cases = []
    for name, groups, rows in (
        ("two-pairs", GROUPS, [0.25, -0.25, -3, 3]),
        ("two-alone", [0, 0, 1, 2], [0.25, -0.25, -1, 2]),
    ):
        got = verl_ops.rloo(tensor(REWARDS), M, groups)
        cases.append(
            checked("rloo", name, verl_ops, got, {"rewards": REWARDS}, {}, {"advantages": spread(rows)}, groups=groups)
        )
    return cases


def ppo_clip() -> list[Case]:
    advantages = plain(verl_ops.gae(tensor(REWARDS), tensor(VALUES), M, 0.9, 0.8, True)["advantages"], "f64")
    base = {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0}
    cases = []

    def add(name: str, ops, params: dict, expect: dict, adv: list[float]) -> None:
        got = ops.ppo_clip(tensor(NEW), tensor(OLD), tensor(adv), M, params)
        inputs = {"log_probs": NEW, "old_log_probs": OLD, "advantages": adv}
        cases.append(checked("ppo_clip", name, ops, got, inputs, params, expect))

    full = {
        "loss": -0.011316,
        "grad": VANILLA_GRAD,
        "clip_fraction": 0.333333,
        "clip_fraction_lower": 0.0,
        "kl": -0.056,
    }
    add("verl-token-mean", verl_ops, base | {"aggregate": "token-mean"}, full, advantages)
    for mode, loss in (
        ("token-sum", -0.169735),
        ("seq-mean-token-sum", -0.042434),
        ("seq-mean-token-mean", 0.294333),
        ("seq-mean-token-sum-norm", -0.008487),
    ):
        add(f"verl-{mode}", verl_ops, base | {"aggregate": mode}, {"loss": loss}, advantages)
    off = base | {"dual_clip": None}
    norm = {"aggregate": "seq-mean-token-sum-norm", "scale_factor": 8}
    add("trl-grpo", trl_ops, off | {"aggregate": "seq-mean-token-mean"}, {"loss": 0.06136}, ROW_ADVANTAGES)
    add(
        "trl-bnpo",
        trl_ops,
        off | {"aggregate": "token-mean"},
        {"loss": -0.188889, "clip_fraction": 0.2},
        ROW_ADVANTAGES,
    )
    add("trl-dr-grpo", trl_ops, off | norm, {"loss": -0.088542}, ROW_ADVANTAGES)
    add("trl-delta", trl_ops, base | {"dual_clip": 1.3, "aggregate": "token-mean"}, {"loss": -0.232081}, ROW_ADVANTAGES)
    add(
        "openrlhf-token",
        openrlhf_ops,
        off | {"aggregate": "token-mean"},
        {"loss": -0.188889, "clip_fraction": 0.2, "kl": -0.056},
        ROW_ADVANTAGES,
    )
    add("openrlhf-sample", openrlhf_ops, off | {"aggregate": "seq-mean-token-mean"}, {"loss": 0.06136}, ROW_ADVANTAGES)
    add(
        "openrlhf-dual-clip",
        openrlhf_ops,
        base | {"dual_clip": 1.3, "aggregate": "token-mean"},
        {"loss": -0.232081},
        ROW_ADVANTAGES,
    )
    return cases


def value_loss() -> list[Case]:
    predictions = [round(v + 0.3, 1) for v in VALUES]
    got = verl_ops.value_loss(tensor(predictions), tensor(VALUES), tensor(REWARDS), M, 0.2, "token-mean")
    inputs = {"predictions": predictions, "values": VALUES, "returns": REWARDS}
    one = Grid("one", 1, 1, (1,))
    single = openrlhf_ops.value_loss(
        tensor([0.3], one), tensor([0.0], one), tensor([1.0], one), one.mask_tensor(), 0.2, "token-mean"
    )
    return [
        checked(
            "value_loss",
            "verl",
            verl_ops,
            got,
            inputs,
            {"clip": 0.2, "aggregate": "token-mean"},
            {"loss": 0.382417, "clip_fraction": 0.133333},
        ),
        checked(
            "value_loss",
            "openrlhf",
            openrlhf_ops,
            single,
            {"predictions": [0.3], "values": [0.0], "returns": [1.0]},
            {"clip": 0.2, "aggregate": "token-mean"},
            {"loss": 0.32},
            one,
        ),
    ]


def masked_mean() -> list[Case]:
    cases = []
    for estimator, printed in (("k1", 0.129333), ("abs", 0.282667), ("k2", 0.075053), ("k3", 0.063265)):
        x = verl_ops.kl(tensor(NEW), tensor(REF), estimator)["kl"].detach()
        flat = plain(x, "f64")
        cases.append(
            checked(
                "masked_mean",
                f"kl-{estimator}",
                verl_ops,
                verl_ops.masked_mean(x, M),
                {"x": flat},
                {},
                {"value": printed},
            )
        )
    empty = Grid("empty", 1, 2, (0, 0))
    got = verl_ops.masked_mean(tensor([1.0, 2.0], empty), empty.mask_tensor())
    cases.append(checked("masked_mean", "empty", verl_ops, got, {"x": [1.0, 2.0]}, {}, {"value": 0.0}, empty))
    return cases


def kl_means() -> list[Case]:
    expect = {"k1": 0.129333, "abs": 0.282667, "k2": 0.075053, "k3": 0.063265}
    got = verl_ops.kl_means(tensor(NEW), tensor(REF), M)
    return [checked("kl_means", "verl", verl_ops, got, {"log_probs": NEW, "ref_log_probs": REF}, {}, expect)]


def clip_fractions() -> list[Case]:
    cases = []
    for ops, advantages, dual_clip, expect in (
        (verl_ops, plain(tensor(GAE_A), "f64"), 3.0, {"clipped": 0.333333, "dual": 0.0}),
        (trl_ops, ROW_ADVANTAGES, None, {"clipped": 0.2, "low": 0.066667, "high": 0.133333}),
    ):
        params = {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": dual_clip}
        got = ops.clip_fractions(tensor(NEW), tensor(OLD), tensor(advantages), M, params)
        inputs = {"log_probs": NEW, "old_log_probs": OLD, "advantages": advantages}
        cases.append(checked("clip_fractions", ops.PROFILE, ops, got, inputs, params, expect))
    return cases


def kl() -> list[Case]:
    cases = []
    one = Grid("one", 1, 1, (1,))

    def add(ops, estimator: str, u: float, expect: dict) -> None:
        lp, ref = [-30.0], [-30.0 + u]
        got = ops.kl(tensor(lp, one), tensor(ref, one), estimator)
        inputs = {"log_probs": lp, "ref_log_probs": ref}
        expect = {key: [value] for key, value in expect.items()}
        cases.append(checked("kl", f"{estimator}-u={u}", ops, got, inputs, {"estimator": estimator}, expect, one))

    add(verl_ops, "k3", 2.5, {"kl": 8.682494, "grad": -11.182494})
    add(verl_ops, "k3", 2.7, {"kl": 10.0, "grad": 0.0})
    add(verl_ops, "k3", -10.9, {"kl": 9.900018, "grad": 0.999982})
    add(verl_ops, "k3", -11.1, {"kl": 10.0, "grad": 0.0})
    add(verl_ops, "k3+", 2.7, {"kl": 10.0, "grad": -2.7})
    for estimator, u, value in (
        ("k1", -20.0, 10.0),
        ("k1", 20.0, -10.0),
        ("k2", 20.0, 10.0),
        ("k2", -20.0, 10.0),
        ("k3", 20.0, 10.0),
        ("k3", -20.0, 10.0),
    ):
        add(openrlhf_ops, estimator, u, {"kl": value})
    return cases


def whiten() -> list[Case]:
    empty, one = Grid("empty", 1, 2, (0, 0)), Grid("one", 1, 2, (1, 0))
    errors = []
    for item in (empty, one):
        try:
            verl_ops.masked_whiten(tensor([1.0, 2.0], item), item.mask_tensor())
        except ValueError as error:
            errors.append(
                Case(
                    "masked_whiten",
                    **item.base(),
                    inputs={"x": [1.0, 2.0]},
                    params={"shift_mean": True},
                    name=f"{item.name}-kept",
                    profile=verl_ops.PROFILE,
                    error=str(error),
                )
            )
    assert len(errors) == 2
    return errors


def aggregate() -> list[Case]:
    empty = Grid("empty", 1, 2, (0, 0))
    got = verl_ops.aggregate(tensor([1.0, 2.0], empty), empty.mask_tensor(), "token-sum")
    square, losses = Grid("square", 2, 2, (1, 0, 1, 1)), [1.0, 2.0, 3.0, 4.0]
    totals = {"global_tokens": 10, "global_sequences": 8, "ranks": 2, "scale_factor": 5}
    cases = []
    for mode, value in (
        ("token-mean", 1.6),
        ("token-sum", 16.0),
        ("seq-mean-token-sum", 2.0),
        ("seq-mean-token-sum-norm", 0.4),
        ("seq-mean-token-mean", 1.125),
    ):
        whole = verl_ops.aggregate(tensor(losses, square), square.mask_tensor(), mode, **totals)
        params = {"mode": mode} | totals
        cases.append(
            checked(
                "aggregate", f"global-{mode}", verl_ops, whole, {"losses": losses}, params, {"value": value}, square
            )
        )
    return [
        *cases,
        checked(
            "aggregate",
            "empty-token-sum",
            verl_ops,
            got,
            {"losses": [1.0, 2.0]},
            {"mode": "token-sum"},
            {"value": 0.0},
            empty,
        ),
    ]


FILES: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    "advantage/gae.fixture.json": ("fixture", gae),
    "advantage/discounted_returns.fixture.json": ("fixture", discounted_returns),
    "advantage/grpo.fixture.json": ("fixture", grpo),
    "advantage/rloo.fixture.json": ("fixture", rloo),
    "divergence/kl.fixture.json": ("fixture", kl),
    "loss/aggregate.fixture.json": ("fixture", aggregate),
    "loss/ppo_clip.fixture.json": ("fixture", ppo_clip),
    "loss/value_loss.fixture.json": ("fixture", value_loss),
    "metric/kl_means.fixture.json": ("fixture", kl_means),
    "metric/clip_fractions.fixture.json": ("fixture", clip_fractions),
    "metric/masked_mean.fixture.json": ("fixture", masked_mean),
    "metric/masked_whiten.fixture.json": ("fixture", whiten),
}
