"""The yearly files that RTE hands out become daily dumps: read, checked to the line, written."""

import codecs
import io
import json
import lzma
import re
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from optstream.errors import DumpError, ParameterError
from tasks.config.templates import example_of
from tasks.operate.simulate import FRENCH_REGIONS, write_dump

# A file of a region and a year is Latin-1 text with tabs, and named .xls: a header row, four rows an hour of
# which only the half-hours carry readings, and a last line of legal words. Every local day has the same 48
# half-hours, also where the clocks change: in spring the hour from 02:00 is filled in, in autumn the hour
# that happens twice is there once. Dates and times are wall clock.

NATURES = {"donnees-definitives", "donnees-consolidees"}
WORKBOOK = b"\xd0\xcf\x11\xe0"
ABSENT = ["", "ND", "-", "DC"]
"""Empty, not available, no such thing here, confidential: RTE's words for a cell without a reading."""
FOOTER = "RTE "
# Not \d, which other scripts' digits match too.
DAY = r"^(19[7-9]|2[01][0-9])[0-9]-[0-9]{2}-[0-9]{2}$"
TIME = r"^([01][0-9]|2[0-3]):(00|15|30|45)$"
NUMBER = r"^-?[0-9]{1,9}([.,][0-9]{1,6})?$"


def plain(name: str) -> str:
    """A name without accents, case and punctuation: RTE spells "Grand-Est" and "Centre-Val de Loire"."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")


COLUMNS = {plain(title): title for title in ("Périmètre", "Nature", "Date", "Heures", "Consommation")}
REGION_CODES = {plain(region.name): code for code, region in FRENCH_REGIONS.items()} | {"paca": "93"}
"""INSEE's code of each of the 12 mainland regions, by its plain name."""


def parse(content: bytes) -> tuple[str, pl.DataFrame]:
    """Return the region's code and a row a half-hour; DumpError names the line, never a reading."""
    if content.startswith((WORKBOOK, b"PK")):
        raise DumpError(
            "line 1: this is a workbook or an archive, not text; import the file as RTE hands it out, which "
            "is text although it is named .xls"
        )
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")  # converted by its owner
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    # Not splitlines: Latin-1 has other signs that it takes for ends of lines.
    lines = text.split("\n")
    header = next((number for number, line in enumerate(lines, 1) if line and not line.isspace()), 1)
    names = [plain(name) for name in lines[header - 1].rstrip().split("\t")]
    for name, title in COLUMNS.items():
        if names.count(name) != 1:
            raise DumpError(
                f"line {header}: the header row of RTE's regional files has the column {title} once, with "
                f"tabs between columns, here {names.count(name)} times: import the file as RTE hands it out"
            )
    rows = pl.DataFrame({"text": lines[header:]}, schema={"text": pl.String})
    rows = rows.with_row_index("line", header + 1).filter(pl.col("text").str.strip_chars() != "")
    last = rows["text"][-1].strip() if rows.height else ""
    if last.startswith(FOOTER) and "\t" not in last:
        rows = rows[:-1]
    if rows.is_empty():
        raise DumpError(f"line {header}: no row follows the header")
    split = rows.select("line", cells=pl.col("text").str.split("\t"))
    few = pl.col("cells").list.len() < len(names)
    _refuse(split, {f"a row must have the header's {len(names)} cells, with tabs between": few})
    cells = split.select(
        "line", **{name: pl.col("cells").list.get(names.index(name)).str.strip_chars() for name in COLUMNS}
    )
    return _region(cells), _readings(cells)


def _region(cells: pl.DataFrame) -> str:
    """INSEE's code of the one region that the rows name."""
    another = pl.col("perimetre") != pl.col("perimetre").first()
    _refuse(cells, {"Périmètre must name one region throughout the file": another})
    perimeter, line = cells["perimetre"][0], cells["line"][0]
    if plain(perimeter) not in REGION_CODES:
        raise DumpError(
            f"line {line}: {perimeter!r:.80} is none of the 12 regions "
            f"({', '.join(region.name for region in FRENCH_REGIONS.values())}); leave out the national file: "
            "the nation is the sum of the regions' files"
        )
    for nature, line in cells.unique("nature", keep="first", maintain_order=True)["nature", "line"].rows():
        if plain(nature) not in NATURES:
            raise DumpError(
                f'line {line}: Nature must be "Données définitives" or "Données consolidées"; got '
                f"{nature!r:.80}: figures in real time are estimates, which RTE replaces"
            )
    return REGION_CODES[plain(perimeter)]


def _readings(cells: pl.DataFrame) -> pl.DataFrame:
    load, time = pl.col("consommation"), pl.col("heures")
    is_read, is_half_hour = ~load.is_in(ABSENT), time.str.slice(3).is_in(["00", "30"])
    cells = cells.with_columns(
        day=pl.when(pl.col("date").str.contains(DAY)).then("date").str.to_date("%Y-%m-%d", strict=False)
    )
    between = "Consommation has a reading between two half-hours; only files of half-hours can be imported"
    _refuse(
        cells,
        {
            "Date must be a day such as 2016-02-29": pl.col("day").is_null(),
            "Heures must be a time such as 00:30, on a quarter of an hour": ~time.str.contains(TIME),
            "Consommation must be a number, or empty, ND, - or DC": is_read & ~load.str.contains(NUMBER),
            between: is_read & ~is_half_hour,
        },
    )
    hours, minutes = (time.str.slice(start, 2).cast(pl.Int64) for start in (0, 3))
    decimal = pl.when(is_read).then(load.str.replace(",", ".", literal=True))
    rows = cells.filter(is_half_hour).select(
        timestamp=pl.col("day").cast(pl.Datetime("us"))
        + pl.duration(minutes=60 * hours + minutes, time_unit="us"),
        load_mw=decimal.cast(pl.Float64),
        line="line",
    )
    rows = rows.unique(["timestamp", "load_mw"], keep="first", maintain_order=True)
    again = "another reading of a half-hour that stands above; each of a day's 48 half-hours comes once"
    _refuse(rows, {again: ~pl.col("timestamp").is_first_distinct()})
    return rows.sort("timestamp")


def _refuse(rows: pl.DataFrame, rules: dict[str, pl.Expr]) -> None:
    """Raise DumpError for the first row that breaks a rule: its words, and the test of a row."""
    first = rows.select(
        pl.col("line").filter(broken).min().alias(words) for words, broken in rules.items()
    ).row(0, named=True)
    found = [(line, words) for words, line in first.items() if line is not None]
    if found:
        line, words = min(found, key=lambda each: each[0])
        raise DumpError(f"line {line}: {words}")


# One file as RTE hands it out: a zip with one text in it, or that text; read whole, never beyond a bound.

LARGEST_BYTES = 32 * 2**20
"""Of the file and of the text: a region's year is 3 MiB."""
BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, LookupError,
    RuntimeError,
)  # fmt: skip
"""What zipfile raises for an archive that is damaged, encrypted or packed in a way that it does not know."""


class RegionLoad(NamedTuple):
    """One file of RTE's. region: INSEE's code. rows: as `parse` returns them."""

    file: str
    region: str
    rows: pl.DataFrame


def read_load(path: Path) -> RegionLoad:
    """Read one file of RTE's, a zip with one text or that text, of at most 32 MiB; DumpError if it cannot."""
    try:
        with path.open("rb") as file:
            return RegionLoad(path.name, *parse(text_of(file.read(LARGEST_BYTES + 1))))
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror or 'it is no file'}") from None
    except DumpError as error:
        raise DumpError(f"{path}: {error}") from None


def text_of(content: bytes) -> bytes:
    """Return the text, unzipped in memory; the names in an archive are never used as paths."""
    if content.startswith(b"PK\x03\x04") and len(content) <= LARGEST_BYTES:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
                if len(members) != 1:
                    raise DumpError(
                        f"the archive must hold one text, as RTE's do; it holds {len(members)} files: unpack "
                        "it and import the regions' texts"
                    )
                with archive.open(members[0]) as text:
                    # the size that the archive states is not believed: reading stops here
                    content = text.read(LARGEST_BYTES + 1)
        except BROKEN_ZIP:
            raise DumpError("the archive is damaged or encrypted; fetch it from RTE again") from None
    if len(content) > LARGEST_BYTES:
        most = f"{LARGEST_BYTES // 2**20} MiB"
        raise DumpError(f"more than {most}, where a region's year has 3; is it the file that was meant?")
    return content


# The rows become dumps, one for each region and day, and a configuration that reads them.

SLOTS = 48
"""Half-hours of every local day in RTE's files."""


class Imported(NamedTuple):
    """The result of an import, of dumps of one region's day each; `n_kept` lay there already, the same."""

    regions: tuple[str, ...]
    n_written: int
    n_kept: int
    n_incomplete: int
    n_empty: int


def write_loads(loads: Sequence[RegionLoad], into: Path) -> Imported:
    """Write a dump and its marker for every region and day; DumpError where two files or dumps disagree."""
    if not loads:
        raise ParameterError("name at least one of RTE's files to import")
    rows = pl.concat(
        load.rows.with_columns(region=pl.lit(load.region), file=pl.lit(load.file)) for load in loads
    )
    rows = rows.unique(["region", "timestamp", "load_mw"], keep="first", maintain_order=True)
    rows = rows.sort("region", "timestamp", maintain_order=True)
    clashes = rows.filter(pl.struct("region", "timestamp").is_duplicated())
    if clashes.height:
        first, second = clashes[:2].rows(named=True)
        raise DumpError(
            f"{second['file']}: line {second['line']}: another reading of region {first['region']}, "
            f"{first['timestamp']}, than in {first['file']}, line {first['line']}; import one vintage of "
            "each day"
        )
    written, readings = list[bool](), list[int]()
    day = pl.col("timestamp").dt.date().alias("day")
    for (region, of), own in rows.group_by("region", day, maintain_order=True):
        readings.append(own["load_mw"].count())
        if readings[-1]:
            written.append(write_dump(into, str(region), of, own.select("timestamp", "load_mw")))
    return Imported(
        regions=tuple(sorted({load.region for load in loads})),
        n_written=sum(written),
        n_kept=written.count(False),
        n_incomplete=sum(0 < n < SLOTS for n in readings),
        n_empty=readings.count(0),
    )


def rte_configuration(dumps: Path) -> str:
    """Return the text of a configuration that reads imported dumps: the example's, but for two lines."""
    text = example_of("HistoryInformed")
    folder = f"folder = {json.dumps(str(dumps), ensure_ascii=False)}"
    for start, line in (('day = "elapsed"', 'day = "fixed"'), ('folder = "dumps"', folder)):
        text = re.sub(f"^{start}.*$", line.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text
