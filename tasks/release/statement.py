"""The statement of a release, from configuration and spends."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from hashlib import sha256
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
    estimate_column,
    read_catalogue,
    read_staged,
)
from optstream.catalogue.backends import open_storage
from optstream.catalogue.measurements import encode_measurements
from optstream.catalogue.read import read_attachment, read_statement
from optstream.catalogue.rows import CUSTOMERS_ERROR
from optstream.catalogue.standard_errors import Replicates, encode_replicates, replicate_columns
from optstream.catalogue.statement import TREE, Consistency, Constraints, Known, noise_scales
from optstream.errors import LedgerError, OptStreamError, PublicationError
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.replicates import n_replicates
from optstream.estimation.rounding import rounded_units
from optstream.ledger import ReleaseRecord
from optstream.measurement.sums import scale_of
from optstream.mechanisms import Release
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import Measured, day_of, period_from
from tasks.config import Settings
from tasks.release.lineage import FOLDER, record_of_draw
from tasks.release.mechanism import Mechanism, long_spans_of
from tasks.release.run import Run
from tasks.trusted.files import read_verified


@dataclass(frozen=True)
class Estimate:
    """An estimate of stored measurements. later: the days after it that a new estimate is made of."""

    record: ReleaseRecord
    mechanism: Mechanism
    release: Release
    vintage: int = 0
    later: tuple[date, ...] = ()


# A release as rows, rounded so that published figures add up exactly.

MOST_NAMED = 1000  # nodes with wide bands
DIGITS = 6  # significant, of a published standard error: another processor's last bits make no other bytes


def published_rows(
    settings: Settings, day: date, release: Release, revision: int, vintage: int
) -> pl.DataFrame:
    """One row for every node and step, in the published columns: values rounded to add up, unknowns null."""
    tree, calendar = settings.tree_of(day), settings.calendar
    values = published_values(settings, day, release)[: settings.n_published(day)]
    n_nodes, n_steps = values.shape
    names = pl.Series(tree.nodes[:n_nodes])
    order = names.arg_sort().to_numpy()
    above = [tree.nodes[parent] if parent >= 0 else None for parent in tree.parents[:n_nodes]]
    of_node, of_step = np.tile(order, n_steps), np.repeat(np.arange(n_steps), n_nodes)

    def column(numbers: NDArray[np.float64]) -> pl.Series:
        ordered = np.broadcast_to(numbers[:n_nodes], values.shape)[order].T.ravel()
        return pl.Series(ordered, dtype=pl.Float64).fill_nan(None)

    def errors(numbers: NDArray[np.float64] | None) -> pl.Series:
        return column(known_errors(settings, numbers)).round_sig_figs(DIGITS)

    of_noise, of_model = error_columns(settings.published.value)
    bands = {}
    if settings.counts_known:
        low, high = release.bands or (np.full(1, np.nan),) * 2
        # a unit that rounding gave a node is in its band; unknown bands stay nan
        wide = np.minimum(low[:n_nodes], values), np.maximum(high[:n_nodes], values)
        bands = dict(zip(band_columns(settings.published.value), map(column, wide), strict=True))
        bands[estimate_column(settings.published.value)] = column(release.estimate).round_sig_figs(DIGITS)
    behind = {}
    if (found := customers_of(settings, day, release.measured)) is not None:
        behind = dict(zip((CUSTOMERS, CUSTOMERS_ERROR), map(column, found), strict=True))
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
            **behind,
            "revision": pl.repeat(revision, values.size, dtype=pl.Int32(), eager=True),
            "vintage": pl.repeat(vintage, values.size, dtype=pl.Int32(), eager=True),
        }
    )


def customers_of(
    settings: Settings, day: date, measured: Measured
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The customers behind each node, (n_nodes, 1), with standard errors; None where none were measured."""
    if measured.customers is None:
        return None
    tree, scale = settings.tree_of(day), _customers_scale(measured) or 0
    ones = np.ones((len(measured.customers), 1), dtype=np.int64)
    counts, n_leaves = (tree.add_up(one) for one in (np.array(measured.customers)[:, None], ones))
    return counts.astype(np.float64), np.sqrt(2.0 * n_leaves) * float(scale)


def _customers_scale(measured: Measured) -> Fraction | None:
    return next((scale_of(spend) for spend in measured.spends if spend.stage == CUSTOMERS), None)


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


# The files that are published next to a day's release: its measurements, where wanted, and its errors.


def _files(settings: Settings, estimate: Estimate) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The fields of a statement about the files, and their bytes by their hashes."""
    release, record, wanted = estimate.release, estimate.record, settings.published.replicates
    stated: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    if settings.published.measurements:
        data = _measurements(settings, record, estimate.mechanism, release.measured)
        digest = sha256(data).hexdigest()
        files[digest] = data
        stated["measurements"] = StatedMeasurements(file_hash=digest, later=estimate.later)
    replicates = _replicates(settings, period_from(record.period), release)
    if replicates is not None:
        data, n_drawn = encode_replicates(replicates), len(replicate_columns(replicates.rows))
        digest = sha256(data).hexdigest()
        files[digest] = data
        stated["errors"] = StatedErrors(file_hash=digest, of=replicates.of, replicates=n_drawn)
    elif not wanted:
        stated["no_errors"] = "published.replicates is 0"
    elif not n_replicates(wanted, *release.values.shape):
        n_nodes, n_steps = release.values.shape
        stated["no_errors"] = f"{n_nodes:,} nodes at {n_steps} steps are too many"
    elif release.standard_errors is None and release.noise_standard_errors is None:
        stated["no_errors"] = "the estimate is not linear in the measurements, or has no noise"
    else:
        stated["no_errors"] = (
            "nothing was measured yet, or its errors depend on the noise of earlier periods or on medians"
        )
    return stated, files


def read_kept(
    run: Run, day: date, revision: int, digest: str | None, again: Callable[[], Release]
) -> StagedRelease:
    """The staged release of this hash, with its files. Raises LedgerError if it is lost."""
    return with_files(run, read_staged(read_verified(run.settings.staging_of(day, revision), digest)), again)


def with_files(run: Run, staged: StagedRelease, again: Callable[[], Release]) -> StagedRelease:
    """A release with its files: staged, published or made again. Raises LedgerError if they are lost."""
    found, statement = dict[str, bytes](), staged.statement
    settings, day, revision = run.settings, statement.period, statement.revision
    for name, digest in statement.attachments:
        with suppress(LedgerError, OSError):
            found[digest] = read_verified(settings.staging_of(day, revision), digest)
            continue
        if statement.measurements and digest == statement.measurements.file_hash:
            record = run.record(day, revision)
            if record is not None:
                measured = run.measured(day, revision, record.measurements_hash)
                data = _measurements(settings, record, run.mechanism_of(day, revision), measured)
                found[digest] = data
            if record is None or sha256(data).hexdigest() != digest:
                raise LedgerError(
                    f"the file of the measurements of {day} is gone, and this version or this configuration "
                    "makes other bytes of them: bring trusted/staging or the published file back from a copy"
                )
            continue
        with suppress(OptStreamError, OSError):
            storage = open_storage(settings.published_folder)
            found[digest] = read_attachment(storage, day, digest, name)
            continue
        with suppress(OptStreamError):
            made = _replicates(settings, day, again())
            data = b"" if made is None else encode_replicates(made)
            if sha256(data).hexdigest() == digest:
                found[digest] = data
    return replace(staged, attachments=found)


def _measurements(
    settings: Settings, record: ReleaseRecord, mechanism: Mechanism, measured: Measured
) -> bytes:
    return encode_measurements(
        measured,
        mechanism,
        period=period_from(record.period),
        revision=record.revision,
        rounding=settings.published.rounding,
        least_units=settings.least_units,
    )


def _replicates(settings: Settings, day: date, release: Release) -> Replicates | None:
    """The replicates of a release, in the order of its rows; None where its errors are not known."""
    drawn = None
    with suppress(np.linalg.LinAlgError):
        drawn = release.replicates(settings.published.replicates)
    if drawn is None:
        return None
    n, first_step = settings.n_published(day), settings.calendar.step_of_day(day)
    nodes, (of, replicates) = settings.tree_of(day).nodes[:n], drawn
    return Replicates.labelled(day, of, nodes, release.estimate[:n], replicates[:, :n], first_step)


# The statement: facts recorded with the draw, and facts of the estimate.

INPUT = ("bounds", "metered")
"""Keys of how readings were taken in; absent in what earlier versions kept: then they are not recorded."""
OF_THE_DRAW = ("mechanism", "supplier_rounding", "epsilon_plan", "long_spans", *INPUT)
"""Keys of a statement whose configuration is that of the draw."""
OF_THE_ESTIMATE = ("covariates", TREE)
"""Keys of `mechanism` that are of each estimate, or that the ledger holds."""
ESTIMATED_BY = "estimated_by"
"""Key of `mechanism`: its parameters of the estimate, where they are others than at the draw."""


def statement_of(
    settings: Settings, day: date, release: Release, revision: int, vintage: int, **files: Any
) -> ReleaseStatement:
    """The statement in a release's footer and manifest: public facts only. files: the fields about files."""
    calendar, n_nodes = settings.calendar, settings.n_published(day)
    of_noise, of_model = (
        _known(known_errors(settings, errors)[:n_nodes])
        for errors in (release.noise_standard_errors, release.standard_errors)
    )
    bands = CountBands(known="none", estimate=True)
    if release.bands is not None:
        low, high = (edge[:n_nodes].mean(axis=1) for edge in release.bands)
        is_wide = high - low > release.values[:n_nodes].mean(axis=1)
        wide = tuple(settings.tree_of(day).nodes[place] for place in np.flatnonzero(is_wide)[:MOST_NAMED])
        bands = CountBands(known=_known(release.bands[0][:n_nodes]), estimate=True, wide=wide)
    constraints = None
    if release.kept is not None:
        facts = {json.dumps(fact.stated): fact.stated for fact in release.kept.facts}
        values = published_values(settings, day, release)
        missed = max(fact.missed(values) for fact in release.kept.facts)
        constraints = Constraints.rounded(tuple(facts.values()), release.kept, missed)
    return ReleaseStatement(
        stream=settings.stream.name,
        period=day,
        revision=revision,
        vintage=vintage,
        model=settings.model,
        mechanism={**settings.describe_mechanism(day), **_covariates(settings, release)},
        calibration="strict",
        epsilon_plan=settings.model.to_epsilon(release.epsilon + settings.reporting_epsilon(revision)),
        epsilon_own=settings.model.to_epsilon(release.epsilon_alone),
        customers_scale=_customers_scale(release.measured),
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
        bounds=settings.privacy.bounds,
        metered=settings.metered,
        constraints=constraints,
        published_levels=len(settings.published.levels) or None,
        **files,
    )


def described(
    settings: Settings, estimate: Estimate
) -> tuple[pl.DataFrame, ReleaseStatement, Mapping[str, bytes]]:
    """An estimate's rows, its statement, and its files by their hashes."""
    record, release, vintage = estimate.record, estimate.release, estimate.vintage
    day, revision = period_from(record.period), record.revision
    rows = published_rows(settings, day, release, revision, vintage)
    stated, files = _files(settings, estimate)
    # of the present configuration, which may plan with less, or have another rounding
    now = statement_of(settings, day, release, revision, vintage, **stated)
    return rows, _as_drawn(settings, record, now), files


def facts_of_draw(settings: Settings, day: date, revision: int, mechanism: Mechanism) -> dict[str, Any]:
    """The record of a draw, JSON-ready: its part of the statement, and its inputs."""
    return {
        "times": _times(settings, day),
        FOLDER: str(settings.input_folder),
        "mechanism": settings.describe_mechanism(day),
        "supplier_rounding": str(settings.input.supplier_rounding),
        "epsilon_plan": str(
            settings.model.to_epsilon(mechanism.epsilon + settings.reporting_epsilon(revision))
        ),
        "long_spans": [span.to_json() for span in long_spans_of(settings, day, revision)],
        "bounds": [str(bound) for bound in settings.privacy.bounds],
        "metered": settings.metered,
    }


def _as_drawn(settings: Settings, record: ReleaseRecord, now: ReleaseStatement) -> ReleaseStatement:
    """The statement with the facts of the draw as kept with it, staged or listed. Raises PublicationError."""
    draw = record_of_draw(settings, now.period, now.revision, record.measurements_hash)
    recorded = draw.stated()
    if recorded is None:
        if not now.vintage:
            return now.changed(bounds=None, metered=None)
        first = None
        with suppress(LedgerError, PublicationError):
            kept = read_verified(settings.staging_of(now.period, now.revision), record.staged_hash)
            first = StagedRelease(kept).statement
        recorded = (first or _listed(settings, now)).to_json()
    known: dict[str, Any] = {"supplier_rounding": "0", **dict.fromkeys(INPUT)} | {
        key: recorded[key] for key in OF_THE_DRAW if key in recorded
    }
    drawn = known.get("mechanism", now.mechanism)
    own, other = (
        {key: value for key, value in one.items() if key not in (*OF_THE_ESTIMATE, ESTIMATED_BY)}
        for one in (drawn, now.mechanism)
    )
    of_now = {key: now.mechanism[key] for key in OF_THE_ESTIMATE if key in now.mechanism}
    known["mechanism"] = {**own, **of_now, **({} if own == other else {ESTIMATED_BY: other})}
    try:
        return ReleaseStatement.read({**now.to_json(), **known})
    except PublicationError as error:
        raise draw.edited() from error


def changed_since_draw(settings: Settings, record: ReleaseRecord) -> str | None:
    """Why the present configuration or time zone data would estimate a day falsely, if they would."""
    day = period_from(record.period)
    recorded = record_of_draw(settings, day, record.revision, record.measurements_hash).stated()
    if not recorded:
        return None
    drawn, now = recorded.get("mechanism", {}), settings.describe_mechanism(day)
    for place, before, configured in (
        ("[mechanism] name", drawn.get("name"), now.get("name")),
        ("[features]", drawn.get("features"), now.get("features")),
        ("first and last step by the time zone data", recorded.get("times"), _times(settings, day)),
    ):
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
    given = {one.name: (one.source, one.publication_lag_days) for one in settings.covariates}
    others = {name: ("not configured now", one.lag_days) for name, one in used.items() if name not in given}
    found = []
    for name, (source, lag_days) in (given | others).items():
        text = json.dumps(used[name].to_document(), sort_keys=True) if name in used else None
        digest = "none" if text is None else sha256(text.encode()).hexdigest()
        facts = {"name": name, "source": source, "publication_lag_days": lag_days, "values_sha256": digest}
        found.append(facts)
    return {"covariates": found} if found else {}


def _known(errors: NDArray[np.float64]) -> Known:
    """Of how many values these standard errors are known."""
    finite = np.isfinite(errors)
    return "all" if finite.all() else "some" if finite.any() else "none"
