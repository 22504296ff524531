"""The commands' reference, from the commands themselves."""

from typer import Context
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from flows.cli.main import COMMANDS, app, load

HEAD = """\
# Commands

Look up a command, its options and examples, as `optstream COMMAND --help` has them.

Exit codes: 0 all is well; 1 it ran, and something is to be looked at (a day that is left, an alarm, a
finding); 2 it could not begin, or not go on: wrong words, a port in use, or another error in one line;
130 interrupted.
"""


def command_page() -> str:
    """Markdown: the commands in their panels, then each with its options and examples."""
    context = Context(get_command(app), info_name="optstream")
    index, sections = [], []
    panels: dict[str, list[str]] = {}
    for name, row in COMMANDS.items():
        panels.setdefault(row.panel, []).append(f"| [`optstream {name}`](#optstream-{name}) | {row.line} |")
        sections += _sections(load(name), "optstream", context)
    for panel, rows in panels.items():
        index += [f"**{panel}**\n", "| command | what it does |", "| --- | --- |", *rows, ""]
    return "\n".join([HEAD, *index, *sections])


def _sections(command: object, prefix: str, context: Context) -> list[str]:
    """A section for the command, or one for each command of a group."""
    if isinstance(command, TyperGroup):
        inner = Context(command, info_name=command.name, parent=context)
        found = [command.get_command(inner, name) for name in command.list_commands(inner)]
        head = [f"## optstream {command.name}\n", f"{command.help}\n"]
        return head + [
            section for one in found for section in _sections(one, f"{prefix} {command.name}", inner)
        ]
    text = get_docs_for_click(obj=command, ctx=context, indent=1, call_prefix=prefix)  # type: ignore[arg-type]
    name = f"{prefix} {command.name}"  # type: ignore[attr-defined]
    return [text.replace(f"## `{name}`", f"## {name}", 1)]
