"""The text of one file becomes a frame. Pure; whatever is wrong is refused with the number of its line.

A file of a region and a year is Latin-1 text with tabs, and named .xls: a header row, four rows an hour of
which only the half-hours carry readings, and a last line of legal words. Every local day has the same 48
half-hours, also where the clocks change: in spring the hour from 02:00 is filled in, in autumn the hour that
happens twice is there once. Dates and times are wall clock.
"""

import codecs

import polars as pl

from optstream.errors import DumpError
from tasks.sample_data.rte.columns import NATURES, place_columns, plain, region_code

MOST_LINES = 1_000_000
LONGEST_LINE = 10_000
TOO_LONG = f"longer than {LONGEST_LINE} bytes, which none of RTE's lines is"
WORKBOOK = b"\xd0\xcf\x11\xe0"
ABSENT = ["", "ND", "-", "DC"]
"""Empty, not available, no such thing here, confidential: RTE's words for a cell without a reading."""
FOOTER = "RTE "
# Not \d, which other scripts' digits match too.
DAY = r"^(19[7-9]|2[01][0-9])[0-9]-[0-9]{2}-[0-9]{2}$"
TIME = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
NUMBER = r"^-?[0-9]{1,9}([.,][0-9]{1,6})?$"


def parse(content: bytes) -> tuple[str, pl.DataFrame]:
    """The region's code, and a row a half-hour: timestamp (wall clock), load_mw (null where absent), line.

    In the order of time, each once; a row that says again what another says is dropped. Raises DumpError
    with the line that is not as RTE writes it, never with a reading.
    """
    lines = _lines(content)
    header = next((number for number, line in enumerate(lines, 1) if line and not line.isspace()), 1)
    if len(lines[header - 1]) > LONGEST_LINE:
        raise DumpError(f"line {header}: {TOO_LONG}")
    places, n_named = place_columns(lines[header - 1].split("\t"), header)
    rows = pl.DataFrame({"text": lines[header:]}, schema={"text": pl.String})
    rows = rows.with_row_index("line", header + 1).filter(pl.col("text").str.strip_chars() != "")
    last = rows["text"][-1].strip() if rows.height else ""
    if last.startswith(FOOTER) and "\t" not in last:
        rows = rows[:-1]
    if rows.is_empty():
        raise DumpError(f"line {header}: no row follows the header")
    _refuse(rows, {TOO_LONG: pl.col("text").str.len_bytes() > LONGEST_LINE})
    cells = _cells(rows, places, n_named)
    return _region(cells), _readings(cells)


def _lines(content: bytes) -> list[str]:
    if content.startswith((WORKBOOK, b"PK")):
        raise DumpError(
            "line 1: this is a workbook or an archive, not text; import the file as RTE hands it out, which "
            "is text although it is named .xls"
        )
    if content.count(b"\n") >= MOST_LINES:
        raise DumpError(f"line {MOST_LINES}: longer than any of RTE's files; import them one by one")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")  # converted by its owner
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    # Not splitlines: Latin-1 has other signs that it takes for ends of lines.
    return text.split("\n")


def _cells(rows: pl.DataFrame, places: dict[str, int], n_named: int) -> pl.DataFrame:
    """The required cells of each row, checked one by one. Cells to the right of the header's are left."""
    split = rows.select("line", cells=pl.col("text").str.split("\t"))
    _refuse(
        split,
        {
            f"a row must have the header's {n_named} cells, with tabs between; only RTE's legal line may "
            "come last instead": pl.col("cells").list.len() < n_named
        },
    )
    named = {name: pl.col("cells").list.get(place).str.strip_chars() for name, place in places.items()}
    cells = split.select("line", **named)
    return cells.with_columns(
        day=pl.when(pl.col("date").str.contains(DAY)).then("date").str.to_date("%Y-%m-%d", strict=False),
        absent=pl.col("consommation").is_in(ABSENT),
        minute=pl.when(pl.col("heures").str.contains(TIME)).then(
            pl.col("heures").str.slice(3).cast(pl.Int64, strict=False)
        ),
    )


def _region(cells: pl.DataFrame) -> str:
    code = region_code(cells["perimetre"][0], cells["line"][0])
    another = pl.col("perimetre") != pl.col("perimetre").first()
    _refuse(cells, {"Périmètre must name one region throughout the file": another})
    natures = cells.group_by("nature").agg(pl.col("line").min()).sort("line")
    for nature, line in natures.iter_rows():
        if plain(nature) not in NATURES:
            raise DumpError(
                f'line {line}: Nature must be "Données définitives" or "Données consolidées"; got '
                f"{nature!r:.80}: figures in real time are estimates, which RTE replaces"
            )
    return code


def _readings(cells: pl.DataFrame) -> pl.DataFrame:
    read, minute = ~pl.col("absent"), pl.col("minute")
    between = "Consommation has a reading between two half-hours; only files of half-hours can be imported"
    _refuse(
        cells,
        {
            "Date must be a day such as 2016-02-29": pl.col("day").is_null(),
            "Heures must be a time such as 00:30, on a quarter of an hour": (minute % 15 != 0).fill_null(
                True
            ),
            "Consommation must be a number, or empty, ND, - or DC": read
            & ~pl.col("consommation").str.contains(NUMBER),
            between: read & (minute % 30 != 0),
        },
    )
    hours = pl.col("heures").str.slice(0, 2).cast(pl.Int64)
    minutes = pl.duration(minutes=60 * hours + minute, time_unit="us")
    decimal = pl.when(read).then(pl.col("consommation").str.replace(",", ".", literal=True))
    rows = cells.filter(minute % 30 == 0).select(
        (pl.col("day").cast(pl.Datetime("us")) + minutes).alias("timestamp"),
        decimal.cast(pl.Float64).alias("load_mw"),
        "line",
    )
    rows = rows.unique(["timestamp", "load_mw"], keep="first", maintain_order=True)
    again = "another reading of a half-hour that stands above; each of a day's 48 half-hours comes once"
    _refuse(rows, {again: ~pl.col("timestamp").is_first_distinct()})
    return rows.sort("timestamp")


def _refuse(rows: pl.DataFrame, rules: dict[str, pl.Expr]) -> None:
    """Raise DumpError for the first row that breaks a rule: words, and what is true of such rows."""
    first = rows.select(
        pl.col("line").filter(broken).min().alias(words) for words, broken in rules.items()
    ).row(0, named=True)
    found = [(line, words) for words, line in first.items() if line is not None]
    if found:
        line, words = min(found, key=lambda each: each[0])
        raise DumpError(f"line {line}: {words}")
