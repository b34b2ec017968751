"""Statistics over all ranks of ``torch.distributed``, with the same bits for any number of ranks.

Each rank adds its tokens to a state that holds sums as integers; one all-reduce of ``int64`` joins the states, and
every rank rounds the same result::

    from tokenwise_rl import distributed as twd

    advantages = twd.whiten(advantages, mask=mask)  # mean and spread of all ranks
    metrics = twd.analysis(old_log_probs=old, advantages=advantages, rewards=rewards, mask=mask)

A rank without tokens takes part like any other; every rank must call the same functions in the same order. What is
sent is the same for any number of tokens: 1.7 KB for whitening (docs/scale.md). ``group`` is a process group as in
``torch.distributed``. With NCCL the integers travel through the current CUDA device.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from . import _formulas
from ._errors import TokenwiseError
from ._native import (
    ClipCov,
    ExactAnalysis,
    ExactClip,
    ExactCoMoments,
    ExactCriterion,
    ExactKl,
    ExactMoments,
    ExactOpenRlhf,
    ExactRejection,
    ExactRolloutWeights,
    ExactTrl,
    ExactVarianceProxy,
    ExactVerl,
    KlCov,
    M2po,
    Selection,
)
from .configs import GlobalCounts

__all__ = [
    "all_reduce",
    "analysis",
    "by_prompt",
    "clip_cov_selection",
    "clip_fractions",
    "co_moments",
    "counts",
    "high_entropy_mask",
    "kl_cov",
    "kl_means",
    "m2po_mask",
    "moments",
    "openrlhf_metrics",
    "quantile",
    "reinforce_plus_plus",
    "rollout_rejection_metrics",
    "rollout_weight_metrics",
    "rollout_weights",
    "smallest",
    "trl_metrics",
    "variance_proxy",
    "verl_metrics",
    "whiten",
]


class Partial(Protocol):
    """What every state has."""

    def limbs(self) -> NDArray[np.int64]: ...
    def peaks(self) -> NDArray[np.int64]: ...
    @classmethod
    def from_limbs(cls, limbs: NDArray[np.int64], peaks: NDArray[np.int64] | None = None) -> Any: ...


State = TypeVar("State", bound=Partial)


def _reduced(numbers: NDArray[np.int64], operation: Any, group: Any) -> NDArray[np.int64]:
    tensor = torch.from_numpy(numbers)
    if dist.get_backend(group) == "nccl":
        tensor = tensor.cuda()
    dist.all_reduce(tensor, op=operation, group=group)
    found: NDArray[np.int64] = tensor.cpu().numpy()
    return found


def all_reduce(state: State, group: Any = None) -> State:
    """The state of all ranks together, on every rank: one all-reduce, and a second one if the state has peaks."""
    limbs = _reduced(state.limbs(), dist.ReduceOp.SUM, group)
    peaks = state.peaks()
    if peaks.size:
        peaks = _reduced(peaks, dist.ReduceOp.MAX, group)
    joined: State = type(state).from_limbs(limbs, peaks)
    return joined


def moments(values: Any, *, mask: Any = None, cu_seqlens: Any = None, group: Any = None) -> ExactMoments:
    """Count, mean and variance of the kept entries of all ranks."""
    state = ExactMoments()
    state.update(values, mask=mask, cu_seqlens=cu_seqlens)
    return all_reduce(state, group)


def whiten(values: Any, *, mask: Any = None, cu_seqlens: Any = None, group: Any = None, **settings: Any) -> Any:
    """``tokenwise_rl.whiten`` by the mean and the spread of all ranks; the settings are the same.

    Raises :class:`TokenwiseError`, on every rank, if all ranks together have no token, or a single one for the sample
    variance.
    """
    joined = moments(values, mask=mask, cu_seqlens=cu_seqlens, group=group)
    return joined.whiten(values, mask=mask, cu_seqlens=cu_seqlens, **settings)


def reinforce_plus_plus(
    *, rewards: Any, mask: Any = None, cu_seqlens: Any = None, group: Any = None, **settings: Any
) -> _formulas.ReinforcePlusPlusResult:
    """``tokenwise_rl.reinforce_plus_plus`` relative to the returns of all ranks; the settings are the same."""
    where = {"mask": mask, "cu_seqlens": cu_seqlens}
    bootstrap, whitening = settings.pop("bootstrap", None), settings.pop("whiten", {})
    returns = _formulas.discounted_returns(rewards=rewards, bootstrap=bootstrap, **where, **settings)
    return _formulas.ReinforcePlusPlusResult(whiten(returns, **where, group=group, **whitening), returns)


def co_moments(x: Any, y: Any, *, mask: Any = None, cu_seqlens: Any = None, group: Any = None) -> ExactCoMoments:
    """Covariance, correlation and explained variance of the kept pairs of all ranks."""
    state = ExactCoMoments()
    state.update(x, y, mask=mask, cu_seqlens=cu_seqlens)
    return all_reduce(state, group)


def analysis(*, group: Any = None, **inputs: Any) -> dict[str, float]:
    """``tokenwise_rl.analysis`` over all ranks: the five ``analysis/…`` keys."""
    state = ExactAnalysis()
    state.update(**inputs)
    return all_reduce(state, group).analysis()


def kl_means(
    *,
    log_probs: Any,
    ref_log_probs: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> dict[str, float]:
    """``tokenwise_rl.kl_means`` over all ranks."""
    state = ExactKl()
    state.update(log_probs=log_probs, ref_log_probs=ref_log_probs, mask=mask, cu_seqlens=cu_seqlens)
    return all_reduce(state, group).means(**settings)


def clip_fractions(
    *,
    log_probs: Any,
    old_log_probs: Any,
    advantages: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> dict[str, float]:
    """``tokenwise_rl.clip_fractions`` over all ranks."""
    state = ExactClip()
    state.update(
        log_probs=log_probs,
        old_log_probs=old_log_probs,
        advantages=advantages,
        mask=mask,
        cu_seqlens=cu_seqlens,
        **settings,
    )
    return all_reduce(state, group).fractions(**settings)


def rollout_weight_metrics(
    *,
    old_log_probs: Any,
    rollout_log_probs: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> dict[str, float]:
    """``tokenwise_rl.rollout_weight_metrics`` over all ranks; the settings are the same."""
    inputs = _sampled(old_log_probs, rollout_log_probs, mask, cu_seqlens)
    return _weights(inputs, group, settings).metrics(**settings)


def rollout_weights(
    *,
    old_log_probs: Any,
    rollout_log_probs: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> _formulas.RolloutWeightsResult:
    """``tokenwise_rl.rollout_weights``, with ``normalize`` by the mean of all ranks."""
    inputs = _sampled(old_log_probs, rollout_log_probs, mask, cu_seqlens)
    found = _weights(inputs, group, settings).weights(**inputs, **settings)
    return _formulas.RolloutWeightsResult(*found)


def _sampled(old_log_probs: Any, rollout_log_probs: Any, mask: Any, cu_seqlens: Any) -> dict[str, Any]:
    return {
        "old_log_probs": old_log_probs,
        "rollout_log_probs": rollout_log_probs,
        "mask": mask,
        "cu_seqlens": cu_seqlens,
    }


def _weights(inputs: dict[str, Any], group: Any, settings: dict[str, Any]) -> ExactRolloutWeights:
    state = ExactRolloutWeights()
    state.update(**inputs, **settings)
    return all_reduce(state, group)


def rollout_rejection_metrics(
    *,
    old_log_probs: Any,
    rollout_log_probs: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    criteria: Sequence[Mapping[str, Any]] = (),
    divisor: str = "count",
) -> dict[str, float]:
    """``tokenwise_rl.rollout_rejection_metrics`` over all ranks; all give the same criteria."""
    inputs = _sampled(old_log_probs, rollout_log_probs, mask, cu_seqlens)
    found = {}
    for criterion in criteria:
        state = ExactCriterion()
        state.update(criterion, **inputs, divisor=divisor)
        found.update(all_reduce(state, group).metrics(criterion, divisor=divisor))
    together = ExactRejection()
    together.update(list(criteria), **inputs, divisor=divisor)
    return {**found, **all_reduce(together, group).totals(divisor=divisor)}


def variance_proxy(
    *, gradient_norm: float, divisor: str = "count", group: Any = None, **inputs: Any
) -> dict[str, float]:
    """``tokenwise_rl.variance_proxy`` over all ranks; the norm is that of the gradient of all of them."""
    state = ExactVarianceProxy()
    state.update(**inputs, divisor=divisor)
    return all_reduce(state, group).proxy(gradient_norm=gradient_norm, divisor=divisor)


def verl_metrics(*, group: Any = None, config: dict[str, Any] | None = None, **inputs: Any) -> dict[str, float]:
    """The keys of ``tokenwise_rl.verl_metrics`` that are about tokens and sequences, over all ranks.

    All ranks give the same inputs; one without sequences may give any of them, or none.
    """
    state = ExactVerl()
    state.update(config=config, **inputs)
    return all_reduce(state, group).metrics(**(config or {}))


def trl_metrics(
    *, rewards: Any = None, group: Any = None, config: dict[str, Any] | None = None, **inputs: Any
) -> dict[str, float]:
    """The keys of ``tokenwise_rl.trl_metrics`` that are about tokens and sequences, over all ranks.

    ``rewards`` has ``sources``, ``source_weights`` and perhaps ``names``, as there; all completions of a prompt are on
    one rank. All ranks give the same inputs; one without sequences gives empty ones, and as many ``source_weights``.
    """
    state = ExactTrl()
    state.update(rewards=rewards, config=config, **inputs)
    found = all_reduce(state, group).metrics(**(config or {}))
    if rewards is not None:
        weights = rewards["source_weights"]
        names = rewards.get("names") or range(len(weights))
        sources = _numbers("sources", rewards["sources"])
        for name, row in zip(names, sources.reshape(len(weights), -1)):
            # NaN: the function gave no score
            scores = moments(row.reshape(1, -1), mask=~np.isnan(row).reshape(1, -1), group=group)
            found[f"rewards/{name}/mean"] = scores.mean() if scores.count else math.nan
            found[f"rewards/{name}/std"] = math.sqrt(scores.variance()) if scores.count > 1 else math.nan
    return found


def openrlhf_metrics(*, group: Any = None, config: dict[str, Any] | None = None, **inputs: Any) -> dict[str, float]:
    """The keys of ``tokenwise_rl.openrlhf_metrics`` that are about tokens and sequences, over all ranks.

    All sequences of a prompt are on one rank. All ranks give the same inputs; one without sequences gives empty ones.
    """
    state = ExactOpenRlhf()
    state.update(config=config, **inputs)
    return all_reduce(state, group).metrics(**(config or {}))


def counts(*, mask: Any, prompts: int = 0, group: Any = None) -> GlobalCounts:
    """Kept tokens and sequences of all ranks, as the setting ``counts`` of a loss.

    Sequences are those with a kept token. ``prompts`` is the number of prompts of this rank, if no prompt is on two.
    """
    kept = torch.as_tensor(mask).detach().cpu().numpy().astype(bool)
    here = np.array([kept.sum(), kept.any(axis=-1).sum(), prompts], dtype=np.int64)
    tokens, sequences, prompts = _reduced(here, dist.ReduceOp.SUM, group).tolist()
    found: GlobalCounts = {"tokens": tokens, "sequences": sequences}
    if prompts:
        found["prompts"] = prompts
    return found


def _numbers(name: str, values: Any) -> NDArray[Any]:
    from ._arrays import plain

    return plain(name, values, False)[0]


def _plain(values: Any, mask: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The kept numbers of a rank, as one row, and their mask."""
    from ._arrays import flags, plain

    array, _ = plain("values", values, False)
    if mask is None:
        kept = np.ones(array.shape, dtype=bool)
    else:
        kept = flags("mask", plain("mask", mask, False)[0])
    if kept.shape != array.shape:
        raise TokenwiseError(
            f"mask: expected shape {array.shape}, got {kept.shape}", "shape", "mask", None, array.shape, kept.shape
        )
    return array.reshape(1, -1), kept.reshape(1, -1)


def _rounds(count: Callable[[], NDArray[np.int64]], done: Callable[[NDArray[np.int64]], bool], group: Any) -> None:
    """Counts, adds up the counts of all ranks and hands them over, until every rank has seen enough."""
    while not done(_reduced(count(), dist.ReduceOp.SUM, group)):
        pass


def _selected(array: NDArray[Any], kept: NDArray[np.bool_], ranks: list[int], group: Any) -> list[float]:
    """The numbers with so many numbers before them: one all-reduce per round for all of them."""
    selections = [Selection(rank, bits=32 if array.dtype == np.float32 else 64) for rank in ranks]
    return _found(selections, array, kept, group)


def _found(
    selections: list[Selection], array: NDArray[Any], kept: NDArray[np.bool_], group: Any
) -> list[float]:
    """What each selection asks for."""
    found: list[float] = []

    def count() -> NDArray[np.int64]:
        for selection in selections:
            selection.count(array, mask=kept)
        return np.concatenate([selection.counts() for selection in selections])

    def done(joined: NDArray[np.int64]) -> bool:
        for selection, row in zip(selections, joined.reshape(len(selections), -1)):
            selection.set_counts(row)
            number = selection.step()
            if number is not None:
                found.append(number)
        return len(found) == len(selections)

    _rounds(count, done, group)
    return found


def smallest(values: Any, rank: int, *, mask: Any = None, group: Any = None) -> float:
    """The kept number of all ranks that has ``rank`` kept numbers before it in ascending order; NaN comes last.

    Ranks give the same type of numbers: float32 takes three all-reduces of 16 KB, float64 six.
    """
    array, kept = _plain(values, mask)
    return _selected(array, kept, [rank], group)[0]


def quantile(values: Any, level: float = 0.5, *, mask: Any = None, group: Any = None) -> float:
    """``tokenwise_rl.quantile`` over all ranks, with the same bits as for one."""
    array, kept = _plain(values, mask)
    here = np.array([kept.sum(), np.isnan(array[kept]).sum()], dtype=np.int64)
    count, missing = map(int, _reduced(here, dist.ReduceOp.SUM, group))
    if not 0.0 <= level <= 1.0:
        raise TokenwiseError(f"level: must be in [0, 1], got {level}", "config", "level", None, "in [0, 1]", level)
    if count == 0:
        raise TokenwiseError("mask: no token is kept on any rank", "empty_mask", "mask", None, 1, 0)
    if missing:
        return float("nan")
    place = level * (count - 1)
    rank = int(place)
    share = place - rank
    low, high = _selected(array, kept, [rank, min(rank + 1, count - 1)], group)
    # from the nearer neighbour, as the core does
    if low == high or share == 0.0:
        return low
    return low + share * (high - low) if share < 0.5 else high - (high - low) * (1.0 - share)


def high_entropy_mask(entropies: Any, *, share: float = 0.2, mask: Any = None, group: Any = None) -> Any:
    """``tokenwise_rl.high_entropy_mask`` with the threshold of all ranks."""
    array, kept = _plain(entropies, mask)
    try:
        bound = quantile(array, 1.0 - share, mask=kept, group=group)
    except TokenwiseError as error:
        if error.code != "empty_mask":
            raise
        bound = 0.0  # nothing is kept on any rank, and nothing will be
    return _like((kept & (array >= bound)).reshape(np.shape(entropies)), entropies)


def _of_ranks(here: int, group: Any) -> tuple[list[int], int]:
    """A count of each rank, in order, and which of them is this one."""
    index = dist.get_rank(group)
    numbers = np.zeros(dist.get_world_size(group), dtype=np.int64)
    numbers[index] = here
    return _reduced(numbers, dist.ReduceOp.SUM, group).tolist(), index


def _like(found: NDArray[np.bool_], given: Any) -> Any:
    return torch.from_numpy(found).to(given.device) if isinstance(given, torch.Tensor) else found


def by_prompt(
    formula: Callable[..., Any], *, scores: Any, groups: Any, group: Any = None, **settings: Any
) -> Any:
    """A formula over the samples of each prompt, where the samples of a prompt are on several ranks::

        advantages = twd.by_prompt(tw.group_relative, scores=scores, groups=uids, **settings)

    Every rank gets the scores and the labels of all, 16 bytes per sequence, and keeps its own results: those of one
    process that has the sequences in the order of ranks. Labels are whole numbers or strings.
    """
    own = _numbers("scores", scores)
    sizes, index = _of_ranks(len(own), group)
    start = sum(sizes[:index])
    every = np.zeros((2, sum(sizes)), dtype=np.int64)
    # all other ranks add 0: a sum that is a concatenation
    every[0, start : start + len(own)] = own.astype(np.float64).view(np.int64)
    every[1, start : start + len(own)] = _labels(groups)
    numbers, labels = _reduced(every, dist.ReduceOp.SUM, group)
    found = formula(scores=numbers.view(np.float64).astype(own.dtype), groups=labels, **settings)
    mine = np.ascontiguousarray(found[start : start + len(own)])
    return torch.from_numpy(mine).to(scores.device) if isinstance(scores, torch.Tensor) else mine


def _labels(groups: Any) -> NDArray[np.int64]:
    """Labels of prompts as whole numbers: strings by a hash that is the same in every process."""
    if isinstance(groups, torch.Tensor):
        groups = groups.detach().cpu().numpy()
    labels = np.asarray(groups)
    if labels.dtype.kind in "iu" or not labels.size:
        return labels.astype(np.int64)
    hashed = [hashlib.blake2b(str(label).encode(), digest_size=8).digest() for label in labels.tolist()]
    return np.frombuffer(b"".join(hashed), dtype="<i8").astype(np.int64)


def m2po_mask(
    *,
    old_log_probs: Any,
    rollout_log_probs: Any,
    tau: float,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
) -> Any:
    """``tokenwise_rl.m2po_mask`` over the tokens of all ranks: at most 16 all-reduces of 9 KB.

    Ranks with consecutive sequences keep the tokens that one process would keep, also among equal ones.
    """
    inputs = _sampled(old_log_probs, rollout_log_probs, mask, cu_seqlens)
    cut = M2po(tau=tau)

    def count() -> NDArray[np.int64]:
        cut.count(**inputs)
        return cut.limbs()

    def done(joined: NDArray[np.int64]) -> bool:
        cut.set_limbs(joined)
        return cut.step()

    _rounds(count, done, group)
    equal, index = _of_ranks(cut.equal(**inputs), group)
    return _like(cut.mask(**inputs, equal=equal, index=index), old_log_probs)


def clip_cov_selection(
    *,
    log_probs: Any,
    old_log_probs: Any,
    advantages: Any,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> Any:
    """``tokenwise_rl.clip_cov_selection`` among the tokens of all ranks, for ``tokenwise_rl.clip_cov``.

    The settings are the same, ``seed`` among them, on every rank. Ranks with consecutive sequences choose the tokens
    that one process would choose.
    """
    inputs = {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages}
    where = {"mask": mask, "cu_seqlens": cu_seqlens}
    choice = ClipCov(co_moments(advantages, log_probs, **where, group=group))
    candidates, index = _of_ranks(choice.candidates(**inputs, **where, **settings), group)
    chosen = choice.select(**inputs, **where, candidates=candidates, index=index, **settings)
    return _like(chosen, log_probs)


def kl_cov(
    *,
    log_probs: Any,
    old_log_probs: Any,
    advantages: Any,
    weights: Any = None,
    mask: Any = None,
    cu_seqlens: Any = None,
    group: Any = None,
    **settings: Any,
) -> _formulas.KlCovResult:
    """``tokenwise_rl.kl_cov`` with the tokens of the largest covariances of all ranks: six all-reduces of 16 KB.

    The losses of the ranks add up to that of the step with ``aggregate={"counts": counts(mask=mask)}``. Ranks with
    consecutive sequences choose the tokens that one process would choose, also among equal ones.
    """
    inputs = {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages}
    where = {"mask": mask, "cu_seqlens": cu_seqlens}
    choice = KlCov(co_moments(advantages, log_probs, **where, group=group))
    found = choice.covariances(**inputs, **where).reshape(1, -1)
    if mask is None:
        kept = np.ones(found.shape, dtype=bool)
    else:
        kept = _plain(_numbers("mask", mask), mask)[1]
    selection = Selection(choice.rank(**settings), bits=64)
    (threshold,) = _found([selection], found, kept, group)
    equal, index = _of_ranks(int((kept & (found == threshold)).sum()), group)
    ties = KlCov.ties(selection, equal, index)
    return _formulas.KlCovResult(
        *choice.loss(**inputs, **where, weights=weights, threshold=threshold, ties=ties, **settings)
    )
