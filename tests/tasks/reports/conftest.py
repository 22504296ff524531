"""Published folders of a few simulated days, and a browser to look at their pages."""

import functools
import shutil
import threading
from collections.abc import Iterator
from datetime import date, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from optstream.catalogue import read_catalogue, withdraw
from optstream.catalogue.about import About, NodeFacts, put_about
from optstream.catalogue.backends import open_storage
from tasks.reports import PublicFacts, public_facts
from tasks.reports.summaries import Summaries
from tasks.reports.write import write_public_page
from tests.tasks.reports.published_days import lay_out_published

FIRST = date(2016, 1, 1)
N_DAYS = 40
GONE = FIRST + timedelta(days=30)
HOSTILE = "<img src=x onerror='window.hit = 1'></script><b>\"&"
NAMES = {
    "FR": NodeFacts("France"), "11": NodeFacts("Île-de-France"), "53": NodeFacts("Bretagne", 48.2, -2.9),
    "24": NodeFacts(HOSTILE), "84": NodeFacts("=1+1", 45.5, 4.5),
}  # fmt: skip
INKED = """() => {
  const canvas = document.getElementById("plot"), pen = canvas.getContext("2d");
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
  for (let n = 0; n < pixels.length; n += 4) colours.add(pixels.slice(n, n + 3).join());
  return colours.size;
}"""


@pytest.fixture(scope="session")
def forty_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder of forty days with the noise column, one of them withdrawn. Not to be changed."""
    folder = tmp_path_factory.mktemp("forty") / "published"
    lay_out_published(folder, FIRST, N_DAYS)
    withdraw(folder, GONE, lambda _entry, _known: "withdrawn", stream="simulated-load")
    return folder


@pytest.fixture(scope="session")
def without_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days without the noise column."""
    folder = tmp_path_factory.mktemp("plain") / "published"
    lay_out_published(folder, FIRST, 3, with_noise_column=False)
    return folder


def facts_of(folder: Path) -> PublicFacts:
    place = open_storage(folder)
    return public_facts(place, read_catalogue(place), Summaries.empty())[0]


@pytest.fixture(scope="module")
def published(forty_days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The forty days with names, one of them hostile, and their page."""
    folder = tmp_path_factory.mktemp("explored") / "published"
    shutil.copytree(forty_days, folder)
    put_about(folder, "simulated-load", About("Example Grid", "CC BY 4.0", NAMES))
    write_public_page(folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """A web server's plainest."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def served(published: Path) -> Iterator[str]:
    """The folder's address on a web server of this machine."""
    handler = functools.partial(Quiet, directory=published)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def until(page: Any, code: str, arg: Any = None) -> None:
    """Wait until the code is true on the page, whose policy forbids what `wait_for_function` does."""
    for _ in range(500):
        if page.evaluate(code, arg):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never: {code} {arg or ''}")


def label_has(page: Any, text: str) -> None:
    """Wait until the plot is described so."""
    until(page, "text => document.getElementById('plot').getAttribute('aria-label').includes(text)", arg=text)
