"""What a caller meets: kinds of arrays, shapes, settings, errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tokenwise_rl as tw

RNG = np.random.default_rng(0)
MASK = np.array([[True, True, False, True], [True, True, True, False]])


def batch(dtype: str = "float64") -> dict[str, np.ndarray]:
    return {
        "rewards": RNG.standard_normal((2, 4)).astype(dtype),
        "values": RNG.standard_normal((2, 4)).astype(dtype),
        "mask": MASK,
    }


def test_the_example_of_the_readme() -> None:
    result = tw.gae(
        rewards=np.array([[0.0, 0.0, np.nan, 1.0]]),
        values=np.array([[0.5, 0.5, np.nan, 0.5]]),
        mask=np.array([[True, True, False, True]]),
        lambda_=0.5,
    )
    np.testing.assert_array_equal(result.advantages, [[0.125, 0.25, 0.0, 0.5]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_is_kept(dtype: str) -> None:
    result = tw.gae(**batch(dtype))
    assert result.advantages.dtype == dtype
    assert result.advantages.shape == (2, 4)


def test_dropped_slots_do_not_matter() -> None:
    given = batch()
    other = {key: value.copy() for key, value in given.items()}
    other["rewards"][~MASK] = np.nan
    other["values"][~MASK] = np.inf
    np.testing.assert_array_equal(tw.gae(**given).advantages, tw.gae(**other).advantages)


def test_packed_equals_padded() -> None:
    given = batch()
    full = {**given, "mask": np.ones((2, 4), bool)}
    packed = {key: np.ascontiguousarray(value.reshape(-1)) for key, value in full.items()}
    found = tw.gae(**packed, cu_seqlens=[0, 4, 8])
    np.testing.assert_array_equal(found.advantages, tw.gae(**full).advantages.reshape(-1))
    assert found.advantages.shape == (8,)


def test_lists_strided_arrays_and_whole_numbers() -> None:
    given = batch()
    wide = np.zeros((2, 8))
    wide[:, ::2] = given["rewards"]
    found = tw.gae(rewards=wide[:, ::2], values=given["values"].tolist(), mask=MASK.astype(int))
    np.testing.assert_array_equal(found.advantages, tw.gae(**given).advantages)
    single = tw.gae(rewards=np.zeros((2, 4), np.int64), values=given["values"].astype("float32"), mask=MASK)
    assert single.advantages.dtype == np.float32


def test_padding_ids_in_dropped_slots() -> None:
    tokens = np.array([[1, -100]])
    found = tw.log_probs_and_entropy(logits=np.zeros((1, 2, 4)), tokens=tokens, mask=[[True, False]])
    np.testing.assert_allclose(found.log_probs, [[-np.log(4.0), 0.0]])
    with pytest.raises(tw.TokenwiseError, match=r"tokens\[1\]: must be from 0") as caught:
        tw.log_probs_and_entropy(logits=np.zeros((1, 2, 4)), tokens=tokens)
    assert (caught.value.code, caught.value.parameter, caught.value.index) == ("entry", "tokens", 1)


def test_groups_are_any_labels() -> None:
    scores = np.array([1.0, 0.0, 1.0, 1.0])
    by_number = tw.group_relative(scores=scores, groups=[0, 0, 1, 1])
    by_name = tw.group_relative(scores=scores, groups=["b", "b", "a", "a"])
    np.testing.assert_array_equal(by_number, by_name)


def test_aggregation_by_prompt() -> None:
    log_probs = -np.abs(RNG.standard_normal((2, 4)))
    result = tw.ppo_clip(
        log_probs=log_probs,
        old_log_probs=log_probs,
        advantages=np.ones((2, 4)),
        mask=MASK,
        groups=["a", "a"],
        aggregate={"mode": "prompt-mean"},
    )
    assert result.loss == pytest.approx(-1.0)


def test_metrics_are_a_plain_dict() -> None:
    given = batch()
    found = tw.analysis(old_log_probs=-np.abs(given["values"]), advantages=given["values"], rewards=given["rewards"])
    assert type(found) is dict
    assert "analysis/wH_sum" in found
    assert all(type(value) is float for value in found.values())


@pytest.mark.parametrize(
    ("change", "code", "parameter", "words"),
    [
        ({"values": np.zeros((2, 3))}, "shape", "values", "expected shape [2, 4], got [2, 3]"),
        ({"values": np.zeros((2, 4), np.float32)}, "dtype", "values", "float64, the type of rewards"),
        ({"rewards": np.zeros(8), "mask": None, "values": np.zeros(8)}, "shape", "rewards", "cu_seqlens"),
        ({"gama": 1.0}, "key", "gama", "not a key of config"),
        ({"gamma": -1.0}, "config", "gamma", "must be"),
        ({"across": "nothing"}, "choice", "across", "expected one of"),
        ({"mask": np.full((2, 4), 0.5)}, "entry", "mask", "must be 0 or 1, got 0.5"),
        ({"rewards": None}, "missing", "rewards", "got nothing"),
        ({"rewards": "text"}, "type", "rewards", "expected an array"),
        ({"bootstrap": np.zeros(3)}, "shape", "bootstrap", "expected shape [2], got [3]"),
        ({"rewards": [[1.0], [2.0, 3.0]]}, "type", "rewards", "lists of different lengths"),
    ],
)
def test_errors_name_the_parameter_and_both_sides(
    change: dict[str, object], code: str, parameter: str, words: str
) -> None:
    with pytest.raises(tw.TokenwiseError) as caught:
        tw.gae(**{**batch(), **change})
    error = caught.value
    assert (error.code, error.parameter) == (code, parameter), error
    assert words in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, again.index, again.got) == (str(error), error.code, error.index, error.got)


def test_results_are_not_overwritten_by_later_calls() -> None:
    given = {key: np.ones((64, 128)) for key in ("rewards", "values")}
    first = tw.gae(**given).advantages
    kept = first.copy()
    for _ in range(20):
        tw.gae(rewards=given["rewards"] * 3, values=given["values"])
    np.testing.assert_array_equal(first, kept)


def test_threads_run_side_by_side() -> None:
    given = {key: np.ones((64, 512), np.float32) for key in ("rewards", "values")}
    want = tw.gae(**given).advantages
    wrong: list[int] = []

    def work() -> None:
        for _ in range(50):
            if not np.array_equal(tw.gae(**given).advantages, want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "controller",
    [tw.FixedKl(beta=0.1), tw.AdaptiveKl(), tw.LinearKl(), tw.EntropyBudget(), tw.DualGame()],
)
def test_controllers_go_on_from_their_state(controller: object) -> None:
    kinds = (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)))
    for kind in kinds:
        assert kind(controller).state() == controller.state()  # type: ignore[attr-defined]


def test_dual_game_steps() -> None:
    game, given = tw.DualGame(), batch()
    log_probs = -np.abs(given["values"])
    for _ in range(3):
        seen = game.step(old_log_probs=log_probs, advantages=given["values"], rewards=given["rewards"], mask=MASK)
    again = tw.DualGame.from_state(game.state())
    step = {"old_log_probs": log_probs, "advantages": given["values"], "rewards": given["rewards"], "mask": MASK}
    assert game.step(**step) == again.step(**step)
    assert "dual_game/lambda" in seen


def test_profiles_give_settings() -> None:
    assert "verl-0.9.1" in tw.profiles()
    settings = tw.settings("verl-0.9.1", "ppo_clip")
    log_probs = -np.abs(RNG.standard_normal((2, 4)))
    tw.ppo_clip(log_probs=log_probs, old_log_probs=log_probs, advantages=np.ones((2, 4)), **settings)
    with pytest.raises(tw.TokenwiseError, match="verl-0.9.1"):
        tw.settings("verl", "gae")
    with pytest.raises(tw.TokenwiseError, match="gea"):
        tw.settings("verl-0.9.1", "gea")
    assert tw.settings("verl-0.9.1", "entropy") == {}


def test_recorder(tmp_path: object) -> None:
    recorder = tw.Recorder(str(tmp_path), "run")
    recorder.record(0, {"policy/entropy": 1.5, "reward": 0.25})
    recorder.record(1, {"policy/entropy": 1.25})
    assert recorder.last_step == 1
    del recorder
    assert tw.read_history(f"{tmp_path}/entropy_history_run.json") == [(0, 1.5), (1, 1.25)]


def test_import_is_light() -> None:
    code = "import sys, tokenwise_rl; print('numpy' in sys.modules, 'torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8", "float32", "float64", "int16"])
def test_masks_of_numbers(dtype: str) -> None:
    given = batch()
    want = tw.gae(**given).advantages
    for mask in (MASK.astype(dtype), np.asfortranarray(MASK.astype(dtype)), MASK.astype(dtype).tolist()):
        np.testing.assert_array_equal(tw.gae(**{**given, "mask": mask}).advantages, want)
    wrong = MASK.astype(dtype)
    wrong[1, 2] = 2
    with pytest.raises(tw.TokenwiseError, match=r"mask\[6\]: must be 0 or 1, got 2"):
        tw.gae(**{**given, "mask": wrong})


def test_without_a_mask_everything_is_kept() -> None:
    # a longer mask may have been made before
    for rows in (3, 7, 2):
        values = RNG.standard_normal((rows, 5))
        want = tw.whiten(values=values, mask=np.ones((rows, 5), bool))
        np.testing.assert_array_equal(tw.whiten(values=values), want)


def test_offsets_of_more_tokens_than_there_are() -> None:
    # found before a mask of that length is made
    with pytest.raises(tw.TokenwiseError, match=r"values: .* 4294967295 tokens of cu_seqlens, got \[3\]"):
        tw.mean(values=np.zeros(3), cu_seqlens=np.array([0, 2**32 - 1], np.uint32))


def test_settings_of_a_profile_can_be_changed() -> None:
    settings = tw.settings("verl-0.9.1", "gae")
    assert "lambda_" in settings
    given = batch()
    found = tw.gae(**given, **{**settings, "lambda_": 0.5})
    np.testing.assert_array_equal(found.advantages, tw.gae(**given, lambda_=0.5).advantages)


class Exported:
    """An array of a library that has nothing but DLPack."""

    def __init__(self, array: np.ndarray, versions: bool = True) -> None:
        self.array, self.versions = array, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **arguments: object) -> object:
        if not self.versions and arguments:
            raise TypeError("no versions")
        return self.array.__dlpack__(**arguments)


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_other_libraries(versions: bool) -> None:
    given = batch("float32")
    other = {key: Exported(value, versions) for key, value in given.items() if key != "mask"}
    np.testing.assert_array_equal(tw.gae(**other, mask=MASK).advantages, tw.gae(**given).advantages)
    halves = {key: value.astype(np.float16) for key, value in given.items() if key != "mask"}
    exported = {key: Exported(value, versions) for key, value in halves.items()}
    want = tw.gae(**{key: value.astype(np.float32) for key, value in halves.items()}, mask=MASK)
    values = exported["values"]
    np.testing.assert_array_equal(tw.gae(**{**exported, "values": values}, mask=MASK).advantages, want.advantages)


@pytest.mark.parametrize("order", ["C", "F"])
def test_logits_in_half_precision_of_other_libraries(order: str) -> None:
    logits = np.array(RNG.standard_normal((2, 4, 8)).astype(np.float16), order=order)  # type: ignore[call-overload]
    tokens = RNG.integers(0, 8, (2, 4))
    found = tw.log_probs_and_entropy(logits=Exported(logits), tokens=tokens)
    want = tw.log_probs_and_entropy(logits=logits, tokens=tokens)
    np.testing.assert_array_equal(found.log_probs, want.log_probs)
    np.testing.assert_array_equal(found.entropy, want.entropy)
