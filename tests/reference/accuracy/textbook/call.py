"""What a textbook version reads, and the arithmetic that many of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from mpmath import mp, mpf

mp.prec = 240

Exact = list[mpf]
Results = dict[str, list[Any]]

BITS = {"float32": 24, "float64": 53}
#: A comparison whose sides differ by at most this many ulps may fall either way in rounded arithmetic.
NEAR = 64


class Call:
    """Inputs, mask, groups and config of one call, exact."""

    def __init__(
        self,
        name: str,
        inputs: dict[str, Any],
        *,
        rows: int,
        mask: Sequence[bool],
        groups: Sequence[int] | None = None,
        config: Any = None,
        dtype: str = "float64",
    ) -> None:
        self.name = name
        #: Arrays (of any shape), numbers and names, by the names of the catalogue.
        self.inputs = inputs
        self.rows = rows
        #: Slots of a row.
        self.width = len(mask) // rows if rows else 0
        #: Per slot.
        self.mask = [bool(keep) for keep in mask]
        #: Per row.
        self.groups = None if groups is None else [int(group) for group in groups]
        self.config = {} if config is None else config
        self.dtype = dtype
        #: Half the distance from 1 to the next number of the type.
        self.epsilon = mpf(2) ** -BITS[dtype]
        #: A comparison was too close to call: see `less`.
        self.close = False
        #: What the error of an output or number is measured by, where it is not its largest entry: see `total`.
        self.scale: dict[str, mpf] = {}
        self._columns: dict[str, Exact] = {}

    # inputs

    def has(self, name: str) -> bool:
        return self.inputs.get(name) is not None

    def column(self, name: str) -> Exact:
        """An input of real numbers, flat."""
        if name not in self._columns:
            self._columns[name] = [mpf(float(x)) for x in np.asarray(self.inputs[name]).ravel()]
        return self._columns[name]

    def optional(self, name: str) -> Exact | None:
        return self.column(name) if self.has(name) else None

    def integers(self, name: str) -> list[int]:
        """An input of integers or flags, flat."""
        return [int(x) for x in np.asarray(self.inputs[name]).ravel()]

    def table(self, name: str) -> list[Exact]:
        """An input whose last dimension is the vocabulary or k, or whose rows are sources: one list for each."""
        width = np.asarray(self.inputs[name]).shape[-1]
        flat = self.column(name)
        return [flat[start : start + width] for start in range(0, len(flat), width)]

    def number(self, name: str) -> mpf:
        """An input that is one number."""
        return mpf(float(self.inputs[name]))

    def setting(self, key: str, default: Any = None) -> Any:
        """An entry of the config: a float as `mpf`, names, lists and parts as they are. `key` may be a path."""
        value: Any = self.config
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                value = default
                break
            value = value[part]
        return number(value)

    # slots

    def row(self, row: int) -> range:
        return range(row * self.width, (row + 1) * self.width)

    def kept_of(self, row: int) -> list[int]:
        return [slot for slot in self.row(row) if self.mask[slot]]

    def kept(self) -> list[int]:
        return [slot for slot, keep in enumerate(self.mask) if keep]

    def fill(self, value: Callable[[int], Any], dropped: Any = mpf(0)) -> list[Any]:
        """A result for every kept slot, `dropped` for the others."""
        return [value(slot) if keep else dropped for slot, keep in enumerate(self.mask)]

    def spread(self, per_row: Sequence[Any]) -> list[Any]:
        """The number of each row at its kept slots."""
        return self.fill(lambda slot: per_row[slot // self.width])

    def members(self, row: int) -> list[int]:
        """The rows of the same group, in order, itself among them."""
        assert self.groups is not None
        return [other for other, group in enumerate(self.groups) if group == self.groups[row]]

    def ids(self) -> list[int]:
        """The groups, numbered as the Python package numbers them: by first appearance."""
        assert self.groups is not None
        seen: dict[int, int] = {}
        return [seen.setdefault(group, len(seen)) for group in self.groups]

    # decisions

    def less(self, a: Any, b: Any, scale: Any = None) -> bool:
        """a < b. If the sides differ by at most `NEAR` ulps, of the larger one or of `scale`, the call is not judged:
        rounded arithmetic may decide otherwise. Sides that are equal are decided, unless a `scale` tells that they
        are results of sums."""
        a, b = mpf(a), mpf(b)
        if mp.isinf(a) or mp.isinf(b):
            return bool(a < b)
        unit = max(abs(a), abs(b), abs(mpf(scale or 0))) * mpf(2) ** (1 - BITS[self.dtype])
        apart = abs(a - b)
        if apart <= NEAR * unit and (apart > 0 or (scale is not None and unit > 0)):
            self.close = True
        return bool(a < b)

    def clamp(self, x: Any, low: Any, high: Any) -> mpf:
        """`x` within bounds; the result is continuous, so no comparison is too close."""
        return max(mpf(low), min(mpf(high), mpf(x)))

    def order(self, numbers: Sequence[Any]) -> list[int]:
        """The indices in ascending order, ties by index."""
        places = sorted(range(len(numbers)), key=lambda index: (numbers[index], index))
        for one, next_one in zip(places, places[1:]):
            self.less(numbers[one], numbers[next_one])
        return places

    # sums

    def total(self, name: str, terms: Iterable[Any]) -> mpf:
        """Their sum, which is measured by the sum of their magnitudes, in the result called `name`."""
        terms = list(terms)
        self.scale[name] = max(self.scale.get(name, mpf(0)), mp.fsum(abs(term) for term in terms))
        return mp.fsum(terms)

    def measure(self, name: str, sizes: Iterable[Any]) -> None:
        """The errors of a result are those of its largest term: numbers that cancel are no smaller than this."""
        self.scale[name] = max([self.scale.get(name, mpf(0)), *(abs(mpf(size)) for size in sizes)])

    def mean(self, name: str, value: Callable[[int], Any], divisor: str | None = None) -> mpf:
        """The mean over the kept slots, measured like `total`. None kept: 0."""
        kept = self.kept()
        n = count(len(kept), divisor or self.setting("divisor", "count"))
        return self.total(name, [value(slot) / n for slot in kept]) if kept else mpf(0)

    def weights(self, key: str | None = "aggregate") -> Exact:
        """∂loss/∂(loss of a token) per slot, by the config's aggregation; `None`: the config is the aggregation."""
        given = self.config if key is None else self.setting(key, None)
        config = given if isinstance(given, dict) else {}
        mode, divisor = config.get("mode", "token-mean"), config.get("divisor", "count")
        lens = [len(self.kept_of(row)) for row in range(self.rows)]
        counts = config.get("counts")
        if isinstance(counts, dict):
            n, s, p = (mpf(counts.get(key, 0)) for key in ("tokens", "sequences", "prompts"))
            ranks = mpf(counts.get("ranks", 1))
        else:
            every = config.get("empty_rows", "excluded") == "counted"
            rows = len(lens) if every else sum(length > 0 for length in lens)
            n, s, ranks = mpf(sum(lens)), mpf(rows), mpf(1)
            p = mpf(len(set(self.groups or [])))
        out = []
        for slot, keep in enumerate(self.mask):
            row = slot // self.width
            if not keep:
                out.append(mpf(0))
            elif mode == "token-mean":
                out.append(ranks / n)
            elif mode == "token-sum":
                out.append(ranks)
            elif mode == "seq-mean-token-sum":
                out.append(ranks / s)
            elif mode == "seq-mean-token-sum-norm":
                out.append(ranks / s / number(config["scale"]))
            elif mode == "seq-mean-token-mean":
                out.append(ranks / s / count(lens[row], divisor))
            elif mode == "prompt-mean":
                out.append(ranks / p / self.prompt_tokens()[self.ids()[row]])
            else:
                raise ValueError(mode)
        return out

    def prompt_tokens(self) -> list[int]:
        """Kept tokens of each prompt."""
        if self.has("group_tokens"):
            return self.integers("group_tokens")
        ids = self.ids()
        out = [0] * len(set(ids))
        for row, group in enumerate(ids):
            out[group] += len(self.kept_of(row))
        return out

    def aggregate(self, losses: Sequence[Any], key: str | None = "aggregate", name: str = "loss") -> tuple[mpf, Exact]:
        """The weighted sum, and the weights."""
        weights = self.weights(key)
        return self.total(name, [weights[slot] * losses[slot] for slot in self.kept()]), weights


def number(value: Any) -> Any:
    return mpf(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def count(n: int, divisor: str = "count") -> mpf:
    """The divisor of a mean over `n` numbers."""
    if divisor == "count":
        return mpf(n)
    assert divisor == "count-plus-epsilon", divisor
    return n + mpf(1e-8)


def mean(numbers: Sequence[Any], divisor: str = "count") -> mpf:
    return mp.fsum(numbers) / count(len(numbers), divisor)


def mean_and_variance(numbers: Sequence[Any], spread: str = "sample", divisor: str = "count") -> tuple[mpf, mpf]:
    """The variance is divided by n − 1 (`sample`) or n (`population`)."""
    middle, n = mean(numbers, divisor), len(numbers)
    square = mp.fsum((x - middle) ** 2 for x in numbers) / count(n, divisor)
    return middle, square * n / (n - 1) if spread == "sample" else square


def magnitude(numbers: Iterable[Any]) -> mpf:
    """The sum of the magnitudes."""
    return mp.fsum(abs(x) for x in numbers)


def sign(x: Any) -> int:
    return int(x > 0) - int(x < 0)


def log_softmax(row: Sequence[Any], temperature: Any = 1) -> Exact:
    """The logarithms of the probabilities of one row of logits; −∞ for a logit of −∞."""
    scaled = [mpf(x) / mpf(temperature) for x in row]
    largest = max(scaled)
    log_sum = largest + mp.log(mp.fsum(mp.exp(x - largest) for x in scaled))
    return [x - log_sum for x in scaled]


def entropy_of(log_probs: Sequence[Any]) -> mpf:
    """−Σ p ln p; entries of probability 0 have no part in it."""
    return -mp.fsum(mp.exp(x) * x for x in log_probs if not mp.isinf(x))


def quantile_of(ascending: Sequence[Any], level: Any) -> mpf:
    """With linear interpolation between the neighbours of the place."""
    place = mpf(level) * (len(ascending) - 1)
    low = int(mp.floor(place))
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)
