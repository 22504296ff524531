"""What a release says about itself, from configuration and spends."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import optstream
from optstream.catalogue import (
    CountBands,
    ReleaseStatement,
    StagedRelease,
    StandardErrors,
    StatedErrors,
    StatedMeasurements,
    band_columns,
    error_columns,
    read_catalogue,
)
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import LARGEST_ERRORS, errors_file
from optstream.catalogue.measurements import encode_measurements
from optstream.catalogue.read import read_beside, read_statement
from optstream.catalogue.replicates import (
    Replicates,
    encode_replicates,
    replicate_columns,
)
from optstream.catalogue.stage import statement_in
from optstream.catalogue.statement import TREE, Consistency, Constraints, Known, noise_scales
from optstream.errors import LedgerError, OptStreamError, PublicationError
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.replicates import n_replicates
from optstream.estimation.rounding import rounded_units
from optstream.ledger import ReleaseRecord
from optstream.mechanisms import Release
from optstream.mechanisms.base import Mechanism as AnyMechanism
from optstream.stream import Measured, day_of, period_from
from tasks.config import Settings
from tasks.plan.long_spans import long_spans_of
from tasks.release.inputs import FOLDER, record_of_draw
from tasks.release.mechanism import Mechanism
from tasks.release.run import Run
from tasks.trusted.files import read_verified

# A release as rows, rounded so that published figures add up exactly.

DIGITS = 6
"""Significant, of a published standard error: another processor's last bits make no other bytes."""


def published_rows(
    settings: Settings, day: date, release: Release, revision: int, vintage: int
) -> pl.DataFrame:
    """One row for every node and step, in the published columns: values rounded to add up, unknowns null."""
    tree, calendar = settings.tree_of(day), settings.calendar
    values = published_values(settings, day, release)
    n_nodes, n_steps = values.shape
    names = pl.Series(tree.nodes)
    order = names.arg_sort().to_numpy()
    above = [tree.nodes[parent] if parent >= 0 else None for parent in tree.parents]
    of_node, of_step = np.tile(order, n_steps), np.repeat(np.arange(n_steps), n_nodes)

    def column(numbers: NDArray[np.float64]) -> pl.Series:
        return pl.Series(np.broadcast_to(numbers, values.shape)[order].T.ravel(), dtype=pl.Float64)

    def errors(numbers: NDArray[np.float64] | None) -> pl.Series:
        return column(known_errors(settings, numbers)).fill_nan(None).round_sig_figs(DIGITS)

    of_noise, of_model = error_columns(settings.published.value)
    bands = {}
    if settings.counts_known:
        both = release.bands or (np.full(1, np.nan),) * 2
        # a unit that rounding gave a node is in its band; what is not known stays nan
        wide = np.minimum(both[0], values), np.maximum(both[1], values)
        named = zip(band_columns(settings.published.value), wide, strict=True)
        bands = {name: column(band).fill_nan(None) for name, band in named}
    stamps = pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {
            "date": pl.repeat(day_of(day), values.size, dtype=pl.Date(), eager=True),
            "step": pl.Series(of_step + calendar.step_of_day(day), dtype=pl.Int32),
            "timestamp": stamps.gather(of_step),
            "node": names.gather(of_node),
            "parent": pl.Series(above, dtype=pl.String).gather(of_node),
            "level": pl.Series(tree.depths[of_node], dtype=pl.Int32),
            settings.published.value: column(values),
            of_noise: errors(release.noise_standard_errors),
            of_model: errors(release.standard_errors),
            **bands,
            "revision": pl.repeat(revision, values.size, dtype=pl.Int32(), eager=True),
            "vintage": pl.repeat(vintage, values.size, dtype=pl.Int32(), eager=True),
        }
    )


def published_values(settings: Settings, day: date, release: Release) -> NDArray[np.float64]:
    """The values as they are published, (n_nodes, n_steps): rounded, each node the sum of its children."""
    resolution = settings.privacy.resolution
    units = rounded_units(
        release.values,
        settings.tree_of(day),
        resolution,
        settings.published.rounding,
        first_step=settings.calendar.first_step(day),
        least=settings.least_units,
    )
    # as floats: the product of two integers may not fit into 64 bits
    return units.astype(np.float64) * resolution.numerator / resolution.denominator


def known_errors(settings: Settings, errors: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Standard errors as published: nan where they, or the value itself, are not known; none stops a day."""
    if errors is None:
        return np.full(1, np.nan)
    least_unknown = math.sqrt(UNKNOWN) * float(settings.privacy.resolution) * (1 - 1e-9)
    return np.where((errors > 0) & (errors < least_unknown), errors, np.nan)


# The files that are published beside a day's release: its measurements, where wanted, and its errors.
#
# Functions of the stored measurements and the configuration: what raw state the trusted folder has is not in
# the stored measurements, and so never in a file.


@dataclass(frozen=True)
class FilesBeside:
    """What a release's statement says of the files beside it, and their bytes by their hashes."""

    measurements: StatedMeasurements | None = None
    errors: StatedErrors | None = None
    no_errors: str | None = None
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)


NO_FILES = FilesBeside()


def files_beside(
    settings: Settings,
    day: date,
    revision: int,
    mechanism: AnyMechanism,
    release: Release,
    later: Sequence[date] = (),
) -> FilesBeside:
    """The files beside a release, as wanted and as known. later: the days that a new estimate is made of."""
    found = NO_FILES
    if settings.published.measurements:
        data = _measurements(settings, day, revision, mechanism, release.measured)
        digest = hashlib.sha256(data).hexdigest()
        found = FilesBeside(StatedMeasurements(file_hash=digest, later=tuple(later)), data={digest: data})
    replicates = _replicates(settings, day, release)
    if replicates is None:
        return replace(found, no_errors=_why_none(settings, release))
    data, of = encode_replicates(replicates), replicates.of
    digest = hashlib.sha256(data).hexdigest()
    stated = StatedErrors(file_hash=digest, of=of, replicates=len(replicate_columns(replicates.rows)))
    return replace(found, errors=stated, data={**found.data, digest: data})


def with_files(
    run: Run,
    day: date,
    staged: StagedRelease,
    statement: ReleaseStatement,
    again: Callable[[], Release],
) -> StagedRelease:
    """What was staged, with its files: kept, published or made again. Raises LedgerError if they are lost."""
    found: dict[str, bytes] = {}
    revision, folder = statement.revision, run.settings.staging_of(day, statement.revision)
    for _, digest in statement.beside:
        with suppress(LedgerError, OSError):
            found[digest] = read_verified(folder, digest)
            continue
        if statement.measurements and digest == statement.measurements.file_hash:
            record = run.ledger.find(run.key(day, revision))
            drawn = record.measurements_hash if record else None
            measured = Measured.from_bytes(read_verified(run.settings.measurements_of(day, revision), drawn))
            data = _measurements(run.settings, day, revision, run.mechanism_of(day, revision), measured)
            if hashlib.sha256(data).hexdigest() != digest:
                raise LedgerError(
                    f"the file of the measurements of {day} is gone, and this version or this configuration "
                    "makes other bytes of them: bring trusted/staging or the published file back from a copy"
                )
            found[digest] = data
            continue
        name = errors_file(day, revision, statement.vintage, digest)
        with suppress(OptStreamError, OSError):
            storage = open_storage(run.settings.published_folder)
            found[digest] = read_beside(storage, day, name, digest, LARGEST_ERRORS)
            continue
        with suppress(OptStreamError):
            made = _replicates(run.settings, day, again())
            data = b"" if made is None else encode_replicates(made)
            if hashlib.sha256(data).hexdigest() == digest:
                found[digest] = data
    return replace(staged, beside=found)


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


def _replicates(settings: Settings, day: date, release: Release) -> Replicates | None:
    """The replicates of a release, in the order of its rows; None where its errors are not known."""
    tree, drawn = settings.tree_of(day), None
    with suppress(np.linalg.LinAlgError):
        drawn = release.replicates(settings.published.replicates)
    if drawn is None:
        return None
    first_step = settings.calendar.step_of_day(day)
    return Replicates.labelled(day, drawn[0], tree.nodes, release.unbounded, drawn[1], first_step)


def _why_none(settings: Settings, release: Release) -> str:
    """Why a release has no replicates, in public facts alone."""
    wanted, (n_nodes, n_steps) = settings.published.replicates, release.values.shape
    if not wanted:
        return "published.replicates is 0"
    if not n_replicates(wanted, n_nodes, n_steps):
        return f"{n_nodes:,} nodes at {n_steps} steps are too many"
    if release.standard_errors is None and release.noise_standard_errors is None:
        return "the estimate is not linear in the measurements, or has no noise"
    return "nothing was measured yet, or its errors depend on the noise of earlier periods or on medians"


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
    bands = CountBands(known="none" if release.bands is None else _known(release.bands[0]))
    return ReleaseStatement(
        stream=settings.stream.name,
        period=day,
        revision=revision,
        vintage=vintage,
        model=settings.model,
        mechanism={**settings.describe_mechanism(day), **_covariates(settings, release)},
        calibration="strict",
        epsilon_plan=settings.model.to_epsilon(release.epsilon),
        epsilon_own=settings.model.to_epsilon(release.epsilon_alone),
        noise=noise_scales(release.spends, settings.model.resolution),
        simulated=release.simulated,
        code_version=optstream.__version__,
        configuration_hash=settings.configuration_hash,
        value_column=settings.published.value,
        step_minutes=calendar.step_minutes,
        time_zone=calendar.time_zone,
        day=calendar.day,
        standard_errors=StandardErrors(noise=of_noise, posterior=of_model),
        supplier_rounding=settings.input.supplier_rounding,
        budget_alpha=settings.privacy.budget_alpha,
        long_spans=() if release.simulated else long_spans_of(settings, day, revision),
        consistency=None if release.optimality is None else Consistency.rounded(release.optimality),
        bands=bands if settings.counts_known else None,
        measurements=beside.measurements,
        errors=beside.errors,
        no_errors=beside.no_errors,
        bounds=settings.privacy.bounds,
        metered=settings.metered,
        constraints=_constraints(settings, day, release),
    )


def described(
    settings: Settings,
    record: ReleaseRecord,
    vintage: int,
    mechanism: AnyMechanism,
    release: Release,
    later: Sequence[date] = (),
) -> tuple[pl.DataFrame, ReleaseStatement, Mapping[str, bytes]]:
    """An estimate's rows, its statement, and the files beside it by hash. later: as `files_beside`."""
    day, revision = period_from(record.period), record.revision
    rows = published_rows(settings, day, release, revision, vintage)
    beside = files_beside(settings, day, revision, mechanism, release, later)
    # of a configuration that plans with less by now, or knows of another rounding
    now = statement_of(settings, day, release, revision, vintage, beside)
    return rows, as_drawn(settings, record, now), beside.data


def told_of_draw(settings: Settings, day: date, revision: int, mechanism: Mechanism) -> dict[str, Any]:
    """What is kept with a draw, JSON-ready: what a statement says of it, and what it was drawn of."""
    return {
        TIMES: _times(settings, day),
        FOLDER: str(settings.input_folder),
        MECHANISM: settings.describe_mechanism(day),
        ROUNDING: str(settings.input.supplier_rounding),
        "epsilon_plan": str(settings.model.to_epsilon(mechanism.epsilon)),
        "long_spans": [span.to_json() for span in long_spans_of(settings, day, revision)],
        "bounds": [str(bound) for bound in settings.privacy.bounds],
        "metered": settings.metered,
    }


def as_drawn(settings: Settings, record: ReleaseRecord | None, now: ReleaseStatement) -> ReleaseStatement:
    """The statement of an estimate, with its draw as kept then, staged or listed. Raises PublicationError."""
    digest = record.measurements_hash if record else None
    draw = record_of_draw(settings, now.period, now.revision, digest)
    told = draw.stated()
    if told is None:
        if not now.vintage:
            return now.changed(bounds=None, metered=None)
        first, folder = None, settings.staging_of(now.period, now.revision)
        with suppress(LedgerError, PublicationError):
            first = statement_in(read_verified(folder, record.staged_hash if record else None))
        told = (first or _listed(settings, now)).to_json()
    known: dict[str, Any] = {ROUNDING: "0", **dict.fromkeys(INPUT)} | {
        key: told[key] for key in OF_THE_DRAW if key in told
    }
    mechanism = _mechanism_drawn(known.get(MECHANISM, now.mechanism), now.mechanism)
    try:
        return ReleaseStatement.read({**now.to_json(), **known, MECHANISM: mechanism})
    except PublicationError as error:
        raise draw.edited() from error


def _mechanism_drawn(drawn: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The mechanism as it was at the draw, and what of it is of the estimate of now."""
    own, other = (
        {key: value for key, value in one.items() if key not in (*OF_THE_ESTIMATE, ESTIMATED_BY)}
        for one in (drawn, now)
    )
    of_now = {key: now[key] for key in OF_THE_ESTIMATE if key in now}
    return {**own, **of_now, **({} if own == other else {ESTIMATED_BY: other})}


def meant_otherwise(settings: Settings, day: date, record: ReleaseRecord) -> str | None:
    """Why the present configuration or time zone data would estimate a day falsely, if they would."""
    told = record_of_draw(settings, day, record.revision, record.measurements_hash).stated() or {}
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
    """The covariates, configured or used, each with the hash of the values that the estimate went by."""
    used = {one.name: one for one in release.covariates}
    hashes = {
        name: hashlib.sha256(json.dumps(one.to_document(), sort_keys=True).encode()).hexdigest()
        for name, one in used.items()
    }
    given = {one.name: (one.source, one.publication_lag_days) for one in settings.covariates}
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


def _constraints(settings: Settings, day: date, release: Release) -> Constraints | None:
    """The facts of the day as configured, and by how much the values as published miss them."""
    if release.kept is None:
        return None
    facts = {json.dumps(fact.stated): fact.stated for fact in release.kept.facts}
    values = published_values(settings, day, release)
    missed = max(fact.missed(values) for fact in release.kept.facts)
    return Constraints.rounded(tuple(facts.values()), release.kept, missed)


def _known(errors: NDArray[np.float64]) -> Known:
    """Of how many values these standard errors are known."""
    finite = np.isfinite(errors)
    return "all" if finite.all() else "some" if finite.any() else "none"
