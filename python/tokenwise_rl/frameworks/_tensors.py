"""What the plug-ins do to tensors before a call."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from .._errors import TokenwiseError
from .._native import flags as _flags
from .._native import settings as _settings


def same_precision(*tensors: torch.Tensor | None) -> tuple[Any, ...]:
    """All in the widest precision among them, at least float32: torch mixes precisions, a formula has one."""
    dtype = torch.float32
    if any(tensor is not None and tensor.dtype == torch.float64 for tensor in tensors):
        dtype = torch.float64
    return tuple(None if tensor is None else tensor.to(dtype) for tensor in tensors)


def kept(mask: torch.Tensor) -> torch.Tensor:
    """A mask of numbers as booleans. A number that is neither 0 nor 1 is a weight, which a mask is not."""
    if mask.dtype == torch.bool:
        return mask
    if mask.device.type == "cpu":
        return torch.from_numpy(_flags("mask", mask))
    flags = mask.bool()
    if not torch.equal(flags.to(mask.dtype), mask):
        raise TokenwiseError("mask: must be 0 or 1", "entry", "mask", None, "0 or 1", "other numbers")
    return flags


@cache
def _profile(profile: str, formula: str) -> dict[str, Any]:
    return _settings(profile, formula)


def conventions(profile: str, formula: str, **changes: Any) -> dict[str, Any]:
    """The settings of a formula under a profile, with some changed."""
    return {**_profile(profile, formula), **changes}


def count(name: str, value: Any) -> int | None:
    """A count of tokens or sequences: a number or a tensor of one."""
    if value is None:
        return None
    number = float(value)
    if not number.is_integer() or number < 0:
        raise TokenwiseError(f"{name}: must be a whole number, got {number:g}", "entry", name, None, "a count", number)
    return int(number)
