"""What a release says about itself, from configuration and spends."""

import hashlib
import json
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optstream
from optstream.catalogue import CountBands, ReleaseStatement, StandardErrors
from optstream.catalogue.statements.consistency import rounded
from optstream.catalogue.statements.noise_scales import noise_scales
from optstream.catalogue.statements.standard_errors import Known
from optstream.mechanisms import Release
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.planning.long_spans import long_spans_of
from tasks.release.records.files_beside import NO_FILES, FilesBeside
from tasks.release.records.published_rows import known_errors


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
