"""Sign what is published, and nothing that the ledger does not know."""

from collections.abc import Iterator, Sequence

from optstream.catalogue import Entry
from optstream.catalogue.signing import Signer
from optstream.errors import PublicationError
from optstream.ledger import Ledger
from tasks.ledger_check import recorded_otherwise
from tasks.settings import Settings
from tasks.signing_key import read_key


def signer_of(settings: Settings, ledger: Ledger, *, withdrawing: bool = False) -> Signer | None:
    """What signs the configured stream's publications; None where no key is configured.

    withdrawing: days that the ledger calls withdrawn may still be listed, for one of them is just being taken
    out. Raises ConfigurationError where the key is missing or is none.
    """
    path = settings.signing_key_file
    if path is None:
        return None

    def confirm(entries: Sequence[Entry]) -> None:
        for line in _unconfirmed(settings, ledger, entries, withdrawing):
            raise PublicationError(f"nothing was signed and nothing published: {line}")

    return Signer(read_key(path), confirm)


def _unconfirmed(
    settings: Settings, ledger: Ledger, entries: Sequence[Entry], withdrawing: bool
) -> Iterator[str]:
    """What a catalogue lists and the ledger does not know so."""
    stream = settings.stream.name
    releases = {(one.period, one.revision): one for one in ledger.outlines(stream)}
    vintages = ledger.vintages(stream)
    for entry in entries:
        key = (entry.period.isoformat(), entry.revision)
        release = releases.get(key)
        restore = "restore catalogue.json from a copy, and see `optstream ledger verify`"
        if release is None or recorded_otherwise(entry, release, vintages.get(key, ())) is not None:
            yield f"catalogue.json lists {entry.period} with bytes that the ledger does not know; {restore}"
        elif entry.withdrawn and release.withdrawn is None:
            yield f"catalogue.json calls {entry.period} withdrawn, and the ledger does not; {restore}"
        elif release.withdrawn is not None and not entry.withdrawn and not withdrawing:
            yield (
                f"{entry.period} was withdrawn, and catalogue.json lists it; `optstream withdraw --date "
                f"{entry.period}` completes it"
            )
