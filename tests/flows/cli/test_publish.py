"""`optstream publish` on the command line: a day, several, a span; what is left is an exit code of 1."""

import json
import shutil
from datetime import date

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from optstream.catalogue import read_catalogue
from optstream.errors import PublicationError
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, Installation

DAYS = [date(2016, 6, number) for number in (1, 2, 3)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three published days, the second withdrawn, and the files of the others lost."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(*DAYS)
    installation.release(*DAYS)
    installation.withdraw(DAYS[1])
    installation.write_pages()
    for path in (tmp_path / "published/data").rglob("*.parquet"):
        path.unlink()
    return installation


def there(installation):
    catalogue = read_catalogue(installation.folder / "published")
    return [day for day in DAYS if (installation.folder / "published" / catalogue.entry(day).file).is_file()]


@pytest.mark.slow
def test_a_span_leaves_out_what_was_withdrawn_or_never_published(here):
    done = invoke("publish", "--from", "2016-05-20", "--to", "2016-06-20")
    assert (done.exit_code, there(here)) == (0, [DAYS[0], DAYS[2]])
    assert "2016-06-02" not in done.output
    assert invoke("status").exit_code == 0
    assert invoke("ledger", "verify").exit_code == 0
    assert "1 Jun 2016 (missing)" not in (here.folder / "published/index.html").read_text()


@pytest.mark.slow
def test_a_withdrawn_day_that_is_named_is_refused_and_the_others_are_published(here):
    done = invoke("publish", "2016-06-02", "2016-06-03")
    assert (done.exit_code, there(here)) == (1, [DAYS[2]])
    assert "was withdrawn" in " ".join(done.output.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("withdraw", "--date", "2016-06-03", "--reason", "a wrong meter"), "withdrawn"),
        (("publish", "2016-06-03"), "published"),
        (("run", "--date", "2016-06-04"), "published"),
    ],
    ids=["withdraw", "publish", "run"],
)
def test_what_became_of_a_day_is_told_also_where_the_pages_cannot_be_written(here, words, status):
    day = date(2016, 6, 4)
    here.simulate(day)
    shutil.rmtree(here.folder / "trusted/report")
    (here.folder / "trusted/report").touch()
    with temporary_settings({PREFECT_API_URL: None}):
        done = invoke(*words, "--json")
    first, page = json.loads(done.output)["days"]
    assert (done.exit_code, first["status"], page["status"]) == (1, status, "failed")
    assert page["message"].startswith(
        "only what follows the days, new estimates or pages (`optstream report`"
    )
    assert "Not a directory" in page["message"]


@pytest.mark.slow
def test_pages_that_cannot_be_written_are_reported_and_a_later_backfill_writes_them(here):
    assert invoke("publish", "--from", "2016-06-01", "--to", "2016-06-03").exit_code == 0
    page, span = here.folder / "published/index.html", ("--from", "2016-06-01", "--to", "2016-06-03")
    page.unlink()
    page.mkdir()  # where no page can be written, as on a full disk
    done = invoke("withdraw", "--date", "2016-06-01", "--reason", "the wrong dump")
    assert (done.exit_code, "was not written: index.html" in " ".join(done.output.split())) == (1, True)
    with temporary_settings({PREFECT_API_URL: None}):
        with pytest.raises(PublicationError, match=r"was not written: index\.html"):
            invoke("backfill", *span)
        assert invoke("run", "--date", "2016-06-03").exit_code == 1
        page.rmdir()
        done = invoke("backfill", *span)
        assert (done.exit_code, "written again" in done.output) == (0, True)
        assert "nothing to do" in invoke("backfill", *span).output
    assert invoke("status").exit_code == 0
    assert invoke("ledger", "verify").exit_code == 0
