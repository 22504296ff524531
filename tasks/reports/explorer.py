"""What the script of the data users' page works on, and the script itself.

The page holds its index as JSON, the days of the first nodes and the steps of the last days in the bytes of
`curves`. Nothing of it is code: names are escaped so that no text ends its block.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from optstream.catalogue.about import NodeFacts
from tasks.reports import numbers
from tasks.reports.curves import BLOCK, CurveFiles, of_days, of_recent
from tasks.reports.drawing.figures import Z
from tasks.reports.facts import Node, PublicFacts

SCRIPTS = ("figures.js", "series.js", "view.js", "plot.js", "parquet.js", "map.js", "page.js")
"""In this order: each uses what stands before it."""
POWERS = ("W", "kW", "MW", "GW")
"""Units whose sum over time is an energy: the unit and an h."""


def explorer_of(facts: PublicFacts, curves: CurveFiles | None) -> dict[str, str] | None:
    """Return what the template sets in: JSON, figures in base64, the script, and its hash for the policy.

    None where there is nothing to see.
    """
    if facts.daily is None or facts.recent is None or facts.statement is None:
        return None
    script = script_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    files_of = curves or CurveFiles()
    return {
        "index": _as_text(_index(facts)),
        "curves": json.dumps({"days": files_of.days, "steps": files_of.steps}),
        "days": base64.b64encode(of_days(facts.daily)).decode(),
        "recent": base64.b64encode(of_recent(facts.recent)).decode(),
        "script": script,
        "script_hash": f"sha256-{digest}",
    }


@cache
def script_text() -> str:
    """Return the page's script: all parts in one function, so that they share no name with anything."""
    folder = files("tasks.reports") / "templates" / "explorer"
    parts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _index(facts: PublicFacts) -> dict[str, Any]:
    value = facts.catalogue.value_column
    unit, daily, statement = numbers.unit_of(value), facts.daily, facts.statement
    assert daily is not None
    assert statement is not None
    places = {node.name: number for number, node in enumerate(facts.explored)}
    hours = statement.step_minutes / 60
    return {
        "stream": facts.catalogue.stream,
        "value": value,
        "quantity": numbers.quantity_of(value),
        "unit": unit,
        "sum_unit": f"{unit}h" if unit in POWERS else unit,
        "sum_factor": hours if unit in POWERS else 1,
        "step_minutes": statement.step_minutes,
        "first": daily.first.isoformat(),
        "steps": [int(n) for n in daily.steps],
        "block": BLOCK,
        "z": Z,
        "least": facts.least,
        "margin": facts.margin if facts.explored == facts.nodes else None,
        "nodes": [
            _row(node, places, facts.about.nodes.get(node.name, NodeFacts())) for node in facts.explored
        ],
    }


def _row(node: Node, numbers_of: Mapping[str, int], told: NodeFacts) -> list[Any]:
    """Code, name, number of the node above (-1 at the root), level; where told, latitude and longitude, and
    the rings of its area, in the middle of which it lies where nothing else is told.
    """
    above = -1 if node.parent is None else numbers_of.get(node.parent, -1)
    place: list[Any] = [] if told.latitude is None else [told.latitude, told.longitude]
    if told.area is not None:
        sides = [
            sorted(side) for side in zip(*(corner for ring in told.area for corner in ring), strict=True)
        ]
        longitude, latitude = ((side[0] + side[-1]) / 2 for side in sides)
        place = [*(place or (latitude, longitude)), told.area]
    return [node.name, told.name, above, node.level, *place]


def _as_text(document: dict[str, Any]) -> str:
    """JSON that no name can end: without "<", and without "/", so that no name looks like a file's."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for sign in "<>&/":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
