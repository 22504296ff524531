"""The files that are published beside a day's release: its measurements, where wanted, and its errors.

Functions of the stored measurements and the configuration: what raw state the trusted folder has is not in
the stored measurements, and so never in a file.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date

from optstream.catalogue import ReleaseStatement, StagedRelease, StatedErrors, StatedMeasurements
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import LARGEST_ERRORS, errors_file
from optstream.catalogue.reading.read import read_beside
from optstream.catalogue.sums.errors_parquet import encode_errors
from optstream.catalogue.sums.stated_errors import ErrorsOf
from optstream.errors import LedgerError, OptStreamError
from optstream.estimation.error_terms import CovarianceOfSums, error_terms
from optstream.mechanisms import Release
from optstream.mechanisms.base import Mechanism
from optstream.stream import Measured
from tasks.config import Settings
from tasks.release.run import Run
from tasks.storage.private_files import read_verified


@dataclass(frozen=True)
class FilesBeside:
    """What a release's statement says of the files beside it, and their bytes by their hashes."""

    measurements: StatedMeasurements | None = None
    errors: StatedErrors | None = None
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)


NO_FILES = FilesBeside()


def files_beside(
    settings: Settings,
    day: date,
    revision: int,
    mechanism: Mechanism,
    release: Release,
    later: Sequence[date] = (),
) -> FilesBeside:
    """The files beside a release; none that are not wanted, or of which nothing is known.

    later: the days after it that a new estimate is made of.
    """
    found = FilesBeside()
    if settings.published.measurements:
        data = _measurements(settings, day, revision, mechanism, release.measured)
        digest = hashlib.sha256(data).hexdigest()
        found = FilesBeside(StatedMeasurements(digest, tuple(later)), data={digest: data})
    told = _errors(day, release) if settings.published.errors else None
    if told is None:
        return found
    data, of = told
    digest = hashlib.sha256(data).hexdigest()
    return FilesBeside(found.measurements, StatedErrors(digest, of), {**found.data, digest: data})


def with_files(
    run: Run,
    day: date,
    staged: StagedRelease,
    statement: ReleaseStatement,
    again: Callable[[], Release],
) -> StagedRelease:
    """What was staged, with the files that its statement names: kept in the staging, published, or made
    again, whatever is configured by now. A file of errors that nobody has is left out.

    again: estimates the release once more. Raises LedgerError if nobody has the measurements' bytes.
    """
    return replace(staged, beside=dict(_found(run, day, statement, again)))


def _found(
    run: Run, day: date, statement: ReleaseStatement, again: Callable[[], Release]
) -> list[tuple[str, bytes]]:
    found = []
    revision, folder = statement.revision, run.settings.staging_of(day, statement.revision)
    for _, digest in statement.beside:
        with suppress(LedgerError, OSError):
            found.append((digest, read_verified(folder, digest)))
            continue
        if statement.measurements and digest == statement.measurements.file_hash:
            found.append((digest, _measurements_again(run, day, revision, digest)))
            continue
        name = errors_file(day, revision, statement.vintage, digest)
        with suppress(OptStreamError, OSError):
            storage = open_storage(run.settings.published_folder)
            found.append((digest, read_beside(storage, day, name, digest, LARGEST_ERRORS)))
            continue
        with suppress(OptStreamError):
            data, _ = _errors(day, again()) or (b"", "")
            if hashlib.sha256(data).hexdigest() == digest:
                found.append((digest, data))
    return found


def _measurements_again(run: Run, day: date, revision: int, digest: str) -> bytes:
    record = run.ledger.find(run.stream, day.isoformat(), revision)
    folder = run.settings.measurements_of(day, revision)
    measured = Measured.from_bytes(read_verified(folder, record.measurements_hash if record else None))
    data = _measurements(run.settings, day, revision, run.mechanism_of(day, revision), measured)
    if hashlib.sha256(data).hexdigest() != digest:
        raise LedgerError(
            f"the file of the measurements of {day} is gone, and this version or this configuration makes "
            "other bytes of them: bring trusted/staging or the published file back from a copy"
        )
    return data


def _measurements(
    settings: Settings, day: date, revision: int, mechanism: Mechanism, measured: Measured
) -> bytes:
    from optstream.catalogue.measurements.measurements_file import encode_measurements  # only where wanted

    return encode_measurements(
        measured,
        mechanism,
        period=day,
        revision=revision,
        rounding=settings.published.rounding,
        least_units=settings.least_units,
    )


def _errors(day: date, release: Release) -> tuple[bytes, ErrorsOf] | None:
    """The file of a release's errors, and which they are: the whole ones where they are known."""
    known: tuple[tuple[ErrorsOf, CovarianceOfSums | None], ...] = (
        ("whole", release.errors_together),
        ("noise", release.noise_together),
    )
    for of, together in known:
        if together is not None and release.tree is not None:
            terms = error_terms(together, release.tree, release.values.shape[1])
            if terms is not None:
                return encode_errors(terms, release.tree.nodes, day, of), of
    return None
