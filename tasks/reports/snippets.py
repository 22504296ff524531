"""How to read the published folder, as code that can be copied from the page."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Snippet:
    """Code for one tool, run in the published folder."""

    tool: str
    language: str
    code: str


def snippets(value: str, root: str) -> tuple[Snippet, ...]:
    """Daily means of the root node, in each tool. value: the column of the published values."""
    quoted, in_sql = json.dumps(root, ensure_ascii=False), "'" + root.replace("'", "''") + "'"
    return (
        Snippet(
            "polars",
            "python",
            'import polars as pl\n\nrows = pl.read_parquet("data")\n'
            f'root = rows.filter(pl.col("node") == {quoted})\n'
            f'root.group_by("date").agg(pl.col("{value}").mean()).sort("date")',
        ),
        Snippet(
            "pandas",
            "python",
            'import pandas as pd\n\nrows = pd.read_parquet("data")\n'
            'rows["date"] = pd.to_datetime(rows["date"].astype(str))\n'
            f'rows[rows["node"] == {quoted}].groupby("date")["{value}"].mean()',
        ),
        Snippet(
            "DuckDB",
            "sql",
            f"SELECT date, avg({value})\n"
            "FROM read_parquet('data/*/*.parquet', hive_partitioning = true)\n"
            f"WHERE node = {in_sql} GROUP BY date ORDER BY date;",
        ),
        Snippet(
            "R",
            "r",
            'library(arrow)\nlibrary(dplyr)\n\nrows <- open_dataset("data") |>\n'
            f"  filter(node == {quoted}) |>\n  collect()\n"
            "rows$date <- as.Date(as.character(rows$date))\n"
            f"aggregate({value} ~ date, rows, mean)",
        ),
    )
