"""PPO loss and gradient, KL, the analysis metrics, and the whole chain: peers and the textbook in f64."""

import numpy as np
import torch
from verl.trainer.ppo import core_algos
from verl.workers.config.actor import ActorConfig

from advantage import GAMMA, LAMBDA, jax_gae_associative
from frameworks import compiled, jax, jnp, loss_free
from timing import Contestant

BETA, LOW, HIGH, DUAL = 0.05, 0.8, 1.2, 3.0
CONFIG = ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1)
CONFIG.global_batch_info.clear()


def ppo_forward(batch, t):
    """Our functions always write the gradient."""
    with_graph = ppo(batch, t)
    log_probs, old, advantages, mask = t["log_probs"], t["old_log_probs"], t["advantages"], t["mask"]
    verl = loss_free(lambda: core_algos.compute_policy_loss_vanilla(old, log_probs, advantages, mask, config=CONFIG))
    plain = loss_free(torch_ppo)
    fused = compiled(plain)
    named = lambda made: {"loss": np.asarray(made[0])}  # noqa: E731
    return [
        Contestant("ours", with_graph[0].call, lambda _: {"loss": batch.totals[0]}),
        Contestant("verl", verl, named),
        Contestant("torch", lambda: plain(log_probs, old, advantages, mask), named),
        Contestant("torch.compile", lambda: fused(log_probs, old, advantages, mask), named),
    ]


def ppo(batch, t):
    log_probs, old, advantages, mask = (
        t["log_probs"].clone().requires_grad_(),
        t["old_log_probs"],
        t["advantages"],
        t["mask"],
    )
    fused = compiled(torch_ppo)
    arrays = [jnp.asarray(each) for each in (batch.log_probs, batch.old_log_probs, batch.advantages, batch.mask)]

    def verl():
        loss, _ = core_algos.compute_policy_loss_vanilla(old, log_probs, advantages, mask, config=CONFIG)
        return loss.detach(), torch.autograd.grad(loss, log_probs)[0]

    def by(function):
        def call():
            loss, *_ = function(log_probs, old, advantages, mask)
            return loss.detach(), torch.autograd.grad(loss, log_probs)[0]

        return call

    def by_jax():
        (loss, _), grad = jax.block_until_ready(jax_ppo(*arrays))
        return loss, grad

    named = lambda made: {"loss": np.asarray(made[0]), "gradient": np.asarray(made[1])}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run("ppo"), lambda _: {"loss": batch.totals[0], "gradient": batch.out0}),
        Contestant("verl", verl, named),
        Contestant("torch", by(torch_ppo), named),
        Contestant("torch.compile", by(fused), named),
        Contestant("JAX", by_jax, named),
    ]


def torch_ppo(log_probs, old, advantages, mask):
    """Loss, clip fraction, lower clip fraction, KL: what verl's loss returns, without leaving the graph."""
    count = mask.sum()
    log_ratio = (log_probs - old).clamp(-20.0, 20.0)
    ratio = log_ratio.exp()
    plain, clipped = -advantages * ratio, -advantages * ratio.clamp(LOW, HIGH)
    larger, most = torch.maximum(plain, clipped), -advantages * DUAL
    loss = torch.where(advantages < 0, torch.minimum(larger, most), larger)
    with torch.no_grad():
        held = ((clipped > plain) * mask).sum() / count
        lower = ((larger > most) * (advantages < 0) * mask).sum() / count
        kl = (-log_ratio * mask).sum() / count
    return (loss * mask).sum() / count, held, lower, kl


def jax_ppo_loss(log_probs, old, advantages, mask):
    count = mask.sum()
    mean = lambda x: jnp.where(mask, x, 0).sum() / count  # noqa: E731
    log_ratio = jnp.clip(log_probs - old, -20.0, 20.0)
    ratio = jnp.exp(log_ratio)
    plain, clipped = -advantages * ratio, -advantages * jnp.clip(ratio, LOW, HIGH)
    larger, most = jnp.maximum(plain, clipped), -advantages * DUAL
    loss = jnp.where(advantages < 0, jnp.minimum(larger, most), larger)
    return mean(loss), (mean(clipped > plain), mean((larger > most) & (advantages < 0)), mean(-log_ratio))


jax_ppo = jax.jit(jax.value_and_grad(jax_ppo_loss, has_aux=True))


def ppo_reference(batch, wide):
    log_probs = wide["log_probs"].clone().requires_grad_()
    loss, *_ = torch_ppo(log_probs, wide["old_log_probs"], wide["advantages"], wide["mask"])
    return {"loss": loss.detach().numpy(), "gradient": torch.autograd.grad(loss, log_probs)[0].numpy()}


def kl(batch, t):
    log_probs, reference = t["log_probs"], t["ref_log_probs"]
    verl = loss_free(lambda: core_algos.kl_penalty_forward(log_probs, reference, "low_var_kl"))
    fused = compiled(loss_free(torch_kl))
    named = lambda made: {"kl": np.asarray(made)}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run("kl"), lambda _: {"kl": batch.out0}),
        Contestant("verl", verl, named),
        Contestant("torch.compile", lambda: fused(log_probs, reference), named),
    ]


def torch_kl(log_probs, reference):
    d = (reference - log_probs).clamp(-20.0, 20.0)
    return (d.exp() - d - 1).clamp(-10.0, 10.0)


def kl_reference(batch, wide):
    d = (wide["ref_log_probs"] - wide["log_probs"]).numpy()
    return {"kl": np.expm1(d) - d}


def analysis(batch, t):
    old, advantages, rewards, mask = t["old_log_probs"], t["advantages"], t["rewards"], t["mask"]
    plain = loss_free(torch_analysis)
    fused = compiled(plain)
    named = lambda made: {"metrics": np.asarray([float(each) for each in made])}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run("analysis"), lambda _: {"metrics": batch.totals}),
        Contestant("torch", lambda: plain(old, advantages, rewards, mask), named),
        Contestant("torch.compile", lambda: fused(old, advantages, rewards, mask), named),
    ]


def torch_analysis(old, advantages, rewards, mask):
    count = mask.sum()
    p = old.exp()
    entropy = -(p * old)
    weighted = (p * (1 - p) * advantages.abs() * entropy * mask).sum()
    mean_a, mean_l = (advantages * mask).sum() / count, (old * mask).sum() / count
    covariance = ((advantages - mean_a) * (old - mean_l) * mask).sum() / count
    return (entropy * mask).sum() / count, covariance, weighted, weighted / count, (rewards * mask).sum(1).mean()


def analysis_reference(batch, wide):
    made = torch_analysis(wide["old_log_probs"], wide["advantages"], wide["rewards"], wide["mask"])
    return {"metrics": np.asarray([float(each) for each in made])}


def step(batch, t):
    """KL penalty, rewards, advantages, whitening, loss and gradient."""
    arrays = [jnp.asarray(getattr(batch, name)) for name in STEP_INPUTS] + [jnp.asarray(batch.mask)]
    log_probs = t["log_probs"].clone().requires_grad_()

    def verl():
        return verl_step(t, log_probs)

    def by_jax():
        (loss, _), grad = jax.block_until_ready(jax_step(*arrays))
        return loss, grad

    named = lambda made: {"loss": np.asarray(made[0]), "gradient": np.asarray(made[1])}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run("step"), lambda _: {"loss": batch.totals[0], "gradient": batch.out1}),
        Contestant("verl", verl, named),
        Contestant("JAX associative", by_jax, named),
    ]


STEP_INPUTS = ["rewards", "values", "log_probs", "old_log_probs", "ref_log_probs"]


def verl_step(t, log_probs):
    mask = t["mask"]
    with torch.no_grad():
        kl = core_algos.kl_penalty_forward(t["old_log_probs"], t["ref_log_probs"], "low_var_kl") * mask
        rewards = t["rewards"] - BETA * kl
    advantages, _ = core_algos.compute_gae_advantage_return(rewards, t["values"], mask, GAMMA, LAMBDA)
    loss, _ = core_algos.compute_policy_loss_vanilla(t["old_log_probs"], log_probs, advantages, mask, config=CONFIG)
    return loss.detach(), torch.autograd.grad(loss, log_probs)[0]


@jax.jit
def jax_step(rewards, values, log_probs, old, reference, mask):
    d = jnp.clip(reference - old, -20.0, 20.0)
    kl = jnp.clip(jnp.exp(d) - d - 1, -10.0, 10.0)
    advantages, _ = jax_gae_associative(jnp.where(mask, rewards - BETA * kl, 0), values, mask)
    return jax.value_and_grad(jax_ppo_loss, has_aux=True)(log_probs, old, advantages, mask)


def step_reference(batch, wide):
    loss, gradient = verl_step(wide, wide["log_probs"].clone().requires_grad_())
    return {"loss": loss.numpy(), "gradient": gradient.numpy()}
