"""Measures the data users' page: how large it is, how long it takes to make, to show and to answer.

    python -m studies.benchmarks.report_page [--days 3650] [--nodes 13]

Lays out a published folder of half-hours, simulated: 13 nodes by 3,650 days, or 10,000 nodes by 365 days
(`--nodes 10000 --days 365`: several GB, and an hour). Beside reading the files stands polars' own scan of
them, beside the page one that is empty. Paint: first contentful paint as Chromium reports it, the median of
the visits, each with an empty cache, from a web server of this machine. Answers: from a change of the view to
the frame after the picture is drawn, the median and the worst of all.
"""

import functools
import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl

from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from studies.benchmarks.harness.measure import command, parser, show, timed
from studies.benchmarks.inputs.fixture import french_tree, lay_out_published, tree_of
from tasks.reports import public_facts, public_page
from tasks.reports.curves import make_curves
from tasks.reports.summaries import Summaries
from tasks.reports.write import only_named, write_public_page
from tests.browser import find_chromium, running_chromium, visit

LAST = date(2016, 11, 19)
VISITS = 5
PAINTED = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] || null"
EMPTY = '<!doctype html><html lang="en"><title>empty</title><p>empty</p></html>'
ANSWERS = {
    "daily means of everything": "pick('measure', 'means'); press('all')",
    "monthly sums": "pick('measure', 'monthly')",
    "weekly sums": "pick('measure', 'weekly')",
    "eight nodes": "press('parts')",
    "daily means of eight": "pick('measure', 'means'); press('all')",
    "zoom": "press('nearer')",
    "move": "press('earlier')",
    "step by step": "pick('measure', 'steps')",
    "a hundred days of steps": "press('all')",
    "search": "type('1')",
}
"""What is asked, in this order, on one page; figures that are loaded first are not timed."""
ASK = """async () => {
  const get = (id) => document.getElementById(id);
  const pick = (id, value) => { get(id).value = value; get(id).dispatchEvent(new Event("change")); };
  const press = (id) => get(id).click();
  const type = (text) => { get("find").value = text; get("find").dispatchEvent(new Event("input")); };
  const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  await frame();
  const start = performance.now();
  CODE;
  await frame();
  return performance.now() - start;
}"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line each."""
    options = parser(__doc__, days=3650, nodes=13)
    options.add_argument("--folder", type=Path, help="a folder that was laid out before")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = given.folder or Path(scratch) / "published"
        if not folder.exists():
            tree = french_tree() if given.nodes == len(french_tree().nodes) else tree_of(given.nodes)
            lay_out_published(folder, LAST - timedelta(days=given.days - 1), given.days, tree=tree)
        make(folder, Path(scratch) / "kept.parquet")
        empty = folder / "empty.html"
        empty.write_text(EMPTY, encoding="utf-8")
        curves = [path.stat().st_size for path in (folder / "curves").iterdir()]
        releases = sum(path.stat().st_size for path in folder.glob("data/*/*.parquet"))
        show(f"page: {(folder / 'index.html').stat().st_size:,} bytes")
        show(f"figures beside it: {len(curves)} files, {sum(curves):,} bytes, the largest {max(curves):,}")
        show(f"releases: {releases:,} bytes")
        look(folder)
        empty.unlink()


def make(folder: Path, kept: Path) -> None:
    """Make the page in its folder; print the seconds of its parts: the first time, and every night after."""
    place = open_storage(folder)
    bare, _ = timed(lambda: scan(folder))
    first, (_, summaries) = timed(lambda: public_facts(place, read_catalogue(place), Summaries.empty()))
    summaries.write(kept)
    nightly, (facts, _) = timed(lambda: public_facts(place, read_catalogue(place), Summaries.read(kept)))
    figures, (curves, known) = timed(lambda: make_curves(place, facts, summaries, {}, only_named))
    rendering, page = timed(lambda: public_page(facts, curves))
    write_public_page(folder)
    newest = next(key for key in reversed(known))
    last_month = {key: hashes for key, hashes in known.items() if key != newest}
    one_month, _ = timed(lambda: make_curves(place, facts, summaries, last_month, only_named))
    show(
        f"polars' scan of all files, daily means: {bare.wall:.2f} s",
        f"read, nothing kept: {first.wall:.2f} s",
        f"read, as every night: {nightly.wall:.2f} s, kept {kept.stat().st_size:,} bytes",
        f"figures, nothing kept: {figures.wall:.2f} s; those of one month or year: {one_month.wall:.2f} s",
        f"render: {rendering.wall:.2f} s, {len(page):,} bytes",
    )


def scan(folder: Path) -> pl.DataFrame:
    """Return the mean of each node and day by polars alone: without catalogue, hashes or revisions."""
    source = pl.scan_parquet(folder / "data/**/*.parquet", hive_partitioning=True)
    return source.group_by("date", "node").agg(pl.col("load_mw").mean()).collect()


class Quiet(SimpleHTTPRequestHandler):
    """A web server's plainest."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Give the folder's address on a web server of this machine, for as long as it is asked."""
    handler = functools.partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def look(folder: Path) -> None:
    """Print milliseconds to first paint, on a telephone's width and on a desk's, and to each answer."""
    executable = find_chromium()
    if executable is None:
        show("no Chromium here: paint was not measured")
        return
    with running_chromium(executable) as browser, served(folder) as site:
        for file in ("index.html", "empty.html"):
            for width in (360, 1440):
                found = []
                for _ in range(VISITS):
                    with visit(browser, allowed=(site,), width=width) as seen:
                        seen.page.goto(site + file)
                        while (painted := seen.page.evaluate(PAINTED)) is None:
                            seen.page.wait_for_timeout(10)
                        found.append(painted)
                middle = statistics.median(found)
                show(f"{file}, first paint at {width} px: {middle:.0f} ms, worst {max(found):.0f} ms")
        with visit(browser, allowed=(site,)) as seen:
            seen.page.goto(site + "index.html")
            for what, code in ANSWERS.items():
                asked = ASK.replace("CODE", code)
                seen.page.evaluate(asked)
                seen.page.wait_for_load_state("networkidle")
                again = [seen.page.evaluate(asked) for _ in range(VISITS)]
                show(f"{what}: {statistics.median(again):.0f} ms, worst {max(again):.0f} ms")


if __name__ == "__main__":
    command(main)
