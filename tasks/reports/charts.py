"""The curves of both pages: their data as JSON, and one script over uPlot. Nothing is fetched for them."""

import base64
import hashlib
import json
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

import numpy as np

from optstream.catalogue.about import called
from tasks.reports.drawing.figures import Z
from tasks.reports.facts import PublicFacts, Values

DIGITS = 6
"""Significant ones of a drawn value: files have the published numbers unrounded."""
DAY = 86_400


def chart_of(facts: PublicFacts, unit: str, quantity: str) -> dict[str, str] | None:
    """Return the data, the style, the script and the script's hash for the policy; None with nothing to draw.

    The data are those of the drawn nodes: each step of the last days, and the means of all days. Times are
    local clock time, counted as if it were UTC.
    """
    if facts.daily is None or facts.recent is None:
        return None
    daily, recent = facts.daily, facts.recent
    days = [_seconds(daily.first + timedelta(days=number)) for number in range(daily.n_days)]
    columns = {day: number for number, day in enumerate(recent.days)}
    n_recent = (recent.last - recent.first).days + 1
    times, values, errors = [], [], []
    for day in (recent.first + timedelta(days=number) for number in range(n_recent)):
        number = columns.get(day)
        gap = np.full((facts.n_drawn, 1), np.nan)
        own = gap if number is None else recent.values[number]
        times += [_seconds(day) + DAY * step // own.shape[1] for step in range(own.shape[1])]
        values.append(own)
        errors.append(gap if number is None else recent.model[number])
    document = {
        "quantity": quantity[:1].upper() + quantity[1:],
        "unit": unit,
        "z": Z,
        "least": facts.least,
        "nodes": [called(node.name, facts.about.nodes) for node in facts.nodes[: facts.n_drawn]],
        "steps": _curves(times, np.concatenate(values, axis=1), np.concatenate(errors, axis=1)),
        "days": _curves(days, daily.mean, daily.model),
    }
    script = _text("vendored/uPlot.iife.min.js") + _text("chart.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {
        "data": _as_text(document),
        "style": _text("vendored/uPlot.min.css"),
        "script": script,
        "script_hash": f"sha256-{digest}",
    }


def _seconds(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY


def _curves(at: list[int], values: Values, errors: Values) -> dict[str, Any]:
    """Times (n,), and values and errors (n_nodes, n) as lists; null where nothing is known."""
    return {"at": at, "values": _rounded(values), "errors": _rounded(errors)}


def _rounded(rows: Values) -> list[list[float | None]]:
    return [[float(f"{one:.{DIGITS}g}") if isfinite(one) else None for one in row] for row in rows.tolist()]


@cache
def _text(name: str) -> str:
    return (files("tasks.reports") / "static" / name).read_text(encoding="utf-8")


def _as_text(document: dict[str, Any]) -> str:
    """JSON that no name can end: without "<", and without "/", so that no name looks like a file's."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for sign in "<>&/":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
