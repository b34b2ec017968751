"""GAE with returns and whitening, GRPO, discounted returns, whitening: peers and the textbook in f64."""

import numpy as np
import torch
import verl.utils.torch_functional as verl_F
from verl.trainer.ppo import core_algos

from frameworks import compiled, jax, jnp, loss_free, tianshou_gae
from timing import Contestant

GAMMA, LAMBDA, GROUP = 0.99, 0.95, 8


def gae(batch, t):
    rewards, values, mask = t["rewards"], t["values"], t["mask"]

    def verl():
        return core_algos.compute_gae_advantage_return(rewards, values, mask, GAMMA, LAMBDA)

    def named(made):
        return {"advantages": np.asarray(made[0]), "returns": np.asarray(made[1])}

    # one flat sequence that ends at the last kept token of each row; preparing its inputs is not timed
    last = np.maximum(batch.mask.sum(1) - 1, 0)
    ends = np.zeros(batch.shape, dtype=bool)
    ends[np.arange(batch.shape[0]), last] = True
    following = np.roll(batch.values, -1, axis=1)
    following[ends] = 0
    flat = [each.reshape(-1).copy() for each in (batch.values, following, batch.rewards, ends)]

    def tianshou():
        advantages = torch.from_numpy(tianshou_gae(*flat, GAMMA, LAMBDA).reshape(batch.shape))
        returns = advantages + values
        return verl_F.masked_whiten(advantages, mask), returns

    arrays = [jnp.asarray(each) for each in (batch.rewards, batch.values, batch.mask)]
    return [
        Contestant("ours", lambda: batch.run("gae"), lambda _: {"advantages": batch.out0, "returns": batch.out1}),
        Contestant("verl", verl, named),
        Contestant("tianshou + verl", tianshou, named),
        Contestant("JAX scan", lambda: jax.block_until_ready(jax_gae_scan(*arrays)), named),
        Contestant("JAX associative", lambda: jax.block_until_ready(jax_gae_associative(*arrays)), named),
    ]


def gae_reference(batch, wide):
    advantages, returns = core_algos.compute_gae_advantage_return(
        wide["rewards"], wide["values"], wide["mask"], GAMMA, LAMBDA
    )
    # verl's mean divides by n + 1e-8, which is visible in f64: whiten by the definition
    mask, raw = batch.mask, (returns - wide["values"]).numpy()
    kept = raw[mask]
    return {"advantages": (raw - kept.mean()) / np.sqrt(kept.var(ddof=1) + 1e-8), "returns": returns.numpy()}


def jax_whiten(raw, mask):
    count = mask.sum()
    mean = jnp.where(mask, raw, 0).sum() / count
    variance = jnp.where(mask, (raw - mean) ** 2, 0).sum() / (count - 1)
    return jnp.where(mask, (raw - mean) * jax.lax.rsqrt(variance + 1e-8), 0)


def jax_deltas(rewards, values, mask):
    # rows are kept from the left, so the next kept value is the next one or 0
    following = jnp.where(mask, values, 0)
    following = jnp.concatenate([following[:, 1:], jnp.zeros_like(following[:, :1])], axis=1)
    return jnp.where(mask, rewards + GAMMA * following - values, 0)


@jax.jit
def jax_gae_scan(rewards, values, mask):
    def step(after, delta):
        now = delta + GAMMA * LAMBDA * after
        return now, now

    deltas = jax_deltas(rewards, values, mask).T
    raw = jax.lax.scan(step, jnp.zeros_like(deltas[0]), deltas, reverse=True)[1].T
    return jax_whiten(raw, mask), jnp.where(mask, raw + values, 0)


@jax.jit
def jax_gae_associative(rewards, values, mask):
    raw = jax_decayed(jax_deltas(rewards, values, mask), GAMMA * LAMBDA)
    return jax_whiten(raw, mask), jnp.where(mask, raw + values, 0)


def jax_decayed(x, decay):
    def join(after, before):
        return after[0] * before[0], before[1] + before[0] * after[1]

    factors = jnp.full_like(x, decay)
    return jax.lax.associative_scan(join, (factors, x), reverse=True, axis=1)[1]


def grpo(batch, t):
    rewards, mask = t["rewards"], t["mask"]
    index = np.arange(batch.shape[0]) // GROUP

    def named(made):
        return {"advantages": np.asarray(made[0] if isinstance(made, tuple) else made)}

    return [
        Contestant("ours", lambda: batch.run("grpo"), lambda _: {"advantages": batch.out0}),
        Contestant("verl", lambda: core_algos.compute_grpo_outcome_advantage(rewards, mask, index), named),
        Contestant(
            "verl vectorized", lambda: core_algos.compute_grpo_vectorized_outcome_advantage(rewards, mask, index), named
        ),
        Contestant("torch", lambda: torch_grpo(rewards, mask), named),
        Contestant("torch.compile", lambda: compiled_grpo(rewards, mask), named),
    ]


@loss_free
def torch_grpo(rewards, mask):
    scores = rewards.sum(-1).reshape(-1, GROUP)
    centred = scores - scores.mean(1, keepdim=True)
    return (centred / (scores.std(1, keepdim=True) + 1e-6)).reshape(-1, 1) * mask


compiled_grpo = compiled(torch_grpo)


def grpo_reference(batch, wide):
    return {"advantages": torch_grpo(wide["rewards"], wide["mask"]).numpy()}


def returns(batch, t):
    rewards, mask = t["rewards"], t["mask"]
    arrays = [jnp.asarray(each) for each in (batch.rewards, batch.mask)]
    named = lambda made: {"returns": np.asarray(made)}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run("returns"), lambda _: {"returns": batch.out0}),
        Contestant("torch, verl's loop", lambda: torch_returns(rewards, mask), named),
        Contestant("JAX scan", lambda: jax.block_until_ready(jax_returns_scan(*arrays)), named),
        Contestant("JAX associative", lambda: jax.block_until_ready(jax_returns_associative(*arrays)), named),
    ]


@loss_free
def torch_returns(rewards, mask):
    """As in verl's `compute_reinforce_plus_plus_outcome_advantage`."""
    made, running = torch.zeros_like(rewards), 0
    for position in reversed(range(rewards.shape[1])):
        running = rewards[:, position] + GAMMA * running
        made[:, position] = running
        running = running * mask[:, position]
    return made * mask


@jax.jit
def jax_returns_scan(rewards, mask):
    def step(after, now):
        total = now + GAMMA * after
        return total, total

    kept = jnp.where(mask, rewards, 0).T
    return jnp.where(mask, jax.lax.scan(step, jnp.zeros_like(kept[0]), kept, reverse=True)[1].T, 0)


@jax.jit
def jax_returns_associative(rewards, mask):
    return jnp.where(mask, jax_decayed(jnp.where(mask, rewards, 0), GAMMA), 0)


def returns_reference(batch, wide):
    return {"returns": torch_returns(wide["rewards"], wide["mask"]).numpy()}


def whiten(batch, t):
    advantages, mask = t["advantages"], t["mask"]
    named = lambda made: {"advantages": np.asarray(made)}  # noqa: E731
    whitening = loss_free(verl_F.masked_whiten)
    fused = compiled(torch_whiten)
    return [
        Contestant("ours", lambda: batch.run("whiten"), lambda _: {"advantages": batch.out0}),
        Contestant("verl", lambda: whitening(advantages, mask), named),
        Contestant("torch.compile", lambda: fused(advantages, mask), named),
    ]


@loss_free
def torch_whiten(x, mask):
    """Without verl's checks of the mask, which would split the graph."""
    count = mask.sum()
    mean = (x * mask).sum() / count
    variance = ((x - mean).square() * mask).sum() / (count - 1)
    return (x - mean) * torch.rsqrt(variance + 1e-8)


def whiten_reference(batch, wide):
    x, kept = wide["advantages"].numpy(), batch.advantages[batch.mask].astype(np.float64)
    return {"advantages": (x - kept.mean()) / np.sqrt(kept.var(ddof=1) + 1e-8)}
