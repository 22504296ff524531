"""The files that are published beside a day's release: its measurements, where wanted, and its errors.

Functions of the stored measurements and the configuration: what raw state the trusted folder has is not in
the stored measurements, and so never in a file.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.catalogue import ReleaseStatement, StagedRelease, StatedErrors, StatedMeasurements
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import LARGEST_ERRORS, errors_file
from optstream.catalogue.measurements.measurements_file import encode_measurements
from optstream.catalogue.reading.read import read_beside
from optstream.catalogue.statements.stated_files import ErrorsOf
from optstream.catalogue.sums.errors_parquet import encode_errors
from optstream.errors import LedgerError, OptStreamError
from optstream.estimation.error_terms import MOST_TERMS, TOLERANCE, ErrorTerms, error_terms
from optstream.estimation.gaussian_process.doubts.leaf_covariance import (
    MOST_CORRELATED,
    MOST_GROUPED,
    MOST_STEPS,
    most_nodes,
)
from optstream.estimation.noise_factor import factor_that_fits, separable_factor
from optstream.mechanisms import Release
from optstream.mechanisms.base import Mechanism as AnyMechanism
from optstream.stream import AggregationTree, Measured
from tasks.config import Settings
from tasks.release.records.published_rows import published_values
from tasks.release.run import Run
from tasks.storage.private_files import read_verified


@dataclass(frozen=True)
class FilesBeside:
    """What a release's statement says of the files beside it, and their bytes by their hashes."""

    measurements: StatedMeasurements | None = None
    errors: StatedErrors | None = None
    no_errors: str | None = None
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)


NO_FILES = FilesBeside()
MOST_NODES = 1024
"""Of which a separable factor's file is made: 524,800 pairs, less than a megabyte a day."""


def files_beside(
    settings: Settings,
    day: date,
    revision: int,
    mechanism: AnyMechanism,
    release: Release,
    later: Sequence[date] = (),
) -> FilesBeside:
    """The files beside a release, as wanted and as known. later: the days that a new estimate is made of."""
    found = FilesBeside()
    if settings.published.measurements:
        data = _measurements(settings, day, revision, mechanism, release.measured)
        digest = hashlib.sha256(data).hexdigest()
        found = FilesBeside(StatedMeasurements(digest, tuple(later)), data={digest: data})
    if not settings.published.errors:
        return replace(found, no_errors="[published] errors is false")
    if settings.stream.period == "hour" and mechanism.revises:
        # a file tells of days before, not of hours
        return replace(found, no_errors="its errors hang together with those of the hours before it")
    told = _errors(settings, day, mechanism, release)
    if told is None:
        return replace(found, no_errors=_why_none(mechanism, release))
    data, of = told
    digest = hashlib.sha256(data).hexdigest()
    return replace(found, errors=StatedErrors(digest, of), data={**found.data, digest: data})


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
    found: dict[str, bytes] = {}
    revision, folder = statement.revision, run.settings.staging_of(day, statement.revision)
    for _, digest in statement.beside:
        with suppress(LedgerError, OSError):
            found[digest] = read_verified(folder, digest)
            continue
        if statement.measurements and digest == statement.measurements.file_hash:
            found[digest] = _measurements_again(run, day, revision, digest)
            continue
        name = errors_file(day, revision, statement.vintage, digest)
        with suppress(OptStreamError, OSError):
            storage = open_storage(run.settings.published_folder)
            found[digest] = read_beside(storage, day, name, digest, LARGEST_ERRORS)
            continue
        with suppress(OptStreamError):
            data, _ = _errors(run.settings, day, run.mechanism_of(day, revision), again()) or (b"", "")
            if hashlib.sha256(data).hexdigest() == digest:
                found[digest] = data
    return replace(staged, beside=found)


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
    settings: Settings, day: date, revision: int, mechanism: AnyMechanism, measured: Measured
) -> bytes:
    return encode_measurements(
        measured,
        mechanism,
        period=day,
        revision=revision,
        rounding=settings.published.rounding,
        least_units=settings.least_units,
    )


def _errors(
    settings: Settings, day: date, mechanism: AnyMechanism, release: Release
) -> tuple[bytes, ErrorsOf] | None:
    """The file of a release's errors, the whole ones where they are known, and which they are; None where
    they cannot be worked out in floats: a day that is drawn does not wait for that.
    """
    tree, n_steps = release.tree, release.values.shape[1]
    if tree is None:
        return None
    of: ErrorsOf = "noise" if release.errors_together_of is None else "whole"
    terms = None
    with suppress(np.linalg.LinAlgError):
        if not mechanism.revises:
            terms = _noise_terms(mechanism, tree, release)
        elif (together := release.errors_together) is not None:
            terms = error_terms(together, tree, n_steps)
    if terms is None:
        return None
    added = published_values(settings, day, release) - release.unbounded
    return encode_errors(terms, tree.nodes, day, of, added), of


def _why_none(mechanism: AnyMechanism, release: Release) -> str:
    """Why a release has no file of errors, in public facts alone."""
    n_nodes = 0 if release.tree is None else len(release.tree.nodes)
    if mechanism.revises:
        if release.tree is not None and n_nodes > most_nodes(release.tree, release.values.shape[1]):
            most = (
                f"at most {MOST_GROUPED:,}, beside a margin or of more than {MOST_STEPS} steps of at most "
                f"{MOST_CORRELATED}"
            )
            return f"the hierarchy has {n_nodes:,} nodes: errors of sums are known of {most}"
        if release.errors_together is None:
            return "nothing was measured yet, or not of every leaf"
        return f"{MOST_TERMS} terms do not give its variances"
    if release.noise_standard_errors is None:
        return "the estimate is not linear in what was drawn, or no noise is in it"
    return (
        "the noise of earlier days or medians are in the values; or more than 2^24 products of drawn numbers "
        f"and values of leaves would be needed, of more than {MOST_NODES} nodes or at steps that differ"
    )


def _noise_terms(mechanism: AnyMechanism, tree: AggregationTree, release: Release) -> ErrorTerms | None:
    """How the noise of a linear estimate hangs together. Days that were measured at the same steps with the
    same noise have the same terms, which are worked out once.
    """
    measured, known = release.measured, release.noise_standard_errors
    factor = factor_that_fits(measured, len(tree.leaf_indices))
    is_too_large = factor is separable_factor and len(tree.nodes) > MOST_NODES
    if known is None or factor is None or is_too_large:
        return None
    if not mechanism.adaptive:
        with suppress(OptStreamError):
            found = _terms_of(mechanism, tree, _without_values(measured).to_bytes())
            if found is not None and _has_these_errors(found, known):
                return found
    together = mechanism.noise_factor(measured)
    return None if together is None else error_terms(together, tree, measured.n_steps)


@lru_cache(maxsize=8)
def _terms_of(mechanism: AnyMechanism, tree: AggregationTree, pattern: bytes) -> ErrorTerms | None:
    measured = Measured.from_bytes(pattern)
    together = mechanism.noise_factor(measured)
    return None if together is None else error_terms(together, tree, measured.n_steps)


def _without_values(measured: Measured) -> Measured:
    """What was measured when, and how noisily: nothing of the day."""
    values = tuple(np.zeros_like(np.asarray(one)) for one in measured.answers.values)
    return replace(
        measured,
        first_step=0,
        points=np.zeros_like(np.asarray(measured.points)),
        answers=replace(measured.answers, values=values),
        spends=(),
        state=None,
        before=None,
        parts=tuple(_without_values(part) for part in measured.parts),
    )


def _has_these_errors(terms: ErrorTerms, known: NDArray[np.float64]) -> bool:
    found = np.einsum("rn,rtt->nt", terms.of_each(), terms.steps)
    return found.shape == known.shape and bool(np.allclose(found, known**2, rtol=2.0 * TOLERANCE))
