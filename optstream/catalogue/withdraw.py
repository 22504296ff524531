"""Take a published day back: a tombstone in the catalogue first, then its files out of the folder."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from optstream.catalogue.backends import Location, Transaction, change_folder
from optstream.catalogue.hours import remove_left, reopened
from optstream.catalogue.index import Catalogue, Entry, find_catalogue
from optstream.catalogue.page import blank_page
from optstream.catalogue.signing import Signer, put_catalogue
from optstream.catalogue.sweep import delete_answers, delete_files
from optstream.catalogue.times import settle_times
from optstream.errors import PublicationError


@dataclass(frozen=True)
class Withdrawal:
    """What `withdraw` did.

    Attributes:
        entry: The tombstone; None for a day that the catalogue never listed.
        changed: False if the tombstone was there, signed if it is to be, and the files were gone already.
    """

    entry: Entry | None
    changed: bool

    def in_words(self) -> str:
        """Return one line for the operator.

        Returns:
            Text that holds no published value.
        """
        if self.entry is None:
            return "given up before it was published; it stays charged"
        what = f"{self.entry.period} revision {self.entry.revision}"
        if not self.changed:
            return f"{what} was withdrawn already; nothing changed"
        return f"withdrawn {what}: its files are deleted, its manifest stays, and it stays charged"


def withdraw(
    folder: Location | str,
    period: date,
    tell_ledger: Callable[[Entry | None, str | None], str],
    *,
    stream: str,
    value_column: str | None = None,
    last_revision: int = 0,
    signer: Signer | None = None,
) -> Withdrawal:
    """Make the published release of a day a tombstone, and delete the day's files.

    In one transaction at the folder (`Storage.change`): replace the catalogue atomically by one in which the
    entry says `withdrawn` and carries the ledger's head; then blank the page, which may show the day, and
    delete every revision of the day from data/ and superseded/. The manifests stay, and the tombstone names
    the last one: readers can learn that there was a release, and its cost. After a crash at any point no
    listed file is missing, and the same call completes the work; so does the publication of a higher
    revision, the only thing that takes the tombstone's place. What others have copied is out of reach.
    Refunds no privacy: the release was drawn and seen.

    In an object store nobody can be kept from publishing the day at the same moment. There a withdrawal
    always replaces the catalogue, by an empty one where there is none, so that such a publisher meets a
    conflict and asks the ledger again.

    Args:
        folder: A path, or the URL of a folder in an object store.
        period: The local day.
        tell_ledger: Given what the catalogue lists of the day (None if nothing) and its head (None without
            one), records the withdrawal and returns the ledger's head. Called inside the transaction, so that
            nobody publishes the day between the two; called again if the transaction meets a conflict.
        stream: Whose folder it must be.
        value_column: Which column it must have, None for any; required in an object store without a
            catalogue, where it is that of the empty one.
        last_revision: The highest revision that `tell_ledger` withdraws; matters in an object store alone.
        signer: Signs the catalogue, also one that it finds unsigned.

    Returns:
        The tombstone, and whether anything changed.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: The folder is of another stream or value column, and nothing was changed; or it
            cannot be written, and some of the day's files may still be there.
        Exception: Whatever `tell_ledger` or the signer raises; nothing in the folder was changed.
    """

    def work(transaction: Transaction) -> Withdrawal:
        catalogue = find_catalogue(transaction)
        wanted = (stream, value_column or (catalogue and catalogue.value_column))
        if catalogue is not None and (catalogue.stream, catalogue.value_column) != wanted:
            raise PublicationError(
                "the published folder belongs to another stream or value column; "
                "withdraw with the configuration that published it"
            )
        if catalogue is None and value_column is None and not transaction.is_alone:
            raise PublicationError("to withdraw a day of a folder without a catalogue, name its value column")
        entry = catalogue.entry(period) if catalogue else None
        ledger_head = tell_ledger(entry, catalogue.ledger_head if catalogue else None)
        if signer is not None and catalogue is not None:
            signer.take_up(transaction, catalogue)
        if catalogue is None or entry is None:
            if not transaction.is_alone:
                new = (
                    catalogue.changed(ledger_head=ledger_head)
                    if catalogue
                    else Catalogue(stream=stream, value_column=str(value_column), ledger_head=ledger_head)
                )
                _relist(transaction, catalogue, new, signer)
            # a publisher that died before it replaced the catalogue may have left files
            delete_files(transaction, period, last_revision)
            return Withdrawal(None, False)
        transaction.prepare()
        changed = not entry.withdrawn
        if changed:
            entry = entry.changed(ledger_head=ledger_head, withdrawn=True, closed_in=None)
            opened, left = reopened(transaction, catalogue, [entry.period])
            catalogue = put_catalogue(transaction, catalogue, opened.with_entries([entry]), signer)
            remove_left(transaction, left)
        elif signer is not None and not signer.has_signed(transaction, catalogue):
            changed, signed = True, catalogue.changed(ledger_head=ledger_head)
            catalogue = put_catalogue(transaction, catalogue, signed, signer)
        elif transaction.is_alone:
            transaction.confirm_catalogue()
        else:
            catalogue = _relist(transaction, catalogue, catalogue.changed(ledger_head=ledger_head), signer)
        blank_page(transaction, catalogue)
        changed |= delete_files(transaction, period, max(entry.revision, last_revision))
        settle_times(transaction, catalogue, [entry])
        return Withdrawal(entry, changed)

    withdrawn = change_folder(
        folder,
        work,
        "the published folder",
        f"mend it and withdraw {period} again: until then some of its files may still be there",
    )
    delete_answers(folder)
    return withdrawn


def _relist(
    transaction: Transaction, catalogue: Catalogue | None, new: Catalogue, signer: Signer | None
) -> Catalogue:
    """Replace the catalogue by one with the new head, so that every publisher who has read it begins again.

    One that carries the head already was replaced after the ledger changed, so nobody has an older one.
    """
    if new == catalogue:
        transaction.confirm_catalogue()
        return new
    return put_catalogue(transaction, catalogue, new, signer)
