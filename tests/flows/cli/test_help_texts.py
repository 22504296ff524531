"""What `--help` says: a panel and a line for every command, examples that the command line would take."""

import shlex

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from flows.cli.help_texts import TEXTS
from flows.cli.main import app

LONGEST_LINE = 62  # what fits beside the longest name in a terminal of 80 columns


def commands(group=None, context=None, prefix=""):
    """Every command by its words, groups included."""
    group = group or get_command(app)
    context = context or Context(group, info_name="optstream")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield prefix + name, command
        if isinstance(command, TyperGroup):
            yield from commands(command, Context(command, parent=context, info_name=name), f"{prefix}{name} ")


COMMANDS = dict(commands())


def test_every_command_has_its_texts_and_no_text_is_left_over():
    assert set(TEXTS) == set(COMMANDS)
    assert [name for name, text in TEXTS.items() if " " not in name and text.panel is None] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_in_the_list_is_one_line(name):
    assert 0 < len(TEXTS[name].line) <= LONGEST_LINE
    group = name.split()[:-1]
    width = max(len(other.split()[-1]) for other in COMMANDS if other.split()[:-1] == group)
    shown = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "80"}).output
    assert f"{name.split()[-1]:<{width}}  {TEXTS[name].line} " in shown


@pytest.mark.parametrize(
    ("name", "example"), [(name, one) for name, text in TEXTS.items() for one in text.examples]
)
def test_an_example_is_taken_by_its_command(name, example):
    program, *words = shlex.split(example)
    assert program == "optstream"
    assert words[: len(name.split())] == name.split()
    command = COMMANDS[name]
    context = command.make_context(name, words[len(name.split()) :])
    assert context.command is command
    assert example in CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "120"}).output


@pytest.mark.parametrize("name", [name for name in COMMANDS if not isinstance(COMMANDS[name], TyperGroup)])
def test_every_command_has_an_example_and_describes_every_option(name):
    assert TEXTS[name].examples
    assert [one.name for one in COMMANDS[name].params if not getattr(one, "help", None)] == []


def test_brackets_are_words_and_no_colours():
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "120"}).output
    assert "[budget] restatement_share" in " ".join(shown.replace("│", " ").split())
