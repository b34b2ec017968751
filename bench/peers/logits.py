"""Log-probability and entropy of rows of logits, and the gradient: peers and the definition in f64."""

import numpy as np
import torch
from trl.trainer.utils import selective_log_softmax_and_entropy
from verl.utils import torch_functional as verl_F

from frameworks import compiled, loss_free
from timing import Contestant

CHECKED = 64  # rows compared with f64


def tensors(batch):
    logits = torch.from_numpy(batch.logits)
    return (logits.view(torch.bfloat16) if batch.bf16 else logits), torch.from_numpy(batch.tokens.astype(np.int64))


def verl_both(logits, tokens):
    return verl_F.logprobs_from_logits_naive(logits, tokens), verl_F.entropy_from_logits(logits)


def verl_chunked(logits, tokens):
    """verl's entropy in chunks of 16 rows, which fit the cache better than its default of 2048."""
    return verl_F.logprobs_from_logits_naive(logits, tokens), verl_F.entropy_from_logits_with_chunking(
        logits, chunk_size=16
    )


def verl_v2(logits, tokens):
    """What verl uses without flash-attn."""
    return verl_F.logprobs_from_logits_v2(logits, tokens), verl_F.entropy_from_logits(logits)


def trl_both(logits, tokens):
    return selective_log_softmax_and_entropy(logits, tokens)


def torch_both(logits, tokens):
    log_softmax = torch.log_softmax(logits.float(), -1)
    return log_softmax.gather(-1, tokens[:, None])[:, 0], -(log_softmax.exp() * log_softmax).sum(-1)


def shifted(logits, tokens):
    """The form that torch.compile fuses best."""
    z = logits.float()
    z = z - z.amax(-1, keepdim=True)
    e = z.exp()
    total = e.sum(-1)
    log_total = total.log()
    return z.gather(-1, tokens[:, None])[:, 0] - log_total, log_total - (e * z).sum(-1) / total


def forward(batch, threads):
    logits, tokens = tensors(batch)
    functions = [("verl", verl_v2), ("verl, chunks of 16", verl_chunked), ("TRL", trl_both), ("torch", torch_both)]
    fused = compiled(loss_free(shifted))

    def named(made):
        return {"log_prob": made[0][:CHECKED].float().numpy(), "entropy": made[1][:CHECKED].float().numpy()}

    def ours(_):
        return {"log_prob": batch.log_probs[:CHECKED], "entropy": batch.entropy[:CHECKED]}

    made = [Contestant("ours", lambda: batch.run(False), ours)]
    for name, function in functions:
        made.append(Contestant(name, lambda function=loss_free(function): function(logits, tokens), named))
    made.append(Contestant("torch.compile", lambda: fused(logits, tokens), named))
    return made


def gradient(batch, threads):
    """Forward, then the gradient of Σ g · log_prob + h · entropy with respect to the logits."""
    logits, tokens = tensors(batch)
    logits = logits.detach().requires_grad_()
    g, h = torch.from_numpy(batch.grad_log_probs), torch.from_numpy(batch.grad_entropy)
    fused = compiled(shifted)

    def by(function):
        def call():
            log_probs, entropy = function(logits, tokens)
            return torch.autograd.grad([log_probs, entropy], logits, [g.to(log_probs.dtype), h.to(entropy.dtype)])[0]

        return call

    named = lambda made: {"gradient": made[:CHECKED].float().numpy()}  # noqa: E731
    return [
        Contestant("ours", lambda: batch.run(True), lambda _: {"gradient": batch.grad_logits()[:CHECKED]}),
        Contestant("verl", by(verl_v2), named),
        Contestant("TRL", by(trl_both), named),
        Contestant("torch", by(torch_both), named),
        Contestant("torch.compile", by(fused), named),
    ]


def forward_reference(batch):
    logits, tokens = tensors(batch)
    log_softmax = torch.log_softmax(logits[:CHECKED].double(), -1)
    log_prob = log_softmax.gather(-1, tokens[:CHECKED, None])[:, 0]
    return {"log_prob": log_prob.numpy(), "entropy": -(log_softmax.exp() * log_softmax).sum(-1).numpy()}


def gradient_reference(batch):
    logits, tokens = tensors(batch)
    log_softmax = torch.log_softmax(logits[:CHECKED].double(), -1)
    p = log_softmax.exp()
    entropy = -(p * log_softmax).sum(-1, keepdim=True)
    g = torch.from_numpy(batch.grad_log_probs[:CHECKED]).double()[:, None]
    h = torch.from_numpy(batch.grad_entropy[:CHECKED]).double()[:, None]
    made = -g * p - h * p * (log_softmax + entropy)
    made[torch.arange(CHECKED), tokens[:CHECKED]] += g[:, 0]
    return {"gradient": made.numpy()}
