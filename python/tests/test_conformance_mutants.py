"""Wrong functions: each is diagnosed with the convention it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tokenwise_rl import conformance

Function = Callable[..., Any]


def gae(
    *,
    ddof: int = 1,
    masked: bool = True,
    whiten_masked: bool = True,
    sign: float = 1.0,
    shift: int = 0,
    bootstrap_last: bool = False,
    exchanged: bool = False,
    zero_steps: bool = False,
    returns_of_whitened: bool = False,
) -> Function:
    """A textbook GAE with one fault."""

    def function(rewards: Any, values: Any, mask: Any, gamma: float, lambda_: float, whiten: bool) -> Any:
        if exchanged:
            gamma, lambda_ = lambda_, gamma
        rows, cols = rewards.shape
        kept = mask > 0 if masked else np.ones_like(mask, dtype=bool)
        advantages = np.zeros_like(rewards)
        trace, following = np.zeros(rows), np.zeros(rows)
        if bootstrap_last:
            ends = [np.flatnonzero(row) for row in kept]
            following = np.array([values[row, end[-1]] if len(end) else 0.0 for row, end in enumerate(ends)])
        for t in reversed(range(cols)):
            delta = rewards[:, t] + gamma * following - values[:, t]
            step = delta + gamma * lambda_ * trace
            if zero_steps:
                step = np.where(kept[:, t], step, gamma * lambda_ * trace + gamma * following)
                trace, following = step, np.where(kept[:, t], values[:, t], 0.0)
            else:
                trace = np.where(kept[:, t], step, trace)
                following = np.where(kept[:, t], values[:, t], following)
            advantages[:, t] = trace
        returns = advantages + values
        if whiten:
            over = advantages[mask > 0] if whiten_masked and masked else np.where(kept, advantages, 0.0).reshape(-1)
            advantages = (advantages - over.mean()) / np.sqrt(over.var(ddof=ddof) + 1e-8)
        if returns_of_whitened:
            returns = advantages + values
        advantages = sign * advantages
        return (np.roll(advantages, shift, axis=1) if shift else advantages), returns

    return function


def grpo(
    *,
    ddof: int = 1,
    epsilon: float = 1e-6,
    by_batch: bool = False,
    one_group: bool = False,
    no_std: bool = False,
    singleton: str = "raw",
    kept_only: bool = False,
    sign: float = 1.0,
) -> Function:
    """verl's GRPO with one fault."""

    def function(rewards: Any, mask: Any, groups: Any, norm_by_std: bool) -> Any:
        scores = (np.where(mask > 0, rewards, 0.0) if kept_only else rewards).sum(axis=1)
        labels = np.zeros_like(groups) if one_group else groups
        out = np.zeros_like(scores)
        for label in set(labels.tolist()):
            own = labels == label
            group = scores[own]
            mean, deviation = group.mean(), group.std(ddof=ddof) if len(group) > ddof else 0.0
            if len(group) == 1:
                mean, deviation = (0.0, 1.0) if singleton == "raw" else (group[0], 1.0)
            if by_batch:
                deviation = scores.std(ddof=1) if len(scores) > 1 else 0.0
            out[own] = group - mean
            if norm_by_std and not no_std:
                out[own] /= deviation + epsilon
        return sign * out[:, None] * mask

    return function


def ppo(
    *,
    sign: float = 1.0,
    masked: bool = True,
    inverted: bool = False,
    unclipped: bool = False,
    one_clip: bool = False,
    exchanged: bool = False,
    dual: bool = True,
    all_slots: bool = False,
    sequences: bool = False,
    shift: bool = False,
) -> Function:
    """verl's clipped loss with one fault. Its second clip is at 3 unless another bound is given."""

    def function(
        log_probs: Any,
        old_log_probs: Any,
        advantages: Any,
        mask: Any,
        clip_low: float,
        clip_high: float,
        dual_clip: float,
        aggregate: str,
    ) -> Any:
        kept = np.ones_like(mask) if not masked else mask
        old = old_log_probs
        if shift:
            old = np.concatenate([np.zeros_like(old[:, :1]), old[:, :-1]], axis=1)
        log_probs, old, advantages = (np.where(kept > 0, x, 0.0) for x in (log_probs, old, advantages))
        if one_clip:
            clip_high = clip_low
        if exchanged:
            clip_low, clip_high = clip_high, clip_low
        ratio = np.exp(np.clip((old - log_probs) if inverted else (log_probs - old), -20, 20))
        clipped = ratio if unclipped else np.clip(ratio, 1 - clip_low, 1 + clip_high)
        losses = np.maximum(-advantages * ratio, -advantages * clipped)
        if dual:
            losses = np.where(advantages < 0, np.minimum(losses, -advantages * dual_clip), losses)
        if sequences or aggregate == "seq-mean-token-mean":
            count = kept.sum(axis=1)
            rows = (losses * kept).sum(axis=1) / (count + 1e-8)
            return {"loss": sign * rows.sum() / (count > 0).sum()}
        size = kept.size if all_slots else kept.sum()
        return {"loss": sign * (losses * kept).sum() / size}

    return function


GAE = {
    "ddof": (gae(ddof=0), "whiten.spread", "ddof 0"),
    "mask": (gae(masked=False), "mask", "ignored"),
    "whiten-unmasked": (gae(whiten_masked=False), "whiten.mask", "all slots"),
    "sign": (gae(sign=-1.0), "sign", "opposite"),
    "bootstrap": (gae(bootstrap_last=True), "bootstrap", "last kept token"),
    "gamma-lambda": (gae(exchanged=True), "gamma", "exchanged"),
    "returns": (gae(returns_of_whitened=True), "returns", "whitened advantages"),
}
GRPO = {
    "ddof": (grpo(ddof=0), "spread", "ddof 0"),
    "epsilon": (grpo(epsilon=1e-4), "epsilon", "0.0001"),
    "batch": (grpo(by_batch=True), "scale", "of the batch"),
    "one-group": (grpo(one_group=True), "groups", "ignored"),
    "no-std": (grpo(no_std=True), "norm_by_std", "false"),
    "singleton": (grpo(singleton="zero"), "singleton", "gets 0"),
    "sign": (grpo(sign=-1.0), "sign", "opposite"),
}
PPO = {
    "sign": (ppo(sign=-1.0), "sign", "opposite"),
    "mask": (ppo(masked=False), "mask", "ignored"),
    "ratio": (ppo(inverted=True), "ratio", "inverted"),
    "unclipped": (ppo(unclipped=True), "clip", "not clipped"),
    "one-clip": (ppo(one_clip=True), "clip", "the lower one"),
    "exchanged": (ppo(exchanged=True), "clip", "exchanged"),
    "no-dual-clip": (ppo(dual=False), "dual_clip", "no second clip"),
    "all-slots": (ppo(all_slots=True), "aggregate", "all slots"),
    "sequences": (ppo(sequences=True), "aggregate.mode", "means of sequences"),
    "shift": (ppo(shift=True), "shift.old_log_probs", "too late"),
}


def test_the_right_functions_pass() -> None:
    conformance.check("gae", gae(), profile="verl-0.9.1")
    conformance.check("grpo", grpo(), profile="verl-0.9.1")
    for mode in ("token-mean", "seq-mean-token-mean"):
        conformance.check("ppo_clip", ppo(), profile="verl-0.9.1", fixed={"aggregate": mode})


def explained(error: conformance.ConformanceError, convention: str, words: str) -> None:
    found = error.report.explanations
    assert found and all(one.complete for one in found), str(error)
    assert any(convention in one.convention and words in one.text for one in found), str(error)
    text = str(error)
    assert 'case "' in text and "expected" in text and convention in text
    assert all(len(line) <= 80 for line in text.splitlines()), text


@pytest.mark.parametrize("name", GAE)
def test_gae(name: str) -> None:
    function, convention, words = GAE[name]
    with pytest.raises(conformance.ConformanceError) as raised:
        conformance.check("gae", function, profile="verl-0.9.1")
    explained(raised.value, convention, words)


@pytest.mark.parametrize("name", GRPO)
def test_grpo(name: str) -> None:
    function, convention, words = GRPO[name]
    with pytest.raises(conformance.ConformanceError) as raised:
        conformance.check("grpo", function, profile="verl-0.9.1")
    explained(raised.value, convention, words)


@pytest.mark.parametrize("name", PPO)
def test_ppo(name: str) -> None:
    function, convention, words = PPO[name]
    mode = "token-mean"
    with pytest.raises(conformance.ConformanceError) as raised:
        conformance.check("ppo_clip", function, profile="verl-0.9.1", fixed={"aggregate": mode})
    explained(raised.value, convention, words)


def test_a_shifted_result() -> None:
    """The slot that is shifted in holds 0."""

    def function(rewards: Any, mask: Any, gamma: float) -> Any:
        returns = np.zeros_like(rewards)
        trace = np.zeros(len(rewards))
        for t in reversed(range(rewards.shape[1])):
            trace = np.where(mask[:, t] > 0, rewards[:, t] + gamma * trace, trace)
            returns[:, t] = trace * mask[:, t]
        return np.concatenate([returns[:, 1:], np.zeros_like(returns[:, :1])], axis=1)

    with pytest.raises(conformance.ConformanceError) as raised:
        conformance.check("discounted_returns", function, profile="verl-0.9.1")
    explained(raised.value, "shift", "too early")


@pytest.mark.parametrize("name", ["ddof", "sign", "gamma-lambda"])
def test_diagnose(name: str) -> None:
    function, convention, words = GAE[name]
    found = conformance.diagnose("gae", function)
    assert not found.ok and found.explained, str(found)
    assert any(convention in one.convention and words in one.text for one in found.explanations), str(found)
