"""The pages that a night leaves: what each says, what neither does, and what happens when one cannot be."""

import re
import shutil
from base64 import b64decode
from datetime import date
from fractions import Fraction

import polars as pl
import pytest

from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.page import curves_named
from optstream.catalogue.read import read_statement
from optstream.errors import LedgerError
from tasks.ledger.show import read_horizons
from tasks.operate.keys import new_key
from tasks.release.stages import Status
from tasks.reports.numbers import at_most
from tasks.reports.one_day import day_in_markdown
from tasks.reports.write import write_public_page
from tasks.trusted import files as kept_figures
from tests.failing import raising

DAY, NEXT, THIRD = date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)

pytestmark = pytest.mark.slow


def page_of(installation):
    return (installation.folder / "published/index.html").read_bytes()


def curves_of(page):
    return [f"{digest}.bin" for digest in curves_named(page)]


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
    shutil.rmtree(copy / "curves")
    write_public_page(copy)
    for folder in (copy, installation.folder / "published"):
        assert [path.name for path in (folder / "curves").iterdir()] == list(curves_of(page_of(installation)))
    write_public_page(copy, installation.folder / "page.html")
    assert (installation.folder / "page.html").read_bytes() == page_of(installation)


def test_the_page_leads_to_the_deployment_card_if_there_is_one(installation):
    """From the first night on, though the card is put after the page."""
    installation.released(DAY)
    installation.write_pages()
    published = installation.folder / "published"
    for name in ("deployment-card.html", "deployment-card.json"):
        assert f'<a href="{name}"' in page_of(installation).decode()
        assert (published / name).is_file()
        (published / name).unlink()
    write_public_page(published)
    assert "deployment-card" not in page_of(installation).decode()


def test_a_month_and_a_year_stand_on_both_pages_the_plans_and_what_was_charged(installation, whole_spans):
    installation.release(DAY, NEXT)
    installation.write_pages()
    report, public = report_of(installation), page_of(installation).decode()
    (entry, _) = read_catalogue(installation.folder / "published").entries
    statement = read_statement(open_storage(installation.folder / "published"), entry)
    assert [span.n_days for span in statement.long_spans] == [30, 365]
    for span in statement.long_spans:
        for page in (report, public):
            assert f"<b>{span.n_days} days in a row</b>" in page
            assert f"The plain sum is {at_most(span.plain_sum)}." in page
    assert 'Epsilon at delta 1e-06</th><th scope="col">Plain sum, at delta 0' in report
    assert "Plain sum, at delta 0" not in public
    for found in read_horizons(installation.settings, installation.ledger):
        assert found.loss.plain == 2
        assert f'<td class="n">{at_most(found.loss.epsilon)}</td><td class="n">2</td>' in report
    installation.compromise(DAY, "a stolen disk")
    installation.write_pages()
    assert '<td class="n">∞</td><td class="n">∞</td>' in report_of(installation)


def test_where_a_day_was_restated_the_page_tells_the_whole_budget(either):
    """The newest plan leaves a tenth to restatements, and the windows around one were charged it."""
    either.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    either.release(DAY)
    assert either.release(DAY, restate=True)[DAY].outcome.status is Status.PUBLISHED
    either.release(NEXT)
    assert either.ledger.worst("people").epsilon > Fraction(9, 10)
    either.write_pages()
    assert b"factor e<sup>1</sup>" in page_of(either)
    assert b"e<sup>0.9" not in page_of(either)


def test_the_sum_of_the_same_charges_is_composed_once(installation, monkeypatch):
    installation.released(DAY)
    installation.write_pages()
    monkeypatch.setattr(kept_figures, "composed", None)
    installation.write_pages()
    installation.release(NEXT)
    with pytest.raises(TypeError):  # control: another sum
        installation.write_pages()


def test_what_only_operators_know_is_on_their_page_alone(installation):
    installation.configure("[trusted]", "[watch]\nfirst_day = 2016-05-31\n[trusted]")
    installation.release(DAY, NEXT)
    installation.write_pages()
    report, public = report_of(installation), page_of(installation).decode()
    for said in ("Charged to the worst window", "31 May 2016", "late", "alarm", "Share of epsilon", "1/2"):
        assert said in report, said
    for hidden in (
        '"s-late"',
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


def test_the_operators_page_links_to_the_published_files(installation):
    installation.released(DAY)
    installation.write_pages()
    (entry,) = read_catalogue(installation.folder / "published").entries
    link = f"../../../published/{entry.file}"
    assert f'href="{link}"' in report_of(installation)
    assert (installation.settings.report_folder / link).resolve().is_file()


def test_the_operators_page_links_to_the_data_docs_of_the_last_weeks_and_readers_do_not(installation):
    installation.released(DAY)
    installation.write_pages()
    links = re.findall(r'href="(\.\./\.\./validation/[^"]+)"', report_of(installation))
    suites = [link.rsplit("-", 1)[1] for link in links]
    assert sorted(suites) == ["private_period.html", "raw.html", "release.html"]
    assert all((installation.settings.report_folder / link).is_file() for link in links)
    assert b"validation/" not in page_of(installation)
    installation.later(days=29)
    installation.write_pages()
    assert "../../validation/" not in report_of(installation)


def test_no_reading_is_on_either_page(installation):
    """The dumps' own totals, as anybody would print them; the search itself sees published ones.

    False alarms: none. These dumps' totals are no round thousands, as the axes' numbers are, and a published
    number that the noise made look like a reading is not counted.
    """
    installation.released(DAY)
    installation.write_pages()
    dumps = pl.read_parquet(installation.folder / "dumps/region=84/date=2016-06-01/*.parquet")["load_mw"]
    rows = pl.read_parquet(installation.folder / "published/data", hive_partitioning=True)
    published = {
        f">{value:,.0f}<"
        for (_,), own in rows.group_by("node")
        for value in (own["load_mw"].mean(), own["load_mw"].min(), own["load_mw"].max())
    }
    pages = report_of(installation) + page_of(installation).decode()
    readings = {f">{value:,.0f}<" for value in (dumps.mean(), dumps.min(), dumps.max())} - published
    assert not [text for text in readings if text in pages]
    assert f">{rows.filter(pl.col('node') == '84')['load_mw'].mean():,.0f}<" in pages


def test_names_publisher_and_licence_stand_beside_the_data_and_are_signed(installation):
    """Names are on the page; who writes others in their place is seen, and the next page mends it."""
    installation.configure("[budget]", '[hierarchy.names]\n84 = "Auvergne"\n[budget]')
    lines = 'publisher = "Example Grid"\nlicence = "CC BY 4.0"\nsigning_key = "trusted/signing.pem"\n'
    installation.configure('value = "load_mw"\n[trusted]', f'value = "load_mw"\n{lines}[trusted]')
    public = new_key(installation.settings.signing_key_file)
    installation.release(DAY)
    installation.write_pages()
    folder, page = installation.folder / "published", page_of(installation).decode()
    assert "<td>Auvergne</td>" in page
    assert "Example Grid: two-regions, differentially private series, 1 Jun 2016" in page
    assert "CC BY 4.0" in page
    assert check_files(folder, public) == []
    (folder / "about.json").write_bytes(About("Somebody else").to_bytes("two-regions"))
    assert [line for line in check_files(folder, public) if line.startswith("about.json is not signed")]
    installation.write_pages()
    assert page_of(installation).decode() == page
    assert check_files(folder, public) == []


def test_figures_that_are_there_are_not_made_again(installation, monkeypatch):
    installation.released(DAY)
    installation.write_pages()
    before = sorted((installation.folder / "published/curves").iterdir())
    monkeypatch.setattr("tasks.reports.curves.read_columns", None)
    installation.write_pages()
    assert sorted((installation.folder / "published/curves").iterdir()) == before
    installation.release(NEXT)
    with pytest.raises(TypeError):  # control: another day
        installation.write_pages()


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


def test_before_the_first_release_operators_have_a_page_and_readers_none(installation):
    installation.run()
    written = installation.write_pages()
    assert (written.public, written.problem) == (None, None)
    assert "No day is published." in report_of(installation)
    assert not (installation.folder / "published").exists()


def test_another_ledger_writes_no_operators_page(installation, monkeypatch):
    installation.released(DAY)

    away = raising(LedgerError("the database is away"))
    monkeypatch.setattr("tasks.reports.operator.watch", away)
    with pytest.raises(LedgerError, match="is away"):
        installation.write_pages()


def test_old_files_are_not_read_again(installation, monkeypatch):
    installation.released(DAY, NEXT)
    installation.write_pages()
    from tasks.reports import summaries

    read = []
    real = summaries.read_columns

    def noted(place, entry, *wanted):
        read.append(entry.period)
        return real(place, entry, *wanted)

    monkeypatch.setattr(summaries, "read_columns", noted)
    installation.write_pages()
    assert read == []
    installation.simulate(THIRD)
    installation.release(THIRD)
    installation.write_pages()
    assert read == [THIRD]
    assert check_files(installation.folder / "published") == []


def test_a_day_in_markdown_is_made_of_its_published_file(installation):
    installation.released(DAY)
    text = day_in_markdown(installation.settings.published_folder, DAY)
    (entry,) = read_catalogue(installation.folder / "published").entries
    assert entry.rows_hash in text
    assert entry.file in text
    pictures = [b64decode(one) for one in re.findall(r"\(data:image/png;base64,([^)]+)\)", text)]
    assert [one[:8] for one in pictures] == [b"\x89PNG\r\n\x1a\n"] * 2
    installation.settings.trusted_folder.rename(installation.folder / "gone")
    assert day_in_markdown(installation.settings.published_folder, DAY) == text
