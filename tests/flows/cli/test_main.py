"""The command line as its user meets it: help, examples, errors in one line, and which files it is given."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import date
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

import optstream
from flows.cli import main, output, setup
from flows.cli.options import WordsError, read_streams
from flows.cli.serve import configurations_of
from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import load_settings
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION

HEAVY = ("polars", "numpy", "prefect", "great_expectations", "sqlalchemy", "opendp", "cvxpy", "scipy")


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
    assert len(load_settings(empty / "optstream.toml").tree_of(date.min).leaves) == 12
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
    file = empty / "optstream.toml"
    file.write_text(file.read_text().replace("Europe/Paris", "Pacific/Apia"))
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
    assert "`optstream init` writes an example" in line
    assert list(empty.iterdir()) == []


def test_another_distributions_package_is_named(monkeypatch, tmp_path):
    main.check_packages()
    (tmp_path / "tasks").mkdir()
    file = tmp_path / "tasks/__init__.py"
    file.write_text("")
    monkeypatch.setattr(main, "find_spec", lambda name: ModuleSpec(name, None, origin=str(file)))
    with pytest.raises(ConfigurationError, match="'tasks' comes from another distribution"):
        main.check_packages()


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


def commands():
    for name in main.COMMANDS:
        command = main.load(name)
        yield name, command
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())


COMMANDS = dict(commands())
SINGLE = {name: command for name, command in COMMANDS.items() if not isinstance(command, TyperGroup)}


def examples_of(name):
    return re.findall("`(.*?)`", SINGLE[name].epilog or "")


@pytest.mark.parametrize(("name", "example"), [(name, one) for name in SINGLE for one in examples_of(name)])
def test_an_example_is_taken_by_its_command(name, example):
    program, *words = shlex.split(example)
    assert program == "optstream"
    assert words[: len(name.split())] == name.split()
    assert SINGLE[name].make_context(name, words[len(name.split()) :]).command is SINGLE[name]
    shown = CliRunner().invoke(main.app, [*name.split(), "--help"], env={"COLUMNS": "120"}).output
    assert example in shown


def test_every_command_has_an_example_and_describes_every_option():
    for name, command in SINGLE.items():
        assert examples_of(name), name
        assert [one.name for one in command.params if not getattr(one, "help", None)] == [], name


DAY = date(2016, 6, 1)
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from flows.cli.main import app

found = []
for words in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, words.split())
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    found.append([name for name in sys.argv[2:] if name in sys.modules])
print(json.dumps(found))
"""
LISTS, HELP = ["--help", "--version", "rum"], "run --help"
QUICK = ["status", "report", "ledger show", "ledger verify", "purge --dry-run", "doctor", f"run --date {DAY}"]


@pytest.mark.slow
def test_no_command_waits_for_what_it_does_not_use(installation):
    """In one process, in order: what a command has imported, the later ones have too."""
    installation.simulate(DAY)
    installation.release(DAY)
    installation.write_pages()
    assert all(map(find_spec, HEAVY)), "control: these are names of packages"
    program = [sys.executable, "-c", PROGRAM, json.dumps([*LISTS, HELP, *QUICK]), *HEAVY]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(program, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    *lists, helps, status, _, _, _, _, _, run = map(set, json.loads(done.stdout.splitlines()[-1]))
    assert lists == [set()] * len(LISTS)
    assert "polars" in helps, "control: its own modules are imported"
    assert not helps & {"prefect", "great_expectations", "scipy"}
    assert not status & {"scipy", "cvxpy"}
    assert not run & {"great_expectations", "prefect"}, "of days that are published, after all the others"
