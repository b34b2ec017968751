"""Published numbers that do not follow from their own formula: both numbers and the reason."""

from __future__ import annotations

import json
from typing import Any

import golden
import worked
from worked import (
    BETA,
    CRITIC,
    KL_5,
    LAM,
    ONE,
    RAW,
    REWARDS_3,
    REWARDS_5,
    REWARDS_OWN,
    SCORES,
    VALUES,
    exact,
    floats,
    gae,
    plus,
)


def _gae_entry(example: str, rewards: worked.Exact, values: worked.Exact, lam: worked.Fraction) -> dict[str, Any]:
    return {
        "example": example,
        "op": "gae",
        "rows": 1,
        "cols": len(rewards),
        "mask": [1] * len(rewards),
        "inputs": {"rewards": floats(rewards), "values": floats(values)},
        "params": {"gamma": 1.0, "lambda": float(lam), "whiten": False},
    }


def _said(output: str, says: list[float | None], exact_values: list[float], why: str, why_zh: str) -> dict[str, Any]:
    return {"output": output, "document_says": says, "exact": exact_values, "why": why, "why_zh": why_zh}


def entries() -> list[dict[str, Any]]:
    terminal = gae(REWARDS_3, VALUES, ONE, LAM)
    indices = gae(REWARDS_5, VALUES, ONE, LAM)
    deltas = gae(REWARDS_5, VALUES, ONE, worked.Fraction(0))
    own = gae(REWARDS_OWN, CRITIC, ONE, LAM)
    ddof0, ddof1 = ({}, {})
    for case in worked.whiten_cases():
        (ddof1 if case.name.endswith("1") else ddof0)["out"] = case.expect["out"]
    whiten = {
        "example": "whiten",
        "op": "masked_whiten",
        "rows": 1,
        "cols": 5,
        "mask": [1] * 5,
        "inputs": {"x": floats(RAW)},
    }
    reason = "σ was rounded to 0.13 before dividing; it is 0.135647 with ddof 0 and 0.151658 with ddof 1"
    reason_zh = "除法之前把 σ 舍入成了 0.13；ddof 0 时应为 0.135647，ddof 1 时应为 0.151658"
    shown = "illustrative numbers, not the result of the example's formula on its inputs"
    shown_zh = "只是示意数字，并非用文中公式和文中输入算出的结果"
    return [
        _gae_entry("terminal-credit", REWARDS_3, VALUES, LAM)
        | _said(
            "advantages",
            [0.27, 0.28, 0.30, 0.33, 0.36, 0.39],
            floats(terminal),
            "the recursion left out the value terms: δ without γV' − V",
            "递推漏掉了价值项：δ 里没有 γV' − V",
        ),
        _gae_entry("exact-indices", REWARDS_5, VALUES, LAM)
        | _said(
            "advantages",
            [0.615, 0.582, None, 0.565, 0.505, 0.395],
            floats(indices),
            "the first δ was taken as 0.075; it is 0.04, so A₁ and A₂ are wrong",
            "第一个 δ 被写成 0.075，实际是 0.04，因此 A₁ 和 A₂ 都不对",
        ),
        _gae_entry("exact-indices-delta", REWARDS_5, VALUES, worked.Fraction(0))
        | _said(
            "advantages",
            [0.075, None, None, 0.085, 0.13, 0.395],
            floats(deltas),
            "δ₁ = −0.01 + 0.25 − 0.20 = 0.04 (λ = 0 shows δ itself)",
            "δ₁ = −0.01 + 0.25 − 0.20 = 0.04（λ = 0 时优势就是 δ）",
        ),
        whiten
        | {"params": {"shift_mean": True}, "profile": "openrlhf-0.11"}
        | _said("out", [-0.08, 1.46, 0.69, -1.62, -0.46], ddof0["out"], reason, reason_zh),
        whiten
        | {"example": "whiten-verl", "params": {"shift_mean": True}, "profile": "verl-0.9.1"}
        | _said("out", [-0.08, 1.46, 0.69, -1.62, -0.46], ddof1["out"], reason, reason_zh),
        _gae_entry("you-know-one-plus-one", REWARDS_OWN, CRITIC, LAM)
        | _said("advantages", floats(exact("0.13 0.10 0.08 0.05 0.03 0.05")), floats(own), shown, shown_zh),
        _gae_entry("you-know-one-plus-one", REWARDS_OWN, CRITIC, LAM)
        | _said("returns", floats(exact("0.95 0.95 0.96 0.95 0.95 1.00")), floats(plus(own, CRITIC)), shown, shown_zh),
        _gae_entry("you-know-one-plus-one-lambda-1", REWARDS_OWN, CRITIC, ONE)
        | _said(
            "advantages",
            floats(exact("0.13 0.10 0.08 0.05 0.03 0.05")),
            floats(gae(REWARDS_OWN, CRITIC, ONE, ONE)),
            shown,
            shown_zh,
        ),
    ]


def write() -> int:
    """Write documented-differences.json; the number of entries."""
    items = entries()
    for item in items:
        pairs = [(a, b) for a, b in zip(item["document_says"], item["exact"]) if a is not None]
        assert any(abs(a - b) > 5e-3 for a, b in pairs), item["example"]
    lines = ",\n".join(json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
    text = f'{{"format":"tokenwise-differences/1","differences":[\n{lines}\n]}}\n'
    (golden.GOLDEN / "documented-differences.json").write_text(text, encoding="utf-8")
    return len(items)
