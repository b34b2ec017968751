"""Calls somebody else's function with the inputs of a case and reads what it returns."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._cases import Case, library
from ._operations import gradient, keyword, plain

Function = Callable[..., Any]
#: Settings that follow from the arrays.
_DERIVED = ("vocab", "k")
#: Counts of a whole step: only for functions that take them.
_STEP = ("global_tokens", "global_sequences", "ranks")


@dataclass(frozen=True)
class Adapter:
    """How a function is called and what its results are called.

    By default it is called with keyword arguments: the inputs of the case, ``mask``, ``groups`` and the settings, as
    far as it has parameters of these names.
    """

    #: The function's own names: ``{"mask": "response_mask", "lambda_": "lam"}``.
    names: Mapping[str, str] = field(default_factory=dict)
    #: The names of the parts of a tuple that it returns; ``None`` or ``"_"`` for a part that is not compared.
    returns: Sequence[str | None] | None = None
    #: Settings that are built into the function: only cases with these values are run.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    #: ``numpy``, ``torch`` or ``jax``: what the arrays are; found by trying if it is not given.
    kind: str | None = None
    #: ``float`` (of the type of the data), ``bool`` or ``int``.
    mask: str = "float"
    #: Calls the function itself: ``lambda function, arguments: function(arguments["rewards"], …)``.
    call: Callable[[Function, dict[str, Any]], Any] | None = None
    #: Whether gradients by autograd are compared, where the result has one.
    gradients: bool = True


@dataclass(frozen=True)
class Answer:
    """What a function returned for a case."""

    values: Mapping[str, Any] = field(default_factory=dict)
    #: ``f64``, ``f32`` or ``half``, by output.
    precisions: Mapping[str, str] = field(default_factory=dict)
    #: The exception it raised instead.
    error: str | None = None
    #: Why it was not called.
    skipped: str | None = None


class UnfitFunction(TypeError):
    """The function cannot be called for these cases; the message says how to adapt it."""


class Skip(Exception):
    """Raised by an adapter for a case that its function is not made for; the case is not counted."""


class Caller:
    """A function with its adapter; remembers which kind of arrays it takes."""

    def __init__(self, function: Function, adapter: Adapter | None = None) -> None:
        self.function = function
        self.adapter = adapter or Adapter()
        self.kind = self.adapter.kind
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.accepted = _accepted(function) if self.adapter.call is None else None
        self._names = {plain(name): theirs for name, theirs in self.adapter.names.items()}
        self._fixed = {plain(name): value for name, value in self.adapter.fixed.items()}

    def theirs(self, name: str) -> str:
        """The function's name of an argument."""
        return self._names.get(plain(name), keyword(plain(name)))

    def takes(self, name: str) -> bool:
        return self.accepted is None or self.theirs(name) in self.accepted

    def unknown_settings(self, cases: Sequence[Case]) -> dict[str, list[Any]]:
        """Settings of the cases that the function has no parameter for and that are not fixed, with their values."""
        found: dict[str, list[Any]] = {}
        for case in cases:
            if self.skipped(case) is not None:
                continue
            for name, value in case.params.items():
                if name in self._fixed or name in _DERIVED or value is None or self.takes(name):
                    continue
                values = found.setdefault(name, [])
                if value not in values:
                    values.append(value)
        return found

    def demand(self, cases: Sequence[Case]) -> None:
        """Fails if a setting would be lost."""
        for name, values in self.unknown_settings(cases).items():
            shown = ", ".join(repr(value) for value in values)
            raise UnfitFunction(
                f"{self.name} takes no argument {self.theirs(name)!r}; the cases have {shown}. Give the value that is "
                f"built into it, fixed={{{name!r}: …}}, or its own name of the argument, names={{{name!r}: '…'}}"
            )

    def skipped(self, case: Case) -> str | None:
        """Why a case cannot be run with this function."""
        for name, value in self._fixed.items():
            if name in case.params and case.params[name] != value:
                return f"{name} is not {value!r}"
        for name in _STEP:
            if name in case.params and not self.takes(name):
                return "it takes no counts of the whole step"
        for name in case.inputs:
            if not self.takes(name) and name in ("bootstrap", "selected", "rollout_weights"):
                return f"it takes no {name}"
        return None

    def __call__(self, case: Case) -> Answer:
        skipped = self.skipped(case)
        if skipped is not None:
            return Answer(skipped=skipped)
        if self.kind is not None:
            return self.answer(case, self.kind)
        first: Answer | None = None
        for kind in self.kinds():
            found = self.answer(case, kind)
            if found.error is None and found.skipped is None:
                self.kind = kind
                return found
            first = first or found
        return first or Answer(error="no array library")

    def kinds(self) -> list[str]:
        """What to try: torch first if the function's module uses it."""
        kinds = ["numpy"]
        if "torch" in sys.modules:
            home = getattr(inspect.unwrap(self.function), "__globals__", {})
            uses = any(
                getattr(value, "__name__", "").split(".")[0] == "torch"
                for value in home.values()
                if inspect.ismodule(value)
            )
            kinds.insert(0 if uses else 1, "torch")
        if "jax" in sys.modules:
            kinds.append("jax")
        return kinds

    def answer(self, case: Case, kind: str) -> Answer:
        """Calls the function with arrays of one kind."""
        try:
            arguments = {"torch": case.torch, "jax": case.jax}.get(kind, case.numpy)()
            arguments["mask"] = _mask(case, kind, self.adapter.mask)
            what = gradient(case.op) if self.adapter.gradients else None
            leaf = None
            if what is not None and kind == "torch" and what[0] in arguments:
                leaf = arguments[what[0]] = arguments[what[0]].requires_grad_(True)
            # a case without kept tokens may divide by zero on purpose
            with np.errstate(all="ignore"):
                made = self.outputs(case, self.invoke(arguments))
            if what is not None and what[2] not in made and what[1] in made:
                slope = None
                if leaf is not None:
                    slope = _autograd(made[what[1]], leaf, arguments["mask"])
                elif _module(made[what[1]]) in ("jax", "jaxlib"):
                    slope = self.jax_gradient(case, arguments, what)
                if slope is not None:
                    made[what[2]] = slope
            values = {name: _to_numpy(value) for name, value in made.items()}
            return Answer(values, {name: _precision(value) for name, value in made.items()})
        except UnfitFunction:
            raise
        except Skip as reason:
            return Answer(skipped=str(reason))
        except Exception as error:  # whatever a foreign function raises is a finding
            return Answer(error=f"{type(error).__name__}: {error}")

    def invoke(self, arguments: dict[str, Any]) -> Any:
        if self.adapter.call is not None:
            return self.adapter.call(self.function, arguments)
        given = {self.theirs(name): value for name, value in arguments.items() if self.takes(name)}
        for name in list(given):
            if given[name] is None and self.accepted is not None and self.accepted[name]:
                del given[name]  # it has a default of its own
        return self.function(**given)

    def outputs(self, case: Case, result: Any) -> dict[str, Any]:
        """The parts of a result under the names of the case."""
        made = named(result, self.adapter.returns or case.returns)
        expected = set(case.expect or {})
        if expected and not expected & set(made):
            raise UnfitFunction(
                f"{self.name} returned {', '.join(map(str, made)) or 'nothing'}; expected one of "
                f"{', '.join(sorted(expected))}: name the parts of its result, returns=(…)"
            )
        return made

    def jax_gradient(self, case: Case, arguments: dict[str, Any], what: tuple[str, str, str]) -> Any:
        jax, jnp = library("jax"), library("jax.numpy")

        def total(leaf: Any) -> Any:
            value = self.outputs(case, self.invoke({**arguments, what[0]: leaf}))[what[1]]
            return jnp.sum(jnp.where(jnp.asarray(arguments["mask"]) > 0, value, 0.0)) if value.ndim else value

        return jax.grad(total)(jnp.asarray(arguments[what[0]]))


def named(result: Any, returns: Sequence[str | None]) -> dict[str, Any]:
    """The parts of a result by name: of a dict, a named tuple, an object, a tuple or one value."""
    if isinstance(result, Mapping):
        return dict(result)
    if hasattr(result, "_asdict"):
        return dict(result._asdict())
    if isinstance(result, (tuple, list)):
        return {name: value for name, value in zip(returns, result) if name is not None and name != "_"}
    found = {name: getattr(result, name) for name in returns if name and hasattr(result, name)}
    first = next((name for name in returns if name), "result")
    return found or {first: result}


def read_result(result: Any, returns: Sequence[str | None]) -> Answer:
    """A result that the caller computed."""
    made = named(result, returns)
    return Answer(
        {name: _to_numpy(value) for name, value in made.items()},
        {name: _precision(value) for name, value in made.items()},
    )


def _accepted(function: Function) -> dict[str, bool] | None:
    """The parameters of a function and whether they have a default; ``None`` if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(found.kind is inspect.Parameter.VAR_KEYWORD for found in parameters):
        return None
    return {
        found.name: found.default is not inspect.Parameter.empty
        for found in parameters
        if found.kind is not inspect.Parameter.VAR_POSITIONAL
    }


def _mask(case: Case, kind: str, form: str) -> Any:
    dtype = {"bool": np.dtype(bool), "int": np.dtype(np.int64)}.get(form)
    made = case.mask.astype(dtype or (np.float32 if case.dtype == "f32" else np.float64))
    if kind == "torch":
        return library("torch").from_numpy(made)
    if kind == "jax":
        return library("jax.numpy").asarray(made)
    return made


def _autograd(value: Any, leaf: Any, mask: Any) -> Any:
    """The gradient of a number, or of the sum of an array over the kept tokens."""
    torch = library("torch")
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return None
    if value.ndim:
        kept = mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim)) > 0
        value = torch.where(kept, value, torch.zeros_like(value)).sum()
    (found,) = torch.autograd.grad(value, leaf, allow_unused=True)
    return torch.zeros_like(leaf) if found is None else found


def _module(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _to_numpy(value: Any) -> Any:
    if _module(value) == "torch":
        value = value.detach().cpu()
        value = value.double() if value.is_floating_point() else value
        return value.numpy()
    if isinstance(value, str) or value is None:
        return np.float64("nan")
    return np.asarray(value, dtype=np.float64)


def _precision(value: Any) -> str:
    name = str(getattr(value, "dtype", "float64")).replace("torch.", "")
    return {"float32": "f32", "float16": "half", "bfloat16": "half"}.get(name, "f64")
