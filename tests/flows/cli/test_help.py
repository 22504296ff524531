"""What `--help` says, examples that the command line would take, and what no command waits to import."""

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import date, timedelta
from functools import cache

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from flows.cli.main import COMMANDS as LISTED
from flows.cli.main import app, load
from tests.tasks.two_regions import CONFIGURATION, Installation

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


def test_the_first_panel_has_the_eight_daily_commands():
    text = help_of()
    panel = text[text.index("Every day") : text.index("Set up")]
    daily = ["run", "backfill", "serve", "status", "watch", "ui", "report", "ledger"]
    assert re.findall(r"(?m)^│ (\S+)", panel) == daily


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


DAY = date(2016, 6, 1)
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from flows.cli.main import app

config = sys.argv[1]
judging = [name for name in sys.modules if name.split(".")[0] == "great_expectations"]
found = {"import": len(judging)}
for words in json.loads(sys.argv[2]):
    result = CliRunner().invoke(app, [one.replace("CONFIG", config) for one in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    found[" ".join(words)] = int("great_expectations" in sys.modules)
print(json.dumps(found))
"""
CONFIGURED = ["--config", "CONFIG"]
QUICK = [
    ["--help"],
    ["run", "--help"],
    ["status", *CONFIGURED],
    ["report", *CONFIGURED],
    ["ledger", "show", *CONFIGURED],
    ["ledger", "verify", *CONFIGURED],
    ["purge", "--dry-run", *CONFIGURED],
    ["doctor", *CONFIGURED],
    ["run", "--date", str(DAY), *CONFIGURED],
]


@pytest.mark.slow
def test_commands_that_judge_nothing_do_not_import_it(tmp_path):
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    installation.release(DAY)
    judging = ["run", "--date", str(DAY + timedelta(1)), *CONFIGURED]
    installation.simulate(DAY + timedelta(1))
    arguments = [str(tmp_path / "optstream.toml"), json.dumps([*QUICK, judging])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 2 + len(QUICK)
    assert found.pop(" ".join(judging)) == 1, "control: what judges imports it"
    assert set(found.values()) == {0}
    memory = tmp_path / "trusted" / "prefect"
    assert memory.is_dir()
    assert list(memory.rglob("*")) == [], "no run has a server of its own, whose database would only grow"
