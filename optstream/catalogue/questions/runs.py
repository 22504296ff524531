"""Events as spans of time: windows one after another in which an event happened."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Run:
    """Consecutive windows of a node in which an event happened.

    Attributes:
        question: Its name.
        node: Of the hierarchy.
        first: Start of the last step of the first of these windows, in UTC.
        last: Start of the last step of the last of them.
        windows: How many there are.
    """

    question: str
    node: str
    first: datetime
    last: datetime
    windows: int

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-ready document of the fields, instants as text."""
        shown = {"first": self.first.isoformat(), "last": self.last.isoformat()}
        return {"question": self.question, "node": self.node, **shown, "windows": self.windows}


def runs_of(rows: pl.DataFrame) -> list[Run]:
    """Return the spans of time in which events went on, by first window, question and node; none of sums.

    rows: answers of one or several days; a day without answers ends a run.
    """
    key = ["question", "node"]
    asked = rows.filter(pl.col("happened").is_not_null()).sort(*key, "timestamp")
    before = pl.col("timestamp").shift(1).over(key)
    step = (pl.col("timestamp") - before).min().over(key)
    begins = ~pl.col("happened").shift(1).over(key) | (pl.col("timestamp") - before > step)
    found = (
        asked.with_columns(run=begins.fill_null(True).cum_sum())
        .filter("happened")
        .group_by(*key, "run")
        .agg(first=pl.col("timestamp").min(), last=pl.col("timestamp").max(), windows=pl.len())
        .sort("first", *key)
    )
    return [Run(**row) for row in found.drop("run").iter_rows(named=True)]
