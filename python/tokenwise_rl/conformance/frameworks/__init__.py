"""The functions of verl 0.9.1, TRL 1.16 and OpenRLHF 0.11, each with its adapter: what to call and how.

::

    from tokenwise_rl.conformance import check, frameworks

    for subject in frameworks.verl():
        check(subject.op, subject.function, profile=subject.profile, adapter=subject.adapter)

A framework is imported when its function is called. The adapters are also a pattern for a fork of these functions::

    mine = frameworks.adapter("verl-0.9.1", "gae")   # verl's names: token_level_rewards, response_mask, lam
    check("gae", my_copy_of_verls_gae, profile="verl-0.9.1", adapter=mine)
"""

from __future__ import annotations

from .._calling import Adapter
from ._subject import Subject

__all__ = ["Subject", "adapter", "openrlhf", "subjects", "trl", "verl"]


def verl() -> list[Subject]:
    """Every advantage estimator and policy loss of verl's registries, and what they are made of."""
    from . import _verl

    return _verl.subjects()


def trl() -> list[Subject]:
    """The losses of ``GRPOTrainer._compute_loss`` and the advantages of the GRPO and RLOO trainers, without a model."""
    from . import _trl

    return _trl.subjects()


def openrlhf() -> list[Subject]:
    """``PolicyLoss``, ``ValueLoss`` and the estimators of ``RemoteExperienceMaker``."""
    from . import _openrlhf

    return _openrlhf.subjects()


def subjects(profile: str) -> list[Subject]:
    """The functions of the framework behind a profile."""
    known = {"verl-0.9.1": verl, "trl-1.16": trl, "openrlhf-0.11": openrlhf}
    if profile not in known:
        raise LookupError(f"profile: expected one of {', '.join(known)}, got {profile}")
    return known[profile]()


def adapter(profile: str, op: str) -> Adapter:
    """How the framework's function of an operation is called."""
    for subject in subjects(profile):
        if subject.op == op:
            return subject.adapter
    raise LookupError(f"{op}: {profile} has no function for it")
