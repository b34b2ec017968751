"""Writes docs/conformance.md: the conformance kit over every estimator and loss of verl, TRL and OpenRLHF.

Needs the frameworks (tests/reference/requirements.txt): ``python python/tests/conformance_frameworks/page.py``.
"""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path

from tokenwise_rl import conformance
from tokenwise_rl.conformance import frameworks

PAGE = Path(__file__).resolve().parents[3] / "docs/conformance.md"
NAMES = {"verl-0.9.1": "verl 0.9.1", "trl-1.16": "TRL 1.16", "openrlhf-0.11": "OpenRLHF 0.11"}
SHORT = {
    "nan-in-dropped": "NaN",
    "1e30-in-dropped": "1e30",
    "dropped-gradient": "gradient",
    "padding": "padding",
    "row-order": "order",
    "group-labels": "labels",
    "micro-batches": "halves",
    "inputs-kept": "inputs",
}
OF_DROPPED = ("nan-in-dropped", "1e30-in-dropped")
INTRODUCTION = """# Conformance of verl, TRL and OpenRLHF

What [the conformance kit](conformance-kit.md) says about the functions that people train with, called as they are. The
page is written by `python/tests/conformance_frameworks/page.py`; a test compares it.

- **golden**: cases that pass of those that are run, within 1e-6 (within 2e-5 where the function returns float32). The
  golden cases of a framework were computed by these same functions, so this column tests the adapters of the kit and
  tells where a function depends on more than its arguments: on a fixed type, or on chance.
- **papers**: how many cases agree, within 1e-6, with the formula as the papers define it. What differs is a convention,
  not an error: most papers do not say what happens to a lone answer or an empty sequence.
- **violated**: properties that do not hold, with the number of cases in which they fail. *NaN*, *1e30*: NaN or ±1e30 in
  dropped slots changes a kept result. *order*: sequences in another order give another result. *halves*: two halves
  of a batch do not add up to the whole. Tried as well, and named only where it fails: more padding, other labels of
  groups, a gradient at dropped slots, inputs that are changed in place.

Cases that a function is not made for are left out: groups of unequal size in TRL and OpenRLHF, modes of aggregation
that it does not have, bootstrap values.
"""
APART = """
What sets them apart from the papers, found by changing our own formula until it agrees in all cases. In brackets: the
profiles that have this convention. *By its profile*: not found by the search, but conventions of the framework's
profile, under which the golden cases pass.
"""
FINDINGS = """## What the findings mean

- **NaN in dropped slots.** Most of these functions multiply by the mask, and NaN · 0 is NaN: one NaN in a padded slot
  makes the loss NaN. This matters where padding is not zeroed upstream, for instance when log-probabilities of padding
  come from an inference engine. Functions that select before they sum (verl's `masked_mean`, `masked_var`,
  `masked_whiten`, and losses of verl in modes of aggregation that use them) hold.
- **1e30 in dropped slots, losses.** A finite number times 0 is 0, so large numbers mostly do no harm. Where log-ratios
  are not clamped before the exponential, they overflow, and inf · 0 is NaN again.
- **1e30 in dropped slots, estimators of verl.** The score of a sequence is the sum of its token rewards over all slots,
  dropped ones included. A reward on a dropped token therefore counts; where rewards are 0 there, nothing changes. The
  estimators of TRL and OpenRLHF take one score per sequence, so both properties do not apply to them.
- **The optimal token baselines** accumulate over each column of a group before the mask is applied.
- **Order and halves of `clip_cov`.** verl draws the tokens to detach at random among candidates of the batch; another
  order or half of a batch means another draw. This is its definition, and the reason why such a loss depends on the
  size of a micro-batch.
- **`gdpo` in verl** computes in float32 whatever it is given. The golden cases hold the same code in double precision;
  where the scores of a group are nearly equal, their difference loses its digits and the two part.
"""
#: Where no search over our formula finds the whole answer: what the profile of the framework says.
NOTES = {
    ("verl-0.9.1", "gdpo"): "ε = 1e-06, the only answer to a prompt keeps its raw score, and all in float32",
    ("trl-1.16", "gdpo"): "ε = 0.0001; the sum of the sources is normalised over sequences, not over tokens",
    ("trl-1.16", "cispo"): "the upper bound is the cap of the ratio itself, not 1 + ε, and there is no lower bound",
    ("trl-1.16", "entropy"): "NaN where a logit is −inf: 0 · −inf; we and verl's cases count such an entry as 0",
    ("trl-1.16", "ppo_clip"): "sequences without kept tokens count in the mean over sequences; log-ratios are not "
    "clamped, so that a large number in a dropped slot overflows and gives inf · 0 = NaN",
    ("openrlhf-0.11", "grpo"): "ε = 1e-09; the only answer to a prompt gets NaN",
    ("openrlhf-0.11", "reinforce_plus_plus"): "variance divided by n and held at 1e-8 or above; dropped tokens are "
    "steps with reward 0; statistics in float32",
    ("openrlhf-0.11", "ppo_clip"): "log-ratios clamped to ±20, but the reported KL averages them before the clamp",
    ("openrlhf-0.11", "kl"): "every estimate clamped to ±10, in float32 whatever it is given",
}


def cell(text: str) -> str:
    return text.replace("|", "\\\\|")


def papers(subject: frameworks.Subject) -> tuple[str, str]:
    """How many cases agree with the papers, and what explains those that do not."""
    found = conformance.diagnose(
        subject.op, subject.function, adapter=subject.adapter, against=["paper"], tolerance=1e-6
    )
    agree, compared = found.fits["paper"]
    if not compared:
        return "", ""
    share = f"{agree} of {compared}"
    if found.ok:
        return share, ""
    if found.explained:
        parts = found.explanations[0].text.split("; and ")
        # which slots a score sums is the adapter's matter where the framework takes scores
        return share, "; ".join(part for part in parts if not (subject.of_scores and "all slots" in part))
    note = NOTES.get((subject.profile, subject.op))
    return share, f"{note} (by its profile)" if note else "not explained"


def violated(subject: frameworks.Subject) -> str:
    only = [name for name in SHORT if not (subject.of_scores and name in OF_DROPPED)]
    found = conformance.properties(subject.op, subject.function, subject.profile, adapter=subject.adapter, only=only)
    return ", ".join(f"{SHORT[one.name]} {one.tried - one.held} of {one.tried}" for one in found.violated)


def golden(subject: frameworks.Subject) -> str:
    report = conformance.run(subject.op, subject.function, subject.profile, adapter=subject.adapter)
    return f"{len(report.passed)} of {len(report.passed) + len(report.failed)}"


def section(profile: str) -> str:
    lines = [f"## {NAMES[profile]}\n", "| operation | function | golden | papers | violated |"]
    lines.append("| --- | --- | --- | --- | --- |")
    differences = []
    for subject in frameworks.subjects(profile):
        share, words = papers(subject)
        cells = [subject.op, f"`{subject.name}`", golden(subject), share, violated(subject)]
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
        if words:
            differences.append((subject.op, words))
    lines.append(APART)
    for op, words in differences:
        lines += textwrap.wrap(f"- {op}: {words}", 120, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def page() -> str:
    warnings.simplefilter("ignore")
    return "\n".join([INTRODUCTION, *(section(profile) for profile in NAMES), FINDINGS])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
