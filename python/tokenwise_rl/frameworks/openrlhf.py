"""The plug-in for OpenRLHF 0.11: its loss objects, with closed-form gradients.

OpenRLHF has no registry; the losses are attributes of its trainers. Either assign them where the trainer was made::

    from tokenwise_rl.frameworks import openrlhf

    trainer.actor_loss_fn = openrlhf.PolicyLoss.like(trainer.actor_loss_fn)
    critic_trainer.critic_loss_fn = openrlhf.ValueLoss.like(critic_trainer.critic_loss_fn)

or call :func:`replace` in the process of each worker before its trainer is made. Nothing of OpenRLHF is imported by
this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _formulas as tw
from .. import torch as twt
from .._errors import TokenwiseError
from ._tensors import conventions, count, kept, same_precision

__all__ = ["VERSION", "PolicyLoss", "ValueLoss", "advantages_and_returns", "replace", "restore"]

#: The version of OpenRLHF that this is tested with.
VERSION = "0.11.2"
_PROFILE = "openrlhf-0.11"
_GATES = {"ratio": "ratio", "binary_kl": "binary-kl", "tv": "total-variation"}
_LEVELS = {"token": "token", "seq": "sequence"}

Tensor = torch.Tensor


def _aggregate(token_level: bool, tokens: Any, sequences: Any, ranks: int) -> dict[str, Any]:
    """``aggregate_loss`` as settings."""
    mode = "token-mean" if token_level else "seq-mean-token-mean"
    name, part = ("batch_num_tokens", "tokens") if token_level else ("global_batch_size", "sequences")
    divisor = count(name, tokens if token_level else sequences)
    aggregate: dict[str, Any] = {"mode": mode, "divisor": "count-plus-epsilon"}
    if divisor is not None:
        aggregate["counts"] = {part: divisor, "ranks": ranks}
    return aggregate


def _all_kept(mask: Tensor | None, like: Tensor) -> Tensor:
    return torch.ones_like(like, dtype=torch.bool) if mask is None else kept(mask)


class PolicyLoss(torch.nn.Module):
    """In the place of ``openrlhf.models.PolicyLoss``: the same arguments and results."""

    def __init__(
        self,
        clip_eps_low: float = 0.2,
        clip_eps_high: float = 0.2,
        dual_clip: float | None = None,
        token_level_loss: bool = True,
        policy_loss_type: str = "ppo",
        is_correction_level: str = "off",
        is_correction_mode: str = "mask",
        is_correction_gating: str = "ratio",
        is_correction_threshold: Sequence[float] = (0.5, 5.0),
    ) -> None:
        super().__init__()
        _choice("policy_loss_type", policy_loss_type, ("ppo", "gspo"))
        _choice("is_correction_level", is_correction_level, ("off", *_LEVELS))
        _choice("is_correction_mode", is_correction_mode, ("mask", "clip"))
        _choice("is_correction_gating", is_correction_gating, tuple(_GATES))
        if policy_loss_type == "gspo" and dual_clip is not None:
            raise TokenwiseError("dual_clip: not with gspo", "config", "dual_clip", None, "None", dual_clip)
        if is_correction_mode == "clip" and (is_correction_level == "seq" or is_correction_gating != "ratio"):
            words = "is_correction_level=token and is_correction_gating=ratio"
            raise ValueError(f"is_correction_mode=clip requires {words}")
        self.clip_eps_low, self.clip_eps_high, self.dual_clip = clip_eps_low, clip_eps_high, dual_clip
        # GSPO gives each sequence the same weight
        self.token_level_loss = token_level_loss and policy_loss_type != "gspo"
        self.policy_loss_type = policy_loss_type
        self.is_correction_level, self.is_correction_mode = is_correction_level, is_correction_mode
        self.is_correction_gating, self.is_correction_threshold = is_correction_gating, is_correction_threshold

    @classmethod
    def like(cls, other: Any) -> PolicyLoss:
        """With the settings of OpenRLHF's object."""
        return cls(
            other.clip_eps_low,
            other.clip_eps_high,
            other.dual_clip,
            other.token_level_loss,
            other.policy_loss_type,
            other.is_correction_level,
            other.is_correction_mode,
            other.is_correction_gating,
            other.is_correction_threshold,
        )

    def forward(
        self,
        log_probs: Tensor,
        old_log_probs: Tensor,
        advantages: Tensor,
        action_mask: Tensor | None = None,
        rollout_log_probs: Tensor | None = None,
        dp_size: int = 1,
        batch_num_tokens: float | None = None,
        global_batch_size: float | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """The loss, the clipped share, the KL to the old policy, the KL to the sampler and the rejected share."""
        mask = _all_kept(action_mask, log_probs)
        sampled = None if rollout_log_probs is None else rollout_log_probs.detach()
        new, old, advantages, sampled = same_precision(log_probs, old_log_probs.detach(), advantages.detach(), sampled)
        aggregate = _aggregate(self.token_level_loss, batch_num_tokens, global_batch_size, dp_size)
        clip: dict[str, Any] = {"clip_low": self.clip_eps_low, "clip_high": self.clip_eps_high, "aggregate": aggregate}
        inputs = {"log_probs": new, "old_log_probs": old, "advantages": advantages, "mask": mask}
        scalar = log_probs.new_tensor
        if self.policy_loss_type == "gspo":
            corrected = self.is_correction_level != "off"
            found = twt.loss(
                "gspo",
                **{**inputs, "old_log_probs": sampled if corrected else old},
                **conventions(_PROFILE, "gspo", **clip),
            )
            kl = -tw.mean(values=new.detach() - old, mask=mask) if corrected else found.kl
            return found.loss, scalar(found.clip_fraction), scalar(kl), None, None
        gate = self._gate(old, sampled, mask) if self.is_correction_level != "off" else None
        if self.dual_clip is not None:
            clip["dual_clip"] = {"negative_only": float(self.dual_clip)}
        found = twt.loss(
            "ppo_clip",
            **inputs,
            weights=None if gate is None else gate.weights,
            **conventions(_PROFILE, "ppo_clip", **clip),
        )
        rejected = (None, None) if gate is None else (scalar(gate.kl), scalar(gate.filtered))
        return (found.loss, scalar(found.clip_fraction), scalar(found.kl), *rejected)

    def _gate(self, old: Tensor, sampled: Tensor | None, mask: Tensor) -> Any:
        low, high = self.is_correction_threshold
        settings: dict[str, Any] = {
            "level": _LEVELS[self.is_correction_level],
            "statistic": _GATES[self.is_correction_gating],
            "mode": self.is_correction_mode,
            "lower": float(low),
            "upper": float(high),
        }
        return tw.rollout_gate(old_log_probs=old, rollout_log_probs=sampled, mask=mask, **settings)


class ValueLoss(torch.nn.Module):
    """In the place of ``openrlhf.models.ValueLoss``: the same arguments and results."""

    def __init__(self, clip_eps: float | None = None, token_level_loss: bool = True) -> None:
        super().__init__()
        self.clip_eps, self.token_level_loss = clip_eps, token_level_loss

    @classmethod
    def like(cls, other: Any) -> ValueLoss:
        """With the settings of OpenRLHF's object."""
        return cls(other.clip_eps, other.token_level_loss)

    def forward(
        self,
        values: Tensor,
        old_values: Tensor,
        returns: Tensor,
        action_mask: Tensor | None = None,
        dp_size: int = 1,
        batch_num_tokens: float | None = None,
        global_batch_size: float | None = None,
    ) -> Tensor:
        """Half the squared error."""
        mask = _all_kept(action_mask, values)
        predictions, old, targets = same_precision(values, old_values.detach(), returns.detach())
        aggregate = _aggregate(self.token_level_loss, batch_num_tokens, global_batch_size, dp_size)
        settings = conventions(_PROFILE, "value_loss", clip=self.clip_eps, aggregate=aggregate)
        found = twt.loss("value_loss", predictions=predictions, values=old, returns=targets, mask=mask, **settings)
        loss: Tensor = found.loss
        return loss


def advantages_and_returns(
    maker: Any, values: Tensor, rewards: Tensor, action_mask: Tensor | None, gamma: float, lambd: float
) -> tuple[Tensor, Tensor]:
    """In the place of ``RemoteExperienceMaker.get_advantages_and_returns``, whose loop is over the tokens."""
    mask = _all_kept(action_mask, values)
    rewards, values = same_precision(rewards.detach(), values.detach())
    settings = conventions(_PROFILE, "gae", gamma=float(gamma), lambda_=float(lambd))
    found = tw.gae(rewards=rewards, values=values, mask=mask, **settings)
    return found.advantages, found.returns


def _choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        words = "/".join(known)
        raise TokenwiseError(f"{name} must be {words}, got {value}", "choice", name, None, words, value)


_replaced: list[Callable[[], None]] = []


def replace() -> None:
    """Puts our classes and function in the place of OpenRLHF's, in the modules of it that are imported by then or by
    this call. :func:`restore` undoes it.
    """
    import sys
    from importlib.metadata import version

    if version("openrlhf") != VERSION:
        got = version("openrlhf")
        raise TokenwiseError(f"openrlhf: expected {VERSION}, got {got}", "version", "openrlhf", None, VERSION, got)
    from openrlhf.models import loss  # type: ignore[import-untyped, unused-ignore]
    from openrlhf.trainer.ppo_utils.experience_maker import (  # type: ignore[import-untyped, unused-ignore]
        RemoteExperienceMaker,
    )

    ours = {"PolicyLoss": PolicyLoss, "ValueLoss": ValueLoss}
    theirs = {name: getattr(loss, name) for name in ours}
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "openrlhf"]:
        for name, found in theirs.items():
            if getattr(module, name, None) is found:
                _assign(module, name, ours[name])
    _assign(RemoteExperienceMaker, "get_advantages_and_returns", torch.no_grad()(advantages_and_returns))


def _assign(owner: Any, name: str, value: Any) -> None:
    before = getattr(owner, name)
    setattr(owner, name, value)
    _replaced.append(lambda: setattr(owner, name, before))


def restore() -> None:
    """OpenRLHF's own classes again."""
    while _replaced:
        _replaced.pop()()
