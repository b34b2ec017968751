"""The conformance kit: its cases, how functions are called, its reports."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenwise_rl as tw
from tokenwise_rl import conformance
from tokenwise_rl.conformance._operations import runs
from tokenwise_rl.conformance._table import operation_of

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT.parent / "tests/golden"


@pytest.mark.skipif(not GOLDEN.exists(), reason="outside the repository")
def test_the_packed_cases_are_those_of_the_repository() -> None:
    written = sum(len(json.loads(path.read_text())["cases"]) for path in GOLDEN.glob("*/*.json"))
    packed = sum(len(conformance.cases(op, refused=True)) for op in conformance.operations())
    assert packed == written > 3000


def test_our_formulas_give_every_expected_number() -> None:
    ran = 0
    for op in sorted(conformance.operations()):
        if operation_of(op) is None:
            continue
        for case in conformance.cases(op):
            ours = runs(case)
            assert set(case.expect or {}) <= set(ours), (op, case.name)
            assert not case.deviations(ours), (op, case.name, [str(found) for found in case.deviations(ours)])
            ran += 1
    assert ran > 2800, ran


def whiten(x: Any, mask: Any, shift_mean: bool) -> Any:
    """verl's: the mean divides by the count + 1e-8."""
    count = mask.sum()
    kept = np.where(mask > 0, x, 0.0)
    mean = kept.sum() / (count + 1e-8)
    variance = np.where(mask > 0, (x - mean) ** 2, 0.0).sum() / (count + 1e-8) * count / (count - 1)
    out = (x - mean) / np.sqrt(variance + 1e-8)
    return out if shift_mean else out + mean


def test_other_names_and_parts() -> None:
    def theirs(xs: Any, response_mask: Any, centre: bool) -> tuple[Any, Any]:
        return "ignored", whiten(xs, response_mask, centre)

    names = {"x": "xs", "mask": "response_mask", "shift_mean": "centre"}
    conformance.check("masked_whiten", theirs, profile="verl-0.9.1", names=names, returns=(None, "out"))


def test_an_adapter_calls_the_function_itself() -> None:
    adapter = conformance.Adapter(call=lambda function, given: function(given["x"], given["mask"], given["shift_mean"]))
    conformance.check("masked_whiten", whiten, profile="verl-0.9.1", adapter=adapter)


def test_a_setting_is_never_lost() -> None:
    def built_in(x: Any, mask: Any) -> Any:
        return whiten(x, mask, True)

    with pytest.raises(conformance.UnfitFunction, match="takes no argument 'shift_mean'.*True, False.*fixed="):
        conformance.check("masked_whiten", built_in, profile="verl-0.9.1")
    report = conformance.check("masked_whiten", built_in, profile="verl-0.9.1", fixed={"shift_mean": True})
    assert report.skipped and report.passed
    found = conformance.diagnose("masked_whiten", built_in)
    assert found.fixed == {"shift_mean": True} and "verl-0.9.1" in found.profiles


def test_unknown_names_are_told() -> None:
    with pytest.raises(conformance.NoCase, match="no such operation"):
        conformance.check("gea", whiten, profile="verl-0.9.1")
    with pytest.raises(conformance.NoCase, match="profile: expected one of"):
        conformance.check("gae", whiten, profile="verl-1.0")
    with pytest.raises(conformance.NoCase, match="give profile="):
        conformance.check("grpo", whiten)
    with pytest.raises(conformance.UnfitFunction, match="expected one of out"):
        conformance.check("masked_whiten", lambda x, mask, shift_mean: {"result": x}, profile="verl-0.9.1")


def test_a_profile_without_cases_is_our_formula() -> None:
    found = conformance.cases("gae", "trl-1.16")
    assert found and all(case.source.startswith("tokenwise") for case in found)


def test_an_exception_is_a_finding() -> None:
    def broken(x: Any, mask: Any, shift_mean: bool) -> Any:
        raise KeyError("gone")

    with pytest.raises(conformance.ConformanceError, match="raised KeyError"):
        conformance.check("masked_whiten", broken, profile="verl-0.9.1")


def wrong(x: Any, mask: Any, shift_mean: bool) -> Any:
    return whiten(x, mask, shift_mean) * 2


def test_the_report_for_machines_and_for_a_terminal() -> None:
    report = conformance.run("masked_whiten", wrong, "verl-0.9.1")
    found = json.loads(report.json())
    assert found["failed"] == len(report.failed) > 0
    first = found["findings"][0]["deviations"][0]
    assert {"output", "cell", "got", "expected"} <= set(first)
    assert all(len(line) <= 80 for line in str(report).splitlines())
    assert report.explanations[0].convention == "factor" and "2 times" in report.explanations[0].text
    again = pickle.loads(pickle.dumps(conformance.ConformanceError(report)))
    assert str(again) == str(report)


def test_one_case_in_a_test_of_ones_own() -> None:
    case = conformance.cases("masked_whiten", "verl-0.9.1")[-1]
    given = case.numpy()
    case.compare(whiten(given["x"], given["mask"], given["shift_mean"]))
    with pytest.raises(conformance.ConformanceError, match=case.name):
        case.compare(whiten(given["x"], given["mask"], given["shift_mean"]) + 1)


def test_the_properties_of_our_own_functions_hold() -> None:
    def ours(rewards: Any, values: Any, mask: Any, gamma: float, lambda_: float) -> Any:
        return tw.gae(rewards=rewards, values=values, mask=mask, gamma=gamma, lambda_=lambda_)

    found = conformance.properties("gae", ours, fixed={"whiten": False})
    assert found.ok and {one.name for one in found.found if one.tried} >= {"nan-in-dropped", "micro-batches", "padding"}

    def loss(log_probs: Any, old_log_probs: Any, advantages: Any, mask: Any, aggregate: str) -> Any:
        return tw.ppo_clip(
            log_probs=log_probs,
            old_log_probs=old_log_probs,
            advantages=advantages,
            mask=mask,
            aggregate={"mode": aggregate},
        )

    conformance.properties("ppo_clip", loss, fixed={"aggregate": "token-mean", "dual_clip": None}).check()


@pytest.mark.parametrize("name", ["nan-in-dropped", "1e30-in-dropped", "padding", "row-order", "micro-batches"])
def test_a_violated_property_is_told(name: str) -> None:
    def function(log_probs: Any, old_log_probs: Any, advantages: Any, mask: Any) -> Any:
        losses = -advantages * np.exp(np.clip(log_probs - old_log_probs, -20, 20))
        if name == "nan-in-dropped":
            return (losses * mask).sum() / mask.sum()
        kept = np.where(mask > 0, losses, 0.0)
        if name == "1e30-in-dropped":
            return np.nan_to_num(losses).sum() / mask.sum()
        if name == "padding":
            return kept.mean()
        if name == "row-order":
            return kept[0].sum() / mask.sum()
        return kept.sum() / mask.sum() ** 2

    fixed = {"aggregate": "token-mean", "clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0}
    found = conformance.properties("ppo_clip", function, "verl-0.9.1", fixed=fixed)
    assert name in [one.name for one in found.violated], str(found)


def test_inputs_that_are_written_to() -> None:
    def function(x: Any, mask: Any, shift_mean: bool) -> Any:
        x -= 1.0
        return whiten(x, mask, shift_mean)

    found = conformance.properties("masked_whiten", function, "verl-0.9.1", only=["inputs-kept"])
    assert not found.ok and found.violated[0].violation == "x was written to"


def test_torch_functions_and_their_gradients() -> None:
    torch = pytest.importorskip("torch")

    def loss(
        log_probs: Any,
        old_log_probs: Any,
        advantages: Any,
        mask: Any,
        clip_low: float,
        clip_high: float,
        dual_clip: float,
        aggregate: str,
        detached: bool = False,
    ) -> Any:
        ratio = torch.exp(torch.clamp(log_probs - old_log_probs, -20, 20))
        if detached:
            ratio = ratio.detach() + 0 * log_probs
        losses = torch.maximum(-advantages * ratio, -advantages * torch.clamp(ratio, 1 - clip_low, 1 + clip_high))
        losses = torch.where(advantages < 0, torch.minimum(losses, -advantages * dual_clip), losses)
        return torch.where(mask > 0, losses, 0.0).sum() / mask.sum()

    fixed = {"aggregate": "token-mean"}
    report = conformance.check("ppo_clip", loss, profile="verl-0.9.1", fixed=fixed)
    assert report.passed

    with pytest.raises(conformance.ConformanceError, match=r"(?s)grad\[.*no gradient at all"):
        conformance.check("ppo_clip", partial(loss, detached=True), profile="verl-0.9.1", fixed=fixed, kind="torch")


def test_jax_functions_and_their_gradients() -> None:
    jnp = pytest.importorskip("jax.numpy")

    def loss(losses: Any, mask: Any) -> Any:
        return {"value": jnp.sum(jnp.where(mask > 0, losses, 0.0)) / jnp.sum(jnp.asarray(mask))}

    report = conformance.check("aggregate", loss, profile="openrlhf-0.11", fixed={"mode": "token-mean"})
    assert report.passed and any(finding.precision for finding in report.passed)

    with pytest.raises(conformance.ConformanceError):
        conformance.check(
            "aggregate",
            lambda losses, mask: loss(losses, mask)["value"] * 2,
            profile="openrlhf-0.11",
            fixed={"mode": "token-mean"},
        )


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "tokenwise_rl.conformance", *arguments]
    return subprocess.run(call, capture_output=True, text=True, cwd=Path(__file__).parent)


def test_the_command() -> None:
    listed = command("list")
    assert listed.returncode == 0 and "ppo_clip" in listed.stdout
    right = command("check", "masked_whiten", "test_conformance:whiten", "--profile", "verl-0.9.1")
    assert right.returncode == 0, right.stderr
    failed = command("check", "masked_whiten", "test_conformance:wrong", "--profile", "verl-0.9.1", "--json")
    assert failed.returncode == 1 and json.loads(failed.stdout)["explanations"][0]["convention"] == "factor"


def test_the_example() -> None:
    example = ROOT / "examples/conformance_pytest.py"
    call = [sys.executable, "-m", "pytest", "-q", str(example)]
    found = subprocess.run(call, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    assert "passed" in found.stdout


def test_importing_the_package_does_not_load_the_kit() -> None:
    code = "import sys, tokenwise_rl; sys.exit('tokenwise_rl.conformance' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
