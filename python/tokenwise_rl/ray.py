"""Ray Data over files of rollouts: metrics of any number of blocks, and formulas per token.

A row is a sequence, its tokens are lists (docs/rollout-files.md). Blocks are aggregated where they are, and their
states merge without rounding, so that the result has the same bits for any number of blocks and workers::

    import ray
    from tokenwise_rl.ray import Formula, Metrics

    ds = ray.data.read_parquet("rollouts/", columns=["advantages", "old_log_probs", "mask"])
    metrics = ds.aggregate(Metrics("verl-0.9.1"))["metrics"]
    ds = ds.map_batches(Formula("gae", outputs=["advantages", "returns"], gamma=1.0), batch_format="pyarrow")

Read only the columns that are needed: aggregation keeps blocks in the object store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray
from ray.data.aggregate import AggregateFnV2

from . import _formulas
from ._errors import TokenwiseError
from ._native import ExactAnalysis, ExactVerl

__all__ = ["Analysis", "Formula", "Metrics", "states"]

#: Where each input of the metrics is looked for, in this order.
_NAMES: dict[str, tuple[str, ...]] = {
    "scores": ("token_level_scores", "token_scores"),
    "rewards": ("rewards", "token_level_rewards", "token_rewards"),
    "advantages": ("advantages",),
    "returns": ("returns",),
    "values": ("values",),
    "predictions": ("predictions", "new_values", "vpreds"),
    "log_probs": ("log_probs", "logprobs"),
    "ref_log_probs": ("ref_log_probs", "ref_log_prob"),
    "old_log_probs": ("old_log_probs", "old_log_prob"),
    "rollout_log_probs": ("rollout_log_probs", "rollout_logprobs"),
    "entropies": ("entropies",),
    "old_entropies": ("old_entropies", "entropys"),
}
_MASKS = ("mask", "response_mask", "loss_mask", "completion_mask", "action_mask")
_NO_LIMIT = (1 << 32) - 1


def _refused(column: str, expected: str, got: str) -> TokenwiseError:
    return TokenwiseError(f"{column}: expected {expected}, got {got}", "column", column, None, expected, got)


def _lists(table: pa.Table, column: str) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The numbers of a list column one after another, and where each row begins."""
    array = table.column(column).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise _refused(column, "a list of numbers in each row", str(array.type))
    flat = array.flatten()
    if array.null_count or flat.null_count:
        raise _refused(column, "no missing entries", f"{array.null_count + flat.null_count}")
    lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return flat.to_numpy(zero_copy_only=False), offsets.astype(np.uint32)


def _packed(table: pa.Table, columns: Mapping[str, str], mask: str | None) -> dict[str, Any]:
    """List columns as keyword arguments: packed arrays with ``cu_seqlens``. All have the same lengths."""
    found: dict[str, Any] = {}
    first: tuple[str, NDArray[np.uint32]] | None = None
    for name, column in [*columns.items(), *([("mask", mask)] if mask else [])]:
        numbers, offsets = _lists(table, column)
        if first is not None and not np.array_equal(first[1], offsets):
            row = int(np.flatnonzero(np.diff(first[1]) != np.diff(offsets))[0])
            raise _refused(column, f"lists as long as those of {first[0]}", f"another length in row {row}")
        first = first or (column, offsets)
        found[name] = numbers
    if first is not None:
        found["cu_seqlens"] = first[1]
    return found


def _mask_column(names: Sequence[str], mask: str | None) -> str | None:
    if mask is not None:
        return mask
    present = [name for name in _MASKS if name in names]
    if len(present) > 1:
        raise _refused("mask", "one column", " and ".join(present))
    return present[0] if present else None


class _Merge(AggregateFnV2):  # type: ignore[type-arg]
    """A state per block, merged; the accumulator is the state as bytes."""

    _state: Any

    def __init__(self, name: str) -> None:
        empty = self._state().to_bytes()
        # without a column of its own, so that Ray keeps all of them
        super().__init__(name, lambda: empty, on=None, ignore_nulls=False)

    def state(self, table: pa.Table) -> Any:
        raise NotImplementedError

    def aggregate_block(self, block: Any) -> bytes:
        table = block if isinstance(block, pa.Table) else pa.Table.from_pandas(block)
        found: bytes = self.state(table).to_bytes()
        return found

    def combine(self, current_accumulator: bytes, new: bytes) -> bytes:
        state = self._state.from_bytes(current_accumulator)
        state.merge(self._state.from_bytes(new))
        found: bytes = state.to_bytes()
        return found


class Metrics(_Merge):
    """What a framework logs for all rows together, as a dict under ``name``.

    ``profile`` is a version of verl. ``columns`` says where an input of ``tokenwise_rl.verl_metrics`` is, if not under
    its usual name; ``mask`` is the column of the mask. Lengths are those of the lists, or the columns
    ``response_length`` and ``prompt_length``; the keys of clipped lengths appear if the limits are given.
    """

    _state = ExactVerl

    def __init__(
        self,
        profile: str = "verl-0.9.1",
        *,
        columns: Mapping[str, str] | None = None,
        mask: str | None = None,
        response_limit: int | None = None,
        prompt_limit: int | None = None,
        config: Mapping[str, Any] | None = None,
        name: str = "metrics",
    ) -> None:
        if profile != "verl-0.9.1":
            raise _refused("profile", "verl-0.9.1", profile)
        self._columns = dict(columns or {})
        self._mask = mask
        self._limits = (response_limit, prompt_limit)
        self._config = dict(config or {})
        super().__init__(name)

    def state(self, table: pa.Table) -> ExactVerl:
        names = table.column_names
        columns = dict(self._columns)
        for argument, known in _NAMES.items():
            present = [name for name in known if name in names]
            if argument not in columns and present:
                columns[argument] = present[0]
        found = ExactVerl()
        if table.num_rows == 0:
            return found
        arguments = _packed(table, columns, _mask_column(names, self._mask))
        if "cu_seqlens" not in arguments:
            raise _refused("columns", "at least one of " + ", ".join(_NAMES), ", ".join(names))
        lengths = np.diff(arguments["cu_seqlens"])
        response, prompt = (_NO_LIMIT if limit is None else limit for limit in self._limits)
        if "response_length" in names:
            lengths = table.column("response_length").to_numpy()
        arguments["response_lengths"] = {"tokens": lengths.astype(np.uint32), "limit": response}
        if "prompt_length" in names:
            prompts = table.column("prompt_length").to_numpy().astype(np.uint32)
            arguments["prompt_lengths"] = {"tokens": prompts, "limit": prompt}
        found.update(config=self._config, **arguments)
        return found

    def finalize(self, accumulator: bytes) -> dict[str, float]:  # type: ignore[override]
        found = ExactVerl.from_bytes(accumulator).metrics(**self._config)
        unknown = [kind for kind, limit in zip(("response", "prompt"), self._limits) if limit is None]
        for key in [key for key in found if key.endswith("/clip_ratio") and key.split("_")[0] in unknown]:
            del found[key]
        return found


class Analysis(_Merge):
    """The five ``analysis/…`` keys of all rows together, as a dict under ``name``."""

    _state = ExactAnalysis

    def __init__(
        self,
        *,
        old_log_probs: str = "old_log_probs",
        advantages: str = "advantages",
        rewards: str = "rewards",
        mask: str | None = None,
        name: str = "analysis",
    ) -> None:
        self._columns = {"old_log_probs": old_log_probs, "advantages": advantages, "rewards": rewards}
        self._mask = mask
        super().__init__(name)

    def state(self, table: pa.Table) -> ExactAnalysis:
        found = ExactAnalysis()
        if table.num_rows:
            found.update(**_packed(table, self._columns, _mask_column(table.column_names, self._mask)))
        return found

    def finalize(self, accumulator: bytes) -> dict[str, float]:  # type: ignore[override]
        return ExactAnalysis.from_bytes(accumulator).analysis()


def states(aggregate: _Merge, table: pa.Table) -> bytes:
    """The state of one table, as an aggregate sees a block: for other engines, which merge the bytes themselves."""
    return aggregate.aggregate_block(table)


class Formula:
    """A formula of ``tokenwise_rl`` for ``ds.map_batches(…, batch_format="pyarrow")``.

    Each argument of the formula is a list column of the same name, or the one that ``columns`` names. ``outputs`` are
    the names of the columns for its results per token, in their order. A batch holds whole sequences; a formula over a
    batch (whitening, groups) sees only the batch that Ray gives it.
    """

    def __init__(
        self,
        name: str,
        *,
        outputs: Sequence[str],
        columns: Mapping[str, str] | None = None,
        mask: str | None = None,
        **settings: Any,
    ) -> None:
        if name not in _formulas.__all__ or not name[0].islower():
            raise _refused("name", "the name of a formula", name)
        self._name, self._outputs = name, list(outputs)
        self._columns, self._mask, self._settings = dict(columns or {}), mask, settings

    def __call__(self, table: pa.Table) -> pa.Table:
        function = getattr(_formulas, self._name)
        names = table.column_names
        accepted = [name for name in function.__annotations__ if name not in ("mask", "cu_seqlens", "return")]
        columns = {name: self._columns.get(name, name) for name in accepted}
        present = {name: column for name, column in columns.items() if column in names or name in self._columns}
        arguments = _packed(table, present, _mask_column(names, self._mask))
        found = function(**arguments, **self._settings)
        arrays = list(found) if isinstance(found, tuple) else [found]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        if len(arrays) != len(self._outputs):
            raise _refused("outputs", f"{len(arrays)} names", f"{len(self._outputs)}")
        offsets = pa.array(arguments["cu_seqlens"].astype(np.int32))
        for column, array in zip(self._outputs, arrays):
            lists = pa.ListArray.from_arrays(offsets, pa.array(array))
            if column in names:
                table = table.set_column(names.index(column), column, lists)
            else:
                table = table.append_column(column, lists)
        return table
