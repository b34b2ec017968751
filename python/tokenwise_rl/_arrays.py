"""Arrays of any library as NumPy arrays, and results back in the caller's kind.

Only called for what the native module cannot borrow as it is. Nothing is imported that the caller has not imported.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import TokenwiseError
from ._native import half_bits_of_dlpack

#: Tensors on a device are copied to the host up to this many entries per token; logits never are.
_WHOLE = (1 << 32) - 1


def _torch_tensor(value: Any) -> Any | None:
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(value, torch.Tensor) else None


def _refuse(name: str, expected: str, got: str, code: str = "type") -> TokenwiseError:
    return TokenwiseError(f"{name}: expected {expected}, got {got}", code, name, None, expected, got)


def plain(name: str, value: Any, logits: bool) -> tuple[NDArray[Any], bool]:
    """A NumPy array of what was given, and whether results should be tensors."""
    torch = _torch_tensor(value)
    if torch is not None:
        if value.device.type != "cpu" and logits:
            # a row of logits is as long as the vocabulary: gigabytes, which must not move unasked
            raise _refuse(name, "logits on the CPU (call .cpu() yourself)", f"a tensor on {value.device}", "device")
        value = value.detach()
        if value.dtype in (torch.bfloat16, torch.float16):
            value = value.float()
        return value.cpu().numpy(), True
    if isinstance(value, (list, tuple, int, float, bool)):
        try:
            return np.asarray(value), False
        except ValueError:
            raise _refuse(name, "an array, or lists of equal lengths", "lists of different lengths") from None
    if isinstance(value, np.generic):
        return np.asarray(value), False
    if logits and hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in (1, 3):
        raise _refuse(name, "logits on the CPU", "an array on a device", "device")
    if hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
            return array.astype(np.float32) if array.dtype == np.float16 else array, False
        except (BufferError, RuntimeError, TypeError):
            pass  # a device, or a type that NumPy has not
        if (half := _half_of_dlpack(value)) is not None:
            return _single(*half), False
    if hasattr(value, "__array__"):
        return np.asarray(value), False
    raise _refuse(name, "an array, a tensor or a list", type(value).__name__)


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array)


def reals(name: str, array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Numbers without a precision of their own, in that of the call."""
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise _refuse(name, "an array of float32 or float64", f"one of {array.dtype}", "dtype")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise _refuse(name, "an array of float32 or float64", f"one of {array.dtype}", "dtype")
    return np.ascontiguousarray(array, dtype=dtype)


def flags(name: str, array: NDArray[Any]) -> NDArray[np.bool_]:
    """Booleans; numbers must be 0 or 1, because a weight is not a mask."""
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iuf":
        raise _refuse(name, "an array of booleans", f"one of {array.dtype}", "dtype")
    kept = array == 1
    wrong = np.flatnonzero(~(kept | (array == 0)))
    if wrong.size:
        index = int(wrong[0])
        got = float(array.flat[index])
        raise TokenwiseError(
            f"{name}[{index}]: must be 0 or 1, got {got:g}", "entry", name, index, "0 or 1", got
        )
    return np.ascontiguousarray(kept)


def indices(name: str, array: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[np.uint32]:
    """Whole numbers in 32 bits. Dropped slots may hold anything and become 0."""
    if array.dtype.kind == "f" and array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise _refuse(name, "an array of whole numbers", f"one of {array.dtype}", "dtype")
    outside = (array < 0) | (array > _WHOLE)
    if mask is not None and mask.shape == array.shape[: mask.ndim]:
        kept = mask.reshape(mask.shape + (1,) * (array.ndim - mask.ndim))
        outside &= kept
        array = np.where(kept, array, 0)
    wrong = np.flatnonzero(outside)
    if wrong.size:
        index = int(wrong[0])
        got = int(array.flat[index])
        must_be = f"from 0 to {_WHOLE}"
        raise TokenwiseError(f"{name}[{index}]: must be {must_be}, got {got}", "entry", name, index, must_be, got)
    return np.ascontiguousarray(array, dtype=np.uint32)


def counts(name: str, array: NDArray[Any]) -> NDArray[np.uint64]:
    if array.dtype.kind not in "iu" or (array.dtype.kind == "i" and bool((array < 0).any())):
        raise _refuse(name, "an array of counts", f"one of {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.uint64)


def half_bits(value: Any) -> tuple[NDArray[np.uint16], str, bool] | None:
    """Logits in half precision as their bits, which the core reads without a copy in f32."""
    torch = _torch_tensor(value)
    if torch is not None:
        kinds = {torch.bfloat16: "bf16", torch.float16: "f16"}
        if value.dtype not in kinds:
            return None
        if value.device.type != "cpu":
            raise _refuse("logits", "logits on the CPU (call .cpu() yourself)", f"a tensor on {value.device}", "device")
        bits = value.detach().contiguous().view(torch.int16).numpy().view(np.uint16)
        return bits, kinds[value.dtype], True
    array = value if isinstance(value, np.ndarray) else None
    if array is None and hasattr(value, "__dlpack__") and (half := _half_of_dlpack(value)) is not None:
        return np.ascontiguousarray(half[0]), half[1], False
    if array is None and hasattr(value, "__array__") and not isinstance(value, np.generic):
        name = str(getattr(value, "dtype", ""))
        array = np.asarray(value) if name in ("bfloat16", "float16") else None
    if array is None or array.dtype.name not in ("bfloat16", "float16"):
        return None
    bits = np.ascontiguousarray(array).view(np.uint16)
    return bits, "bf16" if array.dtype.name == "bfloat16" else "f16", False


def _half_of_dlpack(value: Any) -> tuple[NDArray[np.uint16], str] | None:
    """The bits of an array in half precision, and the name of its type; ``None`` if it is another array."""
    try:
        found = half_bits_of_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None  # a device, or a library that refuses
    if found is None:
        return None
    bits, shape, strides, kind = found
    if strides is None:
        return bits.reshape(shape), kind
    steps = [stride * bits.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(bits, shape, steps, writeable=False), kind


def _single(bits: NDArray[np.uint16], kind: str) -> NDArray[np.float32]:
    """Half precision as float32, which holds all of it."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def group_ids(groups: Any) -> NDArray[np.uint32]:
    """Dense ids, numbered by first appearance, of any hashable labels: numbers, strings, prompt hashes."""
    torch = _torch_tensor(groups)
    if torch is not None:
        groups = groups.detach().cpu().numpy()
    array = np.asarray(groups)
    if array.ndim != 1:
        raise _refuse("groups", "one label per sequence", f"shape {array.shape}", "shape")
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(label, len(seen)) for label in array.tolist()), np.uint32, array.size)


def tensors(like: Any, arrays: list[NDArray[Any]]) -> list[Any]:
    """Results as tensors on the device of the inputs; on the CPU they share memory with the arrays."""
    torch = sys.modules["torch"]
    made = []
    for array in arrays:
        if array.dtype in (np.uint32, np.uint64):
            array = array.astype(np.int64)
        tensor = torch.from_numpy(array)
        made.append(tensor if like.is_cpu else tensor.to(like.device))
    return made
