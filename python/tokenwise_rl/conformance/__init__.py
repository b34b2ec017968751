"""Checks somebody else's function against the golden cases.

The cases are inputs with the results of verl 0.9.1, TRL 1.16 and OpenRLHF 0.11 (and of textbooks), and come with this
package. A function is called with keyword arguments of the names of the cases; NumPy, torch and JAX functions work::

    from tokenwise_rl import conformance

    conformance.check("gae", my_gae, profile="verl-0.9.1")     # raises with case, cell, both numbers, the convention
    print(conformance.diagnose("grpo", my_advantages))         # which profile it follows, or what sets it apart
    print(conformance.properties("ppo_clip", my_loss))         # NaN in dropped slots, padding, order, micro-batches

    @conformance.parametrize("ppo_clip", profile="trl-1.16", fixed={"aggregate": "token-mean"})
    def test_mine(case):
        case.compare(my_loss(**case.torch()))

``names={"mask": "response_mask"}`` gives the function's own names, ``returns=("advantages", "returns")`` those of the
parts of its result, ``fixed={"whiten": False}`` settings that are built into it. An :class:`Adapter` holds all of that;
``conformance.frameworks`` has those of verl, TRL and OpenRLHF.
"""

from __future__ import annotations

from ._calling import Adapter, Skip, UnfitFunction
from ._cases import Case, Deviation, NoCase, cases, operations, read_file
from ._check import check, parametrize, run
from ._diagnose import Diagnosis, diagnose
from ._explain import Explanation
from ._properties import Properties, Property, properties
from ._report import ConformanceError, Finding, Report

__all__ = [
    "Adapter",
    "Case",
    "ConformanceError",
    "Deviation",
    "Diagnosis",
    "Explanation",
    "Finding",
    "NoCase",
    "Properties",
    "Property",
    "Report",
    "Skip",
    "UnfitFunction",
    "cases",
    "check",
    "diagnose",
    "operations",
    "parametrize",
    "properties",
    "read_file",
    "run",
]
