"""The plug-in for TRL 1.16: a mixin that computes the loss of ``GRPOTrainer`` with tokenwise.

::

    from trl import GRPOTrainer
    from tokenwise_rl.frameworks.trl import TokenwiseLoss

    class Trainer(TokenwiseLoss, GRPOTrainer):
        pass                                    # TRL's loss_type and settings, closed-form gradient

    class Vespo(TokenwiseLoss, GRPOTrainer):
        tokenwise_loss = "vespo"                # any loss of tokenwise
        tokenwise_settings = {"k_positive": 2.0}

TRL's own ``_compute_loss`` still runs, without a graph: its metrics and its adaptive entropy coefficient are its own.
Only the value that is differentiated comes from here. What it calls (log-probabilities, masks) is called once and
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from .. import _formulas as tw
from .. import torch as twt
from .._errors import TokenwiseError
from ._tensors import conventions, kept, same_precision

__all__ = ["VERSION", "TokenwiseLoss"]

#: The version of TRL that this is tested with.
VERSION = "1.16"
_PROFILE = "trl-1.16"
_CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
#: What the token losses are summed to; the divisor of the others is not a whole number and is applied afterwards.
_MODES = {
    "grpo": "seq-mean-token-mean",
    "sapo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
    "luspo": "seq-mean-token-sum",
    "dapo": "token-sum",
    "cispo": "token-sum",
    "vespo": "token-sum",
}
_SHARED = ("_get_per_token_logps_and_entropies", "get_high_entropy_mask", "get_off_policy_mask")

Tensor = torch.Tensor


class TokenwiseLoss:
    """To be named before ``GRPOTrainer`` among the bases of a trainer."""

    #: A loss of tokenwise; ``None`` for that of ``loss_type``.
    tokenwise_loss: ClassVar[str | None] = None
    #: Settings of that loss, beside the aggregation, which is that of ``loss_type``.
    tokenwise_settings: ClassVar[Mapping[str, Any]] = {}

    def _compute_loss(self, model: Any, inputs: Any) -> Tensor:
        trainer: Any = self
        # TRL changes the coefficient at the end of its own function; the bonus of this step uses the one before
        coefficient = _entropy_coefficient(trainer)
        with _shared(trainer) as results:
            with torch.no_grad():
                super()._compute_loss(model, inputs)  # type: ignore[misc]
            log_probs, entropies, aux_loss = results["_get_per_token_logps_and_entropies"]
            chosen = results.get("get_high_entropy_mask")
            on_policy = results.get("get_off_policy_mask")
        mask = inputs["completion_mask"]
        mask = kept(mask * inputs["tool_mask"] if "tool_mask" in inputs else mask)
        step = _Step(trainer, inputs, log_probs, mask)
        loss = step.policy(self.tokenwise_loss, self.tokenwise_settings, [chosen, on_policy])
        if trainer.beta != 0.0:
            loss = loss.add(trainer.beta * step.kl())
        loss = loss.div(step.divisor())
        accumulated = step.accumulated
        if coefficient is not None:
            bonus = mask if chosen is None else mask & chosen.bool()
            found = twt.loss("entropy_bonus", entropy=same_precision(entropies)[0], mask=bonus, coefficient=coefficient)
            loss = loss.add(found.loss / accumulated)
        if trainer.aux_loss_enabled:
            loss = loss.add(trainer.router_aux_loss_coef * aux_loss / accumulated)
        return loss


def _entropy_coefficient(trainer: Any) -> float | None:
    if not trainer._entropy_bonus_enabled:
        return None
    if trainer.use_adaptive_entropy and trainer._last_world_entropy > trainer.args.entropy_target:
        return 0.0
    return float(trainer.entropy_coef)


@contextmanager
def _shared(trainer: Any) -> Iterator[dict[str, Any]]:
    """Keeps what TRL's function gets from the methods that it calls; it gets the same without a graph."""
    with_graph = torch.is_grad_enabled()
    results: dict[str, Any] = {}

    def keeping(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            with torch.set_grad_enabled(with_graph):
                results[name] = found = method(*arguments, **named)
            parts = found if isinstance(found, tuple) else (found,)
            plain = tuple(part.detach() if isinstance(part, Tensor) else part for part in parts)
            return plain if isinstance(found, tuple) else plain[0]

        return call

    before = {name: trainer.__dict__[name] for name in _SHARED if name in trainer.__dict__}
    for name in _SHARED:
        trainer.__dict__[name] = keeping(name, getattr(trainer, name))
    try:
        yield results
    finally:
        for name in _SHARED:
            del trainer.__dict__[name]
        trainer.__dict__.update(before)


class _Step:
    """One call of the loss."""

    def __init__(self, trainer: Any, inputs: Any, log_probs: Tensor, mask: Tensor) -> None:
        self.trainer, self.inputs, self.mask = trainer, inputs, mask
        old = inputs.get("old_per_token_logps")
        advantages = inputs["advantages"]
        advantages = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
        self.new, self.old, self.advantages = same_precision(
            log_probs,
            (log_probs if old is None else old).detach(),
            advantages.expand(mask.shape).detach(),
        )
        training = trainer.model.training
        #: Losses are summed over this many micro-batches.
        self.accumulated = trainer.current_gradient_accumulation_steps if training else 1.0
        if trainer.loss_type not in _MODES:
            _refuse("loss_type", f"one of {', '.join(_MODES)}", trainer.loss_type)

    def aggregate(self) -> dict[str, Any]:
        aggregate: dict[str, Any] = {"mode": _MODES[self.trainer.loss_type], "empty_rows": "counted"}
        if self.trainer.loss_type == "dr_grpo":
            aggregate["scale"] = float(self.trainer.max_completion_length)
        return aggregate

    def divisor(self) -> Any:
        """What TRL divides by, beside the aggregation."""
        trainer = self.trainer
        if _MODES[trainer.loss_type] != "token-sum":
            return self.accumulated
        tokens = self.inputs["num_items_in_batch"].clamp(min=1.0) / trainer.accelerator.num_processes
        return tokens * self.accumulated / trainer.args.steps_per_generation if trainer.model.training else tokens

    def policy(self, loss: str | None, settings: Mapping[str, Any], weights: list[Tensor | None]) -> Tensor:
        trainer, aggregate = self.trainer, self.aggregate()
        corrected = trainer.use_vllm and trainer.vllm_importance_sampling_correction
        correction = self.inputs["importance_sampling_ratio"] if corrected else None
        advantages = self.advantages
        if (loss or trainer.loss_type) == "vespo":
            # its weights are a part of the sequence's ratio; what drops a token must not be
            dropping, weights = self._product(weights), [correction]
            advantages = advantages if dropping is None else advantages * dropping
        else:
            weights = [*weights, correction]
        inputs = {
            "log_probs": self.new,
            "old_log_probs": self.old,
            "advantages": advantages,
            "mask": self.mask,
            "weights": self._product(weights),
        }
        if loss is not None:
            changes: dict[str, Any] = {"aggregate": aggregate, **settings}
            if loss in ("gmpo", "luspo"):
                del changes["aggregate"]  # a part of their definition
        else:
            loss, changes = _formula(trainer)
            changes["aggregate"] = aggregate
        found: Tensor = twt.loss(loss, **inputs, **conventions(_PROFILE, loss, **changes)).loss
        return found

    def _product(self, weights: list[Tensor | None]) -> Tensor | None:
        product: Tensor | None = None
        for weight in weights:
            if weight is not None:
                weight = weight.detach().to(self.new.dtype)
                product = weight if product is None else product * weight
        return None if product is None else product.expand(self.mask.shape).contiguous()

    def kl(self) -> Tensor:
        """TRL's KL to the reference, aggregated like the loss."""
        (ref,) = same_precision(self.inputs["ref_per_token_logps"].detach())
        if not self.trainer.args.use_bias_correction_kl:
            found: Tensor = twt.loss(
                "kl_loss",
                log_probs=self.new,
                ref_log_probs=ref.to(self.new.dtype),
                mask=self.mask,
                kl={"estimator": "k3"},
                coefficient=1.0,
                aggregate=self.aggregate(),
            ).loss
            return found
        level = self.trainer.importance_sampling_level
        value: Tensor = _WeightedKl.apply(  # type: ignore[no-untyped-call, unused-ignore]
            self.new, ref.to(self.new.dtype), self.old, self.mask, level, self.aggregate()
        )
        return value


class _WeightedKl(torch.autograd.Function):
    """The KL of tokens of an older policy, weighted to the current one."""

    @staticmethod
    def forward(
        ctx: Any, new: Tensor, ref: Tensor, old: Tensor, mask: Tensor, level: str, aggregate: dict[str, Any]
    ) -> Tensor:
        inputs: dict[str, Any] = {"log_probs": new.detach(), "ref_log_probs": ref, "old_log_probs": old, "mask": mask}
        settings: dict[str, Any] = {"weight": level, "kl": {"estimator": "k3"}}
        kl = tw.kl_importance_weighted(**inputs, **settings)
        found = tw.aggregate(losses=kl, mask=mask, **aggregate)
        grad = tw.kl_importance_weighted_gradient(**inputs, grad_kl=found.weights, **settings)
        ctx.save_for_backward(grad)
        return new.new_tensor(found.loss)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        (grad,) = ctx.saved_tensors
        return grad * upstream, None, None, None, None, None


def _formula(trainer: Any) -> tuple[str, dict[str, Any]]:
    """The loss of ``loss_type``, and its settings by TRL's arguments."""
    kind, args = trainer.loss_type, trainer.args
    by_sequence = trainer.importance_sampling_level == "sequence"
    if kind in _CLIPPED:
        clip: dict[str, Any] = {"clip_low": trainer.epsilon_low, "clip_high": trainer.epsilon_high}
        if by_sequence:
            if args.delta is not None:
                _refuse("delta", "None with importance_sampling_level=sequence", args.delta)
            return "gspo", clip
        if args.delta is not None:
            clip["dual_clip"] = {"both_signs": float(args.delta)}
        return "ppo_clip", clip
    if by_sequence and kind != "vespo":
        _refuse("importance_sampling_level", f"token with loss_type={kind}", "sequence")
    if kind == "cispo":
        return "cispo", {"bounds": {"kind": "absolute", "high": trainer.epsilon_high}}
    if kind == "sapo":
        return "sapo", {"tau_positive": args.sapo_temperature_pos, "tau_negative": args.sapo_temperature_neg}
    return "vespo", {
        "k_positive": args.vespo_k_pos,
        "lambda_positive": args.vespo_lambda_pos,
        "k_negative": args.vespo_k_neg,
        "lambda_negative": args.vespo_lambda_neg,
    }


def _refuse(name: str, expected: str, got: Any) -> None:
    raise TokenwiseError(f"{name}: expected {expected}, got {got}", "config", name, None, expected, got)
