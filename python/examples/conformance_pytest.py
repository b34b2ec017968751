"""A GAE of one's own, checked in pytest: ``pytest python/examples/conformance_pytest.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenwise_rl import conformance


def my_gae(rewards: Any, values: Any, mask: Any, gamma: float, lambda_: float) -> tuple[Any, Any]:
    """Dropped tokens are stepped over, as in verl; without the whitening."""
    advantages = np.zeros_like(rewards)
    trace, following = np.zeros(len(rewards)), np.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        kept = mask[:, t] > 0
        step = rewards[:, t] + gamma * following - values[:, t] + gamma * lambda_ * trace
        trace, following = np.where(kept, step, trace), np.where(kept, values[:, t], following)
        advantages[:, t] = trace
    return advantages, advantages + values


def test_gae() -> None:
    conformance.check("gae", my_gae, profile="verl-0.9.1", fixed={"whiten": False})


@conformance.parametrize("gae", profile="verl-0.9.1", fixed={"whiten": False})
def test_each_case(case: conformance.Case) -> None:
    given = case.numpy()
    given.pop("whiten")
    case.compare(my_gae(**given))


def test_properties() -> None:
    conformance.properties("gae", my_gae, fixed={"whiten": False}).check()


if __name__ == "__main__":
    print(conformance.diagnose("gae", my_gae))
