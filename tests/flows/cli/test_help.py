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

LONGEST_LINE = 62  # what fits beside the longest name in a terminal of 80 columns
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


def line_of(name):
    """The first sentence of a command's help."""
    return COMMANDS[name].help.split("\n\n")[0]


def examples_of(name):
    return re.findall("`(.*?)`", SINGLE[name].epilog or "")


@cache
def help_of(*words, columns=120):
    return CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)}).output


def test_the_list_says_of_each_command_what_its_own_help_begins_with():
    assert {name: row.line for name, row in LISTED.items()} == {name: line_of(name) for name in LISTED}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_in_the_list_is_one_line(name):
    assert 0 < len(line_of(name)) <= LONGEST_LINE
    group = name.split()[:-1]
    width = max(len(other.split()[-1]) for other in COMMANDS if other.split()[:-1] == group)
    shown = help_of(*group, columns=80)
    assert f"{name.split()[-1]:<{width}}  {line_of(name)} " in shown


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


def test_brackets_are_words_and_no_colours():
    shown = help_of("run")
    assert "[budget] restatement_share" in " ".join(shown.replace("│", " ").split())


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
