"""Write both pages: the data users' into the published folder, the operators' into the trusted one."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from optstream.catalogue import PAGE, Catalogue, check_days, digest_of, read_catalogue, replace_page
from optstream.catalogue.about import About, put_about, put_hierarchy
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.layout import CARD_PAGE
from optstream.catalogue.metadata import put_metadata
from optstream.catalogue.signing import Signer
from optstream.catalogue.sweep import delete_answers
from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import Ledger
from optstream.storage.store import Location
from tasks.config import Settings
from tasks.ledger.show import read_horizons
from tasks.operate.sign import signer_of
from tasks.pages.charts import published_chart
from tasks.pages.public import as_good_as_nothing, card_files, deployment_of, public_page
from tasks.pages.published import PublicFacts, public_facts
from tasks.pages.snapshot import snapshot_of
from tasks.pages.stream import static_page
from tasks.pages.summaries import Summaries
from tasks.pages.words import quantity_of, unit_of
from tasks.trusted.files import write_private


@dataclass(frozen=True)
class Written:
    """What `write_pages` wrote.

    public: the data users' page; None where nothing was ever published. problem: why they have no new page,
    in words that hold no value; None where they have. lost: the days whose published file is missing or
    damaged; the page shows the others.
    """

    trusted: Path
    public: str | None
    problem: str | None
    lost: tuple[date, ...] = ()


def write_pages(settings: Settings, ledger: Ledger, now: datetime) -> Written:
    """Write both pages. Costs no privacy.

    One is a function of the published files; the other is the live page of the stream, written out. A
    published folder that cannot be read or written stops no night: the operators' page says so. Raises
    LedgerError as `watch`, and OSError if the trusted folder cannot be written.
    """
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
        known = Summaries.read(kept)
        facts, summaries = public_facts(place, catalogue, known)
        with suppress(OSError):  # without them the next night reads more
            if not summaries.rows.equals(known.rows):
                summaries.write(kept)
        # the card is put once the page is
        facts = replace(facts, has_card=True)
        made.append(facts)
        return public_page(facts)

    replace_page(settings.published_folder, make)
    put_metadata(folder, about, signer, card_files(deployment_of(settings, ledger, made[-1].terms)))
    return made[-1]


def write_public_page(folder: Location | str, into: Path | None = None) -> tuple[date, ...]:
    """Make the page of a published folder from that folder alone, as anybody can: in it, or into a file.

    Returns the days that it cannot show, for their file is missing or damaged. Raises PublicationError as
    `replace_page`, and OSError where the file cannot be written.
    """

    made: list[PublicFacts] = []

    def make(place: Storage, catalogue: Catalogue) -> bytes:
        facts, _ = public_facts(place, catalogue, Summaries.empty())
        facts = replace(facts, has_card=place.is_file(CARD_PAGE))
        made.append(facts)
        return public_page(facts)

    if into is None:
        replace_page(folder, make)
    else:
        place = open_storage(folder)
        into.write_bytes(make(place, read_catalogue(place)))
    return tuple(made[-1].lost)
