"""The losses, and log-probabilities from logits, as differentiable functions of torch.

Each function computes its result together with the closed-form gradient; the backward pass only hands it over, so that
no graph of intermediate tensors is kept::

    from tokenwise_rl import torch as twt

    result = twt.ppo_clip(log_probs=log_probs, old_log_probs=old, advantages=advantages, mask=mask)
    result.loss.backward()
    metrics = {"clip_fraction": result.clip_fraction, "kl": result.kl}

Tensors on another device are copied to the host and the gradient back (a few bytes per token); logits never are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from . import _formulas

__all__ = ["entropy", "log_probs_and_entropy", "loss", "losses", "token_log_probs"]


class _Given(torch.autograd.Function):
    """A scalar whose gradients are known.

    They are handed over as they are if nothing scales the loss, and then only once: who gets them may add to them. If
    the graph is kept for another backward pass, they are computed again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        value: float,
        grads: list[torch.Tensor],
        again: Callable[[], list[torch.Tensor]],
        *inputs: torch.Tensor,
    ) -> torch.Tensor:
        ctx.grads, ctx.again = grads, again
        return inputs[0].new_full((), value)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[Any, ...]:
        # to look at the number of a device would wait for it; with create_graph the gradient is wrapped below
        if ctx.grads is not None and upstream.is_cpu and upstream.item() == 1.0 and not torch.is_grad_enabled():
            grads, ctx.grads = ctx.grads, None
            return (None, None, None, *grads)
        return _scaled(ctx, upstream)  # type: ignore[no-any-return]


@torch.autograd.function.once_differentiable
def _scaled(ctx: Any, upstream: torch.Tensor) -> tuple[Any, ...]:
    """The gradients of a loss that something scales, or that is differentiated again; they have no derivatives."""
    if ctx.grads is None:
        ctx.grads = ctx.again()
    return (None, None, None, *(grad * upstream for grad in ctx.grads))


def losses() -> list[str]:
    """The names of all losses."""
    return sorted(_LOSSES)


def _gradients(name: str) -> dict[str, str]:
    """The inputs of a loss that have a gradient, with the output that is it."""
    result = getattr(_formulas, _class_name(name), None)
    fields: tuple[str, ...] = getattr(result, "_fields", ())
    if "loss" not in fields:
        return {}
    function = getattr(_formulas, name)
    arguments = list(function.__kwdefaults__ or {}) + list(function.__annotations__)
    required = [argument for argument in function.__annotations__ if argument not in (function.__kwdefaults__ or {})]
    found = {}
    for field in fields:
        if field == "grad" or (name == "aggregate" and field == "weights"):
            found[required[0]] = field
        elif field.startswith("grad_") and field[5:] in arguments:
            found[field[5:]] = field
    return found


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Result"


_LOSSES: dict[str, dict[str, str]] = {
    name: gradients for name in _formulas.__all__ if name[0].islower() and (gradients := _gradients(name))
}


def loss(name: str, **arguments: Any) -> Any:
    """Any loss by its name: the result of its function, with ``loss`` as a tensor that can be differentiated.

    The gradient reaches the inputs that require it; an input without a gradient of its own (old log-probabilities,
    advantages) is a constant. After ``loss.backward()`` the gradient of a leaf may be the memory of ``result.grad``.
    """
    gradients = _LOSSES.get(name)
    if gradients is None:
        raise _unknown(name)
    function: Callable[..., Any] = getattr(_formulas, name)
    result = function(**arguments)
    inputs = {argument: given for argument in gradients if isinstance(given := arguments.get(argument), torch.Tensor)}
    if not inputs:
        raise _unknown(name, "a tensor that requires a gradient")

    def grads_of(found: Any) -> list[torch.Tensor]:
        grads = [(getattr(found, gradients[argument]), given.dtype) for argument, given in inputs.items()]
        return [grad if grad.dtype is dtype else grad.to(dtype) for grad, dtype in grads]

    value = _Given.apply(  # type: ignore[no-untyped-call, unused-ignore]
        result.loss, grads_of(result), lambda: grads_of(function(**arguments)), *inputs.values()
    )
    return result._replace(loss=value)


def _unknown(name: str, expected: str | None = None) -> Exception:
    from ._errors import TokenwiseError

    words = expected or "one of " + ", ".join(losses())
    return TokenwiseError(f"{name}: expected {words}", "choice", "name", None, words, name)


def __getattr__(name: str) -> Callable[..., Any]:
    """Every loss under its own name."""
    if name not in _LOSSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def function(**arguments: Any) -> Any:
        return loss(name, **arguments)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(_formulas, name).__doc__
    globals()[name] = function
    return function


class LogProbs(NamedTuple):
    """Log-probabilities and entropy of a batch."""

    log_probs: torch.Tensor
    entropy: torch.Tensor


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, tokens: torch.Tensor, mask: Any, cu_seqlens: Any, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        found = _formulas.log_probs_and_entropy(
            logits=logits, tokens=tokens, mask=mask, cu_seqlens=cu_seqlens, temperature=temperature
        )
        ctx.save_for_backward(logits, tokens)
        ctx.rest = (mask, cu_seqlens, temperature)
        return found.log_probs, found.entropy

    @staticmethod
    def backward(ctx: Any, grad_log_probs: torch.Tensor, grad_entropy: torch.Tensor) -> tuple[Any, ...]:
        logits, tokens = ctx.saved_tensors
        mask, cu_seqlens, temperature = ctx.rest
        grad = _formulas.logits_gradient(
            logits=logits,
            tokens=tokens,
            grad_log_probs=grad_log_probs.contiguous(),
            grad_entropy=grad_entropy.contiguous(),
            mask=mask,
            cu_seqlens=cu_seqlens,
            temperature=temperature,
        )
        return grad.to(logits.dtype), None, None, None, None


def log_probs_and_entropy(
    *,
    logits: torch.Tensor,
    tokens: torch.Tensor,
    mask: Any = None,
    cu_seqlens: Any = None,
    temperature: float = 1.0,
) -> LogProbs:
    """Log-probability of each token and entropy of its distribution, with the gradient to the logits.

    Logits are on the CPU, in float32, float64, bfloat16 or float16 (computed in float32).
    """
    return LogProbs(*_LogProbs.apply(logits, tokens, mask, cu_seqlens, temperature))  # type: ignore[no-untyped-call, unused-ignore]


def token_log_probs(**arguments: Any) -> torch.Tensor:
    """Log-probability of each token, with the gradient to the logits."""
    return log_probs_and_entropy(**arguments).log_probs


def entropy(*, logits: torch.Tensor, mask: Any = None, cu_seqlens: Any = None, temperature: float = 1.0) -> torch.Tensor:
    """Entropy of the distribution of each token, with the gradient to the logits."""
    tokens = torch.zeros(logits.shape[:-1], dtype=torch.int64)
    found = log_probs_and_entropy(
        logits=logits, tokens=tokens, mask=mask, cu_seqlens=cu_seqlens, temperature=temperature
    )
    return found.entropy
