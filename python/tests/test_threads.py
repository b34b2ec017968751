"""Threads change no bit, and a child of ``fork`` neither hangs nor starts any."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tokenwise_rl as tw

ROWS, WIDTH = 64, 4096
#: Seconds after which a child counts as hung.
PATIENCE = 120
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    old = -np.abs(rng.standard_normal((ROWS, WIDTH)).astype(np.float32))
    return {
        "rewards": rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
        "values": rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
        "old": old,
        "new": old + np.float32(0.1) * rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
        "mask": np.arange(WIDTH) < rng.integers(1, WIDTH, ROWS)[:, None],
    }


GIVEN = arrays()


def bits() -> tuple[bytes, ...]:
    """Results of large calls."""
    mask = GIVEN["mask"]
    found = tw.gae(rewards=GIVEN["rewards"], values=GIVEN["values"], mask=mask, gamma=0.99, lambda_=0.95)
    white = tw.whiten(values=found.advantages, mask=mask)
    loss = tw.ppo_clip(log_probs=GIVEN["new"], old_log_probs=GIVEN["old"], advantages=white, mask=mask)
    exact = tw.ExactMoments()
    exact.update(white, mask=mask)
    logits = GIVEN["values"].reshape(1, ROWS, WIDTH)
    rows = tw.log_probs_and_entropy(logits=logits, tokens=np.arange(ROWS)[None])
    parts = [found.advantages, found.returns, white, loss.grad, np.float64(loss.loss), rows.log_probs, rows.entropy]
    return (*(part.tobytes() for part in parts), exact.to_bytes())


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


def test_their_number_changes_no_bit() -> None:
    tw.set_num_threads(1)
    alone = bits()
    for number in (2, 3, 64):
        tw.set_num_threads(number)
        assert bits() == alone, number


def test_several_callers_at_once() -> None:
    expected = bits()
    with ThreadPoolExecutor(6) as pool:
        assert all(found == expected for found in pool.map(lambda _: bits(), range(24)))


@pytest.mark.parametrize("number", [0, -1])
def test_no_threads_are_refused(number: int) -> None:
    with pytest.raises(tw.TokenwiseError, match=f"threads: expected at least 1, got {number}") as caught:
        tw.set_num_threads(number)
    assert caught.value.parameter == "threads"


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"TOKENWISE_NUM_THREADS": "1", "OMP_NUM_THREADS": "64"}, 1),
        ({"OMP_NUM_THREADS": "1,4"}, 1),
        ({"OMP_NUM_THREADS": "many"}, None),
    ],
)
def test_the_environment_sets_their_number(variables: dict[str, str], expected: int | None) -> None:
    usual = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    found = [
        subprocess.run(
            [sys.executable, "-c", "import tokenwise_rl as tw; print(tw.get_num_threads())"],
            env={**usual, **more},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ({}, variables)
    ]
    # what is no number is as good as nothing
    assert int(found[1]) == (int(found[0]) if expected is None else expected)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="only Linux lists the threads of a process")
def test_a_small_batch_and_an_import_start_none() -> None:
    code = """
import os
import numpy as np
before = len(os.listdir("/proc/self/task"))
import tokenwise_rl as tw
tw.whiten(values=np.ones((8, 64)))
tw.set_num_threads(1)
tw.whiten(values=np.ones((64, 4096)))
assert len(os.listdir("/proc/self/task")) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def _send(results: Any) -> None:
    found = bits()
    tasks = "/proc/self/task"
    # the queue starts a thread of its own when it sends
    results.send((found, len(os.listdir(tasks)) if os.path.isdir(tasks) else 1))


@fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_on_its_own_thread() -> None:
    expected = bits()  # the parent has its threads now
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_send, args=(sender,), daemon=True)
        child.start()
        assert receiver.poll(PATIENCE), "the child hangs"
        found, threads = receiver.recv()
        child.join(PATIENCE)
        assert child.exitcode == 0
        assert (found, threads) == (expected, 1)
    assert bits() == expected


@fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_during_calls_does_not_hang() -> None:
    expected, stop = bits(), threading.Event()

    def call() -> None:
        while not stop.is_set():
            bits()

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(20):
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(target=_send, args=(sender,), daemon=True)
            child.start()
            assert receiver.poll(PATIENCE), "the child hangs"
            assert receiver.recv()[0] == expected
            child.join(PATIENCE)
    finally:
        stop.set()
        for caller in callers:
            caller.join()


@fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_pool_of_forked_workers() -> None:
    expected = bits()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_bits_of, range(6)).get(PATIENCE)
    assert found == [expected] * 6


def _bits_of(_: int) -> tuple[bytes, ...]:
    return bits()
