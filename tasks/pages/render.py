"""From values to pages by templates that escape every text; the same values give the same bytes.

A page is live, with style and script from its own server, or static: one file that holds both, whose policy
names its one script by hash, and that fetches nothing.
"""

import base64
import hashlib
from datetime import UTC
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tasks.monitor.days import day_or_hour
from tasks.pages import words
from tasks.pages.charts import as_json

STATIC_SCRIPTS = ("vendored/uPlot.iife.min.js", "chart.js")
ASSETS = {
    "page.css": ("text/css", ("style.css", "vendored/uPlot.min.css")),
    "page.js": ("text/javascript", (*STATIC_SCRIPTS, "calendar.js", "refresh.js")),
}
"""What live pages load from their own origin: media type, and the files that it is made of."""


def page(template: str, *, is_static: bool = False, has_script: bool = True, **values: Any) -> bytes:
    """Return a page as UTF-8; template: without its endings.

    A name that the template asks for and that is not among the values is an error.
    """
    script = _text(STATIC_SCRIPTS) if is_static and has_script else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values |= {
        "is_static": is_static,
        "style": Markup(_text(ASSETS["page.css"][1])) if is_static else "",
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
    }
    return _environment().get_template(f"{template}.html.jinja").render(**values).encode()


def asset(name: str) -> tuple[str, bytes]:
    """Return media type and bytes of a file that live pages load. Raises KeyError for any other."""
    media_type, parts = ASSETS[name]
    return media_type, _text(parts).encode()


@cache
def _text(names: tuple[str, ...]) -> str:
    folder = files("tasks.pages") / "static"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tasks.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": words.amount,
        "at_most": words.at_most,
        "brief": words.brief,
        "counted": words.counted,
        "day": words.day_in_words,
        "day_or_hour": day_or_hour,
        "decimal": words.decimal,
        "in_words": words.in_words,
        "json": lambda document: Markup(as_json(document)),
        "moment": words.moment_in_words,
        "second": lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S UTC}",
        "percent": lambda share: f"{100 * share:.0f} %",
        "share": words.share_in_percent,
        "shown": words.shown,
        "with_code": words.with_code,
    }
    return environment
