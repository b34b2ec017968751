"""What the formulas are tried on: random numbers over many scales, and cases in which something cancels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .measure import Inputs

Random = Callable[[np.random.Generator, str], Iterator[Inputs]]
Adversarial = Callable[[str], Iterator[Inputs]]

SHAPE = (2, 24)
VOCAB = 40


def scaled(rng: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Normal numbers times a power of ten between `low` and `high`."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(low, high)


def of(dtype: str, **arrays: np.ndarray) -> Inputs:
    return {name: a if a.dtype.kind in "iu" else a.astype(dtype) for name, a in arrays.items()}


def columns(*names: str, low: float = -6.0, high: float = 1.0) -> Random:
    """Independent columns per token."""

    def made(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
        yield of(dtype, **{name: scaled(rng, SHAPE, low, high) for name in names})

    return made


def positive(name: str) -> Random:
    def made(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
        yield of(dtype, **{name: np.abs(scaled(rng, SHAPE, -2, 2))})

    return made


def pairs(first: str, second: str) -> Random:
    """Log-probabilities, and others at a distance of any scale."""

    def made(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
        one = -np.abs(scaled(rng, SHAPE, -4, 1)).astype(dtype)
        yield of(dtype, **{first: one, second: one + scaled(rng, SHAPE, -8, 0.7).astype(dtype)})

    return made


def with_column(base: Random, name: str) -> Random:
    def made(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
        for inputs in base(rng, dtype):
            yield inputs | of(dtype, **{name: scaled(rng, SHAPE, -1, 1)})

    return made


def distances(first: str, second: str) -> Adversarial:
    """Differences from 1e-15 to 20, of both signs, around the points where formulas change over."""

    def made(dtype: str) -> Iterator[Inputs]:
        sizes = np.concatenate([10.0 ** np.arange(-15.0, 1.5, 0.25), [1.0, 1 - 1e-6, 1 + 1e-6, 9.99, 19.9]])
        d = np.concatenate([sizes, -sizes])
        yield of(dtype, **{first: d[None, :], second: np.zeros((1, len(d)))})

    return made


def with_advantages(base: Adversarial) -> Adversarial:
    def made(dtype: str) -> Iterator[Inputs]:
        for inputs in base(dtype):
            shape = next(iter(inputs.values())).shape
            yield inputs | of(dtype, advantages=np.where(np.arange(shape[1]) % 2 == 0, 1.0, -1.0)[None, :])

    return made


def logits(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
    shape = (1, 4, VOCAB)
    z = scaled(rng, shape, -2, 1.5)
    tokens = np.where(rng.random(shape[:2]) < 0.5, z.argmax(-1), rng.integers(0, VOCAB, shape[:2]))
    yield of(dtype, logits=z, tokens=tokens, grad_log_probs=np.ones(shape[:2]), grad_entropy=np.zeros(shape[:2]))


def certain_logits(dtype: str) -> Iterator[Inputs]:
    """One entry above the others by up to 80: p → 1; and rows with a large constant, ties and a long tail."""
    for gap in (1.0, 3.0, 8.0, 15.0, 16.5, 20.0, 30.0, 50.0, 80.0):
        z = np.linspace(-1.0, 0.0, VOCAB)
        z[17] = gap
        for row in (z, z + 1000.0, np.concatenate([z, np.full(600, -2.0)])):
            yield chosen(dtype, row, 17)
    yield chosen(dtype, np.zeros(VOCAB), 3)
    yield chosen(dtype, np.where(np.arange(VOCAB) < 2, 5.0, -30.0), 1)


def chosen(dtype: str, row: np.ndarray, token: int) -> Inputs:
    one = np.ones((1, 1))
    z, tokens = row[None, None, :], np.array([[token]])
    return of(dtype, logits=z, tokens=tokens, grad_log_probs=one, grad_entropy=0 * one)


def two_rows(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
    z = scaled(rng, (1, 2, VOCAB), -1, 1).astype(dtype)
    w = z + scaled(rng, z.shape, -4, 0.5).astype(dtype)
    yield of(dtype, logits=z, ref_logits=w, grad_kl=np.ones((1, 2)))


def close_rows(dtype: str) -> Iterator[Inputs]:
    """Distributions that differ by little, by a constant, or in the tail of a nearly certain token."""
    z = 3.0 * np.sin(np.arange(VOCAB) * 1.7)
    bump = np.cos(np.arange(VOCAB) * 2.3)
    peak = np.where(np.arange(VOCAB) == 5, 20.0, z)
    for size in 10.0 ** -np.arange(1.0, 8.0):
        for base in (z, peak):
            first = base.astype(dtype)
            second = (base + size * bump).astype(dtype)
            yield of(dtype, logits=first[None, None], ref_logits=second[None, None], grad_kl=np.ones((1, 1)))


def steady_rewards(dtype: str) -> Iterator[Inputs]:
    """Constant rewards, whose rounding errors all have one sign; and rewards that cancel."""
    for row in (np.full(3000, 0.1), np.full(3000, 1 / 3), np.tile([1e4, -1e4, 0.1], 500)):
        yield of(dtype, rewards=row[None, :], values=np.full((1, len(row)), 0.5))


def large_means(*names: str) -> Adversarial:
    """A spread that is small beside the mean."""

    def made(dtype: str) -> Iterator[Inputs]:
        for offset in (1.0, 1e3, 1e6):
            noise = np.sin(np.arange(48.0) * 1.3).reshape(SHAPE)
            yield of(dtype, **{name: offset + (k + 1) * noise ** (k + 1) for k, name in enumerate(names)})

    return made


def groups(rng: np.random.Generator, dtype: str) -> Iterator[Inputs]:
    yield of(dtype, scores=scaled(rng, (4, 8), -3, 2))


def close_scores(dtype: str) -> Iterator[Inputs]:
    for offset in (0.0, 1.0, 1e3):
        yield of(dtype, scores=offset + np.tile(np.arange(8.0) % 3 / 16, (4, 1)))
        yield of(dtype, scores=offset + np.tile((np.arange(8) == 0) * 1.0, (4, 1)))
