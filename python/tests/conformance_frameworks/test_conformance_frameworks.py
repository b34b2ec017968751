"""The kit over the frameworks' own functions, and the page that says what came out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("VERL_DISABLE_FLASH_ATTN_CE", "1")
for name in ("torch", "verl", "trl", "openrlhf"):
    pytest.importorskip(name)

sys.path.insert(0, str(Path(__file__).parent))
import page  # noqa: E402

from tokenwise_rl import conformance  # noqa: E402
from tokenwise_rl.conformance import frameworks  # noqa: E402

#: verl computes it in float32; the golden cases hold the same code in double precision.
SINGLE = {("verl-0.9.1", "gdpo")}
SUBJECTS = [subject for profile in page.NAMES for subject in frameworks.subjects(profile)]


@pytest.mark.parametrize("subject", SUBJECTS, ids=[f"{subject.profile}-{subject.op}" for subject in SUBJECTS])
def test_the_golden_cases(subject: frameworks.Subject) -> None:
    report = conformance.run(subject.op, subject.function, subject.profile, adapter=subject.adapter)
    if (subject.profile, subject.op) in SINGLE:
        assert len(report.passed) > len(report.failed)
    else:
        assert report.ok, str(report)


def test_every_estimator_and_loss_of_verl_is_there() -> None:
    from verl.trainer.ppo import core_algos

    known = {"gpg_advantage": "gpg"}
    estimators = {known.get(subject.op, subject.op) for subject in frameworks.verl()}
    assert set(core_algos.ADV_ESTIMATOR_REGISTRY) <= estimators
    losses = {subject.name.split('"')[1] for subject in frameworks.verl() if subject.name.startswith("policy loss")}
    assert set(core_algos.POLICY_LOSS_REGISTRY) == losses


def test_a_copy_is_checked_with_the_adapter_of_the_original() -> None:
    from verl.trainer.ppo import core_algos

    def copy(token_level_rewards, values, response_mask, gamma, lam):  # type: ignore[no-untyped-def]
        found = core_algos.compute_gae_advantage_return(token_level_rewards, values, response_mask, gamma, lam)
        return -found[0], found[1]

    with pytest.raises(conformance.ConformanceError, match="opposite sign"):
        conformance.check("gae", copy, profile="verl-0.9.1", adapter=frameworks.adapter("verl-0.9.1", "gae"))


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python/tests/conformance_frameworks/page.py"
