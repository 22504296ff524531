"""The documents as a site: it builds without a broken link, fetches nothing, and its reference is whole."""

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.generate import __main__ as generate
from docs.generate.configuration_page import key_names, meanings, tables
from docs.generate.data_page import data_page
from docs.generate.python_page import PACKAGES, documented
from flows.cli.main import COMMANDS

FETCHING = {"script", "img", "iframe", "source", "video", "audio", "embed", "object", "track", "input"}
FETCHING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest"}


class Page(HTMLParser):
    """What a page of the site refers to, what it has the browser fetch, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        fetches = tag in FETCHING or (tag == "link" and set(said.get("rel", "").split()) & FETCHING_LINKS)
        if fetches:
            self.fetched += [said[name] for name in ("src", "href", "data") if name in said]
            self.fetched += [part.split()[0] for part in said.get("srcset", "").split(",") if part.strip()]


def is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def fetched_elsewhere(site: Path) -> list[str]:
    found = []
    for file in site.rglob("*.html"):
        found += [one for one in Page(file.read_text(encoding="utf-8")).fetched if is_elsewhere(one)]
    for file in site.rglob("*.css"):
        named = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", file.read_text(encoding="utf-8"))
        found += [one for one in named if is_elsewhere(one)]
    return found


def leads_nowhere(site: Path) -> Iterator[str]:
    """Links, with their anchors, and local files that a page names and the site lacks."""
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    for file, page in pages.items():
        if file.name == "404.html":
            continue  # it is shown at any address, and names its files from the root
        for address in page.links + page.fetched:
            parts = urlsplit(address)
            if parts.netloc or parts.scheme:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = pages.get(target)
            if not target.exists() or (
                parts.fragment and there and unquote(parts.fragment) not in there.anchors
            ):
                yield f"{file.relative_to(site.resolve())}: {address}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    shutil.copy(generate.CHECKOUT / generate.CONFIGURATION, folder)
    assert generate.build(folder) == 0
    return folder / generate.SITE


def test_nothing_is_fetched_when_it_is_read(site):
    assert fetched_elsewhere(site) == []
    worker = site / "theme/iframe-worker.js"  # with it search works in a folder too
    assert worker.name in (site / "index.html").read_text(encoding="utf-8")
    assert worker.exists()
    assert (site / "search.js").exists()


def test_every_link_and_anchor_leads_somewhere(site):
    assert list(leads_nowhere(site)) == []


def test_every_key_of_the_configuration_has_its_meaning():
    said = meanings()
    asked = {name: set(keys) for name, (_, keys) in tables().items()}
    assert {name: set(keys) for name, keys in said.items()} == asked
    # what tunes a mechanism inside is no key, but for the blocks that `advise` proposes from what was learned
    # (two keys; `published.levels` is the third since 95, `input.stamps_format` the fourth): a new one takes
    # the place of another
    assert len(key_names()) <= 110


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package, site):
    file = site / "reference/python" / f"{package.removeprefix('optstream.').replace('.', '-')}.html"
    anchors = Page(file.read_text(encoding="utf-8")).anchors
    assert [name for name in documented(package) if name not in anchors] == []


def test_every_command_is_in_the_reference_and_every_published_column_has_its_meaning(site):
    anchors = Page((site / "reference/commands.html").read_text(encoding="utf-8")).anchors
    assert [name for name in [*COMMANDS, "ledger-show"] if f"optstream-{name}" not in anchors] == []
    section = data_page().split("## Published rows")[1].split("\n## ")[0]
    assert re.findall(r"^\| .*\|\s*\|$", section, re.MULTILINE) == []
