"""Read the published folder through its catalogue. Files are untrusted input."""

import hashlib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import groupby, product
from typing import NamedTuple

import polars as pl
from pydantic import StrictInt, TypeAdapter, ValidationError

from optstream.catalogue import layout
from optstream.catalogue.about import NodeFacts, find_hierarchy, read_about
from optstream.catalogue.backends import Readable, Storage, open_storage
from optstream.catalogue.index import Catalogue, DayEntry, Entry, read_catalogue
from optstream.catalogue.rows import (
    CUSTOMERS_ERROR,
    MAY_BE_NULL,
    band_columns,
    error_columns,
    estimate_column,
    hash_rows,
    holds_each_once,
    joined_rows,
    kind_of,
    schema,
)
from optstream.catalogue.signing import GivenKeys, signature_check
from optstream.catalogue.statement import Footer, ReleaseStatement, StagedRelease, dated_rows, decode, encode
from optstream.errors import ParameterError, PublicationError
from optstream.privacy.spends import CUSTOMERS
from optstream.storage.store import Location
from optstream.stream import AggregationTree, DatedHierarchy
from optstream.stream.period import day_of

# Files of the folder, found by the catalogue and compared with it.


def read_file(storage: Readable, entry: Entry, verify: bool = False) -> bytes:
    """Return the file's bytes, also if a newer release moved it meanwhile; verify: compare the hash."""
    key = entry.period, entry.file_hash
    names = dict.fromkeys((entry.file, layout.data_file(*key), layout.superseded_file(*key)))
    return read_first(storage, list(names), entry.file_hash if verify else None, put_back(entry.period))


def read_attachment(storage: Readable, period: date, file_hash: str, *names: str) -> bytes:
    """Return a file attached to a release, at the first of these names that is there, as `read_file`."""
    return read_first(storage, names, file_hash, put_back(period))


def put_back(period: date) -> str:
    """Return the remedy for a lost file."""
    return (
        f"its publisher puts the same bytes back with `optstream publish {period}`, which draws and costs "
        "nothing"
    )


def read_first(storage: Readable, names: Sequence[str], file_hash: str | None, remedy: str) -> bytes:
    """Return the first of these files. Raises PublicationError without any, or if its hash is another."""
    for name in names:
        with suppress(FileNotFoundError):
            data = storage.read(name)
            if file_hash is not None and hashlib.sha256(data).hexdigest() != file_hash:
                raise PublicationError(
                    f"{names[0]} differs from its hash as published; remove it, and {remedy}"
                )
            return data
    raise missing(names[0], remedy)


def missing(name: str, remedy: str) -> PublicationError:
    return PublicationError(f"{name} is missing; {remedy}")


def read_statement(storage: Readable, entry: Entry) -> ReleaseStatement:
    """Return the statement in the file of a listed release; of a day of hours the last hour's."""
    last = entry.own[-1] if isinstance(entry, DayEntry) else entry
    return StagedRelease(read_file(storage, last, verify=True)).statement


def is_of(stated: ReleaseStatement, catalogue: Catalogue, entry: Entry) -> bool:
    """Return whether a statement is about the release that the catalogue lists."""
    of_stream = (stated.stream, stated.value_column) == (catalogue.stream, catalogue.value_column)
    named = stated.period, stated.revision, stated.vintage
    return of_stream and named == (entry.period, entry.revision, entry.vintage)


def read_release(
    storage: Readable, catalogue: Catalogue, entry: Entry, verify: bool
) -> tuple[pl.DataFrame, Footer]:
    """Return rows and footer of a listed release; PublicationError if its file is missing or another's."""
    inner, footer = decode(read_file(storage, entry, verify))
    if footer.rows_hash != entry.rows_hash or not is_of(footer.stated, catalogue, entry):
        raise PublicationError(f"{entry.file} is another release than the catalogue names; restore it")
    rows = dated_rows(inner, footer.stated)
    if verify and hash_rows(rows) != entry.rows_hash:
        raise PublicationError(
            f"the rows of {entry.file} differ from their hash in the catalogue; restore it"
        )
    return rows, footer


def listed_errors(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """Return which of these files of the published folder are of errors of a listed release, rising."""
    listed = {
        (layout.folder_of(layout.ERRORS, one.period), (one.revision, one.vintage)) for one in catalogue.listed
    }

    def is_listed(name: str) -> bool:
        folder, _, last = name.rpartition("/")
        named = layout.numbers_and_hash(layout.ERRORS, last)
        return named is not None and (folder, named[0]) in listed

    return tuple(sorted(filter(is_listed, names)))


# The file of a closed day: the rows of its hours, with the hashes that these had as files of their own.

FORMAT = "optstream.day/1"
_HOURS = TypeAdapter(list[tuple[str, str, str, StrictInt]], config={"defer_build": True})
"""Of each hour its period, the hashes of its own file and of its rows, and its number of rows."""


def encode_day(entries: Sequence[Entry], frames: Sequence[pl.DataFrame]) -> bytes:
    """Return the Parquet file of a day's listed hours; the footer names each with its hashes and height."""
    rows = pl.concat(frames)
    hours = [[*_hashes(entry), frame.height] for entry, frame in zip(entries, frames, strict=True)]
    return encode(rows, Footer(hash_rows(rows), {"format": FORMAT, "hours": hours}))


def _hashes(entry: Entry) -> tuple[str, str, str]:
    return entry.period.isoformat(), entry.file_hash, entry.rows_hash


def _read_closed(storage: Readable, entry: Entry, verify: bool = True) -> bytes:
    """Return the file of the closed day that shows an entry; verify: compare the hash."""
    digest = entry.closed_in if verify else None
    return read_first(storage, [entry.shown_in], digest, "restore it from a copy")


def read_day(storage: Readable, value_column: str, entries: Sequence[Entry], verify: bool) -> pl.DataFrame:
    """Return the rows of a closed day's listed hours. Raises PublicationError for another file."""
    name, day = entries[0].shown_in, day_of(entries[0].period)
    inner, footer = decode(_read_closed(storage, entries[0], verify))
    try:
        hours = _HOURS.validate_python(footer.statement.get("hours"))
    except ValidationError:
        hours = []
    is_of_day = all(day_of(one.period) == day for one in entries)
    if not is_of_day or [one[:3] for one in hours] != [_hashes(one) for one in entries]:
        raise PublicationError(f"{name} has other hours than the catalogue names; restore it")
    rows = inner.select(pl.lit(day, dtype=pl.Date()).alias("date"), pl.all())
    wanted = (schema(value_column, *has) for has in product((True, False), repeat=4))
    if not any(list(one.items()) == list(rows.schema.items()) for one in wanted):
        raise PublicationError(f"{name} has other columns than a release has; restore it")
    if verify:
        left = rows
        for period, _, rows_hash, height in hours:
            if hash_rows(left[:height]) != rows_hash:
                raise PublicationError(
                    f"the rows of {period} in {name} differ from their hash in the catalogue; restore it"
                )
            left = left[height:]
        if left.height:
            raise PublicationError(f"{name} has more rows than its hours; restore it")
    return rows


# All rows, or those of some nodes and days.


def read_published(
    folder: Location | str,
    verify: bool = False,
    public_key: GivenKeys | None = None,
    as_of: date | None = None,
) -> pl.DataFrame:
    """Return the rows of all published periods, sorted by (date, step, node).

    What is read is what the catalogue listed when the call began, also while others publish; of a day that is
    withdrawn meanwhile, what the catalogue has instead: nothing, or a newer release. A signature does not
    show that there is no newer catalogue (docs/data/published.md). Warns where `about.json` names noise that
    became known.

    Args:
        folder: A path, or the URL of a folder in an object store, such as s3://bucket/published.
        verify: Whether to compare the hashes of files and rows as well.
        public_key: The publisher's, a PEM file or its text, or several; then the catalogue must be signed by
            one of them, and all hashes are compared.
        as_of: A local day: all rows in the hierarchy that holds on it, so that series go on over days on
            which units were renamed, split, merged or moved. Values are added up or left out, never divided;
            what was added up has no standard errors. None for each day's own hierarchy.

    Returns:
        Columns date, step, timestamp (UTC; null for a slot that the day does not have), node, parent, level,
        the value column, its two standard errors (`error_columns`; null where not known), of counts its band
        (`band_columns`; likewise) and estimates to add up (`estimate_column`), revision, vintage; without
        rows where every period was withdrawn.

    Raises:
        ParameterError: The URL or a public key cannot be one.
        PublicationError: There is no catalogue (the path may be wrong), it or the hierarchy is not signed as
            it should be, or a file is missing or is not the release that the catalogue names.
    """
    storage = open_storage(folder)
    look = catalogue_reader(storage, public_key)
    catalogue = look()
    with suppress(PublicationError):
        if lost_windows := read_about(storage).known_noise_in_words:
            warnings.warn(lost_windows, stacklevel=2)
    verify = verify or public_key is not None
    frames = _frames(storage, look, catalogue, catalogue.listed, verify)
    rows = joined_rows(frames, catalogue.value_column)
    if as_of is None:
        return rows
    hierarchy = find_hierarchy(storage, signature_check(storage, layout.HIERARCHY, public_key))
    return rows_as_of(rows, hierarchy, as_of, catalogue.value_column)


def catalogue_reader(storage: Storage, public_key: GivenKeys | None) -> Callable[[], Catalogue]:
    """Return what reads the folder's catalogue, which must be signed if keys are given."""
    return partial(read_catalogue, storage, signature_check(storage, layout.CATALOGUE, public_key))


def _frames(
    storage: Storage,
    look: Callable[[], Catalogue],
    catalogue: Catalogue,
    entries: Iterable[Entry],
    verify: bool,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of listed entries, of each day or hour, of a closed day those of all its hours."""
    for closed_in, several in groupby(entries, key=lambda entry: entry.closed_in):
        own, day = list(several), None
        if closed_in is not None:
            with suppress(PublicationError):  # opened again, or lost: each hour has its own file too
                day = read_day(storage, catalogue.value_column, own, verify)
        if day is not None:
            yield day
            continue
        for entry in own:
            yield from _read_period(storage, look, catalogue, entry, verify)


def _read_period(
    storage: Storage, look: Callable[[], Catalogue], catalogue: Catalogue, entry: Entry, verify: bool
) -> list[pl.DataFrame]:
    """Return the rows of a listed day; none of a tombstone, also of one that was set meanwhile."""
    while not entry.withdrawn:
        try:
            return [read_release(storage, catalogue, entry, verify)[0]]
        except PublicationError:
            now = look().entry(entry.period)
            if now is None or now == entry:
                raise
            entry = now
    return []


def rows_of(
    storage: Storage,
    catalogue: Catalogue,
    nodes: Collection[str] = (),
    first: date | None = None,
    last: date | None = None,
    *,
    verify: bool = False,
    as_of: tuple[date, DatedHierarchy | None] | None = None,
) -> pl.DataFrame:
    """Return the published rows of some nodes (all by default) from a first to a last day, `as_of` as
    `read_published`; ParameterError where no day of the span is published, or none has one of the nodes."""
    first, last = first or date.min, last or date.max
    entries = [entry for entry in catalogue.listed if first <= day_of(entry.period) <= last]
    if not entries:
        raise ParameterError(
            "no day of this span is published; see the page or catalogue.json for those that are"
        )
    wanted = pl.col("node").is_in(list(nodes)) if nodes else pl.lit(True)
    early = wanted if as_of is None else pl.lit(True)  # units of today are sums of those of other names
    frames = _frames(storage, lambda: catalogue, catalogue, entries, verify)
    rows = joined_rows((one.filter(early) for one in frames), catalogue.value_column)
    if as_of is not None:
        day, hierarchy = as_of
        rows = rows_as_of(rows, hierarchy, day, catalogue.value_column).filter(wanted)
    if nodes and (unknown := sorted(set(nodes) - set(rows["node"].unique()))):
        raise ParameterError(
            f"no published day of this span has a node {unknown[0]!r}; names are as in the files"
        )
    return rows


def with_names(rows: pl.DataFrame, facts: Mapping[str, NodeFacts]) -> pl.DataFrame:
    """Return rows with a column `name` after `node`, where any node has a name and no value is called so."""
    names = {node: known.name for node, known in facts.items() if known.name is not None}
    if not names or "name" in rows.columns:
        return rows
    column = pl.col("node").replace_strict(names, default=None, return_dtype=pl.String()).alias("name")
    after = rows.columns.index("node") + 1
    return rows.select(*rows.columns[:after], column, *rows.columns[after:])


# Some columns of a published file, for those who read years of them.

LARGEST_VALUE = 1e100
DEEPEST_LEVEL = 100


def read_columns(
    storage: Storage, entry: Entry, wanted: Collection[str], optional: Collection[str] = ()
) -> pl.DataFrame:
    """Return columns of a listed release, whose hash is compared; `optional` ones may be null."""
    if isinstance(entry, DayEntry) and entry.closed_in is None:
        return pl.concat(read_columns(storage, one, wanted, optional) for one in entry.own)
    read = _read_closed if isinstance(entry, DayEntry) else read_file
    return decode_columns(read(storage, entry, verify=True), entry, wanted, optional)[0]


def decode_columns(
    data: bytes, entry: Entry, wanted: Collection[str], optional: Collection[str] = ()
) -> tuple[pl.DataFrame, Footer]:
    """Return columns of the bytes of a listed release, as `read_columns`, and its footer."""
    try:
        frame, footer = decode(data, wanted)
    except PublicationError as error:
        raise PublicationError(f"{entry.file}: {error}; restore it") from error
    absent = set(wanted) - set(frame.columns)
    has_keys = {"step", "node"} <= set(frame.columns)
    if (
        absent - set(optional)
        or not frame.height
        or any(kind != kind_of(name) for name, kind in frame.schema.items())
        or any(frame[name].null_count() for name in set(frame.columns) - MAY_BE_NULL - set(optional))
        or not all(_is_sound(frame[name].drop_nulls()) for name in frame.columns)
        or (has_keys and not holds_each_once(frame))
    ):
        raise PublicationError(f"{entry.file} has other columns or rows than a release has; restore it")
    nulls = (pl.lit(None, dtype=kind_of(name)).alias(name) for name in sorted(absent))
    return frame.with_columns(nulls) if absent else frame, footer


def _is_sound(column: pl.Series) -> bool:
    # so that sums stay finite
    if column.dtype.is_float():
        return bool((column.abs() < LARGEST_VALUE).all())
    if column.dtype.is_integer():
        return bool((column >= 0).all() and (column.name != "level" or (column <= DEEPEST_LEVEL).all()))
    return True


# Published rows in the hierarchy of another day: values are added up or left out, never divided.


class Made(NamedTuple):
    """A node of the wanted tree on a day: the published nodes that add up to it, one or several."""

    node: str
    parent: str | None
    level: int
    sources: tuple[str, ...]


def made_of(hierarchy: DatedHierarchy, wanted: date, day: date) -> tuple[Made, ...]:
    """Return the nodes of the wanted day's tree that rows of another day add up to, in the tree's order."""
    tree, own = hierarchy.tree_of(wanted), hierarchy.tree_of(day)
    below = _leaves_below(tree)
    by_leaves = {leaves: node for node, leaves in reversed(_leaves_below(own).items())}
    between = hierarchy.map_between(min(wanted, day), max(wanted, day))
    shares = zip(between.after.leaves, between.leaves, strict=True)
    parts = [(leaf, old, share) for leaf, several in shares for old, share in several.items()]
    found = []
    for (node, parent), level in zip(tree.parents_by_name(), tree.depths.tolist(), strict=True):
        if leaves := _same_leaves(parts, between.with_new, below[node], is_after=day < wanted):
            # the node that is published of just these leaves, if any: its errors are known
            sources = (by_leaves[leaves],) if leaves in by_leaves else tuple(sorted(leaves))
            found.append(Made(node, parent, level, sources))
    return tuple(found)


def _leaves_below(tree: AggregationTree) -> dict[str, frozenset[str]]:
    found: list[set[str]] = [set() for _ in tree.nodes]
    for index in reversed(range(len(tree.nodes))):
        found[index] = found[index] or {tree.nodes[index]}
        if tree.parents[index] >= 0:
            found[tree.parents[index]] |= found[index]
    return {node: frozenset(leaves) for node, leaves in zip(tree.nodes, found, strict=True)}


def _same_leaves(
    parts: Sequence[tuple[str, str, Fraction]],
    with_new: frozenset[str],
    wanted: frozenset[str],
    is_after: bool,
) -> frozenset[str]:
    """Return the leaves of the other tree that are together just the wanted ones, leaves after if `is_after`;
    else none. parts: leaves after, leaves before, shares of these."""
    chosen = [one for one in parts if one[not is_after] in wanted]
    after = wanted if is_after else frozenset(leaf for leaf, _, _ in chosen)
    before = frozenset(old for _, old, _ in chosen) if is_after else wanted
    shares = dict.fromkeys(before, Fraction(0))
    for _, old, share in chosen:
        shares[old] += share
    if any(share != 1 for share in shares.values()):
        return frozenset()
    if is_after:
        return before
    has_others = any(leaf in after and old not in wanted for leaf, old, _ in parts)
    return frozenset() if has_others or after & with_new else after


def rows_as_of(
    rows: pl.DataFrame, hierarchy: DatedHierarchy | None, wanted: date, value: str
) -> pl.DataFrame:
    """Return published rows in the tree of one day, as far as a day's add up to it; sums have no errors."""
    if hierarchy is None or rows.is_empty():
        return rows
    columns = {"as_of": pl.String(), "above": pl.String(), "depth": pl.Int32(), "node": pl.List(pl.String())}
    errors = {*error_columns(value), *band_columns(value), CUSTOMERS_ERROR} & {*rows.columns}
    summed_up = {value, estimate_column(value), CUSTOMERS} & {*rows.columns}
    parts, made = [], dict[str, pl.DataFrame]()
    for (day,), own in rows.group_by("date", maintain_order=True):
        assert isinstance(day, date)
        nodes = hierarchy.tree_of(day).nodes
        # every node at every step: a sum that lacks one would look like any other
        if set(own["node"]) != set(nodes) or own.height != len(nodes) * own["step"].n_unique():
            raise PublicationError(
                f"the nodes of {day} are not those that hierarchy.parquet has for it; `optstream report` "
                "rebuilds that file"
            )
        tree = hierarchy.hash_of(day)
        if tree not in made:
            sources = pl.DataFrame(made_of(hierarchy, wanted, day), schema=columns, orient="row")
            made[tree] = sources.with_columns(pl.col("node").list.len().alias("n")).explode("node")
        summed = (
            made[tree]
            .join(own, on="node")
            .group_by("as_of", "step", maintain_order=True)
            .agg(
                pl.col("date", "timestamp", "revision", "vintage").first(),
                pl.col("above").first().alias("parent"),
                pl.col("depth").first().alias("level"),
                *(
                    pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name)
                    for name in summed_up
                ),
                *(
                    pl.when(pl.col("n").first() == 1).then(pl.col(name).first()).alias(name)
                    for name in errors
                ),
            )
        )
        parts.append(summed.rename({"as_of": "node"}).select(rows.columns))
    return pl.concat(parts).sort("date", "step", "node")
