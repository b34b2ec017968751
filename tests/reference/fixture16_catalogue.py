"""More results on the fixture: advantage estimators, policy losses and rollout correction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fixture16 import FIX, M, checked, spread, tensor
from fixture16_numbers import (
    GROUPS,
    MISMATCH,
    NEW,
    OLD,
    OTB_A,
    REMAX_A,
    RETURNS,
    REWARDS,
    RF_A,
    ROLLOUT,
    ROW_ADVANTAGES,
    SQUARES,
    TIR_A,
    VALUES,
)
from frameworks import openrlhf_ops, trl_ops, verl_losses, verl_ops, verl_rollout
from frameworks import verl_estimators as verl
from golden import Case, plain

ALONE = [0, 0, 1, 2]
GROUPED: dict[str, list[tuple[list[int], list[float]]]] = {
    "grpo_passk": [(GROUPS, [1.414206, 0, 0, 1.414213])],
    "reinforce_plus_plus_baseline": [
        (GROUPS, [-0.171808, -0.417249, -1.767171, 1.178114]),
        (ALONE, [-0.361542, -0.582894, -1.357626, 1.298599]),
    ],
    "rloo_vectorized": [(GROUPS, [0.25, -0.25, -3, 3]), (ALONE, [0.25, -0.25, 0, 0])],
    "opo": [(GROUPS, [0.125, -0.125, -2.142857, 0.857143]), (ALONE, [0.125, -0.125, -1, 2])],
    "gpg_advantage": [(GROUPS, [0.125, -0.125, -1.5, 1.5]), (ALONE, [0.125, -0.125, -1, 2])],
}


def grouped(op: str) -> list[Case]:
    cases = []
    for groups, rows in GROUPED[op]:
        norm = True if op == "grpo_passk" else None
        got = verl.grouped(op, tensor(REWARDS), M, groups, norm)
        params = {"norm_by_std": True} if norm else {}
        name = "two-pairs" if groups is GROUPS else "two-alone"
        expect = {"advantages": spread(rows)}
        cases.append(checked(op, name, verl, got, {"rewards": REWARDS}, params, expect, groups=groups))
    return cases


def gdpo() -> list[Case]:
    sources = [1.0, 0.75, -1.0, 2.0]
    got = verl.gdpo(torch.tensor([sources], dtype=torch.float64), M, GROUPS, None)
    expect = {"advantages": spread([0.788808, -1.183214, -1.183219, 0.788813])}
    return [checked("gdpo", "one-source", verl, got, {"reward_sources": sources}, {}, expect, groups=GROUPS)]


def reinforce_plus_plus() -> list[Case]:
    got = verl.reinforce_plus_plus(tensor(REWARDS), M, 0.9)
    expect = {"advantages": RF_A, "returns": RETURNS}
    return [checked("reinforce_plus_plus", "verl", verl, got, {"rewards": REWARDS}, {"gamma": 0.9}, expect)]


def remax() -> list[Case]:
    baselines = [0.5, 0.5, -0.5, 1.0]
    got = verl.remax(tensor(REWARDS), M, torch.tensor(baselines, dtype=torch.float64))
    return [
        checked("remax", "verl", verl, got, {"rewards": REWARDS, "baselines": baselines}, {}, {"advantages": REMAX_A})
    ]


def optimal(op: str, rows: list[float]) -> list[Case]:
    got = verl.optimal(op, tensor(REWARDS), M, GROUPS, tensor(OLD), tensor(SQUARES), True)
    inputs = {"rewards": REWARDS, "old_log_probs": OLD, "sum_pi_squared": SQUARES}
    return [checked(op, "verl", verl, got, inputs, {"handle_zero_tail": True}, {"advantages": rows}, groups=GROUPS)]


CLIP = {"clip_low": 0.2, "clip_high": 0.28}
MEAN = {"aggregate": "token-mean"}
SEQ = {"aggregate": "seq-mean-token-mean"}
# op: framework, params, printed numbers, and row and entries of the printed part of the gradient
LOSSES: dict[str, list[tuple[Any, dict, dict, tuple[int, list[float]] | None]]] = {
    "dppo_tv": [(verl_losses, CLIP | MEAN, {"loss": -0.062901, "clip_fraction": 0.133333}, None)],
    "dppo_kl": [(verl_losses, CLIP | MEAN, {"loss": -0.043968, "clip_fraction": 0.0}, None)],
    "gspo": [
        (
            verl_losses,
            CLIP | MEAN,
            {"loss": 0.012731, "clip_fraction": 0.0},
            (0, [-0.040856, -0.048281, -0.061252, -0.081926]),
        ),
        (trl_ops, CLIP | SEQ, {"loss": 0.028074}, None),
        (openrlhf_ops, CLIP | SEQ, {"loss": 0.028074}, None),
    ],
    "sapo": [
        (verl_losses, {"tau_pos": 1.0, "tau_neg": 1.05} | SEQ, {"loss": 0.468588}, (2, [0.310428, 0.247446])),
        (trl_ops, {"tau_pos": 1.0, "tau_neg": 1.05} | SEQ, {"loss": -0.020555}, None),
    ],
    "reinforce": [(verl_losses, MEAN, {"loss": -0.064101}, None)],
    "gmpo": [
        (
            verl_losses,
            CLIP,
            {"loss": 0.315506, "clip_fraction": 0.266667, "clip_fraction_lower": 0.133333},
            (1, [0, 0, 0, 0.013826, 0.013826]),
        )
    ],
    "dro": [
        (verl_losses, {"beta": 0.5} | MEAN, {"loss": -0.038391}, (0, [-0.036714, -0.055356, -0.057541, -0.060295]))
    ],
    "cispo": [
        (
            verl_losses,
            CLIP | MEAN,
            {"loss": -0.080196, "clip_fraction": 0.4},
            (3, [0.009446, 0.002068, -0.018465, -0.039165, -0.080908]),
        ),
        (trl_ops, {"clip_high": 1.2} | MEAN, {"loss": 0.053903, "clip_fraction": 0.133333}, None),
    ],
    "kl_cov": [
        (
            verl_losses,
            {"ratio": 0.2, "kl_coef": 0.1} | MEAN,
            {"loss": -0.064362, "kl": 0.224},
            (2, [0.174475, 0.132058]),
        )
    ],
    "luspo": [(trl_ops, CLIP, {"loss": -0.836844}, None)],
    "vespo": [(trl_ops, MEAN, {"loss": -0.00386, "phi_mean": 1.009469}, None)],
}


def losses(op: str) -> list[Case]:
    """verl with the whitened GAE, TRL and OpenRLHF with one for each row. Gradient rows not printed are its own."""
    gae = plain(verl_ops.gae(tensor(REWARDS), tensor(VALUES), M, 0.9, 0.8, True)["advantages"], "f64")
    cases = []
    for ops, params, expect, row in LOSSES[op]:
        advantages = gae if ops is verl_losses else ROW_ADVANTAGES
        given = tensor(advantages)[:, 0] if ops is trl_ops else tensor(advantages)
        got = ops.policy_loss(op, tensor(NEW), tensor(OLD), given, M, params)
        if row:
            grad, start = plain(got["grad"], "f64"), row[0] * FIX.cols
            grad[start : start + len(row[1])] = row[1]
            expect = expect | {"grad": grad}
        inputs = {"log_probs": NEW, "old_log_probs": OLD, "advantages": advantages}
        cases.append(checked(op, ops.PROFILE, ops, got, inputs, params, expect))
    return cases


def rollout_is() -> list[Case]:
    """Rows that are not printed are the framework's own."""
    cases = []
    for name, level, lower, upper, normalize, rows in (
        (
            "token-tis",
            "token",
            None,
            1.1,
            False,
            {0: [1.020201, 1.1, 1.051271, 0.951229, 0], 1: [1.051271, 0.904837, 0, 1.1, 0.904837]},
        ),
        ("token-icepop", "token", 0.92, 1.1, False, {0: [1.020201, 0, 1.051271, 0.951229, 0]}),
        (
            "sequence-tis",
            "sequence",
            None,
            1.2,
            True,
            {i: [x] * 5 for i, x in enumerate((1.073336, 0.905536, 0.878773, 1.142356))},
        ),
    ):
        params = {"level": level, "lower": lower, "upper": upper, "batch_normalize": normalize}
        got = verl_rollout.rollout_is(tensor(OLD), tensor(ROLLOUT), M, params)
        weights = plain(got["weights"], "f64")
        for row, printed in rows.items():
            weights[row * 5 : row * 5 + 5] = [x * keep for x, keep in zip(printed, FIX.mask[row * 5 : row * 5 + 5])]
        inputs = {"old_log_probs": OLD, "rollout_log_probs": ROLLOUT}
        cases.append(checked("rollout_is", name, verl_rollout, got, inputs, params, {"weights": weights}))
    return cases


def rollout_rejection() -> list[Case]:
    params = {"options": "token_k1,seq_mean_k3,seq_max_k2", "thresholds": "0.9_1.12,0.004,0.05"}
    got = verl_rollout.rollout_rejection(tensor(OLD), tensor(ROLLOUT), M, params)
    inputs = {"old_log_probs": OLD, "rollout_log_probs": ROLLOUT}
    expect = {"mask": spread([1.0, 0.0, 1.0, 0.0])}
    return [checked("rollout_rejection", "three-options", verl_rollout, got, inputs, params, expect)]


def rollout_metrics() -> list[Case]:
    got = verl_rollout.rollout_metrics(tensor(OLD), tensor(ROLLOUT), M)
    inputs = {"old_log_probs": OLD, "rollout_log_probs": ROLLOUT}
    expect = {f"rollout_corr/{key}": value for key, value in MISMATCH.items()}
    return [checked("rollout_metrics", "verl", verl_rollout, got, inputs, {}, expect)]


FILES: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    **{f"advantage/{op}.fixture.json": ("fixture", lambda op=op: grouped(op)) for op in GROUPED},
    "advantage/gdpo.fixture.json": ("fixture", gdpo),
    "advantage/reinforce_plus_plus.fixture.json": ("fixture", reinforce_plus_plus),
    "advantage/remax.fixture.json": ("fixture", remax),
    "advantage/optimal_token_baseline.fixture.json": ("fixture", lambda: optimal("optimal_token_baseline", OTB_A)),
    "advantage/tir_optimal_token_baseline.fixture.json": (
        "fixture",
        lambda: optimal("tir_optimal_token_baseline", TIR_A),
    ),
    **{f"loss/{op}.fixture.json": ("fixture", lambda op=op: losses(op)) for op in LOSSES},
    "loss/rollout_is.fixture.json": ("fixture", rollout_is),
    "loss/rollout_rejection.fixture.json": ("fixture", rollout_rejection),
    "metric/rollout_metrics.fixture.json": ("fixture", rollout_metrics),
}
