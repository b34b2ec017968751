"""What Python adds to a call, and how the functions compare with those of verl and torch.

    pip install ./python
    cargo build --release --package tokenwise-bench --features std
    python python/bench/overhead.py --library target/release/libtokenwise_bench.so

The comparison with verl and torch is made where they are installed. Every comparison takes turns in one process, on one
thread, and compares medians of processor time, so that other work on the machine disturbs both sides alike.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tokenwise_rl as tw


def alternate(functions: dict[str, Callable[[], Any]], rounds: int, least: float = 2e-2) -> dict[str, float]:
    """The median seconds of each function, in turns; short ones are repeated within a round."""
    repeats = {}
    for name, function in functions.items():
        function()
        start = time.thread_time()
        function()
        repeats[name] = max(1, int(least / max(time.thread_time() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.thread_time()
            for _ in range(repeats[name]):
                function()
            times[name].append((time.thread_time() - start) / repeats[name])
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def batch(rows: int, width: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(width // 4, width + 1, rows)
    draw = lambda: rng.standard_normal((rows, width)).astype(np.float32)  # noqa: E731
    old = -np.abs(draw()) - np.float32(0.05)
    return {
        "mask": np.arange(width) < lengths[:, None],
        "rewards": draw(),
        "values": draw(),
        "old_log_probs": old,
        "log_probs": old + np.float32(0.1) * draw(),
        "advantages": draw(),
    }


def overhead(library: Any, rows: int, width: int, rounds: int) -> None:
    """Calls from Python beside the same calls from Rust, on the same arrays, which Rust owns."""
    from ours import Tokens

    at = Tokens(library, rows, width)
    ppo = {"dual_clip": {"negative_only": 3.0}}

    def gae_and_whiten() -> Any:
        found = tw.gae(rewards=at.rewards, values=at.values, mask=at.mask, gamma=0.99, lambda_=0.95)
        return tw.whiten(values=found.advantages, mask=at.mask)

    policy = {"log_probs": at.log_probs, "old_log_probs": at.old_log_probs, "advantages": at.advantages}
    sums = {"old_log_probs": at.old_log_probs, "advantages": at.advantages, "rewards": at.rewards}
    calls: dict[str, Callable[[], Any]] = {
        "gae": gae_and_whiten,
        "whiten": lambda: tw.whiten(values=at.advantages, mask=at.mask),
        "ppo": lambda: tw.ppo_clip(**policy, mask=at.mask, **ppo),
        "analysis": lambda: tw.analysis(**sums, mask=at.mask),
    }
    print(f"\n{rows}x{width} f32, microseconds          Python      Rust  overhead")
    for name, call in calls.items():
        # every call from Python builds its batch, and gae with whiten are two; ctypes takes about a microsecond per
        # call, which makes the overhead of small batches look that much smaller
        builds = range(2 if name == "gae" else 1)
        found = alternate({"python": call, "rust": lambda: [[at.check() for _ in builds], at.run(name)]}, rounds)
        python, rust = found["python"] * 1e6, found["rust"] * 1e6
        title = "gae + whiten" if name == "gae" else name
        print(f"  {title:28} {python:10.1f} {rust:9.1f} {python - rust:9.1f}  ({(python / rust - 1) * 100:.1f} %)")
    at.free()


def imports(rounds: int) -> None:
    code = "import time; a=time.perf_counter(); b=time.process_time(); import tokenwise_rl; " \
        "print(time.perf_counter()-a, time.process_time()-b)"
    found = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(rounds)]
    wall, cpu = (statistics.median(float(line.split()[part]) for line in found) * 1e3 for part in (0, 1))
    print(f"\nimport tokenwise_rl: {wall:.1f} ms, {cpu:.1f} ms of the processor")


def frameworks(rounds: int) -> None:
    try:
        import torch
        from verl.trainer.ppo import core_algos
    except ImportError:
        print("\nno torch or verl here: no comparison")
        return
    from tokenwise_rl import torch as twt
    from tokenwise_rl.frameworks import verl as plugin

    torch.set_num_threads(1)
    given = {name: torch.from_numpy(array) for name, array in batch(256, 4096).items()}
    mask = given["mask"].long()  # as in verl's driver
    arguments = (given["rewards"], given["values"], mask, 0.99, 0.95)
    theirs = core_algos.compute_gae_advantage_return
    found = alternate({"verl": lambda: theirs(*arguments), "ours": lambda: plugin._gae(*arguments)}, rounds)
    ratio = found["verl"] / found["ours"]
    print(f"\nGAE + whitening 256x4096: verl {found['verl'] * 1e3:.1f} ms, ours {found['ours'] * 1e3:.2f} ms: {ratio:.0f}x")

    flags, weights = given["mask"], given["mask"].float()

    def loss(log_probs: Any) -> Any:
        """What verl's loss returns, metrics included, without leaving the graph."""
        count, advantages = weights.sum(), given["advantages"]
        log_ratio = torch.clamp(log_probs - given["old_log_probs"], -20, 20)
        ratio = torch.exp(log_ratio)
        plain, clipped = -advantages * ratio, -advantages * torch.clamp(ratio, 0.8, 1.2)
        larger, most = torch.maximum(plain, clipped), -3.0 * advantages
        losses = torch.where(advantages < 0, torch.minimum(larger, most), larger)
        with torch.no_grad():
            held = ((clipped > plain) * weights).sum() / count
            lower = ((larger > most) * (advantages < 0) * weights).sum() / count
            kl = (-log_ratio * weights).sum() / count
        return (losses * weights).sum() / count, held, lower, kl

    leaf = given["log_probs"].clone().requires_grad_()

    def run(function: Callable[[Any], Any]) -> Any:
        return torch.autograd.grad(function(leaf)[0], leaf)[0]

    settings = tw.settings("verl-0.9.1", "ppo_clip")

    def ours(log_probs: Any) -> Any:
        return twt.ppo_clip(
            log_probs=log_probs,
            old_log_probs=given["old_log_probs"],
            advantages=given["advantages"],
            mask=flags,
            **settings,
        )

    peers: dict[str, Callable[[], Any]] = {"torch": lambda: run(loss), "ours": lambda: run(ours)}
    try:
        compiled = torch.compile(loss)
        run(compiled)
        peers["torch.compile"] = lambda: run(compiled)
    except Exception as error:  # no C++ compiler
        print(f"torch.compile does not work here: {type(error).__name__}")
    found = alternate(peers, rounds)
    for name in peers:
        print(f"PPO loss + gradient 256x4096, {name}: {found[name] * 1e3:.2f} ms ({found[name] / found['ours']:.1f}x ours)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--library", help="the formulas from Rust: target/release/libtokenwise_bench.so")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    imports(min(rounds, 10))
    if arguments.library is not None:
        sys.path.insert(0, str(Path(__file__).parents[2] / "bench/peers"))
        from ours import Library

        overhead(Library(arguments.library), 8, 64, rounds)
        overhead(Library(arguments.library), 256, 4096, rounds)
    frameworks(max(5, rounds // 4))


if __name__ == "__main__":
    main()
