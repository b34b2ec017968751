"""The functions through Python beside those of verl and torch.

    pip install ./python
    python python/bench/frameworks.py

Needs torch, a C++ compiler for torch.compile, and verl; everything on a batch of 256 x 4096 in float32, once with one
thread each and once with as many as torch uses by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from turns import alternate, table
from verl.trainer.ppo import core_algos
from verl.workers.config.actor import ActorConfig

import tokenwise_rl as tw
from tokenwise_rl import torch as twt
from tokenwise_rl.frameworks import verl as plugin

ROWS, WIDTH = 256, 4096
LOW, HIGH, DUAL = 0.8, 1.2, 3.0


def batch() -> dict[str, torch.Tensor]:
    """Five eighths of the slots are kept, as in rollouts of different lengths."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(WIDTH // 4, WIDTH + 1, ROWS)
    draw = lambda: rng.standard_normal((ROWS, WIDTH)).astype(np.float32)  # noqa: E731
    old = -np.abs(draw()) - np.float32(0.05)
    arrays = {
        "mask": np.arange(WIDTH) < lengths[:, None],
        "rewards": draw(),
        "values": draw(),
        "old_log_probs": old,
        "log_probs": old + np.float32(0.1) * draw(),
        "advantages": draw(),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def advantages(given: dict[str, torch.Tensor], rounds: int, title: str) -> None:
    whole = given["mask"].long()  # as in verl's driver
    settings = tw.settings("verl-0.9.1", "gae") | {"gamma": 0.99, "lambda_": 0.95}

    def ours() -> Any:
        found = tw.gae(rewards=given["rewards"], values=given["values"], mask=given["mask"], **settings)
        return tw.whiten(values=found.advantages, mask=given["mask"], **tw.settings("verl-0.9.1", "whiten"))

    def by(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: function(given["rewards"], given["values"], whole, 0.99, 0.95)

    theirs, plug_in = by(core_algos.compute_gae_advantage_return), by(plugin._gae)
    torch.testing.assert_close(plug_in()[0], theirs()[0] * whole, rtol=1e-4, atol=1e-5)
    found = alternate({"tw.gae, tw.whiten": ours, "plug-in, mask of int64": plug_in, "verl": theirs}, rounds)
    table(f"GAE + whitening, {title}", found, "tw.gae, tw.whiten")


def terms(log_probs: Any, old: Any, advantages: Any) -> Any:
    log_ratio = torch.clamp(log_probs - old, -20.0, 20.0)
    ratio = torch.exp(log_ratio)
    plain, clipped = -advantages * ratio, -advantages * torch.clamp(ratio, LOW, HIGH)
    larger, most = torch.maximum(plain, clipped), -DUAL * advantages
    losses = torch.where(advantages < 0, torch.minimum(larger, most), larger)
    return losses, log_ratio, clipped > plain, (larger > most) & (advantages < 0)


def loss(log_probs: Any, old: Any, advantages: Any, weights: Any) -> Any:
    """verl's clipped loss without what it logs."""
    return (terms(log_probs, old, advantages)[0] * weights).sum() / weights.sum()


def loss_and_metrics(log_probs: Any, old: Any, advantages: Any, weights: Any) -> Any:
    """With both clip fractions and the KL, which verl logs, in the same graph."""
    losses, log_ratio, held, lower = terms(log_probs, old, advantages)
    mean = lambda values: (values * weights).sum() / weights.sum()  # noqa: E731
    with torch.no_grad():
        metrics = mean(held), mean(lower), mean(-log_ratio)
    return mean(losses), *metrics


def losses(given: dict[str, torch.Tensor], rounds: int, title: str) -> None:
    leaf = given["log_probs"].clone().requires_grad_()
    old, gains, mask = given["old_log_probs"], given["advantages"], given["mask"]
    weights = mask.float()
    settings = tw.settings("verl-0.9.1", "ppo_clip")
    config = ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1)
    config.global_batch_info.clear()

    def gradient(value: Any) -> Any:
        return torch.autograd.grad(value, leaf)[0]

    def ours() -> Any:
        found = twt.ppo_clip(log_probs=leaf, old_log_probs=old, advantages=gains, mask=mask, **settings)
        return gradient(found.loss)

    def without_autograd() -> Any:
        return tw.ppo_clip(log_probs=leaf, old_log_probs=old, advantages=gains, mask=mask, **settings).grad

    def verl() -> Any:
        return gradient(core_algos.compute_policy_loss_vanilla(old, leaf, gains, weights, config=config)[0])

    # of this number of threads; a graph that was compiled for another one keeps it
    torch.compiler.reset()
    bare, full = torch.compile(loss), torch.compile(loss_and_metrics)
    contestants = {
        "twt.ppo_clip, with metrics": ours,
        "tw.ppo_clip, without autograd": without_autograd,
        "torch.compile, without metrics": lambda: gradient(bare(leaf, old, gains, weights)),
        "torch.compile, with metrics": lambda: gradient(full(leaf, old, gains, weights)[0]),
        "verl, with metrics": verl,
    }
    expected = verl()
    for contestant in contestants.values():
        torch.testing.assert_close(contestant(), expected, rtol=1e-4, atol=1e-9)
    other = torch.zeros(32 << 20)  # more than the caches hold
    for words, before in [("called again at once", lambda call: call()), ("after other work", lambda _: other.add_(1))]:
        found = alternate(contestants, rounds, before)
        table(f"PPO loss + gradient, {words}, {title}", found, "twt.ppo_clip, with metrics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", choices=["advantages", "losses"])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, torch.get_num_threads()])
    arguments = parser.parse_args()
    given = batch()
    for threads in dict.fromkeys(arguments.threads):
        torch.set_num_threads(threads)
        tw.set_num_threads(threads)
        title = f"{ROWS}x{WIDTH} f32, {threads} thread{'s' * (threads > 1)} each"
        if arguments.only != "losses":
            advantages(given, arguments.rounds, title)
        if arguments.only != "advantages":
            losses(given, arguments.rounds, title)


if __name__ == "__main__":
    main()
