"""One released day in Markdown, with its curve and its lineage as pictures: for the orchestrator's pages.

Made of the published file alone: what the orchestrator stores is what readers have.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from optstream.catalogue import Entry, ReleaseStatement, error_columns, read_catalogue
from optstream.catalogue.backends import Location, open_storage
from optstream.catalogue.read import read_columns, read_statement
from optstream.errors import PublicationError
from tasks.reports.drawing.figures import Plot, plot_of
from tasks.reports.drawing.picture import curve_picture, data_uri, lineage_picture
from tasks.reports.facts import as_values, least_of
from tasks.reports.numbers import amount, day_in_words, quantity_of, unit_of

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
    root = rows.filter(pl.col("parent").is_null()).sort("step")
    unit, name = unit_of(value), str(root["node"][0])
    statement = read_statement(place, entry)
    title = f"{quantity_of(value)} of {name}, {day_in_words(day)}{f' ({unit})' if unit else ''}"
    title = title[:1].upper() + title[1:]
    plot = _plot(root, value, f"{quantity_of(value)} of {name}", unit, statement)
    about = (
        "The band is the total error, as the mechanism's own model has it."
        if plot.band
        else "The file does not say how far the values are from the truth, so no band is drawn."
    )
    return "\n".join(
        [
            f"![{_plain(plot.words)}]({data_uri(curve_picture(plot, title))})",
            "",
            f"{_plain(plot.words)}. {about}",
            "",
            "![Lineage: dumps, leaf sums, measured once, fitted, published as revision "
            f"{statement.revision}]({data_uri(_lineage(statement))})",
            "",
            *_facts(entry, statement.to_json()),
            "",
        ]
    )


def _plain(text: str) -> str:
    """Text that Markdown takes as text, whatever nodes and columns are called."""
    return _MARKS.sub(r"\\\g<0>", text)


def _plot(root: pl.DataFrame, value: str, subject: str, unit: str, statement: ReleaseStatement) -> Plot:
    n_steps, step_minutes = root.height, statement.step_minutes
    every = max(1, 180 // step_minutes)
    labels = tuple(
        (f"{step * step_minutes // 60} h", round(100 * step / n_steps, 2))
        for step in range(0, n_steps, every)
    )
    places = 100 * (np.arange(n_steps, dtype=np.float64) + 0.5)
    values, errors = as_values(root[value]), as_values(root[error_columns(value)[1]])
    return plot_of(subject, 100 * n_steps, places, values, errors, labels, subject, unit, least_of(statement))


def _lineage(statement: ReleaseStatement) -> str:
    return lineage_picture(
        [
            ("Dumps", "never published"),
            ("Leaf sums", "of clamped values"),
            ("Measured", f"once, epsilon {amount(statement.epsilon_own)}"),
            ("Fitted", "nodes add up"),
            ("Published", f"revision {statement.revision}"),
        ]
    )


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
