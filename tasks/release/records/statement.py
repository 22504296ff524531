"""What a release says about itself, from configuration and spends."""

import hashlib
import json
from collections.abc import Mapping
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
from optstream.catalogue.statements.statement import TREE
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import ReleaseRecord
from optstream.mechanisms import Release
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.planning.long_spans import long_spans_of
from tasks.release.build_mechanism import Mechanism
from tasks.release.guards.input_hashes import FOLDER, edited_record, stated_of_draw
from tasks.release.records.files_beside import NO_FILES, FilesBeside
from tasks.release.records.published_rows import known_errors
from tasks.storage.private_files import read_verified

MECHANISM, ROUNDING = "mechanism", "supplier_rounding"
INPUT = ("bounds", "metered")
"""Keys of how readings were taken in; absent in what earlier versions kept: then they are not recorded."""
NAME, FEATURES = "name", "features"
TIMES = "times"
OF_THE_DRAW = (MECHANISM, ROUNDING, "epsilon_plan", "long_spans", *INPUT)
"""Keys of a statement whose configuration is that of the draw."""
COVARIATES = "covariates"
OF_THE_ESTIMATE = (COVARIATES, TREE)
"""Keys of `mechanism` that are of each estimate, or that the ledger holds."""
ESTIMATED_BY = "estimated_by"
"""Key of `mechanism`: its parameters of the estimate, where they are others than at the draw."""


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
        calibration="strict",
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
        bounds=settings.privacy.bounds,
        metered=settings.metered,
    )


def told_of_draw(settings: Settings, day: date, revision: int, mechanism: Mechanism) -> dict[str, Any]:
    """What a statement says of a draw by the configuration of now, which is to be kept with it, and what it
    was drawn of: JSON-ready.
    """
    return {
        TIMES: _times(settings, day),
        FOLDER: str(settings.input_folder),
        MECHANISM: settings.describe_mechanism(day),
        ROUNDING: str(settings.input.supplier_rounding),
        "epsilon_plan": str(settings.model.told_epsilon(mechanism.epsilon)),
        "long_spans": [span.to_document() for span in long_spans_of(settings, day, revision)],
        "bounds": [str(bound) for bound in settings.privacy.bounds],
        "metered": settings.metered,
    }


def as_drawn(settings: Settings, record: ReleaseRecord | None, now: ReleaseStatement) -> ReleaseStatement:
    """The statement of an estimate, with what is of its draw as it was kept then, or as the day's first one
    has it; of a first one of an earlier version, which kept nothing, as it is, less what nobody recorded.

    By now the configuration may plan with less of epsilon, or know of another rounding beside as much less
    alpha: no amendment, and neither is true of what was drawn before. record: of the day. Where what was
    staged first was purged, what readers have says the same of the draw. Raises PublicationError if they have
    nothing that is whole, and where the record of the draw was edited.
    """
    draw = settings, now.period, now.revision, record.measurements_hash if record else None
    told = stated_of_draw(*draw)
    if told is None:
        if not now.vintage:
            return replace(now, bounds=None, metered=None)
        digest = record.staged_hash if record else None
        told = (_staged_first(settings, digest, now) or _listed(settings, now)).to_document()
    known = {ROUNDING: "0", **dict.fromkeys(INPUT)} | {key: told[key] for key in OF_THE_DRAW if key in told}
    mechanism = _mechanism_drawn(known.get(MECHANISM, now.mechanism), now.mechanism)
    try:
        return ReleaseStatement.from_document({**now.to_document(), **known, MECHANISM: mechanism})
    except PublicationError as error:
        raise edited_record(*draw) from error


def _mechanism_drawn(drawn: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The mechanism as it was at the draw, and what of it is of the estimate of now."""
    own, other = (
        {key: value for key, value in one.items() if key not in (*OF_THE_ESTIMATE, ESTIMATED_BY)}
        for one in (drawn, now)
    )
    of_now = {key: now[key] for key in OF_THE_ESTIMATE if key in now}
    return {**own, **of_now, **({} if own == other else {ESTIMATED_BY: other})}


def meant_otherwise(settings: Settings, day: date, record: ReleaseRecord) -> str | None:
    """Why by the configuration and the time zone data of now what was measured of a day means something else,
    as far as the draw's record says; None where it means the same. Another mechanism, features that are cut
    otherwise, or other times of the steps make a false estimate of it.
    """
    told = stated_of_draw(settings, day, record.revision, record.measurements_hash) or {}
    drawn, now = told.get(MECHANISM, {}), settings.describe_mechanism(day)
    compared = [
        ("[mechanism] name", drawn.get(NAME), now.get(NAME)),
        ("[features]", drawn.get(FEATURES), now.get(FEATURES)),
        ("first and last step by the time zone data", told.get(TIMES), _times(settings, day)),
    ]
    for place, before, configured in compared if told else ():
        texts = json.dumps(before), json.dumps(configured)  # with their order
        if texts[0] != texts[1]:
            return f"{day} was drawn with {place} {texts[0]}, which would be {texts[1]} by now"
    return None


def _times(settings: Settings, day: date) -> list[str]:
    times = settings.calendar.utc_times(day)
    return [f"{times[0]}", f"{times[-1]}"]


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
    return {COVARIATES: found} if found else {}


def _hash_of(covariate: Covariate) -> str:
    return hashlib.sha256(json.dumps(covariate.to_document(), sort_keys=True).encode()).hexdigest()


def _known(errors: NDArray[np.float64]) -> Known:
    """Of how many values these standard errors are known."""
    finite = np.isfinite(errors)
    return "all" if finite.all() else "some" if finite.any() else "none"
