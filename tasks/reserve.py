"""Charge a day's plan to the grant, after a look at what was published before (DESIGN, section 6)."""

import json
from dataclasses import dataclass, replace
from datetime import timedelta

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.places import StoreUrl, open_place
from optstream.errors import HeldError, LedgerError
from tasks.mechanism import mechanism_for
from tasks.memory import recall
from tasks.release import PUBLISHED_IN, Run, terms_of
from tasks.work import Work

SOON = timedelta(seconds=30)
"""Longer than it takes to put a month's files and the catalogue that lists them."""


@dataclass(frozen=True)
class Shown:
    """What the published folders show before anything is reserved.

    catalogue: of the stream's own folder, None where nothing was published. heads: of the ledger, as it and
    the folders of the grant's other streams carry them.
    """

    catalogue: Catalogue | None
    heads: frozenset[str]


def look_at_folders(run: Run) -> Shown:
    """What the published folders carry, to be held against the ledger (docs/privacy.md, section 5).

    Of a folder's heads the newest stands for all before it. The other streams' folders too: an older copy of
    the ledger may hold the newest head of this stream, and lack what another has spent since.
    Raises LedgerError, before anything is spent, if the folder is another stream's, or has lost its
    catalogue.
    """
    folder, value = run.settings.published_folder, run.settings.published.value
    catalogue = _own_catalogue(run)
    if catalogue and (catalogue.stream, catalogue.value_column) != (run.stream, value):
        raise LedgerError(
            f"{folder} belongs to stream {catalogue.stream!r} with column {catalogue.value_column!r}; "
            "give each stream a published folder of its own"
        )
    folders = (json.loads(terms.document).get(PUBLISHED_IN) for terms in run.ledger.siblings(run.stream))
    others = (find_catalogue(other) for other in folders if other)
    return Shown(catalogue, frozenset(found.ledger_head for found in (catalogue, *others) if found))


def _own_catalogue(run: Run) -> Catalogue | None:
    """The catalogue of the stream's folder; None where nothing was published.

    Data without a catalogue are refused, unless another run is just publishing the folder's first days: its
    turn is waited for, or, in a store, which has no turns to wait for, its day is looked at again later.
    """
    folder = run.settings.published_folder
    place = open_place(folder)
    found = find_catalogue(place)
    if found is not None or not place.exists("data"):
        return found
    found = place.change(find_catalogue)
    if found is None:
        told = (
            f"{folder} holds data but no catalogue: a publication was cut short, or the catalogue was "
            "lost. Run the day that was being published again, or restore catalogue.json"
        )
        if isinstance(folder, StoreUrl):
            raise HeldError(told, run.clock() + SOON)
        raise LedgerError(told)
    return found


def reserve(run: Run, work: Work, shown: Shown) -> Work:
    """Charge the day's plan to the grant.

    Raises BudgetError, with nothing spent, if a window is full; LedgerError if the folder lists a day that
    the ledger does not know.
    """
    settings, day = run.settings, work.day
    entry = shown.catalogue.entry(day) if shown.catalogue else None
    if entry is not None and entry.revision >= work.revision:
        raise LedgerError(
            f"{settings.published_folder} lists {day} already, and the ledger does not know it: this is not "
            "the ledger that the folder was written with; bring that one back"
        )
    calendar = settings.calendar
    mechanism = mechanism_for(settings, day, work.revision)
    # Plans are functions of recorded spends: what was charged is what later days may know of earlier ones.
    memory = recall(settings, run.ledger, mechanism, day, work.revision)
    plan = mechanism.plan(calendar.n_steps(day), calendar.first_step(day), memory.state)
    now = run.clock()
    reservation = run.ledger.reserve(
        run.stream,
        day.isoformat(),
        work.revision,
        plan,
        run.owner,
        now,
        run.lease,
        catalogue_heads=shown.heads,
        terms=terms_of(settings),
        restatements_epsilon=settings.model.epsilon * settings.budget.restatement_share,
    )
    return replace(work, reservation=reservation, held_since=now, memory=memory)
