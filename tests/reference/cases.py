"""Shapes, masks and random inputs. All seeds come from names, so every run draws the same numbers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import torch

GARBAGE = 1e6
DTYPES = {"f64": torch.float64, "f32": torch.float32}


@dataclass(frozen=True)
class Grid:
    """A rows×cols block with its mask."""

    name: str
    rows: int
    cols: int
    mask: tuple[int, ...]

    @property
    def kept(self) -> int:
        """Number of kept slots."""
        return sum(self.mask)

    def tensor(self, flat: list[float], dtype: str = "f64") -> torch.Tensor:
        """A flat list as a (rows, cols) or (rows, cols, vocab) tensor."""
        shape = (self.rows, self.cols) if len(flat) == len(self.mask) else (self.rows, self.cols, -1)
        return torch.tensor(flat, dtype=DTYPES[dtype]).reshape(shape)

    def mask_tensor(self, dtype: str = "f64") -> torch.Tensor:
        """The mask in the dtype of the data, so that no count falls back to f32."""
        return self.tensor(list(self.mask), dtype)

    def base(self) -> dict[str, object]:
        """The fields every case of this grid shares."""
        return {"rows": self.rows, "cols": self.cols, "mask": list(self.mask)}


def rng_for(name: str) -> np.random.Generator:
    """A generator seeded by a name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def _mask(kind: str, rows: int, cols: int) -> tuple[int, ...]:
    """full | right (padding) | holes | empty (padding and rows without a kept token)."""
    rng = rng_for(f"mask/{kind}/{rows}x{cols}")
    mask = np.ones((rows, cols), dtype=int)
    if kind in ("right", "empty"):
        for row in range(rows):
            mask[row, int(rng.integers(1, cols + 1)) :] = 0
    if kind == "holes":
        mask = (rng.random((rows, cols)) < 0.65).astype(int)
        mask[:, 0], mask[:, -1] = 1, mask[:, -1]
    if kind == "empty":
        mask[0], mask[rows // 2] = 1, 0
        mask[-1] = 0 if rows > 3 else mask[-1]
    return tuple(int(x) for x in mask.reshape(-1))


def grid(name: str, rows: int, cols: int, kind: str = "full") -> Grid:
    """A named grid."""
    return Grid(name, rows, cols, _mask(kind, rows, cols))


GRIDS = (
    grid("one-token", 1, 1),
    grid("one-row", 1, 2),
    grid("one-column", 5, 1),
    grid("padded", 3, 5, "right"),
    grid("holes", 3, 7, "holes"),
    grid("empty-rows", 4, 4, "empty"),
    grid("cols-8", 2, 8, "right"),
    grid("cols-9", 2, 9, "holes"),
    grid("cols-15", 1, 15, "holes"),
    grid("cols-16", 1, 16),
    grid("cols-17", 1, 17, "right"),
    grid("cols-31", 1, 31, "holes"),
    grid("cols-33", 1, 33, "holes"),
    grid("rows-5", 5, 4, "holes"),
)
BY_NAME = {item.name: item for item in GRIDS}
MANY = tuple(item for item in GRIDS if item.kept > 1)
FEW = tuple(BY_NAME[name] for name in ("one-row", "padded", "holes", "empty-rows", "cols-9", "cols-17"))
SINGLE = tuple(BY_NAME[name] for name in ("padded", "cols-9", "cols-17"))


def with_garbage(item: Grid, values: np.ndarray, garbage: float) -> list[float]:
    """Round to 4 digits and put large alternating numbers into the dropped slots."""
    flat = [round(float(x), 4) for x in values.reshape(-1)]
    width = len(flat) // max(len(item.mask), 1)
    for slot, keep in enumerate(item.mask):
        if not keep:
            for v in range(width):
                flat[slot * width + v] = garbage * (-1.0) ** (slot + v)
    return flat


def normal(rng: np.random.Generator, item: Grid, scale: float = 1.0, garbage: float = GARBAGE) -> list[float]:
    """Normal draws."""
    return with_garbage(item, rng.normal(0.0, scale, (item.rows, item.cols)), garbage)


def log_probs(rng: np.random.Generator, item: Grid, garbage: float = GARBAGE) -> list[float]:
    """Log-probabilities between -8 and 0."""
    return with_garbage(item, np.maximum(-rng.exponential(1.0, (item.rows, item.cols)) - 1e-3, -8.0), garbage)


def near(
    rng: np.random.Generator, item: Grid, base: list[float], scale: float, garbage: float = GARBAGE
) -> list[float]:
    """`base` moved by normal noise on the kept slots."""
    moved = np.asarray(base) + rng.normal(0.0, scale, len(base))
    return with_garbage(item, moved, garbage)


def logits(rng: np.random.Generator, item: Grid, vocab: int, scale: float = 2.0) -> list[float]:
    """Logits, rows×cols×vocab."""
    return with_garbage(item, rng.normal(0.0, scale, (item.rows, item.cols, vocab)), 1e4)


def outcome(rng: np.random.Generator, item: Grid) -> list[float]:
    """One reward per row, on its last kept slot; zero elsewhere (dropped slots included)."""
    flat = [0.0] * len(item.mask)
    for row in range(item.rows):
        kept = [c for c in range(item.cols) if item.mask[row * item.cols + c]]
        if kept:
            flat[row * item.cols + kept[-1]] = round(float(rng.normal(0.0, 1.0)), 4)
    return flat
