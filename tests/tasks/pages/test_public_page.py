"""What stands on the pages, and what never may."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from optstream.catalogue.about import About, NodeFacts
from tasks.pages.public import public_page
from tasks.pages.published import Node
from tests.tasks.pages.conftest import facts_of

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
VOID = {"meta", "link", "path", "img", "input"}


class Outline(HTMLParser):
    """Tags, attributes and text; `open` is empty at the end of a well-nested page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open, self.headings, self.ids = [], [], [], [], []
        self.feed(page.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def page(forty_days):
    return public_page(facts_of(forty_days))


def test_the_page_is_well_nested_and_every_reference_leads_somewhere(page):
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    for _, attributes in outline.tags:
        for name in ("aria-labelledby",):
            assert name not in attributes or attributes[name] in outline.ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in outline.ids
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    steps = zip(outline.headings, outline.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)


def test_nothing_of_another_folder_is_fetched_and_only_the_page_s_own_script_runs(page):
    """Data lie in blocks that no browser runs; the policy names the one script by its hash."""
    outline = Outline(page)
    scripts = [attributes for tag, attributes in outline.tags if tag == "script"]
    assert [one.get("type") for one in scripts] == ["application/json", None]
    text = page.decode().rpartition("<script>")[2].rpartition("</script>")[0]
    digest = b64encode(sha256(text.encode()).digest()).decode()
    (policy,) = [
        attributes["content"]
        for tag, attributes in outline.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert f"default-src 'none'; script-src 'sha256-{digest}'; style-src" in policy
    for tag, attributes in outline.tags:
        assert tag not in {"img", "iframe", "object", "embed", "form", "base", "source"}
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        if tag == "link":
            assert attributes["href"] == "data:,"
    assert re.findall(rb"https?://[^ ]+", page) == [b"https://github.com/leeoniya/uPlot"], "whose code it is"
    assert b"url(" not in page
    assert b"@import" not in page


def test_what_the_suppliers_rounding_takes_of_alpha_is_not_said_to_be_covered(forty_days):
    facts = facts_of(forty_days)
    rounded = facts.statement.changed(supplier_rounding=facts.statement.model.alpha / 4)
    words = Outline(public_page(replace(facts, statement=rounded))).words
    covered = float(facts.statement.model.alpha) * 3 / 4
    assert f"changes of each by at most {covered:g}" in words


def test_hostile_names_are_text(forty_days):
    facts = facts_of(forty_days)
    nodes = tuple(Node(HOSTILE + node.name, node.parent and HOSTILE, node.level) for node in facts.nodes)
    about = About(
        publisher=HOSTILE,
        licence=HOSTILE,
        nodes={node.name: NodeFacts(name="curves/" + "0" * 64 + ".bin") for node in nodes},
    )
    hostile = replace(facts, nodes=nodes, about=about, catalogue=facts.catalogue.changed(stream=HOSTILE))
    page = public_page(hostile)
    outline = Outline(page)
    assert HOSTILE in "".join(outline.text)
    assert [tag for tag, _ in outline.tags if tag in {"script", "img"}] == ["script"] * 2
    assert outline.open == []
    data = json.loads(page.decode().partition('application/json">')[2].partition("</script>")[0])
    assert data["nodes"][0] == f"{about.nodes[nodes[0].name].name} ({nodes[0].name})"


def test_no_clock_is_asked(forty_days, monkeypatch):
    """The same facts give the same bytes, and no hour of the run stands on the page."""
    page = public_page(facts_of(forty_days))
    now = datetime.now(UTC)
    assert f"{now:%Y-%m-%d}" not in page.decode()
    assert public_page(facts_of(forty_days)) == page
