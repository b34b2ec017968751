"""Runs code that hard-codes float32 in float64, by replacing the dtype."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest import mock

import numpy as np
import torch


class Standin:
    """A module with some of its names replaced."""

    def __init__(self, module: ModuleType, **names: object) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> object:
        return getattr(self._module, name)


@contextmanager
def double(dtype: torch.dtype, *modules: ModuleType) -> Iterator[None]:
    """For float64 data: numbers without a dtype, `.float()`, and float32 named in `modules` are float64."""
    if dtype != torch.float64:
        yield
        return
    with ExitStack() as stack:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        stack.enter_context(mock.patch.object(torch.Tensor, "float", torch.Tensor.double))
        for module in modules:
            stack.enter_context(mock.patch.object(module, "torch", Standin(torch, float32=torch.float64)))
            if hasattr(module, "np"):
                stack.enter_context(mock.patch.object(module, "np", Standin(np, float32=np.float64)))
        yield
