"""Put staged releases into the published folder, and record that in the ledger."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import date, timedelta
from hashlib import sha256

from optstream.catalogue import Publication, StagedRelease, find_catalogue, stage
from optstream.catalogue import publish as publish_releases
from optstream.catalogue.backends import OtherBytes, Transaction, open_storage
from optstream.catalogue.layout import data_file, manifest_file
from optstream.catalogue.publication import close_days, finish_closing, open_days
from optstream.catalogue.statement import Manifest
from optstream.errors import LedgerError, OptStreamError, PublicationError
from optstream.ledger import ReleaseRecord, ReleaseState
from optstream.stream import period_from
from tasks.operate.keys import signer_of
from tasks.release import revise
from tasks.release.estimate import first_estimate
from tasks.release.revise import StagedVintage, check_later
from tasks.release.run import Ended, PublishedError, Requested, Run, Staged, Status
from tasks.release.statement import Estimate, described, read_kept, with_files
from tasks.release.witness import bear_witness, refuse_older


def publish(run: Run, days: Sequence[Staged]) -> list[Publication]:
    """Publish these staged days, all or none, safe to repeat; witness before, ledger after."""

    def head(known: str | None) -> str:
        """Asked under the publishers' lock: a day that was withdrawn meanwhile is not listed any more."""
        for day in days:
            if isinstance(day, StagedVintage):
                _check_may_be_revised(run, day)
            else:
                _check_may_be_listed(run, day)
        return run.ledger.head(run.stream, known)

    bear_witness(run.settings, run.ledger)
    staged = [day.staged for day in days]
    signer = signer_of(run.settings, run.ledger)
    try:
        return list(publish_releases(run.settings.published_folder, staged, head, signer))
    except PublicationError as error:
        if len(days) == 1 and isinstance(error.__cause__, OSError):
            _check_unlisted(run, days[0], error.__cause__)
        raise


def _check_unlisted(run: Run, day: Staged, cause: OSError) -> None:
    """Raise PublishedError if readers have the day all the same: only making it durable failed."""
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(day.day) if catalogue else None
    if entry is not None and not entry.withdrawn and entry.file_hash == day.staged.file_hash:
        raise PublishedError(
            f"it is listed and readers have it, but a power cut may undo that ({cause.strerror}): mend the "
            "disk of the published folder; the next run completes and records it",
            entry.file,
        )


def record_published(run: Run, day: Staged, publication: Publication) -> Ended:
    """DRAWN -> PUBLISHED, after the catalogue lists the day; or that it lists a new estimate."""
    entry = publication.entry
    if isinstance(day, StagedVintage):
        run.ledger.record_vintage_published(day.reservation, day.number, run.clock())
        said = f"revised estimate, vintage {day.number}, {entry.file_hash[:12]}; nothing was spent"
        return day.ended(Status.PUBLISHED, said, entry.file)
    run.ledger.record_published(run.key(day.day, day.revision), run.clock(), day.reservation)
    return day.ended(Status.PUBLISHED, f"revision {day.revision}, release {entry.file_hash[:12]}", entry.file)


def _check_may_be_listed(run: Run, day: Staged) -> None:
    """Raise LedgerError unless the ledger has these bytes of the day, DRAWN or PUBLISHED."""
    record = run.record(day.day, day.revision)
    state = record.state if record else "not in it"
    if record is None or record.withdrawn or state not in (ReleaseState.DRAWN, ReleaseState.PUBLISHED):
        found = "withdrawn" if record and record.withdrawn else state
        raise LedgerError(f"the ledger does not have {day.day} as DRAWN, but {found}: nothing is published")
    if record.staged_hash != day.staged.file_hash:
        raise LedgerError(
            f"the ledger has {day.day} staged with other bytes: nothing is published; run it again"
        )


def _check_may_be_revised(run: Run, day: StagedVintage) -> None:
    """Raise LedgerError unless these bytes are the newest vintage of a published day that this run holds."""
    key = run.key(day.day, day.revision)
    record, known = run.ledger.find(key), run.ledger.vintages_of(key)
    if record is None or record.state is not ReleaseState.PUBLISHED or record.withdrawn or record.compromised:
        raise LedgerError(f"{day.day} is not published any more: its new estimate is not shown")
    if record.fencing_token != day.reservation.fencing_token:
        raise LedgerError(f"{day.day} was taken over by another run ({record.owner}): stop here")
    newest = known[-1] if known else None
    if newest is None or (newest.number, newest.staged_hash) != (day.number, day.staged.file_hash):
        raise LedgerError(f"the ledger has {day.day} staged with other bytes: nothing is published")
    check_later(run, day.due)


# Restore a published file that was lost or damaged: the same bytes, by the hash that the ledger has.


def publish_again(run: Run, asked: Requested, days: Collection[date] = ()) -> Ended:
    """Write the release that the ledger has as published into the folder, where it is not whole."""
    refuse_older(run.settings, run.ledger)  # it may have forgotten that the day was withdrawn
    staged = _staged(run, *_recorded(run, asked.day))
    publication = _published(run, asked.day, staged, {asked.day, *days})
    file = publication.entry.file
    if not publication.changed:
        return asked.ended(Status.UNCHANGED, "it is there, whole; nothing changed", file)
    said = f"published again, the same bytes: {staged.file_hash[:12]}"
    return asked.ended(Status.PUBLISHED, said, file)


def days_published(run: Run) -> set[date]:
    """The days that readers should have: published, and not withdrawn."""
    outlines = run.ledger.outlines(run.stream)
    known = {one.period: one for one in outlines if one.state is ReleaseState.PUBLISHED}
    return {period_from(period) for period, one in known.items() if one.withdrawn is None}


def _recorded(run: Run, day: date) -> tuple[ReleaseRecord, int, str]:
    """The release that readers should have: its record, its vintage and the hash of its file."""
    period, first = day.isoformat(), run.settings.calendar.first_step(day)
    known = [one for one in run.ledger.outlines(run.stream, range(first, first + 1)) if one.period == period]
    out = [one.revision for one in known if one.state is ReleaseState.PUBLISHED]
    if not out:
        state = str(known[-1].state) if known else "not in the ledger"
        raise LedgerError(f"{day} is {state}, not published: `optstream run --date {period}` takes it up")
    record = run.record(day, max(out))
    assert record is not None
    if record.withdrawn is not None:
        raise LedgerError(f"{day} was withdrawn ({record.withdrawn}): it is not published again")
    if record.compromised is not None:
        raise LedgerError(f"others know the noise of {day}: `optstream withdraw` it")
    # the last new estimate that readers had: recorded as published, or listed by a run that died after
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(day) if catalogue else None
    listed = entry and entry.file_hash
    vintages = run.ledger.vintages_of(record.key)
    had = [(one.number, one.staged_hash) for one in vintages if one.published or one.staged_hash == listed]
    return record, *(had[-1] if had else (0, record.staged_hash or ""))


def _staged(run: Run, record: ReleaseRecord, number: int, digest: str) -> StagedRelease:
    """The bytes with this hash, staged or computed again. Raises LedgerError if there are none."""
    settings, day = run.settings, period_from(record.period)

    def estimated() -> Estimate:
        if number:
            return revise.estimated_again(run, record, number)
        return first_estimate(run, record, run.measured(day, record.revision, record.measurements_hash))

    with suppress(LedgerError, OSError):
        return read_kept(run, day, record.revision, digest, lambda: estimated().release)
    gone = (
        f"the staged file of {day} is gone, so bring trusted/staging or the published file back from a copy"
    )
    try:
        estimate = estimated()
        rows, statement, _ = described(settings, estimate)
    except OptStreamError as error:
        raise LedgerError(f"{gone}: {error}") from error
    with suppress(PublicationError, OSError):  # another version or configuration may have stated it
        data = open_storage(settings.published_folder).read(manifest_file(digest))
        statement = Manifest.from_bytes(data).stated
    with suppress(PublicationError):
        staged = stage(rows, statement)
        if staged.file_hash == digest:
            return with_files(run, staged, lambda: estimate.release)
    raise LedgerError(
        f"{gone}: computed again from the stored measurements it has other bytes than were published; "
        "this version or this configuration is another than at that time"
    )


def _published(run: Run, day: date, staged: StagedRelease, days: Collection[date]) -> Publication:
    """Publish the bytes, after removing damaged files: the release, its manifest, its attachments."""
    folder, signer = run.settings.published_folder, signer_of(run.settings, run.ledger, mending=days)

    def head(known: str | None) -> str:
        """Under the publishers' lock: the day may have been withdrawn or restated since."""
        record, _, digest = _recorded(run, day)
        if digest != staged.file_hash:
            raise LedgerError(
                f"revision {record.revision} of {day} was published meanwhile: publish it again"
            )
        return run.ledger.head(run.stream, known)

    def attempt() -> Publication:
        (done,) = publish_releases(folder, [staged], head, signer)
        return done

    for _ in range(3):
        try:
            return attempt()
        except OtherBytes:
            if not open_storage(folder).change(lambda turn: _damage_removed(turn, day, staged)):
                raise
    return attempt()


def _damage_removed(turn: Transaction, day: date, staged: StagedRelease) -> bool:
    """Remove a damaged file of the listed release; False where the catalogue does not list it."""
    catalogue = find_catalogue(turn)
    entry = catalogue.entry(day) if catalogue else None
    if entry is None or entry.withdrawn or entry.file_hash != staged.file_hash:
        return False
    files = (*staged.statement.attachments, (data_file(day, staged.file_hash), staged.file_hash))
    damaged = (file for file, digest in files if _is_damaged(turn, file, digest))
    # a manifest's own hash stands nowhere: where all else is whole, it is that
    folder, _, name = next(damaged, manifest_file(staged.file_hash)).rpartition("/")
    turn.remove(folder, [name])
    return True


def _is_damaged(turn: Transaction, name: str, digest: str) -> bool:
    """Whether there is a file of this name with other bytes than of this hash."""
    try:
        return sha256(turn.read(name)).hexdigest() != digest
    except FileNotFoundError:
        return False
    except PublicationError:  # too large, or no plain file
        return True


# Put the hours of days that are over into one file a day, in the published folder (docs/hours.md).


def close_over(run: Run) -> tuple[date, ...]:
    """Close the days whose hours are all over; return those closed. A failed close waits for the next run."""
    settings = run.settings
    with suppress(OptStreamError, OSError):
        catalogue = find_catalogue(settings.published_folder) if settings.stream.period == "hour" else None
        if catalogue is None:
            return ()
        today = settings.local_day(run.clock())
        given_up = today - timedelta(days=settings.scheduling.catch_up_days)
        finish_closing(settings.published_folder, catalogue, given_up)
        over = {
            day
            for day, entries in open_days(catalogue).items()
            if day < today and (day < given_up or len(entries) == len(settings.calendar.periods_of(day)))
        }
        return close_days(settings.published_folder, over, signer_of(settings, run.ledger)) if over else ()
    return ()
