"""One published day as the answers need it: whole units, and how its errors hang together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue.statements.standard_errors import error_columns
from optstream.catalogue.sums.errors_parquet import DayErrors
from optstream.errors import ParameterError

Floats = NDArray[np.float64]
LARGEST_SUM = 2.0**53
"""Units up to which sums of floats are exact."""


@dataclass(frozen=True, eq=False)
class DayFigures:
    """A day's published values, at the steps that have a time.

    Attributes:
        day: The local day.
        nodes: Names.
        levels: Depths of the nodes, the root's 0.
        steps: Numbers of the steps within the day, rising.
        timestamps: Their starts, in UTC.
        units: (n_nodes, n_steps), whole numbers of the resolution.
        noise: (n_nodes, n_steps), standard errors of the noise alone in the unit of the values; nan where not
            known.
        whole: Of the whole error, likewise.
        errors: How the errors hang together; None where that is not published.
        first_step: Number of the release's first step within the day: of an hour's not 0.
        end_step: Of the step after its last one, steps without a time included.
    """

    day: date
    nodes: tuple[str, ...]
    levels: tuple[int, ...]
    steps: NDArray[np.int64]
    timestamps: pl.Series
    units: Floats
    noise: Floats
    whole: Floats
    errors: DayErrors | None = None
    first_step: int = 0
    end_step: int = 0

    def parts_of(self, nodes: Sequence[str]) -> tuple[Floats | None, Floats | None]:
        """Return the errors of some of the day's nodes in independent parts, of the noise and of the whole
        error.

        (n_nodes, n_steps, n_parts) each; None where not known.
        """
        if self.errors is None or not set(nodes) <= set(self.errors.nodes):
            return None, None
        at = [self.errors.nodes.index(node) for node in nodes]
        terms = self.errors.terms
        own = self.steps - self.first_step
        steps = terms.steps[:, own][:, :, own]
        together = np.einsum("rn,rst->nst", terms.of_each()[:, at], steps, optimize=True)
        spectrum, basis = np.linalg.eigh(together)
        parts = basis * np.sqrt(np.maximum(spectrum, 0.0))[:, None, :]
        if self.errors.of == "noise":
            return parts, None
        return (parts if np.array_equal(self.noise, self.whole) else None), parts

    @property
    def days_independent(self) -> bool:
        """Whether the errors of this day and of others are independent: not where days are learned from."""
        return self.errors is not None and not self.errors.terms.earlier.size


def figures_of(
    rows: pl.DataFrame, value_column: str, resolution: Fraction, errors: DayErrors | None = None
) -> DayFigures:
    """Return the figures of one published day: nodes in the order of their names as bytes, without slots that
    the day does not have.

    rows: of the day, every node at every step, as `read_published` has them. resolution: of which every value
    is a multiple, in their unit. Raises ParameterError for values too large for their sums to be exact.
    """
    timed = rows.filter(pl.col("timestamp").is_not_null()).sort("node", "step")
    nodes = timed.group_by("node", maintain_order=True).agg(pl.col("level").first())
    first = timed.head(timed.height // max(nodes.height, 1))
    shape = nodes.height, first.height
    units = np.rint(timed[value_column].to_numpy() * (resolution.denominator / resolution.numerator))
    if np.abs(units).sum() >= LARGEST_SUM:
        raise ParameterError("published values are too large for questions: their sums would not be exact")
    single = [
        timed[name].cast(pl.Float64).fill_null(float("nan")).to_numpy().reshape(shape)
        if name in timed.columns
        else np.full(shape, np.nan)
        for name in error_columns(value_column)
    ]
    return DayFigures(
        day=rows["date"][0],
        nodes=tuple(nodes["node"]),
        levels=tuple(nodes["level"]),
        steps=first["step"].cast(pl.Int64).to_numpy(),
        timestamps=first["timestamp"],
        units=units.reshape(shape),
        noise=single[0],
        whole=single[1],
        errors=errors,
        first_step=int(rows["step"].to_numpy().min()),
        end_step=int(rows["step"].to_numpy().max()) + 1,
    )
