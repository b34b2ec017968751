"""Imports and configures the peers."""

import functools
import os

THREADS = int(os.environ.get("BENCH_THREADS", "1"))

# JAX sizes its thread pool by the CPU affinity at import
_allowed = os.sched_getaffinity(0)
os.sched_setaffinity(0, set(sorted(_allowed)[:THREADS]))
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

jnp.zeros(1).block_until_ready()
os.sched_setaffinity(0, _allowed)

import torch  # noqa: E402

torch.set_num_threads(THREADS)
# beyond its recompile limit torch silently falls back to eager mode, which would be timed instead
torch._dynamo.config.fail_on_recompile_limit_hit = True

from tianshou.algorithm.algorithm_base import _gae as tianshou_gae  # noqa: E402


def loss_free(function):
    """For computations without gradients: no graph is recorded."""

    @functools.wraps(function)
    def call(*arguments):
        with torch.no_grad():
            return function(*arguments)

    return call


def compiled(function):
    """Compiles the function itself, because a shared wrapper would be recompiled for each."""
    plain = getattr(function, "__wrapped__", None)
    fused = torch.compile(plain or function, dynamic=False, fullgraph=True)
    return loss_free(fused) if plain else fused


__all__ = ["THREADS", "compiled", "jax", "jnp", "loss_free", "tianshou_gae", "torch"]
