"""The one exception of this package."""

from __future__ import annotations

from typing import Any


class TokenwiseError(ValueError):
    """A call was refused; nothing was computed.

    The message names the parameter, the index where there is one, and both what was expected and what was given.
    """

    #: A short stable name of the reason: ``length``, ``config``, ``shape``, ``dtype``, ``choice``, …
    code: str
    #: The parameter at fault.
    parameter: str
    #: The index of the entry at fault, in the flattened array, or ``None``.
    index: int | None
    #: What was expected: a number, or words.
    expected: Any
    #: What was found.
    got: Any

    def __init__(
        self,
        message: str,
        code: str = "call",
        parameter: str = "",
        index: int | None = None,
        expected: Any = None,
        got: Any = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.parameter = parameter
        self.index = index
        self.expected = expected
        self.got = got

    def __reduce__(self) -> tuple[Any, ...]:
        # exceptions cross process borders in Ray and in multiprocessing
        return (type(self), (str(self), self.code, self.parameter, self.index, self.expected, self.got))
