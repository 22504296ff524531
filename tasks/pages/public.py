"""The data users' page and the deployment card, from published files; both pages written."""

import io
import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path

import polars as pl

from optstream.catalogue import Catalogue, check_days, digest_of, metadata, read_catalogue
from optstream.catalogue.about import About, called, put_about, put_hierarchy
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.index import day_entries
from optstream.catalogue.layout import CARD, CARD_PAGE
from optstream.catalogue.publication import delete_answers
from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import Ledger
from optstream.storage.store import Location
from tasks.config import Settings
from tasks.ledger.show import read_horizons
from tasks.operate.keys import signer_of
from tasks.pages import render
from tasks.pages.calendar import STRETCHES_SHOWN, calendar, marks_of_facts
from tasks.pages.published import NO_SUMMARIES, RECENT_DAYS, PublicFacts, public_facts, read_summaries
from tasks.pages.snapshot import snapshot_of
from tasks.pages.stream import static_page
from tasks.trusted.files import write_private


def write_pages(settings: Settings, ledger: Ledger, now: datetime) -> PublicFacts | None:
    """Write both pages; return the facts of the public one, None where nothing is published. Raises
    PublicationError, once the operators' page is there, where the data users have no new one.
    """
    facts, problem = None, None
    try:
        facts = _write_public(settings, ledger, now)
    except OptStreamError as error:
        problem = str(error)
    if facts is not None:
        curves = {  # `tasks.pages.snapshot` reads them
            "catalogue": digest_of(facts.catalogue),
            "chart": published_chart(facts),
            "lost": {str(day): f"is {what}" for day, what in facts.lost.items()},
            "faint": facts.faint,
        }
        write_private(settings.curves_file, json.dumps(curves).encode())
    found = replace(
        snapshot_of(settings, ledger, now), horizons=read_horizons(settings, ledger), unwritten=problem
    )
    write_private(settings.report_file, static_page(found))
    if problem is not None:
        raise PublicationError(f"the page of the data users was not written: {problem}")
    return facts


def _write_public(settings: Settings, ledger: Ledger, now: datetime) -> PublicFacts | None:
    """Return the facts that the page shows; None where there is nothing to show, and no page."""
    signer, folder = signer_of(settings, ledger), settings.published_folder
    if not open_storage(folder).is_file("catalogue.json"):
        return None
    about = About(
        stream=settings.stream.name,
        nodes=settings.node_facts,
        known_noise=ledger.known_noise(settings.stream.name),
        **settings.published.about,  # type: ignore[arg-type]  # texts alone
    )
    delete_answers(folder)
    put_about(folder, about, signer)
    put_hierarchy(folder, settings.dated_hierarchy, settings.name_of, signer)
    made: list[PublicFacts] = []

    def make(place: Storage, catalogue: Catalogue) -> bytes:
        check_days(catalogue, now)
        known = read_summaries(settings.summaries_file)
        facts, summaries = public_facts(place, catalogue, known)
        with suppress(OSError):  # without them the next night reads more
            if not summaries.equals(known):
                held = io.BytesIO()
                summaries.write_parquet(held, compression="zstd")
                write_private(settings.summaries_file, held.getvalue())
        made.append(replace(facts, has_card=True))  # the card is put once the page is
        return public_page(made[-1])

    metadata.replace_page(folder, make)
    deployment = deployment_of(settings, ledger, made[-1].terms)

    def card_page(dataset: metadata.Dataset) -> bytes:
        card = metadata.deployment_card(dataset, deployment)["deployment"]
        return render.page("deployment_card", is_static=True, has_script=False, card=card)

    cards = {
        CARD: lambda dataset: metadata.to_bytes(metadata.deployment_card(dataset, deployment)),
        CARD_PAGE: card_page,
    }
    metadata.put_metadata(folder, about, signer, cards)
    return made[-1]


def write_public_page(folder: Location | str, into: Path | None = None) -> tuple[date, ...]:
    """Make the page from the published folder alone; return the days that it cannot show."""
    lost: list[date] = []

    def make(place: Storage, catalogue: Catalogue) -> bytes:
        facts, _ = public_facts(place, catalogue, NO_SUMMARIES)
        lost[:] = facts.lost
        return public_page(replace(facts, has_card=place.is_file(CARD_PAGE)))

    if into is None:
        metadata.replace_page(folder, make)
    else:
        place = open_storage(folder)
        into.write_bytes(make(place, read_catalogue(place)))
    return tuple(lost)


def public_page(facts: PublicFacts) -> bytes:
    """Return the page of the published folder, HTML as UTF-8. Pure: the same facts give the same bytes."""
    value, listed = facts.catalogue.value_column, facts.listed
    days = day_entries(facts.catalogue.entries)
    changed = [one for one in reversed(days) if one.revision or one.vintage or one.withdrawn]
    by_level = [n for _, n in sorted(Counter(node.level for node in facts.nodes).items())]
    shares = None if facts.statement is None else facts.statement.mechanism.get("level_shares")
    if not isinstance(shares, list) or len(shares) != len(by_level):
        shares = []  # each level's share of epsilon, root first, where it is stated
    return render.page(
        "public",
        is_static=True,
        facts=facts,
        digest=digest_of(facts.catalogue),
        marker=metadata.MARKER,
        value=value,
        unit=render.unit_of(value),
        quantity=render.quantity_of(value),
        listed=listed,
        newest=facts.newest,
        lost_shown=10,
        recent_entries=tuple(reversed(listed[-RECENT_DAYS:])),
        calendar=calendar(marks_of_facts(facts), all_days=True),
        by_level=by_level,
        shares=shares if all(isinstance(share, str) for share in shares) else [],
        has_total=facts.daily is not None and facts.daily["error"].is_finite().any(),
        chart=published_chart(facts),
        z=render.Z,
        document=None if facts.statement is None else facts.statement.to_json(),
        changed=changed[:STRETCHES_SHOWN],
        n_changed=len(changed),
    )


def published_chart(facts: PublicFacts) -> render.Chart | None:
    """Return each step of the last days and the means of all days; None where nothing can be drawn."""
    if facts.daily is None or facts.recent is None:
        return None
    value, name_of = facts.catalogue.value_column, partial(called, facts=facts.about.nodes)
    nodes = [node.name for node in facts.nodes[: facts.n_drawn]]
    n_recent = min(RECENT_DAYS, (facts.listed[-1].period - facts.listed[0].period).days + 1)

    def drawn(label: str, figures: pl.DataFrame) -> render.Chart:
        own = figures.partition_by("node", maintain_order=True)
        lines = [
            [render.line(name_of(node), each["value"].to_list(), error=each["error"].to_list())]
            for node, each in zip(nodes, own, strict=True)
        ]
        return render.span(label, own[0]["at"].to_list(), lines)

    return render.chart(
        render.quantity_of(value),
        render.unit_of(value),
        [
            drawn(f"each step of the last {render.counted(n_recent, 'day')}", facts.recent),
            drawn("daily means of all days", facts.daily),
        ],
        nodes=[name_of(node) for node in nodes],
        # of counts
        least=0.0 if facts.statement is not None and facts.statement.bands is not None else None,
    )


def deployment_of(
    settings: Settings, ledger: Ledger, terms: tuple[metadata.StatedTerms, ...]
) -> metadata.Deployment:
    """Return the part of a stream's card from the ledger, or from the configuration of a new stream."""
    name = settings.stream.name
    guarantees = ledger.guarantees(name) or {0: settings.model}
    sharing = tuple(sorted(one.stream for one in ledger.siblings(name)))
    return metadata.Deployment(tuple(guarantees[number] for number in sorted(guarantees)), sharing, terms)
