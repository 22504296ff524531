"""Figures in words, plots as JSON, and templates that escape every text; a static page fetches nothing. Equal
values give equal bytes."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, date, timedelta
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import ceil, floor, isfinite, log10
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from optstream.stream import Hour, day_of
from tasks.monitor.alarms import when
from tasks.monitor.days import day_or_hour

UNITS = {"mw": "MW", "gw": "GW", "kw": "kW", "mwh": "MWh", "kwh": "kWh", "wh": "Wh", "w": "W", "count": ""}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
LONGEST_FRACTION = 12
LEAST_AMOUNT = 1e-9
_FRACTION = re.compile(r"-?[0-9]{1,300}(/[0-9]{1,300})?")


def unit_of(column: str) -> str:
    """The unit that a column's name ends in; "" where it ends in none that is known."""
    return UNITS.get(column.rpartition("_")[2].lower(), "")


def quantity_of(column: str) -> str:
    """The column's name without its unit, in words: "load"."""
    name, _, unit = column.rpartition("_")
    return (name if name and unit.lower() in UNITS else column).replace("_", " ")


def shown(value: float) -> str:
    """Four digits, or the whole number if it has more; a dash for an unknown value."""
    if not isfinite(value):
        return "–"
    size = abs(value)
    decimals = 0 if size >= 1000 or size == 0 else max(0, min(6, 3 - floor(log10(size))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share_in_percent(share: float) -> str:
    """One decimal; a share above zero is never shown as zero, nor one below all as all."""
    text = f"{100 * share:.1f} %"
    if share > 0 and text == "0.0 %":
        return "< 0.1 %"
    return "> 99.9 %" if share < 1 and text == "100.0 %" else text


def amount(value: Fraction | float) -> str:
    """An epsilon: six digits, "∞" where noise was compromised, "≈ 0" for what only rounding left."""
    try:
        if isfinite(value) and 0 < abs(float(value)) < LEAST_AMOUNT:
            return "≈ 0"
        return f"{float(value):.6g}" if isfinite(value) else ("∞" if value > 0 else "−∞")
    except OverflowError:  # a text of many digits, in a file that anyone may have written
        return "∞"


def at_most(value: Fraction | float) -> str:
    """An epsilon of a long span: four decimals, rounded up: a loss is never understated."""
    return f"{ceil(value * 10**4) / 10**4:.4f}".rstrip("0").rstrip(".")


def decimal(value: object) -> str:
    """A fraction, or its text, in four digits; any other text as it is."""
    text = str(value)
    if _FRACTION.fullmatch(text):
        try:
            return shown(float(Fraction(text)))
        except (ZeroDivisionError, OverflowError):
            pass
    return text


def brief(value: object) -> str:
    """A fraction, or its text, as it stands where it is short, else in four digits."""
    return str(value) if len(str(value)) <= LONGEST_FRACTION else decimal(value)


def in_words(value: object) -> str:
    """A parameter of a mechanism as people read it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {in_words(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(in_words(one) for one in value) or "none"
    return brief(value) if isinstance(value, str) else str(value)


def day_in_words(day: date) -> str:
    """ "14 Feb 2016", whatever the machine's language; of an hour "14 Feb 2016, hour 13"."""
    hour = f", hour {day.clock.removeprefix('T')}" if isinstance(day, Hour) else ""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}{hour}"


def span_in_words(span: timedelta) -> str:
    """Return "3 d", "5 h", "12 min" or "40 s": whole units of the largest that fits."""
    seconds = max(0, int(span.total_seconds()))
    sizes = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    return next((f"{seconds // size} {unit}" for size, unit in sizes if seconds >= size), "0 s")


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_code(text: str) -> Markup:
    """Return the text escaped, with `…` as code; a backtick without a partner stays one."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


# Plots as JSON that `static/chart.js` draws; times are seconds since 1970, of zone "UTC" perhaps local.

Z = 1.96  # standard deviations on each side of a band: 95 % of normal noise
DIGITS = 6  # significant ones of a drawn value: files have the published numbers unrounded
DAY = 86_400
Numbers = Sequence[float | None]
Chart = dict[str, Any]


def chart(
    quantity: str, unit: str, spans: Sequence[Chart], *, nodes: Sequence[str] = (), zone: str = "UTC",
    least: float | None = None, few: bool = False,
) -> Chart:  # fmt: skip
    """Return a document; `nodes` has a name for each list of lines of a span, `least` ends the bands."""
    return {
        "quantity": quantity[:1].upper() + quantity[1:], "unit": unit, "z": Z, "least": least, "zone": zone,
        "nodes": list(nodes), "spans": list(spans), "few": few,
    }  # fmt: skip


def span(label: str, at: Sequence[int], lines: Sequence[Sequence[Chart]]) -> Chart:
    """Return a span of time. lines: of `line`, as many as `at`, for each node."""
    return {"label": label, "at": list(at), "lines": [list(own) for own in lines]}


def line(
    label: str, values: Numbers, kind: str = "value", *,
    error: Numbers | None = None, noise: Numbers | None = None,
) -> Chart:  # fmt: skip
    """Return a line. kind: how it is drawn: "value", "several", "child" (stacked), "day-before",
    "week-before", "replaced", "stairs", "limit", "bars". error, noise: half widths of bands, divided by `Z`.
    """
    found: Chart = {"label": label, "kind": kind, "values": _rounded(values)}
    for name, band in (("error", error), ("noise", noise)):
        rounded = _rounded(band or ())
        if any(one is not None for one in rounded):
            found[name] = rounded
    return found


def _rounded(values: Numbers) -> list[float | None]:
    return [float(f"{one:.{DIGITS}g}") if one is not None and isfinite(one) else None for one in values]


def seconds(period: date) -> int:
    """Return the local clock time at which a day or an hour begins, as if it were UTC's."""
    hour = period.hour if isinstance(period, Hour) else 0
    return (day_of(period) - date(1970, 1, 1)).days * DAY + 3600 * hour


def as_json(document: Chart) -> Markup:
    """JSON that no name can end: without "<", and without "/", so that no name looks like a file's."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for sign in "<>&/":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


# Templates.

STATIC_SCRIPTS = ("vendored/uPlot.iife.min.js", "chart.js")
ASSETS = {
    "page.css": ("text/css", ("style.css", "vendored/uPlot.min.css")),
    "page.js": ("text/javascript", (*STATIC_SCRIPTS, "calendar.js", "refresh.js")),
}
"""What live pages load from their own origin: media type, and the files that it is made of."""


def page(template: str, *, is_static: bool = False, has_script: bool = True, **values: Any) -> bytes:
    """Return a page as UTF-8; template: without its endings, and of values that are all given."""
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
        "amount": amount,
        "at_most": at_most,
        "brief": brief,
        "counted": counted,
        "day": day_in_words,
        "day_or_hour": day_or_hour,
        "decimal": decimal,
        "in_words": in_words,
        "json": as_json,
        "moment": lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M UTC}",
        "percent": lambda share: f"{100 * share:.0f} %",
        "quoted": lambda text: json.dumps(text, ensure_ascii=False),
        "second": lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S UTC}",
        "share": share_in_percent,
        "shown": shown,
        "span": span_in_words,
        "when": when,
        "with_code": with_code,
    }
    return environment
