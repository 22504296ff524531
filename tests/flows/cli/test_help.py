"""What `--help` says, examples that the command line would take, and what no command waits to import."""

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import date
from importlib.util import find_spec

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from flows.cli.main import COMMANDS as LISTED
from flows.cli.main import app, load
from tests.tasks.two_regions import CONFIGURATION, Installation

HEAVY = ("polars", "numpy", "prefect", "great_expectations", "sqlalchemy", "opendp", "cvxpy", "scipy")


def commands():
    for name in LISTED:
        command = load(name)
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
    context = SINGLE[name].make_context(name, words[len(name.split()) :])
    assert context.command is SINGLE[name]
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "120"}).output
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
    result = CliRunner().invoke(app, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    found.append([name for name in sys.argv[2:] if name in sys.modules])
print(json.dumps(found))
"""
LISTS = [["--help"], ["--version"], ["rum"]]
HELPS = [["run", "--help"]]
QUICK = [
    ["status"],
    ["report"],
    ["ledger", "show"],
    ["ledger", "verify"],
    ["purge", "--dry-run"],
    ["doctor"],
    ["run", "--date", str(DAY)],
]


@pytest.mark.slow
def test_no_command_waits_for_what_it_does_not_use(tmp_path):
    """In one process, in order: what a command has imported, the later ones have too."""
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    installation.release(DAY)
    installation.write_pages()
    assert all(map(find_spec, HEAVY)), "control: these are names of packages"
    commands = json.dumps([*LISTS, *HELPS, *QUICK])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, commands, *HEAVY],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
    )
    assert done.returncode == 0, done.stderr
    quick = [*map(set, json.loads(done.stdout.splitlines()[-1]))]
    lists, helps = quick[: len(LISTS)], quick[len(LISTS) : len(LISTS + HELPS)]
    assert lists == [set()] * len(LISTS)
    assert ["polars" in one for one in helps] == [True], "control: its own modules are imported"
    assert not helps[0] & {"prefect", "great_expectations", "scipy"}
    assert not any("great_expectations" in one for one in quick)
    assert "prefect" not in quick[-1], "a run of days that are published"
    assert not quick[len(LISTS + HELPS)] & {"scipy", "cvxpy"}, "the first of the quick ones is status"
