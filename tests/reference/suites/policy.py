"""Stage 1, policy: logits to log-probs, entropy, Σπ², and the gradient down to the logits."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import BY_NAME, Grid, grid, logits, normal, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_ops
from golden import Case

VOCABS = (1, 2, 5, 8, 9, 17, 50, 257)
TEMPERATURES = (1.0, 0.5, 2.0)
SMALL = (grid("one-token", 1, 1), BY_NAME["one-row"], grid("padded", 2, 3, "right"), grid("holes", 2, 3, "holes"))


def _draws() -> Iterator[tuple[str, Grid, int, float, str]]:
    """name, grid, vocabulary, temperature, dtype: every vocabulary, every temperature, small grids."""
    for number, vocab in enumerate(VOCABS):
        item = SMALL[number % 4] if vocab < 50 else SMALL[number % 2]
        for temperature in TEMPERATURES if vocab in (5, 9) else (TEMPERATURES[number % 3],):
            for dtype in ("f64", "f32") if vocab in (5, 17, 257) else ("f64",):
                yield f"vocab-{vocab}-{item.name}-t{temperature}-{dtype}", item, vocab, temperature, dtype


def _tokens(name: str, item: Grid, vocab: int) -> list[int]:
    return [int(x) for x in rng_for(f"tokens/{name}").integers(0, vocab, len(item.mask))]


def _ids(item: Grid, tokens: list[int]) -> torch.Tensor:
    return torch.tensor(tokens).reshape(item.rows, item.cols)


def _special(item: Grid, vocab: int) -> Iterator[tuple[str, list[float]]]:
    """Large, equal and peaked finite logits."""
    size = len(item.mask) * vocab
    yield "equal", [0.25] * size
    yield "large", [700.0 + 3.0 * (k % vocab) for k in range(size)]
    yield "very-negative", [-1e4 - 0.5 * (k % vocab) for k in range(size)]
    yield "peaked", [40.0 if k % vocab == 2 else 0.0 for k in range(size)]


def _with_holes(name: str, item: Grid, vocab: int, tokens: list[int]) -> list[float]:
    """Logits with −inf on some entries, never on the chosen token's."""
    flat = logits(rng_for(f"holes/{name}"), item, vocab)
    for slot, token in enumerate(tokens):
        for v in range(vocab):
            if v != token and (v + slot) % 3 == 0:
                flat[slot * vocab + v] = float("-inf")
    return flat


def token_log_probs(ops) -> Iterator[Case]:
    """`ops` is the framework's module."""

    def case(name: str, item: Grid, vocab: int, flat: list[float], tokens: list[int], t: float, dtype: str) -> Case:
        out = ops.token_log_probs(item.tensor(flat, dtype).reshape(item.rows, item.cols, vocab), _ids(item, tokens), t)
        return Case(
            "token_log_probs",
            **item.base(),
            inputs={"logits": flat, "tokens": tokens},
            expect=out,
            name=name,
            params={"vocab": vocab, "temperature": t},
            profile=ops.PROFILE,
            dtype=dtype,
        )

    for name, item, vocab, t, dtype in _draws():
        yield case(name, item, vocab, logits(rng_for(name), item, vocab), _tokens(name, item, vocab), t, dtype)
    item = SMALL[2]
    for name, flat in _special(item, 5):
        yield case(name, item, 5, flat, _tokens(name, item, 5), 1.0, "f64")
    for vocab in (2, 9, 17):
        name = f"minus-inf-vocab-{vocab}"
        tokens = _tokens(name, item, vocab)
        yield case(name, item, vocab, _with_holes(name, item, vocab, tokens), tokens, 1.0, "f64")


def entropy(ops) -> Iterator[Case]:
    def case(name: str, item: Grid, vocab: int, flat: list[float], t: float, dtype: str, **tolerance: float) -> Case:
        out = ops.entropy(item.tensor(flat, dtype).reshape(item.rows, item.cols, vocab), t)
        return Case(
            "entropy",
            **item.base(),
            inputs={"logits": flat},
            expect=out,
            name=name,
            dtype=dtype,
            params={"vocab": vocab, "temperature": t},
            profile=ops.PROFILE,
            **tolerance,
        )

    for name, item, vocab, t, dtype in _draws():
        yield case(name, item, vocab, logits(rng_for(name), item, vocab), t, dtype)
    item = SMALL[2]
    for name, flat in _special(item, 5):
        yield case(name, item, 5, flat, 1.0, "f64", atol=5e-12)


def entropy_minus_inf() -> Iterator[Case]:
    """torch.distributions.Categorical: an entry of −inf contributes 0; the frameworks' formulas give NaN."""
    item = SMALL[2]
    for vocab in (2, 5, 9, 17):
        name = f"minus-inf-vocab-{vocab}"
        flat = _with_holes(name, item, vocab, _tokens(name, item, vocab))
        block = item.tensor(flat).reshape(item.rows, item.cols, vocab)
        out = {"entropy": torch.distributions.Categorical(logits=block).entropy()}
        yield Case(
            "entropy",
            **item.base(),
            inputs={"logits": flat},
            params={"vocab": vocab, "temperature": 1.0},
            expect=out,
            name=name,
        )


def logits_grad() -> Iterator[Case]:
    def case(name: str, item: Grid, vocab: int, flat: list[float], t: float, dtype: str, with_entropy: bool) -> Case:
        tokens, rng = _tokens(name, item, vocab), rng_for(f"grad/{name}")
        weights = [normal(rng, item), normal(rng, item) if with_entropy else [0.0] * len(item.mask)]
        out = verl_ops.logits_grad(
            item.tensor(flat, dtype).reshape(item.rows, item.cols, vocab),
            _ids(item, tokens),
            item.tensor(weights[0], dtype),
            item.tensor(weights[1], dtype),
            item.mask_tensor(dtype),
            t,
        )
        inputs = {"logits": flat, "tokens": tokens, "grad_log_probs": weights[0], "grad_entropy": weights[1]}
        return Case(
            "logits_grad",
            **item.base(),
            inputs=inputs,
            params={"vocab": vocab, "temperature": t},
            expect=out,
            name=name,
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )

    for name, item, vocab, t, dtype in _draws():
        yield case(name, item, vocab, logits(rng_for(name), item, vocab), t, dtype, True)
    item = SMALL[2]
    for name, flat in list(_special(item, 5))[:2]:
        yield case(name, item, 5, flat, 1.0, "f64", True)
    for vocab in (5, 9):
        name = f"minus-inf-vocab-{vocab}"
        yield case(name, item, vocab, _with_holes(name, item, vocab, _tokens(name, item, vocab)), 1.0, "f64", False)


def sum_pi_squared() -> Iterator[Case]:
    for name, item, vocab, temperature, dtype in _draws():
        if vocab in (5, 9) and temperature != 1.0:
            continue
        flat = logits(rng_for(name), item, vocab)
        out = verl_ops.sum_pi_squared(item.tensor(flat, dtype).reshape(item.rows, item.cols, vocab))
        yield Case(
            "sum_pi_squared",
            **item.base(),
            inputs={"logits": flat},
            params={"vocab": vocab},
            expect=out,
            name=f"vocab-{vocab}-{item.name}-{dtype}",
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )
    item = SMALL[2]
    for name, flat in _special(item, 5):
        out = verl_ops.sum_pi_squared(item.tensor(flat).reshape(item.rows, item.cols, 5))
        atol = 5e-12 if name in ("large", "very-negative") else None
        rtol = 1e-10 if name == "peaked" else None
        yield Case(
            "sum_pi_squared",
            **item.base(),
            inputs={"logits": flat},
            params={"vocab": 5},
            expect=out,
            name=name,
            profile=verl_ops.PROFILE,
            atol=atol,
            rtol=rtol,
        )


FILES = {
    "policy/token_log_probs.verl.json": ("verl", lambda: token_log_probs(verl_ops)),
    "policy/token_log_probs.trl.json": ("trl", lambda: token_log_probs(trl_ops)),
    "policy/token_log_probs.openrlhf.json": ("openrlhf", lambda: token_log_probs(openrlhf_ops)),
    "policy/entropy.verl.json": ("verl", lambda: entropy(verl_ops)),
    "policy/entropy.trl.json": ("trl", lambda: entropy(trl_ops)),
    "policy/entropy.torch.json": ("torch", entropy_minus_inf),
    "policy/logits_grad.verl.json": ("verl", logits_grad),
    "policy/sum_pi_squared.verl.json": ("verl", sum_pi_squared),
}
