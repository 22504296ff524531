"""Measures the data users' page of ten years: how large it is, how long it takes to make and to show.

    python -m benchmarks.report_page [--days 3650]

Lays out 13 nodes by half-hours, simulated. Beside reading the files stands polars' own scan of them, beside
the page one that is empty. Paint: first contentful paint as Chromium reports it, the median of the visits,
each with an empty cache.
"""

import statistics
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from benchmarks.harness.measure import command, parser, show, timed
from benchmarks.inputs.fixture import lay_out_published
from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from tasks.reports import public_facts, public_page
from tasks.reports.summaries import Summaries
from tests.browser import find_chromium, running_chromium, visit

LAST = date(2016, 11, 19)
VISITS = 5
PAINTED = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] || null"
EMPTY = '<!doctype html><html lang="en"><title>empty</title><p>empty</p></html>'


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line each."""
    options = parser(__doc__)
    options.add_argument("--days", type=int, default=3650)
    options.add_argument("--folder", type=Path, help="a folder that was laid out before")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = given.folder or Path(scratch) / "published"
        if not folder.exists():
            lay_out_published(folder, LAST - timedelta(days=given.days - 1), given.days)
        page, empty = Path(scratch) / "page.html", Path(scratch) / "empty.html"
        page.write_bytes(make(folder, Path(scratch) / "kept.parquet"))
        empty.write_text(EMPTY, encoding="utf-8")
        show(f"page: {page.stat().st_size:,} bytes")
        paint(page, empty)


def make(folder: Path, kept: Path) -> bytes:
    """Return the page; print the seconds that its parts take: the first time, and every night after."""
    place = open_storage(folder)
    bare, _ = timed(lambda: scan(folder))
    first, (_, summaries) = timed(lambda: public_facts(place, read_catalogue(place), Summaries.empty()))
    summaries.write(kept)
    nightly, (facts, _) = timed(lambda: public_facts(place, read_catalogue(place), Summaries.read(kept)))
    rendering, page = timed(lambda: public_page(facts))
    show(
        f"polars' scan of all files, daily means: {bare.wall:.2f} s",
        f"read, nothing kept: {first.wall:.2f} s",
        f"read, as every night: {nightly.wall:.2f} s, kept {kept.stat().st_size:,} bytes",
        f"render: {rendering.wall:.2f} s",
    )
    return page


def scan(folder: Path) -> pl.DataFrame:
    """Return the mean of each node and day by polars alone: without catalogue, hashes or revisions."""
    source = pl.scan_parquet(folder / "data/**/*.parquet", hive_partitioning=True)
    return source.group_by("date", "node").agg(pl.col("load_mw").mean()).collect()


def paint(*files: Path) -> None:
    """Print milliseconds to first contentful paint of each file, on a telephone's width and on a desk's."""
    executable = find_chromium()
    if executable is None:
        show("no Chromium here: paint was not measured")
        return
    with running_chromium(executable) as browser:
        for file in files:
            for width in (360, 1440):
                found = []
                for _ in range(VISITS):
                    with visit(browser, allowed=(file.as_uri(),), width=width) as seen:
                        seen.page.goto(file.as_uri())
                        seen.page.wait_for_function(PAINTED)
                        found.append(seen.page.evaluate(PAINTED))
                middle = statistics.median(found)
                show(f"{file.stem}, first paint at {width} px: {middle:.0f} ms, worst {max(found):.0f} ms")


if __name__ == "__main__":
    command(main)
