"""`doctor`, `ledger`, `purge` and `publish`: remaining problems give exit code 1."""

import json
import shutil
from datetime import date

import pytest
from jsonschema import Draft202012Validator
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer.testing import CliRunner

from flows.cli.main import app
from flows.orchestration.release import release_days
from optstream.catalogue import read_catalogue
from optstream.errors import ConfigurationError, LedgerError, PublicationError
from optstream.ledger import Key
from tasks.schemas import schema_of
from tests.flows.command import invoke
from tests.tasks.two_regions import RESERVED

DAYS = [date(2016, 6, number) for number in (1, 2, 3)]
SPAN = ("--from", "2016-06-01", "--to", "2016-06-03")


@pytest.mark.quick
def test_a_problem_has_place_rule_and_remedy_and_exit_code_1(installation, monkeypatch):
    for name in ("PREFECT_API_URL", "DO_NOT_TRACK", "GX_ANALYTICS_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    trusted = installation.folder / "trusted"
    trusted.mkdir(mode=0o755)
    shown, for_people = invoke("doctor", "--json"), invoke("doctor")
    assert (shown.exit_code, for_people.exit_code) == (1, 1)
    document = json.loads(shown.output)
    first, wrong = document["findings"][0], f"chmod 700 {trusted}"
    assert (document["sound"], first["severity"], first["place"]) == (False, "wrong", str(trusted))
    assert first["remedy"] == wrong
    assert wrong in for_people.output
    # so is a configuration that does not load
    installation.configure('folder = "trusted"', 'folder = "published/trusted"')
    (finding,) = json.loads(invoke("doctor", "--json").output)["findings"]
    assert "must not lie in published.folder" in finding["rule"]


@pytest.mark.quick
def test_an_open_trusted_folder_stops_command_and_flow_before_they_start(installation):
    trusted = installation.folder / "trusted"
    trusted.mkdir(mode=0o750)
    words = f"nothing was read or drawn:\n.*chmod 700 {trusted}"
    with pytest.raises(ConfigurationError, match=words):
        invoke("run", "--date", "2016-06-01")
    trusted.chmod(0o701)
    with pytest.raises(ConfigurationError, match=words):
        release_days.fn("optstream.toml", ["2016-06-01"])
    assert list(trusted.iterdir()) == []


def lose(installation, *days):
    installation.simulate(*days)
    installation.release(*days)
    installation.withdraw(days[1])
    installation.write_pages()
    for path in (installation.folder / "published/data").rglob("*.parquet"):
        path.unlink()


@pytest.fixture
def lost(installation):
    """Three published days, the second withdrawn, and the files of the others lost."""
    installation.once(lose, *DAYS)
    return installation


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
def test_the_end_of_a_day_is_shown_also_where_the_pages_cannot_be_written(lost, words, status):
    lost.simulate(date(2016, 6, 4))
    shutil.rmtree(lost.folder / "trusted/report")
    (lost.folder / "trusted/report").touch()
    with temporary_settings({PREFECT_API_URL: None}):
        done = invoke(*words, "--json")
    first, page = json.loads(done.output)["days"]
    assert (done.exit_code, first["status"], page["status"]) == (1, status, "failed")
    only = "only what follows the days, new estimates or pages (`optstream report`"
    assert page["message"].startswith(only)
    assert "Not a directory" in page["message"]


@pytest.mark.slow
def test_pages_that_cannot_be_written_are_reported_and_a_later_backfill_writes_them(lost):
    assert invoke("publish", *SPAN).exit_code == 0
    page = lost.folder / "published/index.html"
    page.unlink()
    page.mkdir()  # where no page can be written, as on a full disk
    done = invoke("withdraw", "--date", "2016-06-01", "--reason", "the wrong dump")
    assert (done.exit_code, "was not written: index.html" in " ".join(done.output.split())) == (1, True)
    reported = CliRunner().invoke(app, ["report", "--json"])
    assert isinstance(reported.exception, PublicationError)
    assert json.loads(reported.stdout)["public"] is None
    with temporary_settings({PREFECT_API_URL: None}):
        with pytest.raises(PublicationError, match=r"was not written: index\.html"):
            invoke("backfill", *SPAN)
        assert invoke("run", "--date", "2016-06-03").exit_code == 1
        page.rmdir()
        done = invoke("backfill", *SPAN)
        assert (done.exit_code, "written again" in done.output) == (0, True)
        assert "nothing to do" in invoke("backfill", *SPAN).output
    assert invoke("status").exit_code == invoke("ledger", "verify").exit_code == 0


@pytest.mark.slow
def test_a_withdrawn_day_is_refused_by_its_name_and_a_span_leaves_it_out(lost):
    published = lost.folder / "published"
    catalogue = read_catalogue(published)

    def there():
        return [day for day in DAYS if (published / catalogue.entry(day).file).is_file()]

    named = invoke("publish", "2016-06-02", "2016-06-03")
    assert (named.exit_code, there()) == (1, [DAYS[2]])
    assert "was withdrawn" in " ".join(named.output.split())
    span = invoke("publish", "--from", "2016-05-20", "--to", "2016-06-20")
    assert (span.exit_code, there()) == (0, [DAYS[0], DAYS[2]])
    assert "2016-06-02" not in span.output
    assert invoke("status").exit_code == invoke("ledger", "verify").exit_code == 0
    assert "1 Jun 2016 (missing)" not in (published / "index.html").read_text()


@pytest.fixture
def charged(installation):
    """Two days that are reserved under their own plan, and one that is VOID."""
    installation.simulate(*DAYS)
    installation.release(*DAYS, steps=RESERVED)
    installation.ledger.void(Key("two-regions", "2016-06-03"), "given up", installation.now)
    return installation.folder


def test_verify_is_0_for_a_whole_ledger_and_1_with_a_line_for_each_problem(charged):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "no edit, gap, reordering or difference found: 3 releases, 0 days" in result.output
    assert "note: " in result.output
    (charged / "trusted/measurements/two-regions/2016-06-09-r0").mkdir(parents=True)
    result = invoke("ledger", "verify")
    assert result.exit_code == 1
    assert sum(line.startswith("problem: ") for line in result.output.splitlines()) == 1
    document = json.loads(invoke("ledger", "verify", "--json").output)
    assert document["format"] == "optstream.ledger-verify/1"
    assert (document["whole"], len(document["problems"])) == (False, 1)


@pytest.mark.quick
def test_no_command_makes_a_ledger_where_there_is_none(installation):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "there is no ledger yet" in result.output
    for words in (["ledger", "show"], ["ledger", "export", "--into", "out"], ["purge"]):
        with pytest.raises(LedgerError, match="there is no ledger"):
            invoke(*words)
    assert [one.name for one in installation.folder.iterdir()] == ["optstream.toml"]


def test_of_compromised_days_every_command_says_that_all_is_lost(charged):
    assert "of one customer lose at most epsilon" in invoke("ledger", "horizon").output
    invoke("ledger", "compromised", "--date", "2016-06-03", "--reason", "a stolen disk")
    lost = "noise was compromised, so all is lost"
    assert lost in invoke("ledger", "horizon").output
    shown = invoke("ledger", "show").output
    assert f"the 30 days to 2016-06-03: {lost}" in shown
    assert "nothing: noise was compromised" in shown
    commands = (("ledger", "horizon"), ("ledger", "show"), ("status",))
    said = [json.loads(invoke(*words, "--json").output, parse_constant=pytest.fail) for words in commands]
    for one in said:
        Draft202012Validator(schema_of(one["format"])).validate(one)
    horizon, budget = said[0], said[2]["budget"]
    assert (horizon["plain_sum"], horizon["epsilon_float"]) == ("inf", None)
    assert (budget["spent"], budget["spent_float"]) == ("inf", None)
