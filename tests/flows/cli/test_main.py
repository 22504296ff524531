"""The command line as its user meets it: help, errors in one line, and which files it is given."""

import json
import time
from datetime import date
from importlib.machinery import ModuleSpec

import pytest

import optstream
from flows.cli import main, output, setup
from flows.cli.main import check_packages
from flows.cli.options import WordsError, read_streams
from flows.cli.serve import configurations_of
from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import load_settings
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION


def test_the_version_is_the_distributions():
    assert invoke("--version").output == f"optstream {optstream.__version__}\n"


def test_a_command_that_prints_nothing_for_long_says_so(empty, monkeypatch):
    monkeypatch.setattr(output, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(setup, "example_of", lambda *_: time.sleep(0.5) or "")
    assert "optstream init: still at work, 0 s\n" in invoke("init").stderr


def test_init_writes_an_example_that_loads_and_never_overwrites(empty):
    with pytest.raises(OptStreamError, match="mechanism of the example must be"):
        invoke("init", "--mechanism", "Kalman")
    assert invoke("init").exit_code == 0
    settings = load_settings(empty / "optstream.toml")
    assert len(settings.tree_of(date.min).leaves) == 12
    (empty / "optstream.toml").write_text("mine")
    with pytest.raises(OptStreamError, match="exists already"):
        invoke("init")
    assert (empty / "optstream.toml").read_text() == "mine"


@pytest.mark.slow
def test_simulate_and_status_of_a_stream_that_has_not_begun(empty):
    invoke("init")
    assert "36 dumps written" in invoke("simulate", "--from", "2016-02-01", "--to", "2016-02-03").output
    assert "36 were there already" in invoke("simulate", "--from", "2016-02-01", "--to", "2016-02-03").output
    document = json.loads(invoke("status", "--json").output)
    assert document["format"] == "optstream.status/3"
    assert document["days"] == []
    assert document["budget"]["left"] == "1"
    assert "nothing released yet" in invoke("status").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "--date"),
        (["run", "--date", "yesterday"], "a date looks like 2016-02-01"),
        (["run", "--date", "2016-02-30"], "and is in the calendar; got '2016-02-30'"),
        (["backfill", "--from", "2016-02-01T13", "--to", "2016-02-02"], "2016-02-01, which stands"),
        (["simulate", "--from", "2016-02-02", "--to", "2016-02-01"], "is before --from"),
        (["simulate", "--from", "2016-02-02", "--to", "2016-02-03", "--seed", "-1"], "--seed"),
        (["advise", "--scale", "0"], "--scale must be a finite number greater than 0"),
        (["advise", "--scale", "1", "--scale", "2"], "--scale is given once"),
        (["advise", "--scale", "5", "--write", "a", "--write", "b"], "--write is given once for each of 1"),
        (["rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["ledger", "show", "--from", "2016-06-02", "--to", "2016-06-01"], "is before --from"),
        (["ledger", "show", "--from", "june"], "a date looks like"),
        (["ledger", "export"], "--into"),
        (["ledger", "rewrite"], "No such command"),
    ],
)
def test_wrong_words_are_explained_and_do_nothing(empty, words, message):
    invoke("init")
    before = sorted(empty.rglob("*"))
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert sorted(empty.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--date", "2011-12-29", "--date", "2011-12-30", "--dry-run"],
        ["run", "--date", "2011-12-30", "--date", "2011-12-31"],
        ["backfill", "--from", "2011-12-30", "--to", "2011-12-30"],
        ["withdraw", "--date", "2011-12-30", "--reason", "none"],
    ],
)
def test_a_day_that_the_zone_skipped_is_refused_by_name_and_a_span_passes_over_it(empty, words):
    invoke("init")
    (empty / "optstream.toml").write_text(
        (empty / "optstream.toml").read_text().replace("Europe/Paris", "Pacific/Apia")
    )
    result = invoke(*words)
    assert result.exit_code == 2
    assert "2011-12-30 was no day in Pacific/Apia" in result.output
    span = invoke("backfill", "--from", "2011-12-29", "--to", "2011-12-31", "--dry-run", "--json")
    assert json.loads(span.output)["without_dump"] == ["2011-12-29", "2011-12-31"]


@pytest.mark.parametrize("words", [["status"], ["run", "--date", "2016-02-01"]])
def test_a_missing_configuration_is_one_line(empty, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["optstream", *words])
    with pytest.raises(SystemExit) as stopped:
        main.main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the configuration optstream.toml cannot be read")
    assert "optstream init" in line
    assert list(empty.iterdir()) == []


def test_another_distributions_package_is_named(monkeypatch, tmp_path):
    check_packages()
    (tmp_path / "tasks").mkdir()
    file = tmp_path / "tasks/__init__.py"
    file.write_text("")
    monkeypatch.setattr(main, "find_spec", lambda name: ModuleSpec(name, None, origin=str(file)))
    with pytest.raises(ConfigurationError, match="'tasks' comes from another distribution"):
        check_packages()


def test_files_and_folders_each_once_and_no_empty_folder(tmp_path):
    with pytest.raises(ConfigurationError, match="has no configuration"):
        configurations_of([tmp_path])
    for name in ("b.toml", "a.toml", "notes.txt"):
        (tmp_path / name).touch()
    found = configurations_of([tmp_path / "b.toml", tmp_path])
    assert [file.name for file in found] == ["b.toml", "a.toml"]


def test_a_file_that_cannot_be_read_is_named_next_to_others_and_refused_alone(tmp_path):
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    bad.write_text("[")
    with pytest.raises(ConfigurationError, match=r"bad\.toml"):
        invoke("ui", "--config", str(tmp_path))
    good.write_text(CONFIGURATION)
    streams, broken = read_streams([bad, good])
    assert ([one.file for one in streams], list(broken)) == ([good], [bad])
    bad.write_text(CONFIGURATION)
    with pytest.raises(WordsError, match="are both of stream two-regions: name one"):
        read_streams([good, bad])
