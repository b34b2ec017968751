"""Runs a function over golden cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._calling import Adapter, Answer, Caller, Function, read_result
from ._cases import Case, NoCase, cases
from ._explain import Pair, explain
from ._report import ConformanceError, Finding, Report

#: Wide enough for an ε of 1e-8 beside a count, narrow enough for every other convention.
TOLERANCE = 1e-6


def adapted(
    adapter: Adapter | None,
    names: Mapping[str, str] | None,
    returns: Sequence[str | None] | None,
    fixed: Mapping[str, Any] | None,
    kind: str | None,
    gradients: bool,
) -> Adapter:
    """An adapter with single parts given apart."""
    base = adapter or Adapter()
    return Adapter(
        names={**base.names, **(names or {})},
        returns=base.returns if returns is None else returns,
        fixed={**base.fixed, **(fixed or {})},
        kind=kind or base.kind,
        mask=base.mask,
        call=base.call,
        gradients=base.gradients and gradients,
    )


def selected(op: str, profile: str | None, dtypes: Sequence[str], refused: bool = False) -> list[Case]:
    """The cases of one profile; without one, those that belong to no framework."""
    found = cases(op, profile, dtypes=dtypes, refused=refused)
    if profile is not None:
        return found
    own = [case for case in found if case.profile is None]
    if not own:
        known = sorted({case.profile for case in found if case.profile})
        raise NoCase(f"{op}: give profile={' or '.join(map(repr, known))}, or use diagnose()")
    return own


def run(
    op: str,
    function: Function,
    profile: str | None = None,
    *,
    adapter: Adapter | None = None,
    names: Mapping[str, str] | None = None,
    returns: Sequence[str | None] | None = None,
    fixed: Mapping[str, Any] | None = None,
    kind: str | None = None,
    gradients: bool = True,
    dtypes: Sequence[str] = ("f64", "f32"),
    tolerance: float = TOLERANCE,
    given: Sequence[Case] | None = None,
) -> Report:
    """Runs a function over the golden cases of an operation and reports; raises nothing for a wrong number.

    ``profile`` is whose conventions it claims to follow. ``names``, ``returns``, ``fixed`` and ``kind`` are those of
    :class:`Adapter`. ``tolerance`` is relative, a tenth of it absolute; 0 for that of each case, which tells
    differences such as a count + 1e-8 apart. ``given`` are cases of one's own instead of the golden ones.
    """
    caller = Caller(function, adapted(adapter, names, returns, fixed, kind, gradients))
    found = list(given) if given is not None else selected(op, profile, dtypes)
    found = [case.loosened(tolerance) for case in found]
    caller.demand(found)
    return report(op, profile, caller.name, [(case, caller(case)) for case in found])


def report(op: str, profile: str | None, name: str, pairs: Sequence[Pair], several: bool = False) -> Report:
    """The findings for answers that are known, and what explains them."""
    findings = [_finding(case, answer) for case, answer in pairs]
    failed = [pair for pair, finding in zip(pairs, findings) if finding.outcome == "failed"]
    passed = [pair for pair, finding in zip(pairs, findings) if finding.passed]
    return Report(op, profile, name, findings, explain(failed, passed, several=several))


def _finding(case: Case, answer: Answer) -> Finding:
    if answer.skipped or answer.error:
        return Finding(case, error=answer.error, skipped=answer.skipped)
    expected = case.expect or {}
    deviations = [
        found
        for name, want in expected.items()
        if name in answer.values
        if (found := case.deviation(name, answer.values[name], want, answer.precisions.get(name))) is not None
    ]
    single = case.dtype == "f64" and any(answer.precisions.get(name, "f64") != "f64" for name in expected)
    return Finding(case, deviations, precision="f32" if single else None)


def check(op: str, function: Function, profile: str | None = None, **options: Any) -> Report:
    """Fails with :class:`ConformanceError` unless a function agrees with every golden case of an operation.

    The message has the smallest failing case, the cell, both numbers and the convention that explains all failures,
    found by computing our own formula with other conventions. Options are those of :func:`run`.
    """
    found = run(op, function, profile, **options)
    if not found.ok:
        raise ConformanceError(found)
    return found


def compare_one(case: Case, result: Any, returns: Sequence[str | None] | None) -> None:
    """One case, for a test that calls its function itself."""
    answer = read_result(result, returns or case.returns)
    found = report(case.op, case.profile, "the result", [(case.loosened(TOLERANCE), answer)])
    if not found.ok:
        raise ConformanceError(found)


def parametrize(
    op: str,
    profile: str | None = None,
    *,
    dtypes: Sequence[str] = ("f64", "f32"),
    fixed: Mapping[str, Any] | None = None,
    argument: str = "case",
) -> Callable[[Any], Any]:
    """Runs a pytest function once per golden case, with the names of the cases as ids::

    @conformance.parametrize("ppo_clip", profile="trl-1.16", dtypes=["f32"])
    def test_mine(case):
        case.compare(my_loss(**case.torch()))
    """
    import pytest

    found = [
        case
        for case in selected(op, profile, dtypes)
        if all(case.params.get(name, value) == value for name, value in (fixed or {}).items())
    ]
    mark: Callable[[Any], Any] = pytest.mark.parametrize(argument, found, ids=[case.name for case in found])
    return mark
