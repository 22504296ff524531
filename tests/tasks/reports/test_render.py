"""What stands on the pages, and what never may."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from optstream.catalogue.about import About, NodeFacts
from optstream.catalogue.page import curves_named
from optstream.estimation.estimate import Optimality
from tasks.reports import Node, public_page
from tasks.reports.coverage import measured_coverage
from tasks.reports.curves import CurveFiles
from tasks.reports.facts import LevelError
from tests.tasks.reports.conftest import facts_of

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[3]
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
    assert [one.get("type") for one in scripts] == ["application/json"] * 2 + ["text/plain"] * 2 + [None]
    text = page.decode().rpartition("<script>")[2].rpartition("</script>")[0]
    digest = b64encode(sha256(text.encode()).digest()).decode()
    (policy,) = [
        attributes["content"]
        for tag, attributes in outline.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert f"default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self';" in policy
    for tag, attributes in outline.tags:
        assert tag not in {"img", "iframe", "object", "embed", "form", "base", "source"}
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        if tag == "link":
            assert attributes["href"] == "data:,"
    assert b"http:" not in page
    assert b"https:" not in page
    assert b"url(" not in page
    assert b"@import" not in page


def test_links_lead_to_files_that_are_there(page, forty_days):
    links = {
        attributes["href"]
        for tag, attributes in Outline(page).tags
        if tag == "a" and not attributes["href"].startswith("#")
    }
    assert len(links) == 1 + 2 * 28
    assert [link for link in links if not (forty_days / link).is_file()] == []


def test_the_page_says_what_the_brief_asks_for(page):
    words = Outline(page).words
    for said in (
        "39 days are published, 1 Jan 2016 to 9 Feb 2016",
        "The files do not say how far a figure is from the truth, so no band is drawn",
        "one customer's readings inside any 48 consecutive steps of 30 minutes , wherever they lie",
        "changes of each by at most 10 MW",
        "samples: 400",
        "31 Jan 2016 withdrawn",
        "equally_spaced",
        *("polars", "pandas", "DuckDB", "R "),
    ):
        assert said in words or said.replace(" ,", ",") in words, said


def levels_table(page):
    """The words of the table of levels."""
    return Outline(page).words.partition("Hierarchy and budgets")[2].partition("All 13 nodes")[0]


def test_each_level_s_share_of_epsilon_is_the_one_that_the_release_states(page):
    table = levels_table(page)
    assert "Share of epsilon" in table
    assert re.search(r"\b0 1 1/3 samples: 400\b.*\b1 12 2/3 samples: 400\b", table)


@pytest.mark.parametrize("stated", [None, "1/2", ["1/2"], [1, 2], ["1/2", "1/2", "0"], {"0": "1"}])
def test_no_share_is_shown_where_the_release_states_none_for_each_level(forty_days, stated):
    """Releases from before shares were stated, and folders that somebody else wrote."""
    facts = facts_of(forty_days)
    mechanism = {**facts.statement.mechanism, "level_shares": stated}
    if stated is None:
        del mechanism["level_shares"]
    table = levels_table(public_page(replace(facts, statement=replace(facts.statement, mechanism=mechanism))))
    assert "Share of epsilon" not in table
    assert re.search(r"\b0 1 samples: 400\b.*\b1 12 samples: 400\b", table)


@pytest.mark.parametrize("converged", [True, False, None])
def test_the_page_says_where_the_newest_days_program_was_not_solved_to_the_end(forty_days, converged):
    facts = facts_of(forty_days)
    certificate = None if converged is None else Optimality(0.02, 0.1, 50, converged)
    stated = replace(facts, statement=replace(facts.statement, optimality=certificate))
    words = Outline(public_page(stated)).words
    assert ("not solved to the end" in words) == (converged is False)
    assert ("0.2 of its own standard errors" in words) == (converged is False)


@pytest.mark.parametrize(
    ("error", "is_total", "said"),
    [
        (8.9, False, None),
        (9, False, "a typical figure of its 12 nodes is 10 MW, and noise alone moves it by 9 MW"),
        (20, True, "a typical figure of its 12 nodes is 10 MW, and it is wrong by 20 MW"),
    ],
)
def test_the_page_warns_of_a_level_that_is_as_good_as_nothing(forty_days, error, is_total, said):
    facts = facts_of(forty_days)
    root, leaves = facts.level_errors
    assert not root.is_as_good_as_nothing
    assert 0 < root.error < root.size, "as measured, from the newest day's rows"
    found = replace(facts, level_errors=(root, LevelError(1, 10.0, error, is_total)))
    words = Outline(public_page(found)).words
    assert ("Level 1 is as good as nothing: on 9 Feb 2016" in words) == (said is not None)
    assert "Level 0 is as good as nothing" not in words
    assert (said or "9 Feb 2016") in words
    assert leaves.level == 1


def test_no_page_calls_the_bands_error_bands_or_intervals(page):
    """In no source of the pages either: what is not on this page may be on another."""
    sources = [
        path.read_text() for path in (CHECKOUT / "tasks/reports").rglob("*.*") if path.suffix != ".pyc"
    ]
    for text in (page.decode(), *sources):
        text = text.replace("it makes no error band", "")  # the files' own words
        assert not re.search(r"error[ -]?bands?|error bars?|confidence|credible", text, re.IGNORECASE)


def test_the_measured_coverage_stands_beside_the_bands(page):
    words, measured = Outline(page).words, measured_coverage()
    assert [row.epsilon for row in measured.rows] == ["1", "0.1", "0.01"]
    for row in measured.rows:
        figures = [*row.held, *row.held_by_noise_alone]
        assert " ".join([row.epsilon, *(f"{100 * held:.0f} %" for held in figures)]) in words
    assert measured.command in words
    assert measured.rows[0].held_by_noise_alone[1] < 0.7, "the nation's, of noise, at epsilon 1 mislead"
    assert min(measured.rows[0].held) > 0.93, "and those of the whole error do not"


def test_no_backtick_is_shown(page):
    shown = page.partition(b"<script")[0]
    assert "`" not in Outline(shown).words
    assert b"<code>optstream init</code>" in shown


def test_another_mechanism_is_not_given_the_measured_one_s_coverage(forty_days):
    facts = facts_of(forty_days)
    other = replace(facts.statement, mechanism={**facts.statement.mechanism, "name": "Fourier"})
    words = Outline(public_page(replace(facts, statement=other))).words
    assert "That was done for OptStream, not for Fourier." in words
    assert measured_coverage().command not in words


def test_what_the_suppliers_rounding_takes_of_alpha_is_not_said_to_be_covered(forty_days):
    facts = facts_of(forty_days)
    rounded = replace(facts.statement, supplier_rounding=facts.statement.model.alpha / 4)
    words = Outline(public_page(replace(facts, statement=rounded))).words
    covered = float(facts.statement.model.alpha) * 3 / 4
    assert f"changes of each by at most {covered:g}" in words


def test_it_says_how_to_cite_under_which_licence_and_what_was_changed(forty_days):
    facts = facts_of(forty_days)
    words = Outline(public_page(facts)).words
    assert "The publisher states none" in words
    entries = (replace(facts.catalogue.entries[0], revision=1, vintage=2), *facts.catalogue.entries[1:])
    told = replace(
        facts, about=About("Example Grid", "CC BY 4.0"), catalogue=replace(facts.catalogue, entries=entries)
    )
    words = Outline(public_page(told)).words
    assert "Example Grid: simulated-load, differentially private series, 1 Jan 2016 to 9 Feb 2016" in words
    assert "CC BY 4.0" in words
    assert re.search(r"1 Jan 2016\s+1\s+2\s+published", words)


def test_hostile_names_are_text(forty_days):
    facts = facts_of(forty_days)
    nodes = tuple(Node(HOSTILE + node.name, node.parent and HOSTILE, node.level) for node in facts.nodes)
    about = About(HOSTILE, HOSTILE, {node.name: NodeFacts("curves/" + "0" * 64 + ".bin") for node in nodes})
    hostile = replace(facts, nodes=nodes, about=about, catalogue=replace(facts.catalogue, stream=HOSTILE))
    page = public_page(hostile)
    outline = Outline(page)
    assert HOSTILE in "".join(outline.text)
    assert [tag for tag, _ in outline.tags if tag in {"script", "img"}] == ["script"] * 5
    assert outline.open == []
    index = json.loads(page.decode().partition('id="index">')[2].partition("</script>")[0])
    assert index["nodes"][0][0] == nodes[0].name
    assert index["stream"] == HOSTILE
    assert curves_named(page) == frozenset(), "no name is taken for a file of figures"
    named = CurveFiles(steps={"2016-01": ["curves/" + "1" * 64 + ".bin"]})
    assert curves_named(public_page(hostile, named)) == {"1" * 64}, "control"


def test_a_folder_whose_days_are_all_withdrawn_has_a_page(forty_days):
    facts = facts_of(forty_days)
    entries = tuple(replace(entry, withdrawn=True) for entry in facts.catalogue.entries)
    gone = replace(
        facts, catalogue=replace(facts.catalogue, entries=entries), statement=None, nodes=(), daily=None,
        recent=None,
    )  # fmt: skip
    outline = Outline(public_page(gone))
    assert "No day is published." in outline.words
    assert "40 withdrawn" in outline.words
    assert outline.open == []


def test_no_clock_is_asked(forty_days, monkeypatch):
    """The same facts give the same bytes, and no hour of the run stands on the page."""
    page = public_page(facts_of(forty_days))
    now = datetime.now(UTC)
    assert f"{now:%Y-%m-%d}" not in page.decode()
    assert public_page(facts_of(forty_days)) == page
