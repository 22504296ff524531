"""The data users' page and the deployment card: functions of the published folder, without clock and host."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any

from optstream.catalogue import digest_of
from optstream.catalogue.about import called
from optstream.catalogue.index import day_entries
from optstream.catalogue.layout import CARD, CARD_PAGE
from optstream.catalogue.metadata import Dataset, Deployment, Describe, StatedTerms, deployment_card, to_bytes
from optstream.catalogue.page import MARKER
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.pages.calendar import STRETCHES_SHOWN, calendar, marks_of_facts
from tasks.pages.charts import Z, published_chart
from tasks.pages.published import RECENT_DAYS, LevelError, PublicFacts
from tasks.pages.render import page
from tasks.pages.words import counted, day_in_words, quantity_of, shown, unit_of

LOST_SHOWN = 10


def public_page(facts: PublicFacts) -> bytes:
    """Return the page of the published folder, HTML as UTF-8. Pure: the same facts give the same bytes."""
    value, listed = facts.catalogue.value_column, facts.listed
    unit, quantity = unit_of(value), quantity_of(value)
    days = day_entries(facts.catalogue.entries)
    changed = [one for one in reversed(days) if one.revision or one.vintage or one.withdrawn]
    return page(
        "public",
        is_static=True,
        facts=facts,
        called=partial(called, facts=facts.about.nodes),
        digest=digest_of(facts.catalogue),
        marker=MARKER,
        value=value,
        unit=unit,
        quantity=quantity,
        listed=listed,
        newest=facts.newest,
        lost_shown=LOST_SHOWN,
        faint=[as_good_as_nothing(facts, one) for one in facts.level_errors if one.is_as_good_as_nothing],
        recent_entries=tuple(reversed(listed[-RECENT_DAYS:])),
        calendar=calendar(marks_of_facts(facts), all_days=True),
        by_level=[n for _, n in sorted(Counter(node.level for node in facts.nodes).items())],
        shares=facts.level_shares,
        chart=published_chart(facts, unit, quantity),
        z=Z,
        coverage=measured_coverage(),
        snippets=snippets(value, facts.nodes[0].name) if facts.nodes else (),
        document=None if facts.statement is None else facts.statement.to_json(),
        citation=_citation(facts),
        changed=changed[:STRETCHES_SHOWN],
        n_changed=len(changed),
    )


def as_good_as_nothing(facts: PublicFacts, one: LevelError) -> str:
    """Return in words that a level's figures are hardly larger than their error."""
    newest, unit = facts.newest, unit_of(facts.catalogue.value_column)
    assert newest is not None  # of which the errors are
    nodes = counted(sum(node.level == one.level for node in facts.nodes), "node")
    moved = "it is wrong by" if one.is_total else "noise alone moves it by"
    size, error = (f"{shown(value)} {unit}".rstrip() for value in (one.size, one.error))
    return (
        f"{facts.title_of(one.level)} is as good as nothing: on {day_in_words(newest.period)} a typical "
        f"figure of its {nodes} is {size}, and {moved} {error}"
    )


def _citation(facts: PublicFacts) -> str:
    """How the published days are cited; "" where there is none."""
    listed = facts.listed
    if not listed:
        return ""
    span = f"{day_in_words(listed[0].period)} to {day_in_words(listed[-1].period)}"
    who = f"{facts.about.publisher}: " if facts.about.publisher else ""
    version = digest_of(facts.catalogue)[:16]
    return f"{who}{facts.catalogue.stream}, differentially private series, {span}, version {version}."


@cache
def measured_coverage() -> dict[str, Any]:
    """How often bands held the truth where it is known: as `make coverage` measured it.

    rows: by epsilon the share of steps inside the band of the whole error (`held`) and of the noise alone
    (`held_by_noise_alone`), over all nodes, then by level, root first. nominal: the share to be held.
    """
    found: dict[str, Any] = json.loads((files("tasks.pages") / "static" / "coverage.json").read_bytes())
    return found


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


def deployment_of(settings: Settings, ledger: Ledger, terms: tuple[StatedTerms, ...]) -> Deployment:
    """Return what the ledger adds to a stream's card. terms: what the listed days were drawn under.

    With the configured privacy guarantee alone where the ledger knows no stream of this name yet.
    """
    name = settings.stream.name
    guarantees = ledger.guarantees(name) or {0: settings.model}
    sharing = tuple(sorted(one.stream for one in ledger.siblings(name)))
    return Deployment(tuple(guarantees[number] for number in sorted(guarantees)), sharing, terms)


def card_files(deployment: Deployment) -> Mapping[str, Describe]:
    """Return by name what makes the card's two files of a published folder: JSON, and the same as a page."""

    def as_page(dataset: Dataset) -> bytes:
        card = deployment_card(dataset, deployment)["deployment"]
        return page("deployment_card", is_static=True, has_script=False, card=card)

    return {CARD: lambda dataset: to_bytes(deployment_card(dataset, deployment)), CARD_PAGE: as_page}
