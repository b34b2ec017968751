"""States that merge without rounding."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import tokenwise_rl as tw

RANDOM = np.random.default_rng(7)
SHAPE = (12, 90)
MASK = RANDOM.random(SHAPE) < 0.8
COLUMNS = {
    name: (RANDOM.normal(size=SHAPE) * scale).astype(np.float32)
    for name, scale in {"advantages": 1.0, "values": 30.0, "returns": 1e-3, "rewards": 1e6}.items()
}
LOG_PROBS = {
    name: np.where(MASK, -RANDOM.exponential(size=SHAPE), np.nan).astype(np.float32)
    for name in ("log_probs", "old_log_probs", "rollout_log_probs", "ref_log_probs")
}
VERL = {**COLUMNS, **LOG_PROBS, "entropies": np.abs(COLUMNS["advantages"])}


def lengths(rows: slice) -> dict[str, object]:
    return {"tokens": np.full(SHAPE[0], SHAPE[1], dtype=np.uint32)[rows], "limit": 90}


def moments(rows: slice) -> tw.ExactMoments:
    state = tw.ExactMoments()
    state.update(COLUMNS["advantages"][rows], mask=MASK[rows])
    return state


def co_moments(rows: slice) -> tw.ExactCoMoments:
    state = tw.ExactCoMoments()
    state.update(COLUMNS["returns"][rows], COLUMNS["values"][rows], mask=MASK[rows])
    return state


def analysis(rows: slice) -> tw.ExactAnalysis:
    state = tw.ExactAnalysis()
    state.update(
        old_log_probs=LOG_PROBS["old_log_probs"][rows],
        advantages=COLUMNS["advantages"][rows],
        rewards=COLUMNS["rewards"][rows],
        mask=MASK[rows],
    )
    return state


def kl(rows: slice) -> tw.ExactKl:
    state = tw.ExactKl()
    state.update(
        log_probs=LOG_PROBS["log_probs"][rows], ref_log_probs=LOG_PROBS["ref_log_probs"][rows], mask=MASK[rows]
    )
    return state


def clip(rows: slice) -> tw.ExactClip:
    state = tw.ExactClip()
    state.update(
        log_probs=LOG_PROBS["log_probs"][rows],
        old_log_probs=LOG_PROBS["old_log_probs"][rows],
        advantages=COLUMNS["advantages"][rows],
        mask=MASK[rows],
        clip_low=0.1,
    )
    return state


def verl(rows: slice) -> tw.ExactVerl:
    state = tw.ExactVerl()
    inputs = {name: column[rows] for name, column in VERL.items()}
    state.update(mask=MASK[rows], response_lengths=lengths(rows), **inputs)
    return state


GROUPS = np.arange(SHAPE[0]) // 3
SCORES = RANDOM.normal(size=(2, SHAPE[0])).astype(np.float32)
SCORES[0, :3] = 1.0
SCORES[1, 4] = np.nan
TRL = {**LOG_PROBS, "advantages": COLUMNS["advantages"], "entropies": VERL["entropies"], "weights": VERL["entropies"]}
OPENRLHF = {
    "log_probs": LOG_PROBS["log_probs"],
    "ref_log_probs": LOG_PROBS["ref_log_probs"],
    "entropies": VERL["entropies"],
    "rewards": COLUMNS["rewards"],
    "predictions": COLUMNS["values"],
}
ROWS = {
    "completion_lengths": RANDOM.integers(1, 90, SHAPE[0]),
    "prompt_lengths": RANDOM.integers(1, 90, SHAPE[0]),
    "truncated": RANDOM.random(SHAPE[0]) < 0.3,
}


def trl_inputs(rows: slice) -> dict[str, object]:
    inputs = {name: column[rows] for name, column in {**TRL, **ROWS}.items()}
    rewards = {"sources": SCORES[:, rows], "source_weights": [1.0, 0.5]}
    return {**inputs, "rewards": rewards, "groups": GROUPS[rows], "mask": MASK[rows]}


def openrlhf_inputs(rows: slice) -> dict[str, object]:
    inputs = {name: column[rows] for name, column in {**OPENRLHF, "truncated": ROWS["truncated"]}.items()}
    return {**inputs, "scores": SCORES[0, rows], "groups": GROUPS[rows], "total_lengths": lengths(rows), "mask": MASK[rows]}


def trl(rows: slice) -> tw.ExactTrl:
    state = tw.ExactTrl()
    state.update(**trl_inputs(rows))
    return state


def openrlhf(rows: slice) -> tw.ExactOpenRlhf:
    state = tw.ExactOpenRlhf()
    state.update(**openrlhf_inputs(rows))
    return state


def sampled(rows: slice) -> dict[str, object]:
    return {
        "old_log_probs": LOG_PROBS["old_log_probs"][rows],
        "rollout_log_probs": LOG_PROBS["rollout_log_probs"][rows],
        "mask": MASK[rows],
    }


WEIGHTS = {"bound": {"kind": "zero", "lower": 0.5, "upper": 2.0}, "normalize": "tokens"}
CRITERION = {"option": "token-k3", "upper": 0.4}
PROXIES = {
    "old_log_probs": LOG_PROBS["old_log_probs"],
    "sum_pi_squared": np.abs(COLUMNS["returns"]),
    "advantages": COLUMNS["advantages"],
    "weights": VERL["entropies"],
}


def weights(rows: slice) -> tw.ExactRolloutWeights:
    state = tw.ExactRolloutWeights()
    state.update(**sampled(rows), **WEIGHTS)
    return state


def criterion(rows: slice) -> tw.ExactCriterion:
    state = tw.ExactCriterion()
    state.update(CRITERION, **sampled(rows), divisor="count-plus-epsilon")
    return state


def rejection(rows: slice) -> tw.ExactRejection:
    state = tw.ExactRejection()
    state.update([CRITERION], **sampled(rows))
    return state


def proxy(rows: slice) -> tw.ExactVarianceProxy:
    state = tw.ExactVarianceProxy()
    state.update(**{name: column[rows] for name, column in PROXIES.items()}, mask=MASK[rows])
    return state


STATES = [moments, co_moments, analysis, kl, clip, verl, trl, openrlhf, weights, criterion, rejection, proxy]
ALL = slice(0, SHAPE[0])


@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_any_split_has_the_same_bytes(make) -> None:
    whole = make(ALL).to_bytes()
    # the sequences of a prompt stay together where groups are read
    splits = [[0, 12], [0, 0, 12], [0, 3, 12], [0, 3, 6, 9, 12]]
    if make not in (trl, openrlhf):
        splits += [[0, 1, 12], [0, 3, 4, 9, 12], list(range(13))]
    for cuts in splits:
        parts = [make(slice(a, b)) for a, b in zip(cuts, cuts[1:])]
        for order in (parts, parts[::-1]):
            merged = type(parts[0])()
            for part in order:
                merged.merge(part)
            assert merged.to_bytes() == whole
        limbs = np.sum([part.limbs() for part in parts], axis=0)
        peaks = np.max([part.peaks() for part in parts], axis=0)
        assert type(parts[0]).from_limbs(limbs, peaks).to_bytes() == whole


@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_states_can_be_stored(make) -> None:
    state = make(ALL)
    for other in (pickle.loads(pickle.dumps(state)), copy.copy(state), type(state).from_bytes(state.to_bytes())):
        assert other == state
    with pytest.raises(tw.TokenwiseError):
        type(state).from_bytes(state.to_bytes()[:-8])
    with pytest.raises(tw.TokenwiseError):
        type(state).from_limbs(state.limbs()[:-1], state.peaks())
    changed = bytearray(state.to_bytes())
    changed[3] += 1
    with pytest.raises(tw.TokenwiseError, match="version"):
        type(state).from_bytes(bytes(changed))


def test_means_and_deviations_are_rounded_once() -> None:
    kept = [Fraction(float(x)) for x in COLUMNS["rewards"][MASK]]
    mean = sum(kept) / len(kept)
    variance = float(sum((x - mean) ** 2 for x in kept) / (len(kept) - 1))
    state = tw.ExactMoments()
    state.update_by_number(COLUMNS["rewards"], mask=MASK)
    assert state.mean() == float(mean)
    assert state.variance() == pytest.approx(variance, rel=3e-16)
    x = [Fraction(float(x)) for x in COLUMNS["returns"][MASK]]
    y = [Fraction(float(y)) for y in COLUMNS["values"][MASK]]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    co_moment = float(sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)))
    m2_y = float(sum((b - mean_y) ** 2 for b in y))
    pair = tw.ExactCoMoments()
    pair.update_by_number(COLUMNS["returns"], COLUMNS["values"], mask=MASK)
    assert pair.co_moments()["co_moment"] == co_moment
    assert pair.co_moments()["m2_y"] == m2_y
    # by sequences: rounded from their sums
    by_sequence = tw.ExactMoments()
    by_sequence.update(COLUMNS["rewards"], mask=MASK)
    assert by_sequence.mean() == pytest.approx(float(mean), rel=1e-13)
    assert by_sequence.variance() == pytest.approx(variance, rel=2e-15)
    assert co_moments(ALL).co_moments()["m2_y"] == pytest.approx(m2_y, rel=2e-15)


def test_by_number_a_sequence_may_be_cut() -> None:
    values = COLUMNS["advantages"]
    whole, left, right = tw.ExactMoments(), tw.ExactMoments(), tw.ExactMoments()
    whole.update_by_number(values, mask=MASK)
    left.update_by_number(values[:, :37], mask=MASK[:, :37])
    right.update_by_number(values[:, 37:], mask=MASK[:, 37:])
    right.merge(left)
    assert right.to_bytes() == whole.to_bytes()


def test_wide_numbers_are_added_without_loss() -> None:
    values = RANDOM.normal(size=(3, 400)) * 10.0 ** RANDOM.integers(-300, 300, size=(3, 400))
    state = tw.ExactMoments()
    state.update_by_number(values)
    assert state.mean() == float(sum(Fraction(x) for x in values.flat) / values.size)
    assert state.mean() * values.size == pytest.approx(math.fsum(values.flat), rel=1e-15)


def test_whitening_is_that_of_the_whole() -> None:
    values = COLUMNS["advantages"]
    whole = tw.whiten(values=values, mask=MASK)
    joined = moments(slice(0, 5))
    joined.merge(moments(slice(5, 12)))
    parts = [joined.whiten(values[rows], mask=MASK[rows]) for rows in (slice(0, 5), slice(5, 12))]
    np.testing.assert_array_equal(np.concatenate(parts), joined.whiten(values, mask=MASK))
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=2e-7, atol=1e-9)
    with pytest.raises(tw.TokenwiseError):
        tw.ExactMoments().whiten(values, mask=MASK)


def test_results_are_those_of_the_functions() -> None:
    arguments = {"mask": MASK}
    expected = tw.analysis(
        old_log_probs=LOG_PROBS["old_log_probs"],
        advantages=COLUMNS["advantages"],
        rewards=COLUMNS["rewards"],
        **arguments,
    )
    assert analysis(ALL).analysis() == pytest.approx(expected, rel=1e-12)
    metrics = tw.verl_metrics(response_lengths=lengths(ALL), **VERL, **arguments)
    assert verl(ALL).metrics() == pytest.approx(metrics, rel=1e-9, nan_ok=True)
    assert list(verl(ALL).metrics()) == list(metrics)
    fractions = tw.clip_fractions(
        log_probs=LOG_PROBS["log_probs"],
        old_log_probs=LOG_PROBS["old_log_probs"],
        advantages=COLUMNS["advantages"],
        clip_low=0.1,
        **arguments,
    )
    assert clip(ALL).fractions(clip_low=0.1) == pytest.approx(fractions._asdict())


def test_metrics_of_trl_and_openrlhf_are_those_of_the_functions() -> None:
    expected = tw.trl_metrics(**trl_inputs(ALL), tokens_seen=7)
    expected = {name: number for name, number in expected.items() if not name.startswith("rewards/")}
    assert trl(ALL).metrics(tokens_seen=7) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert len(expected) > 20
    for use in ("reward", "loss"):
        expected = tw.openrlhf_metrics(**openrlhf_inputs(ALL), kl_use=use)
        assert openrlhf(ALL).metrics(kl_use=use) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    with pytest.raises(tw.TokenwiseError, match="groups"):
        tw.ExactTrl().update(rewards={"sources": SCORES, "source_weights": [1.0, 0.5]}, mask=MASK)
    with pytest.raises(tw.TokenwiseError, match="float32"):
        tw.ExactOpenRlhf().update(scores=SCORES[0].astype(np.float64), entropies=VERL["entropies"], mask=MASK)


def test_rollout_statistics_are_those_of_the_functions() -> None:
    expected = tw.rollout_weight_metrics(**sampled(ALL), **WEIGHTS)
    assert weights(ALL).metrics(**WEIGHTS) == pytest.approx(expected, rel=1e-12)
    plain = tw.rollout_weights(**sampled(ALL), **WEIGHTS)
    factor, found = weights(ALL).weights(**sampled(slice(3, 5)), **WEIGHTS)
    assert factor == pytest.approx(plain.factor, rel=1e-14)
    np.testing.assert_allclose(found, plain.weights[3:5], rtol=2e-7)
    expected = tw.rollout_rejection_metrics(**sampled(ALL), criteria=[CRITERION], divisor="count-plus-epsilon")
    found = criterion(ALL).metrics(CRITERION, divisor="count-plus-epsilon")
    found |= rejection(ALL).totals(divisor="count-plus-epsilon")
    assert found == pytest.approx(expected, rel=1e-12)
    expected = tw.variance_proxy(**PROXIES, mask=MASK, gradient_norm=0.5)
    assert proxy(ALL).proxy(gradient_norm=0.5) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(tw.TokenwiseError, match="option"):
        tw.ExactCriterion().update({"option": "token-k9"}, **sampled(ALL))


def test_selection_finds_the_number_that_sorting_finds() -> None:
    values = COLUMNS["values"]
    ordered = np.sort(values[MASK])
    for rank in (0, 100, len(ordered) - 1):
        selection = tw.Selection(rank, bits=32)
        found, rounds = None, 0
        while found is None:
            for rows in (slice(0, 4), slice(4, 12)):
                selection.count(values[rows], mask=MASK[rows])
            found, rounds = selection.step(), rounds + 1
        assert (found, rounds) == (float(ordered[rank]), 3)
    with pytest.raises(tw.TokenwiseError):
        tw.Selection(0, bits=16)


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(tw.TokenwiseError, match="one of scores"):
        tw.ExactVerl().update(mask=MASK, advantage=COLUMNS["advantages"])
