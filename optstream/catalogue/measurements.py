"""The measurements of one day as the bytes of a Parquet file (docs/data/measurements.md)."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, Strict

import optstream.mechanisms as mechanisms
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.documents import Count, Document, Hash, Period, as_written
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import MEASUREMENTS, measurements_file, numbers_and_hash
from optstream.catalogue.read import catalogue_reader, read_attachment, read_statement
from optstream.catalogue.signing import GivenKeys
from optstream.errors import OptStreamError, ParameterError, PublicationError
from optstream.estimation.rounding import rounded_units
from optstream.history.blocks import BlockHistory, n_series_of, packed
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sums import feature_stage
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.period_release import Release
from optstream.privacy import JointSpend, OrderSpend, PrivacyModel
from optstream.privacy.exact import exact_from_text
from optstream.storage.parquet import Limits, decode_table, encode_table
from optstream.storage.store import Location
from optstream.stream import (
    AggregationTree,
    BlockSums,
    Calendar,
    Feature,
    FourierCoordinates,
    Lattice,
    Measured,
    PublicDays,
)
from optstream.stream.covariate import Covariate
from optstream.stream.period import period_from, period_from_partition

Json = dict[str, Any]
FORMAT: Final = "optstream.measurements/1"
KEY = b"optstream.measurements"
NO_MEASUREMENTS = f"these bytes are no file of measurements of format {FORMAT}"

# A mechanism as a JSON-ready document: public parameters alone, enough to estimate with it again.

KIND = "kind"
PARTS = (
    *(PrivacyModel, AggregationTree, Lattice, Feature, PublicDays, Calendar),
    *(EquallySpaced, L1Sampling, Covariate),
)
"""What mechanisms are made of; nothing else is ever made from a document."""
LARGEST_NUMBER = 2**17
"""Limit of whole numbers, such as the steps of a window: a mechanism's work grows with them."""
COUNT_NODES = ("declared_leaves", "n_nodes", "parents")
"""Keys whose numbers may be larger: they count the nodes of a tree, or name them."""
LONGEST_RANGE = 2**12  # of the parts of a day, in steps


def describe(mechanism: Mechanism) -> Json | None:
    """Return a mechanism as a JSON-ready document, fractions exact; None where a part has none."""
    document: Json | None = None
    with suppress(ParameterError):
        document = _described(mechanism)
    return document


def mechanism_from(document: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism that `describe` was given, all its checks made again. Raises PublicationError."""
    with as_written("the file of measurements describes no mechanism of this version", OptStreamError):
        found = _made(document)
        if not isinstance(found, Mechanism):
            raise TypeError
        return found


@cache
def _kinds() -> dict[str, Callable[..., Any]]:
    public = (getattr(mechanisms, name) for name in mechanisms.__all__)
    return {one.__name__: one for one in (*public, *PARTS) if one in PARTS or issubclass(one, Mechanism)}


def _described(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return {KIND: "exact", "value": str(value)}
    if isinstance(value, range):
        return {KIND: "range", "first": value.start, "stop": value.stop}
    if isinstance(value, frozenset):
        return {KIND: "set", "values": sorted(value)}
    if isinstance(value, tuple | list):
        return [_described(one) for one in value]
    name = type(value).__name__
    if not is_dataclass(value) or _kinds().get(name) is not type(value):
        raise ParameterError(f"a {name} has no document")
    document = {one.name: _described(getattr(value, one.name)) for one in fields(value)}
    # keys that came later: a mechanism without them is described as it always was
    if isinstance(value, PrivacyModel) and not value.delta:
        del document["delta"], document["rho"]
    if document.get("variation", 0) is None:
        del document["variation"]
    return {KIND: name, **document}


def _made(document: Any) -> Any:
    if isinstance(document, list):
        return tuple(map(_made, document))
    if not isinstance(document, Mapping):
        if isinstance(document, int) and abs(document) > LARGEST_NUMBER:
            raise ParameterError(f"a mechanism's whole numbers are at most {LARGEST_NUMBER:,}")
        return document
    kind = document[KIND]
    if kind == "exact":
        return exact_from_text(document["value"])
    if kind == "range":
        found = range(document["first"], document["stop"])
        if found.stop - found.start > LONGEST_RANGE:
            raise ParameterError(f"a range has at most {LONGEST_RANGE} steps")
        return found
    if kind == "set":
        return frozenset(map(_made, document["values"]))
    given = {key: _made(one) for key, one in document.items() if key not in (KIND, *COUNT_NODES)}
    for key in document.keys() & set(COUNT_NODES):
        given[key] = tuple(document[key]) if isinstance(document[key], list) else document[key]
    make = _kinds()[kind]
    if make is AggregationTree:
        _check_tree(given["nodes"], given["parents"])
    return make(**given)


def _check_tree(nodes: Any, parents: Any) -> None:
    known = isinstance(nodes, tuple) and isinstance(parents, tuple) and len(nodes) == len(parents) > 0
    if not known or not all(isinstance(name, str) for name in nodes) or len(set(nodes)) < len(nodes):
        raise ParameterError("a tree has nodes, each with a name of its own and a parent")
    rest = enumerate(parents[1:], start=1)
    if parents[0] != -1 or not all(type(up) is int and 0 <= up < place for place, up in rest):
        raise ParameterError("a tree's nodes stand after their parents, the root first")


# Measurements as rows, one noisy integer each, with its node, its steps and its noise.

SCHEMA = {
    "level": pl.Int32(),
    "node": pl.String(),
    "kind": pl.String(),
    "feature": pl.String(),
    "number": pl.Int32(),
    "first_step": pl.Int32(),
    "n_steps": pl.Int32(),
    "value": pl.Int64(),
    "noise_variance": pl.Float64(),
    "joint": pl.Boolean(),
}
"""Columns of a file of measurements (docs/data/measurements.md)."""
SHAPE = "shape"
MOST_ENTRIES, ENTRIES_A_ROW = 2**20, 64
"""Of the arrays of one day, which anyone may have written. Each leaf or level above has a drawn number, and
few other entries.
"""


def levels_of(mechanism: Mechanism) -> tuple[int, ...]:
    """Return the depths in the tree of the parts of a mechanism's measurements; (0,) without parts."""
    return tuple(level for level, _ in mechanism.levels) if isinstance(mechanism, Hierarchical) else (0,)


def rows_of(measured: Measured, mechanism: Mechanism) -> pl.DataFrame:
    """Return a row for each noisy integer that was drawn, by part, array and node."""
    tree: AggregationTree = getattr(mechanism, "tree")  # noqa: B009
    features: Sequence[Feature] = getattr(mechanism, "features", ())
    of_sums = {BlockSums.stage, FourierCoordinates.stage, *(feature_stage(one) for one in features)}
    levels, parts = levels_of(mechanism), measured.parts or (measured,)
    if len(parts) != len(levels):
        raise PublicationError(
            "the stored measurements have other levels than the configured mechanism measures: publish with "
            "the configuration of their draw, or without [published] measurements"
        )
    frames = [pl.DataFrame(schema=SCHEMA)]
    for level, part in zip(levels, parts, strict=True):
        nodes = tree.levels[level] if measured.parts else range(len(tree.nodes))
        depths = np.array([tree.depths[one] for one in nodes], dtype=np.int32)
        names = pl.Series([tree.nodes[one] for one in nodes], dtype=pl.String)
        for kind, feature, stage, spans, values, variances in _arrays(part, features):
            if values.shape != (len(nodes), len(spans)):
                raise PublicationError(
                    "the stored measurements have other nodes or steps than the configured mechanism: "
                    "publish with the configuration of their draw, or without [published] measurements"
                )
            noise = np.broadcast_to(np.inf if variances is None else variances, values.shape)
            node, column = np.nonzero(np.isfinite(noise))
            of_column = np.array(spans, dtype=np.int32).reshape(-1, 2)[column]
            own = [one for one in part.spends if (one.stage == stage if stage else one.stage not in of_sums)]
            joint = [one.level for one in own if isinstance(one, JointSpend | OrderSpend)]
            drawn = {
                "level": depths[node],
                "node": names.gather(node),
                "number": column.astype(np.int32),
                "first_step": of_column[:, 0],
                "n_steps": of_column[:, 1],
                "value": values[node, column].astype(np.int64),
                "noise_variance": noise[node, column],
                "joint": np.isin(depths[node], joint),
            }
            labels = pl.lit(kind).alias("kind"), pl.lit(feature, pl.String).alias("feature")
            frames.append(pl.DataFrame(drawn).with_columns(labels).select(SCHEMA.keys()))
    return pl.concat(frames)


def _arrays(part: Measured, features: Sequence[Feature]) -> Iterator[Any]:
    """Yield each array of a part: kind, feature, stage, steps of each column, values and variances."""
    if part.positions:
        points = [(step, 1) for step in part.positions]
        yield "point", None, None, points, part.points, part.point_variances
    answers = part.answers
    known = answers.variances or [None] * len(answers.values)
    for place, (sums, variances) in enumerate(zip(answers.values, known, strict=True)):
        if isinstance(answers, BlockSums):
            spans = [(first, stop - first) for first, stop in (part.choices or {})["blocks"]]
            yield "block", None, answers.stage, spans, sums, variances
        elif isinstance(answers, FourierCoordinates):
            spans = [(0, part.n_steps)] * sums.shape[-1]
            yield "coordinate", None, answers.stage, spans, sums, variances
        else:
            spans = [(one.start, len(one)) for one in features[place].parts]
            yield "feature", features[place].name, feature_stage(features[place]), spans, sums, variances


def _with_arrays(document: Json, of: Callable[[Any, Any], Any]) -> Json:
    """Return the document with others in place of its arrays, made of each and its variances."""
    sums, variances = document["sums"], document["sum_variances"]
    return {
        **document,
        "points": of(document["points"], document["point_variances"]),
        "sums": [of(*pair) for pair in zip(sums, variances or [None] * len(sums), strict=True)],
        "parts": [_with_arrays(part, of) for part in document["parts"]],
    }


def without_numbers(document: Json) -> Json:
    """Return the document with the shapes of its noisy numbers in their place, for `with_numbers`."""
    return _with_arrays(document, lambda numbers, _: {SHAPE: list(np.shape(numbers))})


def with_numbers(document: Json, rows: pl.DataFrame) -> Json:
    """Return what `without_numbers` was given, with 0 where nothing was drawn, or ValueError."""
    left = rows["value"].to_numpy()
    allowed = MOST_ENTRIES + ENTRIES_A_ROW * left.size

    def filled(entry: Json, variances: Any) -> Any:
        nonlocal left, allowed
        shape = entry[SHAPE]
        allowed -= math.prod(shape)
        if min(shape) < 0 or allowed < 0:
            raise ValueError
        values = np.zeros(shape, dtype=np.int64)
        if values.size:
            # nothing was drawn where the document has null
            given = np.array([[np.nan]] if variances is None else variances, dtype=np.float64)
            drawn = np.isfinite(np.broadcast_to(given, shape))
            values[drawn], left = np.split(left, [int(drawn.sum())])
        return values.tolist()

    found = _with_arrays(document, filled)
    if left.size:
        raise ValueError
    return found


# What a day remembers of days before is left out of its file, and put back from theirs: a day that remembers
# all blocks of weeks would else show those of a day that was withdrawn since, or never published. So a
# history is published as which blocks it holds, with its number of series in place of their sums; each sum
# is published by its own day alone.

Block = tuple[int, int, int, float]  # level, first step, number of steps, noise scale
STATES = ("state", "before")
SUMS, SERIES = "sums", "n_series"


def blocks_of(measured: Measured, levels: Sequence[int]) -> dict[Block, tuple[int, ...]]:
    """Return the sums of every block that a period measured, if any, one for each node of its level."""
    found = dict[Block, tuple[int, ...]]()
    for level, part in zip(levels, measured.parts or (measured,), strict=True):
        with suppress(ParameterError):
            own = BlockHistory.of(part)
            sums = own.sums.astype(np.int64).T.tolist()
            found |= zip(_blocks(own.to_document(), level), map(tuple, sums), strict=True)
    return found


def _blocks(history: Mapping[str, Any], level: int) -> Iterator[Block]:
    columns = zip(history["starts"], history["lengths"], history["scales"], strict=True)
    return ((level, start, length, scale) for start, length, scale in columns)


def _histories(document: Json, levels: Sequence[int]) -> Iterator[tuple[int, Json]]:
    """Yield every history in the states of a document of measurements, each with its level."""
    parts = list(zip(levels, document["parts"], strict=True)) if document["parts"] else []
    for level, one in [(0 if parts else levels[0], document), *parts]:
        for key in STATES:
            yield from _histories_in(one[key], level)


def _histories_in(state: Any, level: int) -> Iterator[tuple[int, Json]]:
    if isinstance(state, dict):
        if isinstance(state.get("history"), dict):
            yield level, state["history"]
        if isinstance(state.get("levels"), dict):
            for key, one in state["levels"].items():
                yield from _histories_in(one, int(key))


def _with_states(document: Json, of: Callable[[Any], Any]) -> Json:
    changed = {**document, **{key: of(document[key]) for key in STATES}}
    return changed | {"parts": [_with_states(part, of) for part in document["parts"]]}


# The file.

LIMITS = Limits(rows=2**28, columns=len(SCHEMA), group_rows=2**28, group_bytes=2**34)
LONGEST_PERIOD, FARTHEST_STEP = 2**12, 2**40
"""Steps of a day, of a minute at least; running index of its first, which anyone may have written."""


class Found(Document):
    """A file of measurements but for its rows: `document` has histories without sums, in the file no numbers;
    `measured_hash` is of the whole (`Measured.to_bytes`), as the ledger has it."""

    called: ClassVar[str] = "a file of measurements"
    format: Literal["optstream.measurements/1"] = FORMAT
    period: Period
    revision: Count
    levels: Annotated[tuple[int, ...], Strict(False)]
    document: Json = Field(alias="measured")
    measured_hash: Hash
    mechanism: Json | None
    rounding: Literal["nearest", "unbiased"]
    least_units: int | None

    @property
    def measured(self) -> Measured:
        """The measurements themselves, all that earlier days left taken out."""
        return Measured.from_bytes(json.dumps(_with_states(self.document, lambda _: None)).encode())

    @property
    def remembered(self) -> set[Block]:
        """The blocks that the histories hold."""
        several = _histories(self.document, self.levels)
        return {block for level, history in several for block in _blocks(history, level)}


def encode_measurements(
    measured: Measured,
    mechanism: Mechanism,
    *,
    period: date,
    revision: int,
    rounding: str,
    least_units: int | None,
) -> bytes:
    """Return the Parquet file of a day's measurements, which was read back. Raises PublicationError."""
    data, levels = measured.to_bytes(), levels_of(mechanism)
    document = json.loads(data)
    for _, history in _histories(document, levels):
        history[SERIES] = n_series_of(history)
        del history[SUMS]
    facts = {"period": period, "revision": revision, "rounding": rounding, "least_units": least_units}
    facts |= {"levels": levels, "measured": without_numbers(document), "mechanism": describe(mechanism)}
    footer = Found.read(facts | {"measured_hash": hashlib.sha256(data).hexdigest()})
    encoded = encode_table(rows_of(measured, mechanism), {KEY: _text(footer.to_json())})
    if decode_measurements(encoded).document != document:
        raise PublicationError("the measurements cannot be read back from their file: nothing is published")
    return encoded


def _text(document: Json) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def decode_measurements(data: bytes) -> Found:
    """Return a file of measurements, which anyone may have written. Raises PublicationError."""
    rows, metadata = decode_table(data, LIMITS, "a file of measurements")
    with as_written(NO_MEASUREMENTS):
        footer = json.loads(metadata[KEY])
        if "format" not in footer or dict(rows.schema) != SCHEMA:
            raise ValueError
        found = Found.model_validate(footer, extra="ignore")
        # the steps of one day: estimates hold all of them
        n_steps, first_step = found.document["n_steps"], found.document["first_step"]
        if type(n_steps) is not int or not 1 <= n_steps <= LONGEST_PERIOD or abs(first_step) > FARTHEST_STEP:
            raise ValueError
        parts = found.document["parts"]
        if any(
            (one["n_steps"], one["first_step"], one["parts"]) != (n_steps, first_step, []) for one in parts
        ):
            raise ValueError
        return found.changed(document=with_numbers(found.document, rows))


@as_written(NO_MEASUREMENTS)
def completed(found: Found, earlier: dict[Block, tuple[int, ...]]) -> Measured:
    """Return the measurements with earlier days' sums; PublicationError where one is missing or another."""
    known = earlier | blocks_of(found.measured, found.levels)
    if missing := found.remembered - known.keys():
        raise PublicationError(
            f"the estimate of {found.period} rests on measurements of earlier days; {len(missing)} of them "
            "are not in the folder: those days were published without measurements, or withdrawn"
        )
    whole = _with_states(found.document, deepcopy)
    for level, history in _histories(whole, found.levels):
        columns = [known[block] for block in _blocks(history, level)]
        sums = np.array(columns, dtype=np.float64).reshape(len(columns), history.pop(SERIES)).T
        history[SUMS] = packed(sums)
    data = _text(whole)
    if hashlib.sha256(data).hexdigest() != found.measured_hash:
        raise PublicationError(
            f"the estimate of {found.period} rests on other measurements than the folder has: a day that it "
            "remembers was measured again since, or a file was altered (`optstream verify-published`)"
        )
    return Measured.from_bytes(data)


# The measurements of a published day, read back with all that its release rests on.


@dataclass(frozen=True)
class DayMeasurements:
    """The measurements of a published day, and what makes its release of them.

    Attributes:
        period: The local day.
        measured: The measurements, with the mechanism's memory: for `mechanism.estimate`.
        mechanism: That of the release; None where its parameters cannot be written down.
        later: Measurements of later days that a new estimate is made of, rising; () for a first estimate.
        rounding: How the release's values are rounded, "nearest" or "unbiased".
        least_units: Units of the resolution that every leaf has at least; None for no bound.
    """

    period: date
    measured: Measured
    mechanism: Mechanism | None
    later: tuple[Measured, ...]
    rounding: Any
    least_units: int | None

    def release(self) -> Release:
        """Estimate the day again, as its publisher did: the release before it was rounded. Draws nothing.

        Raises:
            PublicationError: The mechanism cannot be made from the file, or is not of these measurements.
        """
        if self.mechanism is None:
            raise PublicationError("the mechanism's parameters are not in the file: make it, and estimate")
        with as_written(NO_MEASUREMENTS):
            if self.later:
                return self.mechanism.revise(self.measured, self.later)
            return self.mechanism.estimate(self.measured)

    def values(self) -> NDArray[np.float64]:
        """Return the values as they are published, but for public facts (`constraints` of the statement).

        Returns:
            (n_nodes, n_steps), in the unit of the readings: nodes and steps in the tree's order.

        Raises:
            PublicationError: As `release`.
        """
        found, unit, first_step = self.release(), self.measured.resolution, self.measured.first_step
        with as_written(NO_MEASUREMENTS):
            if found.tree is None:
                raise ValueError  # publications are of a tree
            given = found.values, found.tree, unit, self.rounding
            units = rounded_units(*given, first_step=first_step, least=self.least_units)
            return units.astype(np.float64) * unit.numerator / unit.denominator


def read_measurements(
    folder: Location | str, day: date, public_key: GivenKeys | None = None
) -> DayMeasurements:
    """Return the noisy measurements of a published day, where they are published (docs/data/measurements.md).

    Hashes are compared: the catalogue's with the release, the release's with its measurements, and what the
    day remembers of earlier ones with the hash that its publisher's ledger has.

    Args:
        folder: A path, or the URL of a folder in an object store.
        day: The local day.
        public_key: The publisher's, as for `read_published`.

    Returns:
        Of the release that the catalogue lists.

    Raises:
        ParameterError: The URL or a public key cannot be one.
        PublicationError: The day, or a day that its release rests on, is not published with measurements; or
            a file is missing, or differs from its hash.
    """
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    found, later_days = _listed(storage, catalogue, day)
    later = [_listed(storage, catalogue, one)[0] for one in later_days]
    # new estimates are made of first measurements alone
    if renewed := [one.period for one in later if one.revision]:
        raise PublicationError(
            f"the estimate of {day} rests on the first measurements of {renewed[0]}, which has others by now"
        )
    return DayMeasurements(
        period=day,
        measured=_whole(storage, found),
        mechanism=None if found.mechanism is None else mechanism_from(found.mechanism),
        later=tuple(_whole(storage, one) for one in later),
        rounding=found.rounding,
        least_units=found.least_units,
    )


def _listed(storage: Storage, catalogue: Catalogue, day: date) -> tuple[Found, tuple[date, ...]]:
    entry = catalogue.entry(day)
    if entry is None or entry.withdrawn:
        raise PublicationError(f"{day} is not published, or was withdrawn; see the catalogue")
    stated = read_statement(storage, entry).measurements
    if stated is None:
        raise PublicationError(
            f"{day} is published without measurements: its publisher had [published] measurements off"
        )
    return _read(storage, day, entry.revision, stated.file_hash), stated.later


def _read(storage: Storage, period: date, revision: int, file_hash: str) -> Found:
    name = measurements_file(period, revision, file_hash)
    found = decode_measurements(read_attachment(storage, period, file_hash, name))
    if (found.period, found.revision) != (period, revision):
        raise PublicationError(f"the measurements of {period} are of another day or revision; restore them")
    return found


def _whole(storage: Storage, found: Found) -> Measured:
    """Return the measurements with the sums that they remember, of files listed or not: the hash decides."""
    with as_written(NO_MEASUREMENTS):
        missing = found.remembered - blocks_of(found.measured, found.levels).keys()
        earliest = min((first_step for _, first_step, _, _ in missing), default=0)
    files = []
    for name in storage.names_below(MEASUREMENTS) if missing else ():
        folder, _, last = name.removeprefix(f"{MEASUREMENTS}/").rpartition("/")
        with suppress(ValueError):
            if (known_by := numbers_and_hash(MEASUREMENTS, last)) is not None:
                files.append((period_from_partition(folder).isoformat(), *known_by))
    known: dict[Block, tuple[int, ...]] = {}
    # newest day first, and of a day the newest revision
    for period, (revision,), file_hash in sorted(files, reverse=True):
        if period < found.period.isoformat():
            one = _read(storage, period_from(period), revision, file_hash)
            with as_written(NO_MEASUREMENTS):
                measured = one.measured
                known = blocks_of(measured, one.levels) | known
            if not missing - known.keys() or measured.first_step + measured.n_steps <= earliest:
                break
    return completed(found, known)
