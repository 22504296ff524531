"""The data users' page, the deployment card, a day in Markdown, from published files; both pages written."""

import base64
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from optstream.catalogue import (
    PAGE,
    Catalogue,
    check_days,
    digest_of,
    error_columns,
    read_catalogue,
    replace_page,
)
from optstream.catalogue.about import About, called, put_about, put_hierarchy
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.index import day_entries
from optstream.catalogue.layout import CARD, CARD_PAGE
from optstream.catalogue.metadata import (
    MARKER,
    Dataset,
    Deployment,
    Describe,
    StatedTerms,
    deployment_card,
    put_metadata,
    to_bytes,
)
from optstream.catalogue.publish import delete_answers
from optstream.catalogue.read import read_columns, read_statement
from optstream.catalogue.signing import Signer
from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import Ledger
from optstream.storage.store import Location
from tasks.config import Settings
from tasks.ledger.show import read_horizons
from tasks.operate.keys import signer_of
from tasks.pages.calendar import STRETCHES_SHOWN, calendar, marks_of_facts
from tasks.pages.charts import DAY, Chart, Z, chart, line, seconds, span
from tasks.pages.published import (
    NO_SUMMARIES,
    RECENT_DAYS,
    LevelError,
    PublicFacts,
    Values,
    public_facts,
    read_summaries,
)
from tasks.pages.render import amount, counted, day_in_words, page, quantity_of, shown, unit_of
from tasks.pages.snapshot import snapshot_of
from tasks.pages.stream import static_page
from tasks.trusted.files import write_private

_MARKS = re.compile(r"[\\`*_{}\[\]()<>#+!|~]")


def day_in_markdown(folder: Location, day: date) -> str:
    """The root's curve, the lineage and the facts of a published day. Raises PublicationError."""
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


@dataclass(frozen=True)
class Written:
    """What `write_pages` wrote: the public page or None, the problem, and days that it cannot show."""

    trusted: Path
    public: str | None
    problem: str | None
    lost: tuple[date, ...] = ()


def write_pages(settings: Settings, ledger: Ledger, now: datetime) -> Written:
    """Write both pages; a published folder that cannot be read or written stops no night."""
    facts, public, problem = None, None, None
    try:
        signer = signer_of(settings, ledger)
        facts = _write_public(settings, ledger, signer, now)
        public = None if facts is None else str(settings.published_folder / PAGE)
    except OptStreamError as error:
        problem = str(error)
    if facts is not None:
        write_private(settings.curves_file, json.dumps(_curves(facts)).encode())
    found = replace(
        snapshot_of(settings, ledger, now), horizons=read_horizons(settings, ledger), unwritten=problem
    )
    write_private(settings.report_file, static_page(found))
    return Written(settings.report_file, public, problem, () if facts is None else tuple(facts.lost))


def _curves(facts: PublicFacts) -> dict[str, Any]:
    """What `tasks.pages.snapshot.kept_curves` reads."""
    value = facts.catalogue.value_column
    return {
        "catalogue": digest_of(facts.catalogue),
        "chart": published_chart(facts, unit_of(value), quantity_of(value)),
        "lost": {str(day): f"is {what}" for day, what in facts.lost.items()},
        "faint": [as_good_as_nothing(facts, one) for one in facts.level_errors if one.is_as_good_as_nothing],
    }


def require_pages(settings: Settings, ledger: Ledger, now: datetime) -> None:
    """Write both pages, as `write_pages`. Raises PublicationError where the data users have no new page."""
    written = write_pages(settings, ledger, now)
    if written.problem is not None:
        raise PublicationError(f"the page of the data users was not written: {written.problem}")


def _write_public(
    settings: Settings, ledger: Ledger, signer: Signer | None, now: datetime
) -> PublicFacts | None:
    """The facts that the page shows; None where there is nothing to show, and no page."""
    place, folder = open_storage(settings.published_folder), settings.published_folder
    if not place.is_file("catalogue.json"):
        return None
    own = settings.published
    lost = ledger.known_noise(settings.stream.name)
    about = About(
        stream=settings.stream.name,
        nodes=settings.node_facts,
        known_noise=lost,
        **own.about,  # type: ignore[arg-type]  # texts alone
    )
    delete_answers(folder)
    put_about(folder, about, signer)
    put_hierarchy(folder, settings.dated_hierarchy, settings.name_of, signer)
    kept, made = settings.summaries_file, []

    def make(place: Storage, catalogue: Catalogue) -> bytes:
        check_days(catalogue, now)
        known = read_summaries(kept)
        facts, summaries = public_facts(place, catalogue, known)
        with suppress(OSError):  # without them the next night reads more
            if not summaries.equals(known):
                held = io.BytesIO()
                summaries.write_parquet(held, compression="zstd")
                write_private(kept, held.getvalue())
        # the card is put once the page is
        facts = replace(facts, has_card=True)
        made.append(facts)
        return public_page(facts)

    replace_page(settings.published_folder, make)
    put_metadata(folder, about, signer, card_files(deployment_of(settings, ledger, made[-1].terms)))
    return made[-1]


def write_public_page(folder: Location | str, into: Path | None = None) -> tuple[date, ...]:
    """Make the page from the published folder alone; return the days that it cannot show."""

    made: list[PublicFacts] = []

    def make(place: Storage, catalogue: Catalogue) -> bytes:
        facts, _ = public_facts(place, catalogue, NO_SUMMARIES)
        facts = replace(facts, has_card=place.is_file(CARD_PAGE))
        made.append(facts)
        return public_page(facts)

    if into is None:
        replace_page(folder, make)
    else:
        place = open_storage(folder)
        into.write_bytes(make(place, read_catalogue(place)))
    return tuple(made[-1].lost)


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


def published_chart(facts: PublicFacts, unit: str, quantity: str) -> Chart | None:
    """Return each step of the last days and the means of all days; None where nothing can be drawn."""
    if facts.daily is None or facts.recent is None:
        return None
    daily, recent = facts.daily, facts.recent
    days = [seconds(daily.first + timedelta(days=number)) for number in range(daily.n_days)]
    columns = {day: number for number, day in enumerate(recent.days)}
    n_recent = (recent.last - recent.first).days + 1
    times, values, errors = [], [], []
    for day in (recent.first + timedelta(days=number) for number in range(n_recent)):
        number = columns.get(day)
        gap = np.full((facts.n_drawn, 1), np.nan)
        own = gap if number is None else recent.values[number]
        times += [seconds(day) + DAY * step // own.shape[1] for step in range(own.shape[1])]
        values.append(own)
        errors.append(gap if number is None else recent.errors[number])
    names = [called(node.name, facts.about.nodes) for node in facts.nodes[: facts.n_drawn]]

    def lines(of_nodes: Values, errors_of_nodes: Values) -> list[list[Chart]]:
        each = zip(names, of_nodes.tolist(), errors_of_nodes.tolist(), strict=True)
        return [[line(name, own, error=errors)] for name, own, errors in each]

    steps = lines(np.concatenate(values, axis=1), np.concatenate(errors, axis=1))
    return chart(
        quantity,
        unit,
        [
            span(f"each step of the last {counted(n_recent, 'day')}", times, steps),
            span("daily means of all days", days, lines(daily.mean, daily.error)),
        ],
        nodes=names,
        least=facts.least,
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
    """How often bands held the truth where it is known, as `make coverage` measured it, by epsilon."""
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
    """Return what the ledger, or the configuration of a new stream, adds to a stream's card."""
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
