"""From view values to pages: everything is escaped, and the same values give the same bytes."""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from tasks.reports.markup import with_code
from tasks.reports.render import templates_of
from tasks.ui.words import moment_in_words, replaced_in_words, second_in_words, what_to_do

SCRIPT, STYLE = "text/javascript", "text/css"
ASSETS = {
    "ui.css": STYLE,
    "refresh.js": SCRIPT,
    "calendar.js": SCRIPT,
    "node.js": SCRIPT,
    "uPlot.iife.min.js": SCRIPT,
    "uPlot.min.css": STYLE,
}
"""What the pages load from their own origin, by media type."""


def page(template: str, **values: Any) -> bytes:
    """Return a page as UTF-8; template: without its endings.

    A name that the template asks for and that is not among the values is an error.
    """
    return _environment().get_template(f"{template}.html.jinja").render(**values).encode()


@cache
def assets() -> dict[str, bytes]:
    """Return the files that the pages load, by name; the style begins with that of the static pages."""
    folders = (files("tasks.ui") / "static", files("tasks.reports") / "static" / "vendored")
    found = {
        name: next(one / name for one in folders if (one / name).is_file()).read_bytes() for name in ASSETS
    }
    shared = (files("tasks.reports") / "templates" / "style.css").read_bytes()
    return {**found, "ui.css": shared + b"\n" + found["ui.css"]}


@cache
def _environment() -> Environment:
    return templates_of(
        "tasks.ui",
        moment=moment_in_words,
        second=second_in_words,
        what=what_to_do,
        replaced=replaced_in_words,
        with_code=with_code,
    )
