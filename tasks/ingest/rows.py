"""The rows of one file as expressions: their steps and their amounts."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

import polars as pl

from data_contracts.metrics import FILE_FAULTS, raw_columns
from optstream.stream.lattice import BETWEEN
from tasks.config import Settings
from tasks.config.fields import LONGEST_COLUMN
from tasks.ingest.clamping import KINDS, Reading, reading, sum_of
from tasks.ingest.formats import facts_of, scan_file
from tasks.ingest.inspect import SourceFile
from tasks.ingest.text import microseconds_of, once_a_request, scan_text

NO_STEP = {"outside_day": -1, "off_grid": -2, "no_timestamp": -3, "unknown_region": -4}
"""Why a row has no step: a rule of the raw contract, and the negative number in place of the step."""
ROW, STAMP, NUMBER = (one.ljust(LONGEST_COLUMN + 1, ".") for one in ("row of the file", "stamp", "revision"))
"""Names that no configured column can have."""
NO_READING = ("ND", "-", "DC", "N/A", "n/e")
"""Words of texts for an empty field: not available, none, confidential, not expected."""


def rows_in(file: SourceFile) -> pl.LazyFrame:
    """The used columns of a file, with `STAMP` in place of the stamps. Of a file of several days the day's
    rows, and of a text those with a reading or a step: other lines are its writer's notes.
    """
    placeless = replace(file, number=0, day=0, leaf=0, name="", n_steps=0, start=0, fits_clock=True)
    placeless = replace(placeless, doubled=(), skipped=(), turn=())
    is_kept = file.is_partial and facts_of(file.path).size < LARGEST_KEPT
    rows = _stamped_once(placeless).lazy() if is_kept else _stamped(file)
    is_own = (_time_step(file) != NO_STEP["outside_day"]).fill_null(True)
    if file.is_partial:
        rows = rows.filter(is_own | pl.col(STAMP).is_in(file.turn))
    if file.text is not None:
        has_reading = ~pl.col(file.layout.value).is_in(NO_READING)  # null of an empty field
        step = _time_step(file)
        rows = rows.filter(has_reading | ((step >= 0) & ~step.is_in(file.skipped)))
    if (revision := file.layout.revision) is not None:
        number, text = (pl.col(revision).cast(kind, strict=False) for kind in (pl.Float64, pl.String))
        rows = rows.with_columns(number.fill_null(-1).alias(NUMBER), text.fill_null("").alias(revision))
        if file.customer is None or file.rows_a_step > 1:  # else the pass over customers judges it
            own = *_of_row(file), STAMP
            for column in (NUMBER, revision):
                rows = rows.filter(pl.col(column) == pl.col(column).max().over(own))
    if file.turn:
        rows = _turned(file, rows, *file.turn)
        rows = rows.filter(is_own) if file.is_partial else rows
    return rows if file.rows_a_step == 1 else _combined(file, rows).lazy()


def _turned(file: SourceFile, rows: pl.LazyFrame, shown: int, meant: int) -> pl.LazyFrame:
    """Sums, where that which ends as the clock is set moves to its step if a leaf has ends as the clock shows
    them: in spring none in the hour that it skips, in autumn two as it begins again, and one as it is over.
    """
    leaf, stamp, in_autumn = leaf_of(file), pl.col(STAMP), int(shown < meant)
    n_shown = (stamp == shown).sum().over(leaf)
    n_meant = stamp.is_between(meant, max(meant, shown - 1)).sum().over(leaf)
    row = pl.struct(leaf, STAMP)
    falls = (stamp.first() > stamp.last()).over(leaf)  # the newest row first
    is_later = pl.when(falls).then(row.is_first_distinct()).otherwise(row.is_last_distinct())
    is_moved = (stamp == shown) & (n_shown == in_autumn + 1) & (n_meant == in_autumn) & is_later
    return rows.with_columns(pl.when(is_moved).then(meant).otherwise(stamp).alias(STAMP))


def _of_leaf(file: SourceFile) -> list[str]:
    """The columns that say which leaf a row is of."""
    return [one for one in (file.layout.region, file.layout.margin) if one is not None]


def _of_row(file: SourceFile) -> list[str]:
    """The columns that say whose row it is: the leaf's, and of metered input the customer's."""
    return [*_of_leaf(file), *[file.layout.customer] * (file.customer is not None)]


def _stamped(file: SourceFile) -> pl.LazyFrame:
    source = scan_file(file.path) if file.text is None else scan_text(file.path, file.text)
    kept = [one for one in file.layout.columns if one not in file.layout.stamp_columns]
    return source.select(*kept, _stamp(file).alias(STAMP))


@once_a_request
def _stamped_once(file: SourceFile) -> pl.DataFrame:
    """A file of many days, kept while some of them are read."""
    return _stamped(file).collect(engine="streaming")


LARGEST_KEPT = 2**26
"""Bytes of a file that is kept."""


def _combined(file: SourceFile, source: pl.LazyFrame) -> pl.DataFrame:
    """One row for each of the stream's steps that has all of its finer rows, with their exact sum as text, so
    that the sum is clamped and rounded, and no row (Lemma 2d, docs/privacy.md). A row that comes again stays
    one too many, and one off the grid stays off it. Of customers each has a row of its own, by the first of
    rows that come again, and an absent row adds nothing.
    """
    value, decimal = file.layout.value, file.layout.decimal if file.text else "."
    metered, own = file.customer is not None, _of_row(file)
    revision = [NUMBER, file.layout.revision] if metered and file.layout.revision else []
    fine = file.length // file.rows_a_step
    since = pl.col(STAMP) - file.start
    frame = source.with_columns(pl.col(value).cast(pl.String)).collect(engine="streaming")
    on_grid = frame.filter(since % fine == 0).with_columns(fine=since // fine, coarse=since // file.length)
    if file.doubled or metered:
        is_first = pl.struct(*own, "fine").is_first_distinct()
        on_grid = on_grid.filter(is_first | (pl.lit(not metered) & ~pl.col("coarse").is_in(file.doubled)))
    steps = on_grid.group_by(*own, "coarse", maintain_order=True).agg(
        value, *(pl.col(one).max() for one in revision), n=pl.len(), distinct=pl.col("fine").n_unique()
    )
    may_lack = metered or file.layout.missing_rows == "zero"
    again = pl.col("n") > pl.col("distinct")
    steps = steps.filter(again | pl.lit(may_lack) | (pl.col("distinct") == file.rows_a_step))
    sums = (sum_of(values, decimal) for (values,) in steps.select(value).iter_rows())
    found = steps.with_columns(
        pl.Series(value, list(sums), pl.String), (pl.col("coarse") * file.length + file.start).alias(STAMP)
    )
    columns = [*own, value, STAMP, *revision]
    others = frame.filter((since % fine != 0).fill_null(True))
    return pl.concat([found.select(columns), found.filter(again).select(columns), others.select(columns)])


def _stamp(file: SourceFile) -> pl.Expr:
    """The stamps as integers in their own unit."""
    columns, written = file.layout.stamp_columns, file.layout.stamps_format
    if file.stamp != pl.String:
        return pl.col(columns[0]).cast(file.stamp).to_physical().cast(pl.Int64) + file.shift
    length = None if len(columns) == 1 or written else 10
    texts = [_text(file, columns[0]).str.slice(0, length)]
    if file.layout.period_number is not None:
        exact = pl.col(file.layout.period_number).cast(pl.Float64, strict=False)
        number = pl.when(exact == exact.floor()).then(exact).cast(pl.Int64, strict=False)
        stamp = (number - 1) * (file.length // file.rows_a_step) + file.shift
        date = microseconds_of(texts[0], {False: 0}, written)
        return pl.when(date == file.date).then(stamp).when(date.is_not_null() & number.is_not_null()).then(-1)
    stamps = pl.concat_str(*texts, *(_text(file, one) for one in columns[1:]), separator=" ")
    return microseconds_of(stamps, dict(file.shifts), written)


def leaf_of(file: SourceFile) -> pl.Expr:
    """The index of each row's leaf, uint32; the first of a row whose region is none, or null."""
    if file.layout.region is None:
        return pl.lit(file.leaf, pl.UInt32)
    return _named_leaf(file).fill_null(0)


def _named_leaf(file: SourceFile) -> pl.Expr:
    # an integer and the same digits as text name the same leaf
    name = pl.concat_str([_text(file, column) for column in _of_leaf(file)], separator=BETWEEN)
    return name.cast(_type_of(file.leaves), strict=False).to_physical().cast(pl.UInt32)


@lru_cache(maxsize=4)
def _type_of(leaves: tuple[str, ...]) -> pl.DataTypeExpr:
    """The type with a number for each leaf, as polars takes it: of a million names that takes 0.4 s."""
    return pl.Enum(leaves).to_dtype_expr()


def _text(file: SourceFile, column: str) -> pl.Expr:
    """A name as text; of a float that is no whole number null: it names nobody. Bytes that are no text, such
    as UUIDs, are named by their digits.
    """
    name = pl.col(column)
    if column in file.raw:
        return name.map_batches(_named, return_dtype=pl.String, is_elementwise=True)
    if column in file.floats:
        name = pl.when(name == name.floor()).then(name).cast(pl.Int64, strict=False)
    return name.cast(pl.String)


def _named(values: pl.Series) -> pl.Series:
    def name(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()

    return pl.Series(values.name, [None if one is None else name(one) for one in values], pl.String)


def step_of(file: SourceFile) -> pl.Expr:
    """The step of each row, int64; negative: why it has none."""
    if file.layout.region is None:
        return _time_step(file)
    known = _named_leaf(file).is_not_null()
    return pl.when(known).then(_time_step(file)).otherwise(NO_STEP["unknown_region"])


def _time_step(file: SourceFile) -> pl.Expr:
    """The step of each row by its stamp alone."""
    stamp = pl.col(STAMP) - file.start
    step = stamp // file.length
    return (
        pl.when(stamp.is_null())
        .then(NO_STEP["no_timestamp"])
        .when((step < 0) | (step >= file.n_steps))
        .then(NO_STEP["outside_day"])
        .when(stamp != step * file.length)
        .then(NO_STEP["off_grid"])
        .otherwise(step)
    )


def customer_of(file: SourceFile) -> pl.Expr:
    """The customer as text, so that numbers in one file and text in another name the same one."""
    return _text(file, file.layout.customer)


def reading_of(file: SourceFile, settings: Settings) -> Reading:
    """How the file's readings are counted: in the column's own unit, which gives the stream's integers."""
    privacy, rows = settings.privacy, file.rows_a_step
    bounds, resolution = file.layout.in_column_units(privacy.bounds, privacy.resolution, rows)
    if rows > 1:
        return reading(file.layout.value, pl.String(), bounds, resolution)
    return reading(file.layout.value, file.value, bounds, resolution, file.layout.decimal)


def rows_of(
    file: SourceFile, settings: Settings, source: pl.LazyFrame, *, numbered: bool = False
) -> pl.LazyFrame:
    """Rows of the file as file, leaf, step (negative: why none), units, and customer and row where wanted."""
    wanted = {
        "file": pl.lit(file.number, pl.UInt32),
        "leaf": leaf_of(file),
        "step": step_of(file).cast(pl.Int32),
        "units": reading_of(file, settings).units,
    }
    if settings.metered:
        wanted["customer"] = customer_of(file)
    if numbered:
        wanted["row"] = pl.col(ROW)
        revision = file.layout.revision
        wanted["number"], wanted["revision"] = (
            (pl.lit(0.0), pl.lit("")) if revision is None else (pl.col(NUMBER), pl.col(revision))
        )
    return source.select(**wanted)


# Rows become cells: what each file holds of a leaf at each step. All in polars, streaming.

FILES_A_PLAN = 96
"""Files read by one lazy plan: each takes a blocking thread, and polars warns of a deadlock at 512."""
BYTES_A_PLAN = 2**23
"""A plan that has as much takes no further file: it keeps all threads at work."""
KEY = {"file": pl.UInt32, "leaf": pl.UInt32, "step": pl.Int32}
"""Of a cell."""
CELLS = {**KEY, "kind": pl.Int8, "rows": pl.Int64, "units": pl.Int64}


def cells_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, leaf, step, kind of reading): counts, sum of units. Raises polars' errors."""
    found = [_grouped(plan, settings) for plan in plans_of(files)]
    counts = [
        pl.when(pl.col("kind") == kind).then("rows").otherwise(0).alias(name)
        for kind, name in enumerate(KINDS)
        if name != "sound"
    ]
    cells = pl.concat([pl.DataFrame(schema=CELLS), *found])
    return with_days(cells.with_columns(counts).drop("kind"), files)


def plans_of(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Files that are read together: many where they are small."""
    plan: list[SourceFile] = []
    size = 0
    for file in files:
        plan.append(file)
        size += facts_of(file.path).size
        if len(plan) == FILES_A_PLAN or size > BYTES_A_PLAN:
            yield plan
            plan, size = [], 0
    if plan:
        yield plan


def _grouped(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, leaf, step, kind of reading), by one integer key, and the sum of its units."""
    width = (len(NO_STEP) + max(file.n_steps for file in files)) * len(KINDS)
    n_leaves = max(len(file.leaves) for file in files)
    plans = []
    for number, file in enumerate(files):
        found = reading_of(file, settings)
        place = pl.lit(number * n_leaves) + leaf_of(file).cast(pl.Int64)
        key = place * width + (step_of(file) + len(NO_STEP)) * len(KINDS) + found.kind
        rows, again = (
            rows_in(file),
            pl.struct(leaf=leaf_of(file), step=step_of(file)).is_first_distinct(),
        )
        if not settings.metered and file.doubled:  # the first row of a slot that the wall clock shows twice
            rows = rows.filter(~step_of(file).is_in(file.doubled) | again)
        plans.append(rows.select(key=key, units=found.units))
    cells = pl.concat(plans).group_by("key").agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("units").sum())
    key, numbers = pl.col("key"), pl.Series([file.number for file in files], dtype=pl.UInt32)
    return cells.collect(engine="streaming").select(
        file=pl.lit(numbers).gather(key // width // n_leaves),
        leaf=(key // width % n_leaves).cast(pl.UInt32),
        step=(key % width // len(KINDS) - len(NO_STEP)).cast(pl.Int32),
        kind=(key % len(KINDS)).cast(pl.Int8),
        rows="rows",
        units="units",
    )


def with_days(frame: pl.DataFrame, files: Sequence[SourceFile]) -> pl.DataFrame:
    """Join the day by the file's number."""
    schema = {"file": pl.UInt32, "day": pl.UInt32}
    index = pl.DataFrame([(file.number, file.day) for file in files], schema=schema, orient="row")
    return frame.join(index, on="file", how="left")


# The raw frame, which the raw contract judges: a row for each (day, region).

CELL_RULES = {name: pl.col("step") == step for name, step in NO_STEP.items()} | {
    name: (pl.col(name) > 0) & (pl.col("step") >= 0) for name in KINDS[1:]
}
DROPPED_RULES = ("no_customer", "duplicates", "two_leaves")
"""Why metered rows of a step do not count."""


def metrics_of(
    files: Sequence[SourceFile],
    by_step: pl.DataFrame,
    dropped: pl.DataFrame,
    days: Sequence[date],
    settings: Settings,
) -> pl.DataFrame:
    """Return the raw frame, (n_days * n_leaves) rows, its day an index, and with the leaf's."""
    grid = pl.concat(
        pl.DataFrame({"region": settings.tree_of(day).leaves}, schema={"region": pl.String}).select(
            pl.lit(number, pl.UInt32).alias("day"),
            pl.lit(settings.calendar.n_steps(day), pl.Int64).alias("steps_expected"),
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("leaf"),
            "region",
        )
        for number, day in enumerate(days)
    )
    counted = [_cell_counts(by_step)]
    if settings.metered:
        counts = [pl.col("rows").filter(pl.col("rule") == name).sum().alias(name) for name in DROPPED_RULES]
        counted = [counted[0].drop("duplicates"), dropped.group_by("day", "leaf").agg(counts)]
    for own in counted:
        grid = grid.join(own, on=["day", "leaf"], how="left", maintain_order="left")
    grid = grid.with_columns(pl.all().exclude("region").fill_null(0))
    grid = grid.join(_file_faults(files), on=["day", "leaf"], how="left", maintain_order="left")
    return grid.select("leaf", *raw_columns(metered=settings.metered))


def _file_faults(files: Sequence[SourceFile]) -> pl.DataFrame:
    """The most telling fault of each (day, leaf) with files that cannot be read."""
    broken = [(file.day, file.leaf, file.broken) for file in files if file.broken]
    schema = {"day": pl.UInt32, "leaf": pl.UInt32, "file_fault": pl.String}
    faults = pl.DataFrame(broken, schema=schema, orient="row")
    worst_first = faults.sort(pl.col("file_fault").cast(pl.Enum(list(FILE_FAULTS))))
    return worst_first.unique(["day", "leaf"], keep="first")


def _cell_counts(by_step: pl.DataFrame) -> pl.DataFrame:
    inside = pl.col("step") >= 0
    counts = [
        pl.col("rows").sum(),
        inside.sum().cast(pl.Int64).alias("steps_found"),
        (pl.col("rows").filter(inside) - 1).sum().alias("duplicates"),
    ]
    for name, broken in CELL_RULES.items():
        counts.append(pl.col("rows" if name in NO_STEP else name).filter(broken).sum().alias(name))
    return by_step.lazy().group_by("day", "leaf").agg(counts).collect(engine="streaming")


# Where each rule of the raw contract first broke: file and step, for messages that a person can act on.


@dataclass(frozen=True)
class Place:
    """A file by its name, and a step, None where the rule has none; its columns where they are few.

    original: the file whose content this one has again.
    """

    file: str | None = None
    step: int | None = None
    found: tuple[str, ...] = ()
    original: str | None = None


Places = Mapping[tuple[str, str], Place]


def places_of(
    files: Sequence[SourceFile],
    cells: pl.DataFrame,
    by_step: pl.DataFrame,
    dropped: pl.DataFrame,
    metrics: pl.DataFrame,
    settings: Settings,
) -> Mapping[int, Places]:
    """For each day (index) the first place of each (region, rule) that broke."""
    found: defaultdict[int, dict[tuple[str, str], Place]] = defaultdict(dict)
    for file in files:
        if file.broken is not None:
            place = Place(file.name, found=file.found)
            found[file.day].setdefault((file.leaves[file.leaf], file.broken), place)
    inside = by_step.filter(pl.col("step") >= 0)
    suspect = cells.filter(pl.any_horizontal(*CELL_RULES.values()))
    broken = {rule: suspect.filter(is_broken) for rule, is_broken in CELL_RULES.items()}
    if settings.metered:
        broken |= {rule: dropped.filter(pl.col("rule") == rule) for rule in DROPPED_RULES}
    else:
        broken["duplicates"] = inside.filter(pl.col("rows") > 1)
    broken["steps_found"] = _missing(files, metrics, inside, settings)
    names, leaves = {file.number: file.name for file in files}, {file.day: file.leaves for file in files}
    for rule, frame in broken.items():
        first = frame.sort("step", "file").group_by("day", "leaf", maintain_order=True).first()
        for day, leaf, file, step in first.select("day", "leaf", "file", "step").iter_rows():
            may_be_copy = rule == "duplicates" and not settings.metered
            copy, original = _copy(files, day, leaf) if may_be_copy else (None, None)
            place = Place(copy or names.get(file), step if step >= 0 else None, original=original)
            found[day][leaves[day][leaf], rule] = place
    return found


MOST_COMPARED = 100
"""Files of one size that are searched for copies."""


def _copy(files: Sequence[SourceFile], day: int, leaf: int) -> tuple[str, str] | tuple[None, None]:
    """Return a leaf's file that has the same content as an older one, and that one; None without."""
    alike: defaultdict[int, list[tuple[float, str, Path]]] = defaultdict(list)
    seen: dict[bytes, str] = {}
    for file in files:
        if (file.day, file.leaf) == (day, leaf) and isinstance(file.path, Path):
            with suppress(OSError):  # gone since it was read
                facts = file.path.stat()
                alike[facts.st_size].append((facts.st_mtime, file.name, file.path))
    for own in alike.values():
        for _, name, path in sorted(own)[: MOST_COMPARED * (len(own) > 1)]:
            with suppress(OSError), path.open("rb") as content:
                original = seen.setdefault(hashlib.file_digest(content, "sha256").digest(), name)
                if original != name:
                    return name, original
    return None, None


def _missing(
    files: Sequence[SourceFile], metrics: pl.DataFrame, inside: pl.DataFrame, settings: Settings
) -> pl.DataFrame:
    """The steps without a row, of leaves that have a file which can be read."""
    sound = [(file.day, file.leaf) for file in files if file.broken is None]
    places = pl.DataFrame(sound, schema={"day": pl.UInt32, "leaf": pl.UInt32}, orient="row")
    # one file or a few a day may have the rows of every leaf
    of = ["day", "leaf"] if settings.input.region is None else ["day"]
    lacking = metrics.filter(pl.col("steps_found") < pl.col("steps_expected")).join(places, on=of, how="semi")
    steps = lacking.with_columns(step=pl.int_ranges("steps_expected", dtype=pl.Int32)).explode("step")
    if not steps.is_empty():
        steps = steps.join(inside, on=["day", "leaf", "step"], how="anti")
    return steps.with_columns(file=pl.lit(None, pl.UInt32))
