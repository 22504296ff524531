"""What can be asked of the ledger without changing it: each method is one transaction."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from optstream.errors import LedgerError
from optstream.ledger import hash_chain
from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.charges import Condition
from optstream.ledger.accounting.spends import charged_to_release
from optstream.ledger.database.engine import reading
from optstream.ledger.database.rows import one_row, rows
from optstream.ledger.database.schema import ReleaseRow, VintageRow
from optstream.ledger.records import (
    ReleaseOutline,
    ReleaseRecord,
    ReleaseState,
    StreamTerms,
    check_key,
)
from optstream.ledger.survey import Survey
from optstream.ledger.transactions import revisions
from optstream.ledger.transactions.held import find_row
from optstream.ledger.transactions.revisions import Vintage
from optstream.ledger.transactions.stream_rows import find_stream, grant_of, id_of, terms_of
from optstream.ledger.verification.parallel import problems_by_processes
from optstream.privacy import PrivacyModel


class Reader(Survey):
    """The reading half of `Ledger`: each method is one transaction, and sees the ledger of one moment.

    Every method raises LedgerUnavailableError, a LedgerError, when the database refuses or does not answer.
    """

    def terms(self, stream: str) -> StreamTerms | None:
        """Return a stream's terms.

        Args:
            stream: Name of the stream.

        Returns:
            The terms; None where the stream is not enrolled.
        """
        with reading(self._engine) as connection:
            row = find_stream(connection, stream)
            return None if row is None else terms_of(connection, row)

    def find(self, stream: str, period: str, revision: int = 0) -> ReleaseRecord | None:
        """Return one release.

        Args:
            stream: Name of the stream.
            period: Key of the period.
            revision: Of the release.

        Returns:
            The release; None where there is none.

        Raises:
            ParameterError: A name is not printable text, or the revision less than 0.
        """
        check_key(stream, period, revision)
        found = self._records(stream, ReleaseRow.period == period, ReleaseRow.revision == revision)
        return found[0] if found else None

    def releases(self, stream: str) -> tuple[ReleaseRecord, ...]:
        """Return all releases of a stream.

        Args:
            stream: Name of the stream.

        Returns:
            The releases by first step, then revision; empty for an unknown stream.
        """
        return self._records(stream)

    def _records(self, stream: str, *only: Condition) -> tuple[ReleaseRecord, ...]:
        query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream), *only)
        with reading(self._engine) as connection:
            found = rows(connection, query.order_by(ReleaseRow.first_step, ReleaseRow.revision))
            return tuple(_record(connection, stream, release) for release in found)

    def drawn_before(self, stream: str, first_step: int) -> ReleaseRecord | None:
        """Return the last release before a step that has measurements: DRAWN or PUBLISHED.

        Restatements are left out: they go on from nothing, and nothing goes on from them.

        Args:
            stream: Name of the stream.
            first_step: Running index; only releases that begin before it are looked at.

        Returns:
            The release; None where none has measurements.
        """
        query = select(ReleaseRow).where(
            ReleaseRow.stream_id == id_of(stream),
            ReleaseRow.revision == 0,
            ReleaseRow.first_step < first_step,
            ReleaseRow.state.in_([ReleaseState.DRAWN.value, ReleaseState.PUBLISHED.value]),
        )
        with reading(self._engine) as connection:
            release = one_row(connection, query.order_by(ReleaseRow.first_step.desc()).limit(1))
            return None if release is None else _record(connection, stream, release)

    def guarantee_number(self, stream: str) -> int:
        """Return the number of the privacy guarantee that is in force for a stream.

        Args:
            stream: Name of the stream.

        Returns:
            The number; 0 until the first amendment, and for an unknown stream.
        """
        with reading(self._engine) as connection:
            row = find_stream(connection, stream)
            return 0 if row is None else grant_of(connection, row).amendment

    def guarantees(self, stream: str) -> dict[int, PrivacyModel]:
        """Return the privacy guarantees that a stream ever had, since its privacy budget began.

        Args:
            stream: Name of the stream.

        Returns:
            By number, as `ReleaseOutline.amendment` names them; the highest is in force for new days. With
            the stream's own alpha, where it is a product of the budget (Lemma 12a), and its resolution of
            now. Empty for an unknown stream.
        """
        with reading(self._engine) as connection:
            row = find_stream(connection, stream)
            if row is None:
                return {}
            terms, found = terms_of(connection, row), guarantees_of(connection, grant_of(connection, row))
            own, resolution = terms.alpha_ratio, terms.model.resolution
            return {
                number: replace(model, alpha=own * model.alpha, resolution=resolution)
                for number, model in found.by_number.items()
            }

    def latest(self, stream: str, period: str) -> ReleaseRecord | None:
        """Return the release of a period that has the highest revision.

        Args:
            stream: Name of the stream.
            period: Key of the period.

        Returns:
            The release; None where the period has none.

        Raises:
            ParameterError: A name is not printable text.
        """
        check_key(stream, period, 0)
        found = self._records(stream, ReleaseRow.period == period)
        return max(found, key=lambda release: release.revision, default=None)

    def vintages(
        self, stream: str, *, unpublished: bool = False
    ) -> dict[tuple[str, int], tuple[Vintage, ...]]:
        """Return the new estimates of a stream's releases.

        Args:
            stream: Name of the stream.
            unpublished: Whether only those that the catalogue is not known to list.

        Returns:
            Vintages by number, rising, for each period and revision that has any.
        """
        only = (VintageRow.published.is_(False),) if unpublished else ()
        with reading(self._engine) as connection:
            return revisions.of_stream(connection, stream, *only)

    def vintages_of(self, stream: str, period: str, revision: int) -> tuple[Vintage, ...]:
        """Return the new estimates of one release.

        Args:
            stream: Name of the stream.
            period: Key of the period.
            revision: Of the release.

        Returns:
            Vintages by number, rising; none for an unknown release.

        Raises:
            ParameterError: A name is not printable text, or the revision less than 0.
        """
        check_key(stream, period, revision)
        with reading(self._engine) as connection:
            release = find_row(connection, stream, period, revision)
            return () if release is None else tuple(revisions.of_release(connection, release.id))

    def head(self, stream: str) -> str:
        """Return the hash of a stream's last event, for the catalogue to carry.

        Args:
            stream: Name of the stream.

        Returns:
            SHA-256 in hexadecimal.

        Raises:
            LedgerError: The stream is not enrolled.
        """
        return self.head_after(stream, None)

    def head_after(self, stream: str, known: str | None) -> str:
        """Return the head as `head` does, if the ledger contains the one that the catalogue carries.

        Called inside the published folder's lock, as `optstream.catalogue.publish` does, it makes the newest
        head of a catalogue stand for all of them. Each publication then carries the last event of a chain
        that has the head of the publication before; chains only grow, so a ledger, or a copy of it from any
        time, that contains the newest head contains all earlier ones, and whatever was published with them.

        Args:
            stream: Name of the stream.
            known: The head that the catalogue carries now; None if there is no catalogue yet.

        Returns:
            SHA-256 in hexadecimal.

        Raises:
            LedgerError: The ledger does not contain `known`, so that it is an older copy or another ledger;
                or the stream is not enrolled.
        """
        with reading(self._engine) as connection:
            row = find_stream(connection, stream)
            if row is None:
                raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
            hash_chain.check_contains(connection, [] if known is None else [known])
            return row.head

    def verify(self, processes: int = 1) -> list[str]:
        """Return every edit, gap and reordering that hash chain and replay of the events show.

        Compare the catalogue's heads as well (`missing_heads`): a chain that was cut at its end is whole in
        itself, and a stream of which every row was deleted is missed by nobody here. Not seen are a renewed
        lease, the number of a row, and a change that leaves the meaning, as a space in a stream's terms.

        Args:
            processes: At most so many share out a large ledger; all judge the ledger of one moment. They are
                spawned, so a script that asks for more than one does it below `if __name__ == "__main__":`.

        Returns:
            A line in words for each problem; empty where the ledger is whole.
        """
        return problems_by_processes(self._engine, processes)


def _record(connection: Connection, stream: str, release: ReleaseRow) -> ReleaseRecord:
    outline = {name: getattr(release, name) for name in ReleaseOutline.__dataclass_fields__}
    return ReleaseRecord(
        **{**outline, "state": ReleaseState(release.state)},
        stream=stream,
        owner=release.owner,
        lease_until=datetime.fromisoformat(release.lease_until),
        fencing_token=release.fence,
        drawing=release.drawing,
        redraws=release.redraws,
        spends=charged_to_release(connection, release.id),
    )
