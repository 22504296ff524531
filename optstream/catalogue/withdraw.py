"""Take a published day back: a tombstone in the catalogue first, then its files out of the folder."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from optstream.catalogue.durable import clear, exclusive, make_folder, sync_folder
from optstream.catalogue.durable import replace as replace_file
from optstream.catalogue.index import Entry, check_ledger_head, find_catalogue
from optstream.catalogue.layout import (
    CATALOGUE,
    INCOMING,
    LOCK,
    data_folder,
    inside,
    is_release_name,
    superseded_folder,
)
from optstream.catalogue.times import settle_times
from optstream.errors import PublicationError


@dataclass(frozen=True)
class Withdrawal:
    """What `withdraw` did: `changed` is False if the tombstone was there and the files were gone already.

    entry: the tombstone; None for a day that the catalogue never listed.
    """

    entry: Entry | None
    changed: bool

    def in_words(self) -> str:
        """One line for the operator."""
        if self.entry is None:
            return "given up before it was published; it stays charged"
        what = f"{self.entry.period} revision {self.entry.revision}"
        if not self.changed:
            return f"{what} was withdrawn already; nothing changed"
        return f"withdrawn {what}: its files are deleted, its manifest stays, and it stays charged"


def withdraw(
    folder: Path | str, period: date, tell_ledger: Callable[[Entry | None, str | None], str], *, stream: str
) -> Withdrawal:
    """Make the published release of a day a tombstone, and delete the day's files.

    Under the publishers' lock: replace the catalogue atomically by one in which the entry says `withdrawn`
    and carries the ledger's head; then delete every revision of the day from data/ and superseded/. The
    manifests stay, and the tombstone names the last one: readers can learn that there was a release, and
    its cost.
    After a crash at any point no listed file is missing, and the same call completes the work; so does the
    publication of a higher revision, the only thing that takes the tombstone's place. What others have copied
    is out of reach. Refunds no privacy: the release was drawn and seen.

    tell_ledger: given what the catalogue lists of the day (None if nothing) and its head (None without one),
    records the withdrawal and returns the ledger's head. Asked inside the lock, so that nobody publishes the
    day between the two. stream: whose folder it must be.
    Raises PublicationError, with nothing changed, for a folder of another stream; where the folder cannot be
    written; and whatever `tell_ledger` raises.
    """
    root = Path(folder)
    try:
        make_folder(root)
        with exclusive(root / LOCK):
            return _withdraw_locked(root, period, tell_ledger, stream)
    except OSError as error:
        raise PublicationError(
            f"the published folder cannot be written ({error.strerror}); mend it and withdraw {period} "
            "again: until then some of its files may still be there"
        ) from error


def _withdraw_locked(
    root: Path, period: date, tell_ledger: Callable[[Entry | None, str | None], str], stream: str
) -> Withdrawal:
    catalogue = find_catalogue(root)
    if catalogue is not None and catalogue.stream != stream:
        raise PublicationError(
            "the published folder belongs to another stream; "
            "withdraw with the configuration that published it"
        )
    entry = catalogue.entry(period) if catalogue else None
    ledger_head = tell_ledger(entry, catalogue.ledger_head if catalogue else None)
    check_ledger_head(ledger_head)
    if catalogue is None or entry is None:
        return Withdrawal(None, False)
    incoming = inside(root, INCOMING)
    make_folder(incoming)
    clear(incoming)
    changed = not entry.withdrawn
    if changed:
        entry = replace(entry, ledger_head=ledger_head, withdrawn=True)
        catalogue = catalogue.with_entries([entry])
        replace_file(root / CATALOGUE, catalogue.to_bytes(), incoming)
    else:
        sync_folder(root)  # who wrote the tombstone may have died before its name was durable
    changed |= delete_files(root, period)
    settle_times(root, catalogue, [entry])
    return Withdrawal(entry, changed)


def delete_files(root: Path, period: date) -> bool:
    """Delete every release of a withdrawn day from data/ and superseded/; the lock is held by the caller.

    Returns whether there were any. The manifests are left.
    """
    found = False
    for name in (data_folder(period), superseded_folder(period)):
        folder = inside(root, name)
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if is_release_name(path.name):
                path.unlink(missing_ok=True)
                found = True
        sync_folder(folder)
        with suppress(OSError):  # what else is in it is nobody's: `check_files` names it
            folder.rmdir()
            sync_folder(folder.parent)
    return found
