"""Blocks of steps, and tables of the lags between each pair of them."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.stream import BlockSums, Measured

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Gate = Literal["always", "kind", "event"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Linear functions of a series: `weight` times the sum over `lengths` steps from `clock` on, (n,) each.
    kinds: of day. events: a number for each stretch of event days, else 0."""

    clock: Integers
    lengths: Integers
    kinds: Integers
    events: Integers
    weight: Floats

    @classmethod
    def at(
        cls,
        clock: Integers,
        lengths: Integers | None = None,
        *,
        kinds: Integers | None = None,
        events: Integers | None = None,
        weight: Floats | None = None,
    ) -> "Blocks":
        """Return single steps of one kind of day, unless given otherwise."""
        zeros, ones = np.zeros(clock.size, dtype=np.int64), np.ones(clock.size, dtype=np.int64)
        return cls(
            clock,
            ones if lengths is None else lengths,
            zeros if kinds is None else kinds,
            zeros if events is None else events,
            np.ones(clock.size) if weight is None else weight,
        )

    def between(self, first: int, stop: int) -> "Blocks":
        """Return those from a place on, up to another."""
        return Blocks(*(field[first:stop] for field in vars(self).values()))


@dataclass(frozen=True, eq=False)
class LagTables:
    """The position of each pair of blocks in a table of lags: a kernel is computed once for each lag.

    Blocks of `a` and `b` steps at lag k have covariance sum_(i<a, j<b) kernel(k + i - j), a convolution of
    the table. overlaps: pairs of steps at each lag, by lengths. places: (n_rows, n_columns), in the convolved
    tables. pair_weights: 0 where a gate is shut.
    """

    days: Floats
    overlaps: tuple[Floats, ...]
    places: Integers
    pair_weights: Mapping[Gate, Floats]

    @classmethod
    @lru_cache(maxsize=4)
    def between(cls, rows: Blocks, columns: Blocks, steps_per_day: int) -> "LagTables":
        """Return the tables of two sets of blocks; the last ones are cached, for learning."""
        lags = rows.clock[:, None] - columns.clock[None, :]
        longest = max(int(rows.lengths.max(initial=1)), int(columns.lengths.max(initial=1)))
        least, most = int(lags.min(initial=0)) - longest, int(lags.max(initial=0)) + longest
        places, first, overlaps = np.empty_like(lags), 0, []
        for long, wide in product(np.unique(rows.lengths).tolist(), np.unique(columns.lengths).tolist()):
            chosen = np.ix_(rows.lengths == long, columns.lengths == wide)
            # a convolution loses wide - 1 entries before the table's first
            places[chosen] = lags[chosen] - least - (wide - 1) + first
            overlaps.append(np.convolve(np.ones(long), np.ones(wide)))
            first += most - least + 2 - overlaps[-1].size
        weight = rows.weight[:, None] * columns.weight[None, :]
        pair_weights: dict[Gate, Floats] = {
            "always": weight,
            "kind": weight * (rows.kinds[:, None] == columns.kinds[None, :]),
        }
        if rows.events.any() and columns.events.any():
            same = (rows.events[:, None] == columns.events[None, :]) & (rows.events[:, None] > 0)
            pair_weights["event"] = weight * same
        return cls(np.arange(least, most + 1) / steps_per_day, tuple(overlaps), places, pair_weights)

    def gathered(self, kernel: Floats, gate: Gate) -> Floats:
        """Return the covariance of each pair under a kernel that is given for `days`, (n_rows, n_columns)."""
        tables = [np.convolve(kernel, one, "valid") for one in self.overlaps]
        return np.asarray(np.concatenate([*tables, np.zeros(0)])[self.places] * self.pair_weights[gate])

    def scattered(self, weights: Floats, gate: Gate) -> Floats:
        """Return the transpose of `gathered`: each lag's weight in sum(weights * covariance), as `days`."""
        counts = np.zeros(self.days.size)
        if gate not in self.pair_weights:
            return counts
        sizes = [self.days.size - one.size + 1 for one in self.overlaps]
        weighed = (weights * self.pair_weights[gate]).ravel()
        binned = np.bincount(self.places.ravel(), weighed, minlength=sum(sizes))
        for one, table in zip(self.overlaps, np.split(binned, np.cumsum(sizes)[:-1]), strict=True):
            counts += np.convolve(table, one[::-1])
        return counts


# Earlier measurements: noisy sums over blocks of steps, with the noise of each.

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BlockHistory:
    """Noisy sums of several series over the same blocks, rising in time. starts, lengths: (n,), running
    steps. scales: (n,), of Laplace noise of each block's variance, in units. sums: (n_series, n), in units.
    like_group: (n,), of how many blocks a group of joint noise has noise like it; 1, and left out, for
    Laplace noise."""

    starts: Integers
    lengths: Integers
    scales: Floats
    sums: NDArray[Any]
    like_group: Integers = field(default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        if self.like_group.size != self.starts.size:
            object.__setattr__(self, "like_group", np.ones_like(self.starts))

    @classmethod
    def empty(cls, n_series: int) -> "BlockHistory":
        return cls(NOTHING, NOTHING, np.zeros(0), np.zeros((n_series, 0), dtype=np.int32))

    @classmethod
    def of(cls, measured: Measured) -> "BlockHistory":
        """Return the blocks of one period. Raises ParameterError for measurements of another kind."""
        choices, answers = measured.choices or {}, measured.answers
        blocks = choices.get("blocks")
        if blocks is None or not isinstance(answers, BlockSums) or answers.variances is None:
            raise ParameterError("these measurements are no sums over blocks")
        edges = np.array(blocks, dtype=np.int64).reshape(-1, 2)
        sizes = np.array(choices.get("group_sizes", ()), dtype=np.int64)  # of groups, drawn earlier
        like_group = np.repeat(sizes, sizes)
        if "like_group" in choices:
            like_group = np.full(len(edges), choices["like_group"])
        return cls(
            edges[:, 0] + measured.first_step,
            edges[:, 1] - edges[:, 0],
            # one variance for all blocks, or one each with joint noise; all series have the same
            np.array(np.broadcast_to(np.sqrt(answers.variances[0][0] / 2.0), len(edges)), dtype=np.float64),
            _in_few_bits(answers.values[0]).reshape(len(measured.points), len(edges)),
            like_group,
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None, n_series: int | None = None) -> "BlockHistory":
        """Return what `to_document` wrote; empty for None. Other series than so many raise ParameterError."""
        if document is None:
            return cls.empty(n_series or 0)
        sums = unpacked(document["sums"])
        if n_series is not None and len(sums) != n_series:
            raise ParameterError(f"the state is of {len(sums)} series; the period has {n_series}")
        return cls(
            np.array(document["starts"], dtype=np.int64),
            np.array(document["lengths"], dtype=np.int64),
            np.array(document["scales"], dtype=np.float64),
            sums,
            np.array(document.get("group_sizes", ()), dtype=np.int64),
        )

    def to_document(self) -> dict[str, Any]:
        """Return the history as a JSON-ready document: integers, scales as floats, sums as `packed`."""
        return {
            "starts": self.starts.tolist(),
            "lengths": self.lengths.tolist(),
            "scales": self.scales.tolist(),
            "sums": packed(self.sums),
            **({"group_sizes": self.like_group.tolist()} if (self.like_group > 1).any() else {}),
        }

    def joined(self, other: "BlockHistory") -> "BlockHistory":
        """Return both histories, in the order of time."""
        if not self.n_blocks:
            return other
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        found = BlockHistory(*(np.concatenate(pair, axis=-1) for pair in pairs))
        return found.chosen(np.argsort(found.starts, kind="stable"))

    def completed(self, measured: Iterable[Measured]) -> "BlockHistory":
        """Return the history with the blocks of these periods, where they are not there already."""
        found, known = self, set(self.starts.tolist())
        for one in measured:
            if not {one.first_step + first for first, _ in (one.choices or {}).get("blocks", ())} <= known:
                found = found.joined_with(BlockHistory.of(one))
        return found

    def joined_with(self, others: "BlockHistory") -> "BlockHistory":
        """Return the history with these blocks, where they are not there already."""
        if not others.n_blocks:
            return self
        return self.joined(others.chosen(~np.isin(others.starts, self.starts)))

    def between(self, first: int, stop: int) -> "BlockHistory":
        return self.chosen((self.starts >= first) & (self.starts < stop))

    def chosen(self, which: NDArray[np.bool_] | Integers) -> "BlockHistory":
        """Return some of the blocks, (n,): whether each is one of them, or their places in order."""
        return BlockHistory(*(values[..., which] for values in vars(self).values()))

    @property
    def n_blocks(self) -> int:
        return int(self.starts.size)


def packed(sums: NDArray[Any]) -> dict[str, Any]:
    """Return whole numbers (n_series, n), JSON-ready, read a hundred times as fast as lists of numbers."""
    whole = _in_few_bits(sums if sums.dtype.kind == "i" else sums.astype(np.int64))
    data = b64encode(np.ascontiguousarray(whole).data).decode()
    return {"rows": len(whole), "kind": whole.dtype.str, "base64": data}


def _in_few_bits(sums: NDArray[Any]) -> NDArray[Any]:
    """Return integers in 32 bits where these hold them, else in 64; floats as they are."""
    if sums.dtype.kind != "i":
        return sums
    is_small = sums.size == 0 or (sums.min() >= -(2**31) and sums.max() < 2**31)
    return sums.astype("<i4" if is_small else "<i8", copy=False)


def unpacked(document: Mapping[str, Any] | Sequence[Sequence[int]]) -> NDArray[Any]:
    """Return what `packed` was given; or the lists that versions before it wrote, as an array."""
    if not isinstance(document, Mapping):
        return np.array(document, dtype=np.float64).reshape(len(document), -1)
    kind, rows = document["kind"], document["rows"]
    if kind not in ("<i4", "<i8"):
        raise ParameterError(f"the sums of a state are <i4 or <i8; got {kind!r:.20}")
    whole = np.frombuffer(b64decode(document["base64"], validate=True), dtype=kind)
    return whole.reshape(rows, -1 if rows else 0)


def n_series_of(history: Mapping[str, Any]) -> int:
    """Return of how many series the history in a document is."""
    sums = history["sums"]
    return int(sums["rows"]) if isinstance(sums, Mapping) else len(sums)
