"""Covariates are read in processes of their own: a file that ends one costs its covariate, not the night."""

import hashlib
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from resource import RLIMIT_AS, RLIMIT_CPU, setrlimit
from threading import Timer
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import CATALOGUE
from optstream.catalogue.read import rows_of
from optstream.errors import DumpError, OptStreamError
from optstream.storage.parquet import Limits, claims_of
from optstream.stream import AggregationTree
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import LARGEST, Covariate
from tasks.config import Settings
from tasks.config.fields import Section, located
from tasks.config.load import read_toml, stream_files
from tasks.config.schema import PATH, PublicSeries
from tasks.config.settings import SECTIONS
from tasks.trusted.files import is_failure

# A value a day for each node. Files are untrusted: reads are bounded.

LARGEST_FILE = 2**26  # bytes
LIMITS = Limits(rows=2**25, columns=1000, group_bytes=2**30)
LONGEST_PAST = 400
"""Days before the one that is asked about: `history_days` is at most 366, and smoothed values need a past."""


class Asked(Section):
    """What a process reads for another. private: folders that may hold no such file, by configuration key."""

    given: PublicSeries
    place: Path
    private: dict[str, Path]
    time_zone: str
    parents: tuple[tuple[str, str | None], ...]
    until: date


def covariate_of(asked: Asked) -> Covariate:
    """Return a row for each node or one for all. Raises DumpError, and errors of libraries on a file."""
    given = asked.given
    if asked.place.is_dir() and (asked.place / CATALOGUE).is_file():
        table = _published_rows(asked)
    else:
        table = _rows(asked.place, _bytes_of(asked), asked)
    day = pl.col("time").dt.date()
    past = day.is_between(asked.until - timedelta(days=LONGEST_PAST), asked.until)
    # a value beyond all measure, and a day that is none of these, cost themselves alone
    table = table.filter(past & (pl.col("value").abs() <= LARGEST))
    # a later row corrects an earlier one; then the mean of a day
    table = table.unique(["time", "node"], keep="last", maintain_order=True)
    table = table.group_by(day.alias("day"), "node").agg(pl.col("value").mean())
    if table.is_empty():
        raise DumpError(
            f"{given.path} must have a number in column {given.value!r} on some of the {LONGEST_PAST} days "
            f"up to {asked.until}; it has none: name the right column, or have newer days delivered"
        )
    days = (table["day"] - ORIGIN).dt.total_days().to_numpy()
    first, rows = int(days.min()), dict[str | None, NDArray[np.float64]]()
    for node, day_number, value in zip(table["node"], days - first, table["value"], strict=True):
        rows.setdefault(node, np.full(days.max() - first + 1, np.nan))[day_number] = value
    values = _of_nodes(rows, AggregationTree.from_parents(dict(asked.parents)), given)
    return Covariate(given.name, first, values, given.publication_lag_days)


def _published_rows(asked: Asked) -> pl.DataFrame:
    """Return local day, node and mean of what another stream published. Raises DumpError."""
    given, real = asked.given, asked.place.resolve()
    _check_public(real, given.path, asked)
    try:
        storage = open_storage(asked.place)
        catalogue = read_catalogue(storage)
        if catalogue.value_column != given.value:
            raise DumpError(
                f"{given.path} publishes the column {catalogue.value_column!r:.40}: name that as value; got "
                f"{given.value!r:.40}"
            )
        first = asked.until - timedelta(days=LONGEST_PAST)
        rows = rows_of(storage, catalogue, (), first, asked.until, verify=True)
    except OptStreamError as error:
        raise error if isinstance(error, DumpError) else DumpError(f"{given.path}: {error}") from None
    value = pl.col(given.value).cast(pl.Float64).mean().alias("value")
    return rows.group_by(pl.col("date").cast(pl.Datetime("us")).alias("time"), "node").agg(value)


def _bytes_of(asked: Asked) -> bytes:
    """Return the content of the file whose hash the configuration names. Raises DumpError for another one."""
    path, file = asked.given.path, asked.place
    if asked.given.sha256 is None or not file.exists():
        found = "a folder without a catalogue" if file.is_dir() else "another" if file.exists() else "nothing"
        raise DumpError(f"{path} must be {PATH}; found {found}: correct the path, or have it delivered")
    # a pipe that nobody writes to would be waited for
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        _check_public(file.resolve(), path, asked)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DumpError(f"{path} must be a regular file: deliver it again")
        data = opened.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise DumpError(
            f"{path} must have at most {LARGEST_FILE // 2**20} MiB: leave out columns and years that are "
            "not needed"
        )
    if hashlib.sha256(data).hexdigest() != asked.given.sha256:
        raise DumpError(
            f"{path} is not the file whose sha256 the configuration names: deliver that one, or look at this "
            "one and name the hash that `sha256sum` prints"
        )
    return data


def _check_public(real: Path, named: str, asked: Asked) -> None:
    """Raise DumpError where a place, links followed, lies in one of the private folders."""
    for key, zone in asked.private.items():
        if real.is_relative_to(zone.resolve()):
            raise DumpError(
                f"{named} leads into {key}.folder, which is private: anything learned from it would leak, "
                "and no ledger would see it; deliver a file that is public"
            )


def _rows(file: Path, data: bytes, asked: Asked) -> pl.DataFrame:
    """Return time (local), node (null where there is no such column) and value of every row of a file."""
    given, source, named = asked.given, io.BytesIO(data), f"{file.name!r:.80}"
    if file.suffix == ".csv":
        table = pl.read_csv(source, schema_overrides={"node": pl.String}, try_parse_dates=True)
    else:
        claims = claims_of(data)
        if claims is None or not claims.within(LIMITS):
            raise DumpError(f"{named} must be a Parquet file of {LIMITS.words}")
        wanted = {"date", "timestamp", given.value, "node"}
        kept = [name for name in pl.read_parquet_schema(source) if name in wanted]
        table = pl.read_parquet(io.BytesIO(data), columns=kept, use_pyarrow=False)
    times = [name for name in ("date", "timestamp") if name in table.columns]
    if len(times) != 1 or given.value not in table.columns:
        raise DumpError(
            f"{named} must have a column date or timestamp, and a column {given.value!r} of numbers; "
            f"it has {_headers(table)}: name its columns by the keys value and node"
        )
    kind, time = table.schema[times[0]], pl.col(times[0])
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        time = time.dt.convert_time_zone(asked.time_zone).dt.replace_time_zone(None)
    elif not isinstance(kind, pl.Datetime | pl.Date):
        raise DumpError(
            f"column {times[0]} of {named} must be of dates or instants such as 2016-02-01; it is {kind}"
        )
    if not table.schema[given.value].is_numeric() and table.schema[given.value] != pl.Boolean:
        raise DumpError(
            f"column {given.value!r} of {named} must be of numbers, empty where there are none; it is "
            f"{table.schema[given.value]}"
        )
    node = pl.col("node") if "node" in table.columns else pl.lit(None)
    return table.select(
        time.cast(pl.Datetime("us"), strict=False).alias("time"),
        node.cast(pl.String).alias("node"),
        pl.col(given.value).cast(pl.Float64).alias("value"),
    )


def _headers(table: pl.DataFrame) -> str:
    # no values: a wrong file's first line may hold readings
    if not all(name.isidentifier() for name in table.columns):
        return "a first line that is no line of names"
    return ", ".join(f"{name!r:.40}" for name in table.columns[:10]) or "none of these"


def _of_nodes(
    rows: Mapping[str | None, NDArray[np.float64]], tree: AggregationTree, given: PublicSeries
) -> NDArray[np.float64]:
    """Return one row for all, or one a node: its own values, else of the node above, else the mean below."""
    if set(rows) == {None}:
        found = np.array([rows[None]])
        if not given.nodes:
            return found
        values = np.repeat(found, len(tree.nodes), axis=0)
    else:
        of_node = [rows.get(name) for name in tree.nodes]
        if all(row is None for row in of_node):
            raise DumpError(
                f"{given.path} must name nodes of the hierarchy, such as {tree.leaves[0]!r:.40}, in column "
                "'node'; it names none: rename the column or its nodes in the file"
            )
        below: list[list[NDArray[np.float64]]] = [[] for _ in tree.nodes]
        for node, parent in enumerate(tree.parents[1:], 1):  # parents come first
            of_node[node] = of_node[parent] if of_node[node] is None else of_node[node]
        for node in reversed(range(len(tree.nodes))):
            if of_node[node] is None and below[node]:
                of_node[node] = np.mean(below[node][::-1], axis=0)
            if node and (row := of_node[node]) is not None:
                below[tree.parents[node]].append(row)
        nothing = np.full(next(iter(rows.values())).size, np.nan)
        values = np.array([nothing if row is None else row for row in of_node])
    if given.nodes:
        chosen = np.array([name in given.nodes for name in tree.nodes])
        for node, parent in enumerate(tree.parents[1:], 1):
            chosen[node] |= chosen[parent]
        values[~chosen] = np.nan
    return values


# Folders that may hold no covariate: facts learned from readings would leak, unseen by any ledger.
#
# The stream's own are known. Of other streams only what files on this machine tell: it is a guard against
# mistakes, and no proof that a file is public.

CONFIGURATION = "optstream.toml"
MOST_ABOVE = 64
"""Most folders above a place: a delivered file may be a link into thousands, each with a long file."""
UNUSABLE = (OptStreamError, OSError, RuntimeError, ValueError, LookupError, TypeError)
"""Errors of a file that is none or names no folder, and of a link to itself."""


def private_zones(settings: Settings, place: Path) -> dict[str, Path]:
    """Return, by configuration key, the private folders of the stream and of its population's streams."""
    zones = {"input": settings.input_folder, "trusted": settings.trusted_folder}
    for file in _configurations(settings, place):
        for key in ("input", "trusted"):
            with suppress(*UNUSABLE):
                usual = {"folder": SECTIONS[key].model_fields["folder"].default}
                folder = (usual | read_toml(file).get(key, {}))["folder"]
                zones[f"{file}: {key}"] = located(folder, file.parent)
    return {key: zone for key, zone in zones.items() if isinstance(zone, Path)}


def _configurations(settings: Settings, place: Path) -> Iterator[Path]:
    if named := settings.privacy.population_file:
        with suppress(*UNUSABLE):
            yield from stream_files([settings.folder / named])
    starts = {place: None}
    with suppress(*UNUSABLE):  # of a link that leads nowhere
        starts[place.resolve()] = None
    for start in starts:
        for folder in (start, *start.parents)[:MOST_ABOVE]:
            with suppress(*UNUSABLE):
                if (found := folder / CONFIGURATION).is_file():
                    yield found


MOST_MEMORY = 2**33  # bytes of address space; threads reserve more than they use
MOST_SECONDS = 120  # of the clock on the wall, and of a processor
LARGEST_ANSWER = 2**26  # bytes; the most nodes over the longest past take less than half of it


@dataclass(frozen=True)
class Covariates:
    """The read covariates; for each failed one, by name, the place, the rule and the remedy."""

    read: tuple[Covariate, ...]
    unread: Mapping[str, str]


def read_covariates(settings: Settings, until: date) -> Covariates:
    """Return the configured covariates up to a day; raises nothing over any file."""
    found, unread = [], dict[str, str]()
    for given in settings.covariates:
        place = settings.folder / given.path
        asked = Asked(
            given=given,
            place=place,
            private=private_zones(settings, place),
            time_zone=settings.stream.time_zone,
            parents=settings.tree_of(until).parents_by_name(),
            until=until,
        )
        try:
            found.append(_read_apart(asked))
        except DumpError as error:
            unread[given.name] = f"covariate {given.name}: {error}"
    return Covariates(tuple(found), unread)


def _read_apart(asked: Asked) -> Covariate:
    """Read in a process of its own. Raises DumpError in its words, or where it gave no answer."""
    given = asked.given
    try:
        answer = json.loads(_answer_of_process(asked))
        if "why" not in answer:
            return _checked(answer["first_day"], np.array(answer["values"], dtype=np.float64), asked)
        problem = f"{answer['why']:.500}"
    except BaseException as error:
        if not is_failure(error):
            raise
        problem = (
            f"{given.path} cannot be read: the process that reads it ended over it or took longer than "
            f"{MOST_SECONDS} seconds; it is damaged, made to do harm, or too large: deliver it again"
        )
    raise DumpError(problem)


def _answer_of_process(asked: Asked) -> bytes:
    # the present folder is no place to import from
    command, pipe = [sys.executable, "-P", "-m", __name__], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(MOST_SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(asked.model_dump_json().encode())
            process.stdin.close()
            return process.stdout.read(LARGEST_ANSWER)
        finally:
            timer.cancel()
            process.kill()


def _checked(first: Any, values: NDArray[np.float64], asked: Asked) -> Covariate:
    """Return the answer of a process that decoded untrusted files. Raises ValueError for none."""
    if type(first) is not int:  # columns are counted from it
        raise ValueError
    past = asked.until - ORIGIN - timedelta(days=first + values.shape[1] - 1)
    if len(values) not in (1, len(asked.parents)) or not timedelta(0) <= past <= timedelta(LONGEST_PAST):
        raise ValueError
    return Covariate(asked.given.name, first, values, asked.given.publication_lag_days)


def read_here(asked: Asked) -> Covariate:
    """Return the covariate. Raises DumpError, which repeats nothing that a library says of a file."""
    try:
        return covariate_of(asked)
    except DumpError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        reason = error.strerror if isinstance(error, OSError) else None
        why = f" ({reason})" if reason else " as a table"
        raise DumpError(
            f"{asked.given.path} cannot be read{why}: repair it, or have it delivered again"
        ) from None


if __name__ == "__main__":
    setrlimit(RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    setrlimit(RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    try:
        answer = read_here(Asked.model_validate_json(sys.stdin.buffer.read())).to_document()
    except DumpError as error:
        answer = {"why": str(error)}
    sys.stdout.write(json.dumps(answer, allow_nan=False))
