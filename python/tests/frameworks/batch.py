"""What the tests of the plug-ins share."""

from __future__ import annotations

import torch


class Batch:
    """A batch with everything that a loss or an estimator reads; tool tokens in the middle, padding at the end."""

    def __init__(self, rows: int = 6, width: int = 12, dtype: object = torch.float64, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> object:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

        lengths = torch.randint(4, width + 1, (rows,), generator=generator)
        self.mask = torch.arange(width) < lengths[:, None]
        self.mask[:, 2] = False
        self.log_probs = -draw(rows, width).abs() - 0.05
        self.old = self.log_probs + 0.3 * draw(rows, width)
        self.ref = self.log_probs + 0.2 * draw(rows, width)
        self.advantages, self.values, self.returns = draw(rows, width), draw(rows, width), draw(rows, width)
        self.entropies = draw(rows, width).abs()
        self.weights = draw(rows, width).exp()
        self.scores = draw(rows)
        self.groups = [row // 2 for row in range(rows)]
        last = self.mask.long().cumsum(1).argmax(1)
        self.rewards = torch.zeros(rows, width, dtype=dtype)
        self.rewards[torch.arange(rows), last] = self.scores


def with_gradient(function: object, log_probs: object) -> tuple[object, object]:
    """The result of a function of the log-probabilities, and the gradient of its loss."""
    leaf = log_probs.clone().requires_grad_()  # type: ignore[attr-defined]
    found = function(leaf)  # type: ignore[operator]
    loss = found[0] if isinstance(found, tuple) else found
    return found, torch.autograd.grad(loss, leaf)[0]
