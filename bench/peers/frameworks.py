"""What the peers are imported and set up with."""

import functools
import os

THREADS = int(os.environ.get("BENCH_THREADS", "1"))

# JAX sizes its pool by the processors it may use when it starts
_allowed = os.sched_getaffinity(0)
os.sched_setaffinity(0, set(sorted(_allowed)[:THREADS]))
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

jnp.zeros(1).block_until_ready()
os.sched_setaffinity(0, _allowed)

import torch  # noqa: E402

torch.set_num_threads(THREADS)
# beyond its limit of recompilations torch would quietly run the plain function, and we would time that
torch._dynamo.config.fail_on_recompile_limit_hit = True

from tianshou.algorithm.algorithm_base import _gae as tianshou_gae  # noqa: E402


def loss_free(function):
    """For what is computed from data alone: no graph is recorded."""

    @functools.wraps(function)
    def call(*arguments):
        with torch.no_grad():
            return function(*arguments)

    return call


def compiled(function):
    """The function compiled; not its wrapper, whose one body all would share."""
    plain = getattr(function, "__wrapped__", None)
    fused = torch.compile(plain or function, dynamic=False, fullgraph=True)
    return loss_free(fused) if plain else fused


__all__ = ["THREADS", "compiled", "jax", "jnp", "loss_free", "tianshou_gae", "torch"]
