"""One released day in Markdown, with its curve as a picture: the orchestrator's pages run no script of ours.

Made of the published file alone: what the orchestrator stores is what readers have.
"""

import base64
import re
from datetime import date

import polars as pl

from optstream.catalogue import error_columns, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.read import read_columns, read_statement
from optstream.errors import PublicationError
from optstream.storage.store import Location
from tasks.pages.charts import Z
from tasks.pages.words import amount, day_in_words, quantity_of, shown, unit_of

_MARKS = re.compile(r"[\\`*_{}\[\]()<>#+!|~]")


def day_in_markdown(folder: Location, day: date) -> str:
    """The root's curve, the lineage and the facts of a published day.

    Raises PublicationError where the day is not published, or its file is not the one that is listed.
    """
    place = open_storage(folder)
    catalogue = read_catalogue(place)
    entry = catalogue.entry(day)
    if entry is None or entry.withdrawn:
        raise PublicationError(f"{day} is not published; nothing is drawn of it")
    value = catalogue.value_column
    error = error_columns(value)[1]
    rows = read_columns(place, entry, {"step", "node", "parent", value, error}, {error})
    statement = read_statement(place, entry)
    hours = pl.col("step") * statement.step_minutes / 60
    half = Z * pl.col(error).cast(pl.Float64)
    low = pl.col(value) - half
    root = rows.filter(pl.col("parent").is_null()).sort("step")
    curve = root.select(
        hours.alias("hour"),
        pl.col(value).cast(pl.Float64).alias("value"),
        (low if statement.bands is None else low.clip(0)).alias("low"),
        (pl.col(value) + half).alias("high"),
    )
    unit, subject = unit_of(value), f"{quantity_of(value)} of {root['node'][0]}"
    subject = subject[:1].upper() + subject[1:]
    span = " to ".join(shown(one) for one in (curve["value"].min(), curve["value"].max()))  # type: ignore[arg-type]
    last = shown(curve["value"][-1])
    words = _plain(f"{subject}: from {span} {unit}, last {last} {unit}".replace(" ,", ","))
    has_band = curve["low"].null_count() < curve.height
    about = (
        "The band is the total error, as the mechanism's own model has it."
        if has_band
        else "The file does not say how far the values are from the truth, so no band is drawn."
    )
    document = statement.to_json()
    facts = {
        "file": entry.file,
        "manifest": entry.manifest,
        "SHA-256 of the rows": entry.rows_hash,
        "mechanism": document["mechanism"]["name"],
        "epsilon of the plan": document["epsilon_plan"],
        "epsilon of this release": document["epsilon_own"],
        "configuration": document["configuration_hash"],
        "OptStream": document["code_version"],
    }
    cells = {name: str(text).translate({ord("|"): " ", ord("`"): " "}) for name, text in facts.items()}
    table = [f"| {name} | `{text}` |" for name, text in cells.items()]
    picture = _picture(curve, f"{subject}, {day_in_words(day)}{f' ({unit})' if unit else ''}", has_band)
    lineage = (
        f"Dumps (never published) → leaf sums of clamped values → measured once, epsilon "
        f"{amount(statement.epsilon_own)} → fitted, nodes add up → published as revision {statement.revision}"
    )
    lines = [f"![{words}]({picture})", f"{words.strip()}. {about}", f"Lineage: {lineage}."]
    return "\n\n".join([*lines, "\n".join(["| fact | |", "| --- | --- |", *table])]) + "\n"


def _plain(text: str) -> str:
    """Text that Markdown takes as text, whatever nodes and columns are called."""
    return _MARKS.sub(r"\\\g<0>", text.strip())


def _picture(curve: pl.DataFrame, title: str, has_band: bool) -> str:
    """The curve as PNG inside an address, so that nothing is fetched for it; by Vega-Lite, on white."""
    from vl_convert import vegalite_to_png  # here, for only the orchestrator's pages need it

    x = {"field": "hour", "type": "quantitative", "title": "hour of the day", "axis": {"tickMinStep": 3}}
    y = {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": False}}
    band = {
        "mark": {"type": "area", "color": "#c3dbf3"},
        "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
    }
    line = {"mark": {"type": "line", "color": "#0b5cad"}, "encoding": {"x": x, "y": y}}
    spec = {
        "title": {"text": title, "anchor": "start"},
        "width": 640,
        "height": 200,
        "background": "white",
        "data": {"values": curve.to_dicts()},
        "layer": [band, line] if has_band else [line],
    }
    return "data:image/png;base64," + base64.b64encode(vegalite_to_png(spec, scale=1.5)).decode("ascii")
