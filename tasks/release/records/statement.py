"""What a release says about itself, from configuration and spends."""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optstream
from optstream.catalogue import CountBands, ReleaseStatement, StandardErrors, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.reading.columns import read_statement
from optstream.catalogue.stage import statement_in
from optstream.catalogue.statements.consistency import rounded
from optstream.catalogue.statements.noise_scales import noise_scales
from optstream.catalogue.statements.standard_errors import Known
from optstream.errors import LedgerError, PublicationError
from optstream.mechanisms import Release
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.planning.long_spans import long_spans_of
from tasks.release.records.files_beside import NO_FILES, FilesBeside
from tasks.release.records.published_rows import known_errors
from tasks.storage.private_files import read_verified


def statement_of(
    settings: Settings,
    day: date,
    release: Release,
    revision: int,
    vintage: int,
    beside: FilesBeside = NO_FILES,
) -> ReleaseStatement:
    """The statement in a release's footer and manifest: public facts only."""
    calendar = settings.calendar
    of_noise, of_model = (
        _known(known_errors(settings, errors))
        for errors in (release.noise_standard_errors, release.standard_errors)
    )
    bands = CountBands("none" if release.bands is None else _known(release.bands[0]))
    return ReleaseStatement(
        stream=settings.stream.name,
        period=day,
        revision=revision,
        vintage=vintage,
        model=settings.model,
        mechanism={**settings.describe_mechanism(day), **_covariates(settings, release)},
        calibration=settings.privacy.calibration,
        epsilon_plan=settings.model.told_epsilon(release.epsilon),
        epsilon_own=settings.model.told_epsilon(release.epsilon_alone),
        noise=noise_scales(release.spends),
        simulated=release.simulated,
        code_version=optstream.__version__,
        configuration_hash=settings.configuration_hash,
        value_column=settings.published.value,
        step_minutes=calendar.step_minutes,
        time_zone=calendar.time_zone,
        day=calendar.day,
        standard_errors=StandardErrors(of_noise, of_model),
        supplier_rounding=settings.input.supplier_rounding,
        budget_alpha=settings.privacy.budget_alpha,
        long_spans=() if release.simulated else long_spans_of(settings, day, revision),
        optimality=None if release.optimality is None else rounded(release.optimality),
        bands=bands if settings.counts_known else None,
        measurements=beside.measurements,
        errors=beside.errors,
        no_errors=beside.no_errors,
    )


def as_drawn(settings: Settings, digest: str | None, now: ReleaseStatement) -> ReleaseStatement:
    """The statement of a new estimate, with what is of its draw as the day's first one has it.

    By now the configuration may plan with less of epsilon, or know of another rounding beside as much less
    alpha: no amendment, and neither is true of what was drawn before. digest: of what was staged first; where
    that was purged, what readers have says the same of the draw. Raises PublicationError if they have nothing
    that is whole.
    """
    first = _staged_first(settings, digest, now) or _listed(settings, now)
    return replace(
        now,
        epsilon_plan=first.epsilon_plan,
        supplier_rounding=first.supplier_rounding,
        long_spans=first.long_spans or now.long_spans,
    )


def _staged_first(settings: Settings, digest: str | None, now: ReleaseStatement) -> ReleaseStatement | None:
    with suppress(LedgerError, PublicationError):
        return statement_in(read_verified(settings.staging_of(now.period, now.revision), digest))
    return None


def _listed(settings: Settings, now: ReleaseStatement) -> ReleaseStatement:
    place = open_storage(settings.published_folder)
    entry = read_catalogue(place).entry(now.period)
    if entry is None or entry.revision != now.revision:
        raise PublicationError(
            f"{now.period} is not listed, and what was staged is gone: `optstream publish {now.period}` "
            "puts it back; it has its new estimate after that"
        )
    return read_statement(place, entry)


def _covariates(settings: Settings, release: Release) -> dict[str, Any]:
    """The covariates as configured, each with the hash of the values that the estimate went by, "none" where
    it went without; then others that it went by, of stored measurements from when they were configured.
    Nothing where there are neither.
    """
    used = {one.name: one for one in release.covariates}
    hashes = {name: _hash_of(one) for name, one in used.items()}
    given = {one.name: (one.source, one.publication_lag_days) for one in settings.covariates.given}
    others = {name: ("not configured now", one.lag_days) for name, one in used.items() if name not in given}
    found = [
        {
            "name": name,
            "source": source,
            "publication_lag_days": lag_days,
            "values_sha256": hashes.get(name, "none"),
        }
        for name, (source, lag_days) in (given | others).items()
    ]
    return {"covariates": found} if found else {}


def _hash_of(covariate: Covariate) -> str:
    return hashlib.sha256(json.dumps(covariate.to_document(), sort_keys=True).encode()).hexdigest()


def _known(errors: NDArray[np.float64]) -> Known:
    """Of how many values these standard errors are known."""
    finite = np.isfinite(errors)
    return "all" if finite.all() else "some" if finite.any() else "none"
