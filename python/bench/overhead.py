"""What Python adds to a call of Rust.

    pip install ./python
    cargo build --release --package tokenwise-bench --features std
    python python/bench/overhead.py --library target/release/libtokenwise_bench.so

The same formulas on the same arrays, which Rust owns, on one thread. `frameworks.py` compares with verl and torch.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turns import alternate, table

import tokenwise_rl as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "bench/peers"))


def overhead(library: Any, rows: int, width: int, rounds: int) -> None:
    """Calls from Python beside the same calls from Rust."""
    from ours import Tokens

    at = Tokens(library, rows, width)

    def gae_and_whiten() -> Any:
        found = tw.gae(rewards=at.rewards, values=at.values, mask=at.mask, gamma=0.99, lambda_=0.95)
        return tw.whiten(values=found.advantages, mask=at.mask)

    policy = {"log_probs": at.log_probs, "old_log_probs": at.old_log_probs, "advantages": at.advantages}
    sums = {"old_log_probs": at.old_log_probs, "advantages": at.advantages, "rewards": at.rewards}
    calls: dict[str, Callable[[], Any]] = {
        "gae": gae_and_whiten,
        "whiten": lambda: tw.whiten(values=at.advantages, mask=at.mask),
        "kl": lambda: tw.kl_estimate(
            log_probs=at.log_probs, ref_log_probs=at.ref_log_probs, mask=at.mask, estimator="k3", bounds="k3-only"
        ),
        "ppo": lambda: tw.ppo_clip(**policy, mask=at.mask, dual_clip={"negative_only": 3.0}),
        "analysis": lambda: tw.analysis(**sums, mask=at.mask),
    }
    for name, call in calls.items():
        # every call from Python builds its batch, and gae with whiten are two; ctypes takes about a microsecond per
        # call, which makes the overhead of small batches look that much smaller
        builds = range(2 if name == "gae" else 1)
        contestants = {"Python": call, "Rust": lambda: [[at.check() for _ in builds], at.run(name)]}
        if name == "gae":
            # Rust whitens in place, which saves the memory of a result; here it does what Python does
            contestants["Rust, another buffer"] = lambda: [[at.check() for _ in builds], at.gae_apart()]
        # each after an untimed call of its own: what the one before has left in the caches is no part of a call
        found = alternate(contestants, rounds, lambda contestant: contestant())
        table(f"{'gae + whiten' if name == 'gae' else name}, {rows}x{width} f32", found, "Rust")
    at.free()


def imports(rounds: int) -> None:
    code = "import time; a=time.perf_counter(); b=time.process_time(); import tokenwise_rl; " \
        "print(time.perf_counter()-a, time.process_time()-b)"
    found = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(rounds)]
    for part, words in enumerate(["of time", "of the processor"]):
        times = [float(line.split()[part]) * 1e3 for line in found]
        print(f"import tokenwise_rl: least {min(times):.1f} ms, median {statistics.median(times):.1f} ms {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--library", help="the formulas from Rust: target/release/libtokenwise_bench.so")
    arguments = parser.parse_args()
    tw.set_num_threads(1)
    imports(10)
    if arguments.library is not None:
        from ours import Library

        for rows, width in [(8, 64), (256, 4096)]:
            overhead(Library(arguments.library), rows, width, arguments.rounds)


if __name__ == "__main__":
    main()
