"""Writes docs/accuracy.md: the largest errors found, by random search and in adversarial cases.

From the repository root, in the environment of requirements.txt:

    cargo xtask python --build
    cargo run --package tokenwise-tests --bin golden -- tests/golden --calls target/golden-calls.jsonl
    PYTHONPATH=python python tests/reference/accuracy_table.py target/golden-calls.jsonl
"""

from __future__ import annotations

import logging
import math
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch
from accuracy.every import COPIES, every
from accuracy.formulas import formulas

ROUNDS = 30
DTYPES = ("float32", "float64")
KINDS = ("random", "adversarial")

TEXT = """# Accuracy

Written by `tests/reference/accuracy_table.py`, which is run by hand; it takes a few minutes. A number is the largest
error found, in ulps: units of the last place of the type, at the exact result, or (`largest`) at the largest result of
the call, for sums whose terms may cancel. 0.5 is correct rounding. "∞" is a result that is not finite where the exact
one is.

## Against exact arithmetic

mpmath with 240 bits is exact arithmetic. *Random*: {rounds} rounds per formula and type, over many scales.
*Hard*: cases in which terms cancel, such as nearly certain tokens, close distributions, log-ratios from 1e-15 to 20,
3,000 constant rewards, and spreads that are small beside the mean (`tests/reference/accuracy/inputs.py`). The other
libraries are verl 0.9.1, TRL 1.16 and torch {torch} on the same inputs, in the same type, on the CPU.

| formula | ulps of | f32 random | f32 hard | f64 random | f64 hard | other | f32 random | f32 hard | f64 random | f64 hard |
| --- | --- | --: | --: | --: | --: | --- | --: | --: | --: | --: |
{exact}

What the large numbers are:

{notes}

## Every formula

The calls of the golden cases, and each with {copies} times 10 % of noise on its inputs: `f32` against `f64` on the same
numbers, in units of 2⁻²³ of the largest number of a result. *Left out* counts calls that differ by more than 10⁻³ of it
and are not in the other column. Looked at were those of `gdpo`, `reinforce_plus_plus` and `whiten`, constant inputs
with verl's n + 1e-8, which `f32` does not have, and of `kl_exact` and its gradient, rows that are equal up to a
constant, where the result is rounding alone. Formulas without a golden call, or whose results are not real numbers, are
not in the table.

| formula | largest error | calls | left out |
| --- | --: | --: | --: |
{every}
"""

NOTES = """\
- The other libraries, `token_log_probs`, `entropy`, `logits_gradient`: a nearly certain token has log-probability 0
  there, whatever its odds. `kl_estimate` k3, `kl_gradient`, `kl_exact`: e^{−d} − 1 + d, 1 − e^{−d} and
  Σ p (ln p − ln q) cancel near d = 0; torch's exact KL was −2.4e-16 for 2.6e-21. `mean`, `variance`, `whiten` of verl
  in f64: it divides by n + 1e-8, a convention, which `Divisor::CountPlusEpsilon` follows.
- `kl_exact`, f32 hard: the sums of a row are rounded to about 1e-7, and its square remains: 9.6e-15 for 6.1e-15. The
  next one, 3e-13, has five digits.
- `generalized_jsd` is summed as it is defined and cancels for close distributions. Beside the largest number of its
  results it is off by 8 units in the table below.
- `logits_gradient`: entries far below the maximum m have e^{z − m} with a rounded z − m, up to 80 here.
- `gae`, `discounted_returns` with γλ = 1: the rounding errors of 3,000 tokens add up; see the documentation of
  `discounted_returns`. f32 and f64 agree because the unit is that of the type.
- `mean` and what follows from it are `f64` whatever the columns, hence 0.00 for f32. In f64, a mean of 10⁶ is rounded
  to 10⁻¹⁰, which shows where the deviations are of order 1 (`whiten`, `correlation`, `explained_variance`)."""


def shown(error: float | None) -> str:
    if error is None:
        return ""
    if math.isinf(error):
        return "∞"
    if error < 100:
        return f"{error:.2f}" if error < 10 else f"{error:.1f}"
    return f"{error:,.0f}" if error < 1e6 else f"{error:.1e}"


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for formula in formulas():
        for dtype in DTYPES:
            formula.search(dtype, ROUNDS)
        print(formula.name, formula.found, file=sys.stderr, flush=True)
        row = [f"`{formula.name.partition(',')[0]}`{''.join(formula.name.partition(',')[1:])}"]
        row.append("largest" if formula.of_largest else "result")
        for who in ("ours", "peer"):
            if who == "peer":
                row.append(formula.peer[0] if formula.peer else "")
            row += [shown(formula.found.get((who, dtype, kind))) for dtype in DTYPES for kind in KINDS]
        lines.append(f"| {' | '.join(row)} |")
    each = [
        f"| `{name}` | {shown(worst)} | {ran} | {left_out or ''} |"
        for name, (worst, ran, left_out) in every(Path(sys.argv[1])).items()
        if ran
    ]
    text = TEXT.format(
        rounds=ROUNDS,
        torch=torch.__version__.partition("+")[0],
        exact="\n".join(lines),
        notes=NOTES,
        copies=COPIES,
        every="\n".join(each),
    )
    Path("docs/accuracy.md").write_text(text)


if __name__ == "__main__":
    main()
