"""How far the ledger was, in a file of the trusted folder and of `[trusted] witness`: a ledger that lacks its
hash was restored, and is refused. It is written before each draw, before publication and after
declarations."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from optstream.catalogue.backends import ObjectStorage, Transaction
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import Ledger
from optstream.storage.store import Location, StoreUrl, open_store
from tasks.config import Settings
from tasks.trusted.files import exclusive_in, write_private

NAME = "ledger-heads.json"
FORMAT = "optstream.witness/1"
LARGEST = 2**20  # bytes; thousands of streams

Heads = Mapping[str, tuple[int, str]]  # by stream: how many events, and the hash of the last
Grants = Mapping[str, Heads]
"""By privacy budget: populations that share a trusted folder may have a ledger each."""


def bear_witness(settings: Settings, ledger: Ledger, recorded: str = "") -> None:
    """Write the ledger head to the witnesses; raise LedgerError if it is behind, or one is away."""

    grant = settings.privacy.population

    def follow(grants: Grants) -> Grants:
        # the witness was read before the ledger is asked, and so a sound ledger has what it holds
        known = grants.get(grant, {})
        _check(place, known, ledger)
        found = ledger.heads(settings.stream.name)
        newest = {name: max(known.get(name, (0, "")), head) for name, head in found.items()}
        return {**grants, grant: {**known, **newest}}

    for place in settings.witness_places:
        try:
            _change(place, follow)
        except (OSError, PublicationError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise LedgerError(
                f"the ledger head cannot be written to {place} ({said}): {recorded}nothing is drawn before "
                "it is; see [trusted] of the configuration"
            ) from error


def refuse_older(settings: Settings, ledger: Ledger) -> None:
    """Refuse, with LedgerError, a ledger behind a witness; one that cannot be reached now says nothing."""
    for place in settings.witness_places:
        with suppress(OSError, PublicationError):
            _check(place, _known(settings, place), ledger)


def behind(settings: Settings, ledger: Ledger) -> list[str]:
    """What the witnesses say against the ledger, a line each; changes nothing."""
    said = []
    for place in settings.witness_places:
        try:
            _check(place, _known(settings, place), ledger)
        except LedgerError as error:
            said.append(str(error))
        except (OSError, PublicationError) as error:
            strerror = error.strerror if isinstance(error, OSError) else str(error)
            said.append(f"{place} cannot be read ({strerror}): what it knows of the ledger is not compared")
    return said


def older_places(settings: Settings, ledger: Ledger) -> list[str]:
    """Witnesses that lack later staged and listed releases, and so are older copies, one line each."""
    shown, said = ledger.last_shown(settings.stream.name), []
    for place in settings.witness_places:
        with suppress(LedgerError, OSError, PublicationError):  # `behind` says these
            n_events, _ = _known(settings, place).get(settings.stream.name, (shown, ""))
            if n_events < shown:
                said.append(
                    f"{place} knows {n_events} events of the ledger, and readers have what event {shown} "
                    "staged: it is an older copy; bring the newest one back, or accept what it lacks, as "
                    "docs/recover.md says"
                )
    return said


def _known(settings: Settings, place: Location) -> Heads:
    """What a place knows of the stream's budget; raises as `_read`."""
    return _read(place)[0].get(settings.privacy.population, {})


def _check(place: Location, known: Heads, ledger: Ledger) -> None:
    missing = set(ledger.missing_heads(head for _, head in known.values()))
    for stream, (n_events, head) in sorted(known.items()):
        if head in missing:
            raise LedgerError(
                f"the ledger does not contain event {n_events} of stream {stream!r} that {place} knows: it "
                "was restored from an older copy, or is another ledger, and would draw again what was drawn. "
                "Bring the newest ledger back; docs/recover.md says what to do if it is lost"
            )


def _change(place: Location, work: Callable[[Grants], Grants]) -> None:
    """Replace the heads that a place knows by `work` of them, one caller at a time."""
    if isinstance(place, StoreUrl):

        def put(transaction: Transaction) -> None:
            known, tag = _read(place)
            wanted = work(known)
            if wanted != known:
                transaction.replace_marked(NAME, _to_bytes(wanted), tag)

        ObjectStorage(open_store(place)).change(put)
        return
    with exclusive_in(place):
        known, _ = _read(place)
        wanted = work(known)
        if wanted != known:
            write_private(place / NAME, _to_bytes(wanted))


def _read(place: Location) -> tuple[Grants, str | None]:
    """The heads that a place knows, and in a store its tag. Raises LedgerError for another file."""
    tag = None
    try:
        if isinstance(place, Path):
            data = (place / NAME).read_bytes()
        else:
            stored = open_store(place).get(NAME, LARGEST)
            data, tag = stored.data, stored.tag
    except FileNotFoundError:
        return {}, None
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        return {str(grant): _heads(streams) for grant, streams in document["grants"].items()}, tag
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(
            f"{place / NAME} is not what OptStream wrote: restore it from a copy. If there is none, see that "
            "the ledger is the newest, then remove the file: the next run writes it again"
        ) from error


def _heads(streams: Mapping[str, Any]) -> Heads:
    return {str(name): (int(one["events"]), str(one["head"])) for name, one in streams.items()}


def _to_bytes(grants: Grants) -> bytes:
    known_heads = {
        grant: {name: {"events": n_events, "head": head} for name, (n_events, head) in heads.items()}
        for grant, heads in grants.items()
    }
    return json.dumps({"format": FORMAT, "grants": known_heads}, indent=1, sort_keys=True).encode()
