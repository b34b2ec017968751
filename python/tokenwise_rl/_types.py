"""What the functions take and return."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

#: A NumPy array, a torch tensor, anything with ``__dlpack__`` or ``__array__``, or nested lists. Results are tensors if
#: an input was one, and NumPy arrays otherwise.
Array: TypeAlias = Any

#: The prompt of each sequence: any labels, one per sequence.
Groups: TypeAlias = Union[Sequence[Hashable], Any]
