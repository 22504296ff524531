"""What `--help` says: a panel and a line for every command, examples that the command line would take."""

import json
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from flows.cli.main import COMMANDS as LISTED
from flows.cli.main import app, load

HEAVY = ("polars", "numpy", "prefect", "great_expectations", "sqlalchemy", "opendp", "cvxpy", "scipy")


def commands():
    """Every command by its words, groups included."""
    for name in LISTED:
        command = load(name)
        yield name, command
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())


COMMANDS = dict(commands())
SINGLE = {name: command for name, command in COMMANDS.items() if not isinstance(command, TyperGroup)}


def examples_of(name):
    return re.findall("`(.*?)`", SINGLE[name].epilog or "")


@cache
def help_of(*words, columns=120):
    return CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)}).output


@pytest.mark.parametrize(("name", "example"), [(name, one) for name in SINGLE for one in examples_of(name)])
def test_an_example_is_taken_by_its_command(name, example):
    program, *words = shlex.split(example)
    assert program == "optstream"
    assert words[: len(name.split())] == name.split()
    context = SINGLE[name].make_context(name, words[len(name.split()) :])
    assert context.command is SINGLE[name]
    assert example in help_of(*name.split())


@pytest.mark.parametrize("name", SINGLE)
def test_every_command_has_an_example_and_describes_every_option(name):
    assert examples_of(name)
    assert [one.name for one in SINGLE[name].params if not getattr(one, "help", None)] == []


def imported(*words):
    """Which of the heavy libraries a command line has imported when it ends."""
    code = (
        "import json, sys\nfrom flows.cli.main import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n"
        f"    print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=300
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["rum"]])
@pytest.mark.slow
def test_the_list_of_commands_imports_no_library_of_theirs(words):
    assert imported(*words) == set()


@pytest.mark.slow
def test_a_command_s_own_help_imports_no_orchestrator_contracts_or_estimates():
    """The control: what a command is made of is imported when it is called, and only that."""
    heavy = imported("run", "--help")
    assert "polars" in heavy
    assert not heavy & {"prefect", "great_expectations", "scipy"}
