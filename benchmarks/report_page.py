"""How large the data users' page of ten years is, how long it takes to make, and until a browser shows it.

    python -m benchmarks.report_page --days 3650

Lays out 13 nodes by half-hours, simulated (benchmarks/lay_out_published.py). Paint: first contentful paint as
Chromium reports it, the median of the visits, each with an empty cache.
"""

import argparse
import statistics
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

from benchmarks.lay_out_published import lay_out_published
from optstream.catalogue import read_catalogue
from optstream.catalogue.places import open_place
from tasks.pages import public_facts, public_page
from tasks.pages.summaries import Summaries
from tests.browser import find_chromium, running_chromium, visit

LAST = date(2016, 11, 19)
VISITS = 5
PAINTED = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] || null"


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description="The page of many days.")
    parser.add_argument("--days", type=int, default=3650)
    parser.add_argument("--folder", type=Path, help="a folder that was laid out before")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = chosen.folder or Path(scratch) / "published"
        if not folder.exists():
            lay_out_published(folder, LAST - timedelta(days=chosen.days - 1), chosen.days)
        page = make(folder, Path(scratch) / "kept.parquet")
        file = Path(scratch) / "page.html"
        file.write_bytes(page)
        print(f"page: {len(page):,} bytes")
        paint(file)


def make(folder: Path, kept: Path) -> bytes:
    """The page, with the seconds that its parts take: the first time, and every night after."""
    place = open_place(folder)
    started = time.perf_counter()
    catalogue = read_catalogue(place)
    facts, summaries = public_facts(place, catalogue, Summaries.empty())
    print(f"read, nothing kept: {time.perf_counter() - started:.2f} s")
    summaries.write(kept)
    started = time.perf_counter()
    facts, _ = public_facts(place, read_catalogue(place), Summaries.read(kept))
    print(f"read, as every night: {time.perf_counter() - started:.2f} s, kept {kept.stat().st_size:,} bytes")
    started = time.perf_counter()
    page = public_page(facts)
    print(f"render: {time.perf_counter() - started:.2f} s")
    return page


def paint(file: Path) -> None:
    """Milliseconds to first contentful paint, on a telephone's width and on a desk's."""
    executable = find_chromium()
    if executable is None:
        print("no Chromium here: paint was not measured")
        return
    with running_chromium(executable) as browser:
        for width in (360, 1440):
            found = []
            for _ in range(VISITS):
                with visit(browser, allowed=(file.as_uri(),), width=width) as seen:
                    seen.page.goto(file.as_uri())
                    seen.page.wait_for_function(PAINTED)
                    found.append(seen.page.evaluate(PAINTED))
            print(f"first paint at {width} px: {statistics.median(found):.0f} ms, worst {max(found):.0f} ms")


if __name__ == "__main__":
    main()
