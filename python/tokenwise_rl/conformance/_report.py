"""What came out: for a terminal of 80 columns, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._cases import Case, Deviation
from ._explain import Explanation

WIDTH = 80


@dataclass(frozen=True)
class Finding:
    """One case: passed, or what differed."""

    case: Case
    deviations: Sequence[Deviation] = ()
    error: str | None = None
    skipped: str | None = None
    #: ``f32`` if the function computed a case of doubles in single precision.
    precision: str | None = None

    @property
    def passed(self) -> bool:
        return not self.deviations and self.error is None and self.skipped is None

    @property
    def outcome(self) -> str:
        return "skipped" if self.skipped else "raised" if self.error else "passed" if self.passed else "failed"

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case.name,
            "outcome": self.outcome,
            **({"error": self.error} if self.error else {}),
            **({"skipped": self.skipped} if self.skipped else {}),
            "deviations": [
                {
                    "output": found.output,
                    "cell": list(found.cell),
                    "got": found.got,
                    "expected": found.expected,
                    "count": found.count,
                }
                for found in self.deviations
            ],
        }


@dataclass(frozen=True)
class Report:
    """All cases of one function."""

    op: str
    profile: str | None
    function: str
    findings: Sequence[Finding]
    explanations: Sequence[Explanation] = ()

    @property
    def passed(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.passed]

    @property
    def failed(self) -> list[Finding]:
        """Cases with a deviation or an exception, the smallest first."""
        wrong = [finding for finding in self.findings if not finding.passed and not finding.skipped]
        return sorted(wrong, key=lambda finding: finding.case.rows * finding.case.cols)

    @property
    def skipped(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.skipped]

    @property
    def ok(self) -> bool:
        return not self.failed and bool(self.passed)

    def __str__(self) -> str:
        under = f" under {self.profile}" if self.profile else ""
        title = f"{self.op}{under}: {self.function}"
        lines = wrap(
            f"{title} passed {len(self.passed)} of {len(self.passed) + len(self.failed)} cases"
            + (f", {len(self.skipped)} not run ({self.skipped[0].skipped})" if self.skipped else "")
        )
        if self.failed:
            lines += self.first()
            lines += [""] + table(["case", "cell", "got", "expected"], [_row(finding) for finding in self.failed[:12]])
            if len(self.failed) > 12:
                lines.append(f"… and {len(self.failed) - 12} more")
        if any(finding.precision for finding in self.passed):
            lines += wrap("computed in single precision: compared within 2e-5")
        return "\n".join(lines)

    def first(self) -> list[str]:
        """The smallest failing case, and the convention that explains it."""
        finding = self.failed[0]
        case = finding.case
        given = ", ".join(f"{name} {value}" for name, value in case.params.items() if name != "vocab")
        lines = wrap(f'case "{case.name}" ({case.rows} × {case.cols}{", " if given else ""}{given})', "  ")
        lines += wrap(f"raised {finding.error}" if finding.error else str(finding.deviations[0]), "  ")
        lines += wrap(f"expected by: {case.source}", "  ")
        for number, one in enumerate(self.explanations):
            lines += wrap(f"{'or' if number else 'convention'}: {one}", "  ")
        if not self.explanations and not finding.error:
            lines += wrap("convention: none that is known explains this", "  ")
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "profile": self.profile,
            "function": self.function,
            "passed": len(self.passed),
            "failed": len(self.failed),
            "skipped": len(self.skipped),
            "explanations": [one.to_json() for one in self.explanations],
            "findings": [finding.to_json() for finding in self.findings if not finding.passed],
        }

    def json(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)


class ConformanceError(AssertionError):
    """A function does not compute what its profile says. ``report`` has every case."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.report,)


def _row(finding: Finding) -> list[str]:
    if finding.error:
        return [finding.case.name, "raised", finding.error, ""]
    found = finding.deviations[0]
    return [finding.case.name, found.place, f"{found.got:.10g}", f"{found.expected:.10g}"]


def wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    ) or [""]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    """Columns by their contents; the widest ones are cut until a row fits."""
    lines = [list(map(str, row)) for row in [head, *rows]]
    widths = [max(len(row[column]) for row in lines) for column in range(len(head))]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widths[widths.index(max(widths))] -= 1
    cut = [[text if len(text) <= size else text[: size - 1] + "…" for text, size in zip(row, widths)] for row in lines]
    made = ["  ".join(text.ljust(size) for text, size in zip(row, widths)).rstrip() for row in cut]
    return [made[0], "  ".join("-" * size for size in widths), *made[1:]]
