"""The formulas that have an exact version here, each with the call of another library where there is one."""

from __future__ import annotations

import numpy as np
import tokenwise_rl as tw
import torch
from frameworks import distill_ops, verl_ops

from . import exact, inputs
from .measure import Formula, Inputs, Numbers

# exact in both types, as is their product
GAMMA, LAMBDA = 15 / 16, 31 / 32
K3 = {"estimator": "k3"}


def joined(*parts: object) -> Numbers:
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def plain(*names: str):
    """The named results of a framework's function as one array."""

    def of(out: dict) -> Numbers:
        return joined(*(torch.as_tensor(out[name]).detach().double().numpy() for name in names))

    return of


def tensors(given: Inputs, *names: str) -> list[torch.Tensor]:
    return [torch.from_numpy(given[name]) for name in names]


def ones(given: Inputs, name: str) -> torch.Tensor:
    return torch.ones_like(torch.from_numpy(given[name]))


def verl_gradient(given: Inputs) -> Numbers:
    z, tokens, g, h = tensors(given, "logits", "tokens", "grad_log_probs", "grad_entropy")
    return plain("grad_logits")(verl_ops.logits_grad(z, tokens, g, h, torch.ones_like(g)))


def torch_kl(given: Inputs, gradient: bool) -> Numbers:
    z, w = tensors(given, "logits", "ref_logits")
    z.requires_grad_(True)
    p, q = torch.log_softmax(z, -1), torch.log_softmax(w, -1)
    kl = torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1)
    made = torch.autograd.grad(kl.sum(), z)[0] if gradient else kl.detach()
    return made.double().numpy()


def verl_ppo(given: Inputs) -> Numbers:
    params = {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 1e30, "aggregate": "token-mean"}
    new, old, advantages = tensors(given, "log_probs", "old_log_probs", "advantages")
    return plain("loss", "grad")(verl_ops.ppo_clip(new, old, advantages, torch.ones_like(new), params))


def verl_value(given: Inputs) -> Numbers:
    predictions, values, targets = tensors(given, "predictions", "values", "returns")
    out = verl_ops.value_loss(predictions, values, targets, torch.ones_like(values), 0.5, "token-mean")
    return plain("loss", "grad")(out)


def verl_group(given: Inputs, of: str) -> Numbers:
    scores = torch.from_numpy(given["scores"])
    labels = np.repeat(np.arange(scores.shape[0]), scores.shape[1])
    column = scores.reshape(-1, 1)
    out = getattr(verl_ops, of)(column, torch.ones_like(column), labels)
    return plain("advantages")(out)


def our_groups(name: str):
    def of(given: Inputs) -> Numbers:
        scores = given["scores"]
        labels = np.repeat(np.arange(scores.shape[0]), scores.shape[1])
        return getattr(tw, name)(scores=scores.ravel(), groups=labels)

    return of


def jsd(beta: float) -> Formula:
    def ours(given: Inputs) -> Numbers:
        return joined(tw.generalized_jsd(logits=given["logits"], teacher_logits=given["ref_logits"], beta=beta).loss)

    def trl(given: Inputs) -> Numbers:
        z, w = tensors(given, "logits", "ref_logits")
        return plain("loss")(distill_ops.generalized_jsd(z, w, torch.ones(z.shape[:2]), {"beta": beta, "temperature": 1.0}))

    names = {0.0: "forward", 1.0: "reverse"}
    name = f"generalized_jsd, {names.get(beta, 'mixture')}"
    made = exact.generalized_jsd(beta)
    return Formula(name, False, inputs.two_rows, inputs.close_rows, ours, made, ("TRL", trl))


def estimate(estimator: str) -> Formula:
    def verl(given: Inputs) -> Numbers:
        return plain("kl")(verl_ops.kl(*tensors(given, "log_probs", "ref_log_probs"), estimator))

    return Formula(
        f"kl_estimate, {estimator}",
        False,
        inputs.pairs("log_probs", "ref_log_probs"),
        inputs.distances("log_probs", "ref_log_probs"),
        lambda given: tw.kl_estimate(**given, estimator=estimator),
        exact.kl_estimate(estimator),
        ("verl", verl),
    )


def only(given: Inputs, *names: str) -> Inputs:
    return {name: given[name] for name in names}


def policy() -> list[Formula]:
    z, hard = inputs.logits, inputs.certain_logits
    return [
        Formula(
            "token_log_probs", False, z, hard,
            lambda given: tw.token_log_probs(**only(given, "logits", "tokens")),
            exact.token_log_probs,
            ("verl", lambda given: plain("log_probs")(verl_ops.token_log_probs(*tensors(given, "logits", "tokens")))),
        ),
        Formula(
            "entropy", False, z, hard,
            lambda given: tw.entropy(logits=given["logits"]),
            exact.entropy,
            ("verl", lambda given: plain("entropy")(verl_ops.entropy(*tensors(given, "logits")))),
        ),
        Formula(
            "sum_squared_probs", False, z, hard,
            lambda given: tw.sum_squared_probs(logits=given["logits"]),
            exact.sum_squared_probs,
            ("verl", lambda given: plain("out")(verl_ops.sum_pi_squared(*tensors(given, "logits")))),
        ),
        Formula(
            "logits_gradient", False, z, hard,
            lambda given: tw.logits_gradient(**given), exact.logits_gradient, ("verl", verl_gradient),
        ),
    ]  # fmt: skip


def divergence() -> list[Formula]:
    d = inputs.pairs("log_probs", "ref_log_probs"), inputs.distances("log_probs", "ref_log_probs")
    rows = inputs.two_rows, inputs.close_rows

    def verl_slope(given: Inputs) -> Numbers:
        return plain("grad")(verl_ops.kl(*tensors(given, "log_probs", "ref_log_probs"), "k3"))

    def our_loss(given: Inputs) -> Numbers:
        made = tw.kl_loss(**given, kl=K3, coefficient=1.0)
        return joined(made.loss, made.grad)

    return [
        *(estimate(name) for name in ("k1", "abs", "k2", "k3")),
        Formula(
            "kl_gradient, k3", False, *d,
            lambda given: tw.kl_gradient(**given, **K3), exact.kl_gradient_k3, ("verl", verl_slope),
        ),
        Formula("kl_loss, k3", False, *d, our_loss, exact.kl_loss_k3),
        Formula(
            "kl_exact", False, *rows,
            lambda given: tw.kl_exact(**only(given, "logits", "ref_logits")),
            exact.kl_exact,
            ("torch", lambda given: torch_kl(given, False)),
        ),
        Formula(
            "kl_exact_gradient", True, *rows,
            lambda given: tw.kl_exact_gradient(**given),
            exact.kl_exact_gradient,
            ("torch", lambda given: torch_kl(given, True)),
        ),
        *(jsd(beta) for beta in (0.0, 0.5, 1.0)),
    ]  # fmt: skip


def recursions() -> list[Formula]:
    def advantages(gamma: float, lam: float) -> Formula:
        def ours(given: Inputs) -> Numbers:
            made = tw.gae(**given, gamma=gamma, lambda_=lam)
            return joined(made.advantages, made.returns)

        def verl(given: Inputs) -> Numbers:
            rewards, values = tensors(given, "rewards", "values")
            return plain("advantages", "returns")(
                verl_ops.gae(rewards, values, torch.ones_like(values), gamma, lam, whiten=False)
            )

        name = f"gae, γλ {'= 1' if gamma == 1 else '< 1'}"
        random = inputs.columns("rewards", "values")
        return Formula(name, True, random, inputs.steady_rewards, ours, exact.gae(gamma, lam), ("verl", verl))

    def sums(gamma: float) -> Formula:
        def ours(given: Inputs) -> Numbers:
            return tw.discounted_returns(rewards=given["rewards"], gamma=gamma)

        def verl(given: Inputs) -> Numbers:
            made = verl_ops.discounted_returns(torch.from_numpy(given["rewards"]), ones(given, "rewards"), gamma)
            return plain("returns")(made)

        name = f"discounted_returns, γ {'= 1' if gamma == 1 else '< 1'}"
        random = inputs.columns("rewards")
        return Formula(name, True, random, inputs.steady_rewards, ours, exact.returns(gamma), ("verl", verl))

    return [advantages(1.0, 1.0), advantages(GAMMA, LAMBDA), sums(1.0), sums(GAMMA)]


def statistics() -> list[Formula]:
    x = inputs.columns("values", low=-3, high=3), inputs.large_means("values")

    def verl(name: str, key: str):
        call = getattr(verl_ops, name)
        return lambda given: plain(key)(call(torch.from_numpy(given["values"]), ones(given, "values")))

    return [
        Formula(
            "mean", False, *x,
            lambda given: joined(tw.mean(**given)), exact.mean, ("verl", verl("masked_mean", "value")),
        ),
        Formula(
            "variance", False, *x,
            lambda given: joined(tw.variance(**given)), exact.variance, ("verl", verl("masked_var", "value")),
        ),
        Formula(
            "whiten", True, *x, lambda given: tw.whiten(**given), exact.whiten, ("verl", verl("masked_whiten", "out")),
        ),
        Formula(
            "correlation", False, inputs.columns("x", "y", low=-2, high=2), inputs.large_means("x", "y"),
            lambda given: joined(tw.correlation(**given)), exact.correlation,
        ),
        Formula(
            "explained_variance", False,
            inputs.columns("values", "returns", low=-2, high=2), inputs.large_means("values", "returns"),
            lambda given: joined(tw.explained_variance(**given)), exact.explained_variance,
        ),
        Formula(
            "effective_sample_size", False, inputs.positive("weights"), inputs.large_means("weights"),
            lambda given: joined(tw.effective_sample_size(**given)), exact.effective_sample_size,
        ),
        Formula(
            "group_relative", True, inputs.groups, inputs.close_scores, our_groups("group_relative"),
            exact.group_relative, ("verl", lambda given: verl_group(given, "grpo")),
        ),
        Formula(
            "leave_one_out", True, inputs.groups, inputs.close_scores, our_groups("leave_one_out"),
            exact.leave_one_out, ("verl", lambda given: verl_group(given, "rloo")),
        ),
    ]  # fmt: skip


def losses() -> list[Formula]:
    def our_ppo(given: Inputs) -> Numbers:
        made = tw.ppo_clip(**given)
        return joined(made.loss, made.grad)

    def our_value(given: Inputs) -> Numbers:
        made = tw.value_loss(**given)
        return joined(made.loss, made.grad)

    names = "log_probs", "old_log_probs"
    columns = "predictions", "values", "returns"
    return [
        Formula(
            "ppo_clip", True,
            inputs.with_column(inputs.pairs(*names), "advantages"), inputs.with_advantages(inputs.distances(*names)),
            our_ppo, exact.ppo_clip, ("verl", verl_ppo),
        ),
        Formula(
            "value_loss", True, inputs.columns(*columns), inputs.large_means(*columns),
            our_value, exact.value_loss, ("verl", verl_value),
        ),
    ]  # fmt: skip


def formulas() -> list[Formula]:
    return policy() + divergence() + recursions() + statistics() + losses()
