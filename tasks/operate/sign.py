"""Sign what is published, and nothing that the ledger does not know."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from optstream.catalogue import Entry
from optstream.catalogue.signing import Signer, read_public_keys
from optstream.errors import PublicationError
from optstream.ledger import Ledger, ReleaseState
from optstream.stream import period_from
from tasks.config import Settings
from tasks.ledger.verify import recorded_otherwise
from tasks.operate.keys import read_key
from tasks.trusted.files import exclusive_in, write_private

# The number of the catalogue that was signed last, kept in the trusted zone.


def next_number(settings: Settings, found: int) -> int:
    """A number that no catalogue of the stream had, durable before it is used: a crash leaves a gap.

    found: the number of a signed catalogue, for the case that an older trusted folder was brought back.
    Raises PublicationError where the file is not what this wrote.
    """
    path = settings.catalogue_number_file
    with exclusive_in(path.parent):
        number = max(_last(path), found) + 1
        write_private(path, f"{number}\n".encode("ascii"))
    return number


def _last(path: Path) -> int:
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    except ValueError:
        text = ""
    if not (text.isdigit() and len(text) < 16):
        raise PublicationError(
            f"{path} must hold the number of the catalogue that was signed last; write it there: it is "
            "`sequence` of the newest catalogue.json"
        )
    return int(text)


Ranks = Mapping[date, tuple[int, int]]
"""By day, revision and vintage."""
RESTORE = "restore catalogue.json from a copy, and see `optstream ledger verify`"


def signer_of(settings: Settings, ledger: Ledger, mending: Collection[date] | None = None) -> Signer | None:
    """What signs the configured stream's publications; None where no key is configured.

    mending: the days that a person's command puts right: of these the catalogue may list what is older or
    withdrawn, and other days may be missing in it. None for a night's publication: then the catalogue must
    list every day that is published, as it was last, or the numbers of an old one would rise again. Ask
    before the catalogue is read: what is published by then, it lists. Raises ConfigurationError where the
    key is missing or is none.
    """
    path = settings.signing_key_file
    if path is None:
        return None
    own, newest = read_key(path), _newest(settings, ledger)

    def confirm(entries: Sequence[Entry]) -> None:
        for line in _unconfirmed(settings, ledger, entries, newest, mending):
            raise PublicationError(f"nothing was signed and nothing published: {line}")

    files = settings.public_key_files
    number = partial(next_number, settings)
    return Signer(own, confirm, number, read_public_keys(files) if files else {})


def _newest(settings: Settings, ledger: Ledger) -> Ranks:
    """What readers should have of each day."""
    stream = settings.stream.name
    vintages = ledger.vintages(stream)
    found: dict[date, tuple[int, int]] = {}
    for one in ledger.outlines(stream):
        if one.state is ReleaseState.PUBLISHED and one.withdrawn is None:
            known = vintages.get((one.period, one.revision), ())
            vintage = max((each.number for each in known if each.published), default=0)
            day = period_from(one.period)
            found[day] = max(found.get(day, (0, 0)), (one.revision, vintage))
    return found


def _unconfirmed(
    settings: Settings,
    ledger: Ledger,
    entries: Sequence[Entry],
    newest: Ranks,
    mending: Collection[date] | None,
) -> Iterator[str]:
    """What a catalogue lists and the ledger does not know so."""
    stream = settings.stream.name
    releases = {(one.period, one.revision): one for one in ledger.outlines(stream)}
    vintages = ledger.vintages(stream)
    taken_back = []
    for entry in entries:
        key = (entry.period.isoformat(), entry.revision)
        release = releases.get(key)
        if release is None or recorded_otherwise(entry, release, vintages.get(key, ())) is not None:
            yield f"catalogue.json lists {entry.period} with bytes that the ledger does not know; {RESTORE}"
        elif entry.withdrawn and release.withdrawn is None and release.state is not ReleaseState.VOID:
            yield f"catalogue.json calls {entry.period} withdrawn, and the ledger does not; {RESTORE}"
        elif release.withdrawn is not None and not entry.withdrawn and entry.period not in (mending or ()):
            taken_back.append(entry.period)
    if taken_back:
        days = "".join(f" --date {day}" for day in taken_back)
        yield (
            f"{taken_back[0]} was withdrawn, and catalogue.json lists it; "
            f"`optstream withdraw{days} --reason WHY` completes it"
        )
    if ledger.missing_heads(entry.ledger_head for entry in entries):
        yield f"catalogue.json has an entry with a head that the ledger does not know; {RESTORE}"
    listed = {entry.period: (entry.revision, entry.vintage) for entry in entries}
    for day in sorted(set(newest) - set(mending or ())):
        if day not in listed and mending is not None:
            continue
        if listed.get(day, (-1, -1)) < newest[day]:
            what = "lists an older release of it" if day in listed else "does not list it"
            yield (
                f"{day} is published, and catalogue.json {what}; `optstream publish {day}` puts it back, "
                f"or `optstream withdraw --date {day} --reason WHY` gives it up (`optstream ledger verify` "
                "names all)"
            )
