"""One released day in Markdown, with its curve and its lineage as pictures: for the orchestrator's pages.

Made of the published file alone: what the orchestrator stores is what readers have.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import Entry, error_columns, read_catalogue
from optstream.catalogue.backends import Location, open_storage
from optstream.catalogue.columns import read_columns, read_statement
from optstream.errors import PublicationError
from tasks.reports.figures import Plot, plot_of
from tasks.reports.numbers import amount, day_in_words, quantity_of, unit_of
from tasks.reports.picture import curve_picture, data_uri, lineage_picture

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
    noise = error_columns(value)[0]
    rows = read_columns(place, entry, {"step", "node", "parent", value, noise}, {noise})
    root = rows.filter(pl.col("parent").is_null()).sort("step")
    unit, name = unit_of(value), str(root["node"][0])
    document = read_statement(place, entry).to_document()
    title = f"{quantity_of(value)} of {name}, {day_in_words(day)}{f' ({unit})' if unit else ''}"
    title = title[:1].upper() + title[1:]
    plot = _plot(root, value, f"{quantity_of(value)} of {name}", unit, document["step_minutes"])
    about = "The band is noise only." if plot.band else "The file does not say how far noise moves it."
    return "\n".join(
        [
            f"![{_plain(plot.words)}]({data_uri(curve_picture(plot, title))})",
            "",
            f"{_plain(plot.words)}. {about}",
            "",
            f"![Lineage: {_lineage_words(document)}]({data_uri(_lineage(document))})",
            "",
            *_facts(entry, document),
            "",
        ]
    )


def _plain(text: str) -> str:
    """Text that Markdown takes as text, whatever nodes and columns are called."""
    return _MARKS.sub(r"\\\g<0>", text)


def _plot(root: pl.DataFrame, value: str, subject: str, unit: str, step_minutes: int) -> Plot:
    n_steps = root.height
    noise: NDArray[np.float64] = np.full(n_steps, np.nan)
    if error_columns(value)[0] in root.columns:
        noise = root[error_columns(value)[0]].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    every = max(1, 180 // step_minutes)
    labels = tuple(
        (f"{step * step_minutes // 60} h", round(100 * step / n_steps, 2))
        for step in range(0, n_steps, every)
    )
    places = 100 * (np.arange(n_steps, dtype=np.float64) + 0.5)
    values = root[value].cast(pl.Float64).to_numpy()
    return plot_of(subject, 100 * n_steps, places, values, noise, labels, subject, unit)


def _lineage(document: Mapping[str, Any]) -> str:
    return lineage_picture(
        [
            ("Dumps", "never published"),
            ("Leaf sums", "of clamped values"),
            ("Measured", f"once, epsilon {amount(_epsilon(document))}"),
            ("Fitted", "nodes add up"),
            ("Published", f"revision {document['revision']}"),
        ]
    )


def _lineage_words(document: Mapping[str, Any]) -> str:
    return f"dumps, leaf sums, measured once, fitted, published as revision {document['revision']}"


def _epsilon(document: Mapping[str, Any]) -> float:
    upper, _, lower = str(document["epsilon_own"]).partition("/")
    return int(upper) / int(lower or 1)


def _facts(entry: Entry, document: Mapping[str, Any]) -> list[str]:
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
    rows = [f"| {name} | `{str(text).replace('|', ' ').replace('`', ' ')}` |" for name, text in facts.items()]
    return ["| fact | |", "| --- | --- |", *rows]
