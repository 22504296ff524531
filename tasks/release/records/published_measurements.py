"""The file of a day's measurements, where they are published beside its release (docs/data/measurements.md).

A function of the stored measurements and the configuration: what raw state the trusted folder has is not in
the stored measurements, and so never in the file.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date

from optstream.catalogue import ReleaseStatement, StagedRelease, StatedMeasurements
from optstream.errors import LedgerError
from optstream.mechanisms.base import Mechanism
from optstream.stream import Measured
from tasks.config import Settings
from tasks.release.run import Run
from tasks.storage.private_files import read_verified

Published = tuple[bytes, StatedMeasurements]


def published_measurements(
    settings: Settings,
    day: date,
    revision: int,
    mechanism: Mechanism,
    measured: Measured,
    later: Sequence[date] = (),
) -> Published | tuple[None, None]:
    """The file of a day's measurements and what the statement says of it; nothing where it is not wanted.

    later: the days after it that a new estimate is made of.
    """
    if not settings.published.measurements:
        return None, None
    data = _encoded(settings, day, revision, mechanism, measured)
    return data, StatedMeasurements(hashlib.sha256(data).hexdigest(), tuple(later))


def with_measurements(
    run: Run, day: date, revision: int, staged: StagedRelease, statement: ReleaseStatement
) -> StagedRelease:
    """What was staged, with the file of measurements that its statement names: kept in the staging, or made
    again, whatever is configured by now.

    Raises LedgerError if neither has those bytes.
    """
    if statement.measurements is None:
        return staged
    digest = statement.measurements.file_hash
    with suppress(LedgerError, OSError):
        return replace(staged, measurements=read_verified(run.settings.staging_of(day, revision), digest))
    record = run.ledger.find(run.stream, day.isoformat(), revision)
    folder = run.settings.measurements_of(day, revision)
    measured = Measured.from_bytes(read_verified(folder, record.measurements_hash if record else None))
    data = _encoded(run.settings, day, revision, run.mechanism_of(day, revision), measured)
    if hashlib.sha256(data).hexdigest() != digest:
        raise LedgerError(
            f"the file of the measurements of {day} is gone, and this version or this configuration makes "
            "other bytes of them: bring trusted/staging or the published file back from a copy"
        )
    return replace(staged, measurements=data)


def _encoded(settings: Settings, day: date, revision: int, mechanism: Mechanism, measured: Measured) -> bytes:
    from optstream.catalogue.measurements.measurements_file import encode_measurements  # only where wanted

    return encode_measurements(
        measured,
        mechanism,
        period=day,
        revision=revision,
        rounding=settings.published.rounding,
        least_units=settings.least_units,
    )
