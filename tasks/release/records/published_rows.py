"""A release as rows, rounded so that published figures add up exactly."""

import math
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import band_columns, error_columns
from optstream.estimation.hierarchy.rounding import rounded_units
from optstream.estimation.holding import UNKNOWN
from optstream.mechanisms import Release
from optstream.stream import day_of
from tasks.config import Settings

DIGITS = 6
"""Significant, of a published standard error: another processor's last bits make no other bytes."""


def published_rows(
    settings: Settings, day: date, release: Release, revision: int, vintage: int
) -> pl.DataFrame:
    """One row for every node and step, in the published columns and their order: by step, then by name.

    Every node is rounded up or down to a multiple of the resolution, such that it is the sum of its children
    (`rounded_units`): whoever adds up the file gets the file. Standard errors are of the estimate before
    that, at every node, and a band holds the published value; what is not known is null.
    """
    tree, calendar = settings.tree_of(day), settings.calendar
    values = published_values(settings, day, release)
    n_nodes, n_steps = values.shape
    names = pl.Series(tree.nodes)
    order = names.arg_sort().to_numpy()
    above = [tree.nodes[parent] if parent >= 0 else None for parent in tree.parents]
    parents = pl.Series(above, dtype=pl.String)
    of_node = np.tile(order, n_steps)
    of_step = np.repeat(np.arange(n_steps), n_nodes)

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
        columns = zip(band_columns(settings.published.value), wide, strict=True)
        bands = {name: column(band).fill_nan(None) for name, band in columns}
    stamps = pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {
            "date": pl.repeat(day_of(day), values.size, dtype=pl.Date(), eager=True),
            "step": pl.Series(of_step + calendar.step_of_day(day), dtype=pl.Int32),
            "timestamp": stamps.gather(of_step),
            "node": names.gather(of_node),
            "parent": parents.gather(of_node),
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
    """Standard errors as they are published: nan where they are not known, or where nothing is known of the
    value itself. A figure that no standard error can be must not keep a day from being published.
    """
    if errors is None:
        return np.full(1, np.nan)
    least_unknown = math.sqrt(UNKNOWN) * float(settings.privacy.resolution) * (1 - 1e-9)
    return np.where((errors > 0) & (errors < least_unknown), errors, np.nan)
