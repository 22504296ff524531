"""The pages that a night leaves: what each says, what neither does, and what happens when one cannot be."""

import re
import shutil
from datetime import date

import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.errors import PublicationError
from tasks.pages.public import write_public_page

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
