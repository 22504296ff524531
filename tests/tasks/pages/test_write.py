"""The pages that a night leaves: what each says, what neither does, and what happens when one cannot be."""

import json
import re
import shutil
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from html.parser import HTMLParser

import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.about import About, NodeFacts
from optstream.errors import PublicationError
from tasks.pages.public import public_page, write_public_page
from tasks.pages.published import Node
from tests.tasks.pages.conftest import facts_of

DAY, NEXT, THIRD = date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)

pytestmark = pytest.mark.slow


def page_of(installation):
    return (installation.folder / "published/index.html").read_bytes()


def report_of(installation):
    return installation.settings.report_file.read_text()


def test_the_public_page_is_a_function_of_the_published_folder_alone(installation, tmp_path_factory):
    """Rebuilt from a copy of that folder, without ledger, configuration or what was kept: the same bytes."""
    installation.released(DAY, NEXT)
    written = installation.write_pages()
    assert written.problem is None
    copy = tmp_path_factory.mktemp("a reader's") / "copy"
    shutil.copytree(installation.folder / "published", copy)
    (copy / "index.html").unlink()
    installation.settings.trusted_folder.rename(installation.folder / "gone")
    write_public_page(copy)
    assert (copy / "index.html").read_bytes() == page_of(installation)
    write_public_page(copy, installation.folder / "page.html")
    assert (installation.folder / "page.html").read_bytes() == page_of(installation)


def test_what_only_operators_know_is_on_their_page_alone(installation):
    installation.configure("[trusted]", "[watch]\nfirst_day = 2016-05-31\n[trusted]")
    installation.release(DAY, NEXT)
    installation.write_pages()
    report, public = report_of(installation), page_of(installation).decode()
    for said in ("Charged to the worst window", "31 May 2016", "late", "alarm", "Charged lately"):
        assert said in report, said
    for hidden in (
        '"s-bad"',
        "Charged",
        "alarm",
        "31 May 2016",
        "trusted/",
        str(installation.folder),
        "reserved",
    ):
        assert hidden not in public, hidden
    assert oct(installation.settings.report_file.stat().st_mode & 0o777) == "0o600"
    assert oct(installation.settings.report_folder.stat().st_mode & 0o777) == "0o700"


def test_no_reading_is_on_either_page(installation):
    """The dumps' own totals, as curves would have them; the search itself sees published ones."""
    installation.released(DAY)
    installation.write_pages()
    dumps = pl.read_parquet(installation.folder / "dumps/region=84/date=2016-06-01/*.parquet")["load_mw"]
    rows = pl.read_parquet(installation.folder / "published/data", hive_partitioning=True)

    def figures(values):
        return {f"{value:.6g}" for value in (values.mean(), *values)}

    published = set().union(*(figures(own["load_mw"]) for _, own in rows.group_by("node")))
    text = report_of(installation) + page_of(installation).decode()
    found = {f"{float(number):.6g}" for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
    assert published <= found
    assert not (figures(dumps) - published) & found


def test_a_withdrawn_day_leaves_both_pages(installation):
    installation.released(DAY, NEXT)
    installation.write_pages()
    before = page_of(installation)
    installation.withdraw(NEXT)
    assert b"being made anew" in page_of(installation)
    assert not (installation.folder / "published/curves").exists()
    assert any("optstream report" in line for line in installation.problems())
    installation.write_pages()
    after = page_of(installation)
    assert b"1 Jun 2016 to 1 Jun 2016" in after
    assert b"1 Jun 2016 to 2 Jun 2016" in before
    assert b"a wrong meter" not in after, "why is the ledger's to know"
    assert "a wrong meter" in report_of(installation)
    assert installation.problems() == []


def test_a_lost_file_is_named_and_the_other_days_are_shown(installation):
    installation.released(DAY, NEXT)
    installation.write_pages()
    whole = page_of(installation)
    entry = read_catalogue(installation.folder / "published").entry(DAY)
    before = (installation.folder / "published" / entry.file).read_bytes()
    for harm, what in ((b"spoilt", "damaged"), (None, "missing")):
        (installation.folder / "published" / entry.file).unlink()
        if harm:
            (installation.folder / "published" / entry.file).write_bytes(harm)
        written = installation.write_pages()
        assert (written.problem, written.lost) == (None, (DAY,))
        assert f"1 Jun 2016 ({what})" in page_of(installation).decode()
        assert "optstream publish" not in page_of(installation).decode()
        assert "optstream publish 2016-06-01" in report_of(installation)
        assert "2 Jun 2016 as" not in report_of(installation)
        assert "2 Jun 2016</th><td" in page_of(installation).decode(), "the table of the other day"
    (installation.folder / "published" / entry.file).write_bytes(before)
    assert installation.write_pages().lost == ()
    assert page_of(installation) == whole


def test_a_folder_that_cannot_be_read_stops_nothing_and_is_said(installation):
    installation.released(DAY)
    (installation.folder / "published/catalogue.json").write_bytes(b"{")
    assert "not JSON" in installation.write_pages().problem
    assert "unlisted" in report_of(installation), "the alarm of the watch"


FORGED = "2199-12-31"


def forge(installation, day):
    path = installation.folder / "published/catalogue.json"
    path.write_text(path.read_text().replace(str(DAY), day))


def test_a_day_of_the_year_9999_is_refused_by_page_and_reader(installation):
    installation.released(DAY)
    forge(installation, "9999-12-31")
    written = installation.write_pages()
    assert re.search("catalogue.json .*has a period outside the years 1970 to 2199", written.problem)
    with pytest.raises(PublicationError, match="outside the years"):
        read_catalogue(installation.folder / "published")


def test_a_day_to_come_stops_the_public_page_and_not_the_operators(installation):
    installation.released(DAY)
    installation.write_pages()
    before = (installation.folder / "published/index.html").read_bytes()
    forge(installation, FORGED)
    written = installation.write_pages()
    assert f"catalogue.json lists {FORGED}, which is still to come" in written.problem
    assert (installation.folder / "published/index.html").read_bytes() == before
    assert installation.settings.report_file.is_file()


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
