"""Published streams of which one is the sum of the others, read together and brought to agree: free."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from optstream.catalogue.backends import Location, open_storage
from optstream.catalogue.reading.read import catalogue_reader
from optstream.catalogue.reading.selection import rows_of
from optstream.catalogue.signing import GivenKeys
from optstream.catalogue.statements.standard_errors import error_columns
from optstream.errors import ParameterError
from optstream.estimation.known_sum import agreeing, known_sum_weights, variances_of_agreeing

KEYS = ("date", "step", "timestamp", "node", "parent", "level")
SUSPECT = 3.0


@dataclass(frozen=True, eq=False)
class Combined:
    """Streams that agree with a known sum.

    Attributes:
        rows: Columns date, step, timestamp, node, parent, level; then for each stream its combined value by
            the stream's name, the standard deviation that noise gives it, `_noise_se`, the standard error of
            its whole error, `_se`, and `_published`, what the stream published. Days that all of them have.
            `_noise_se` is exact, for the noise of streams is independent, and null where one does not state
            its own. `_se` is the same where noise is all of every stream's error, else null: what models
            leave in doubt hangs together between products, in ways that no stream states.
        weights: By stream, the part of a disagreement that it took.
        disagreement: Root mean square of what was missing from the sum, beside what the stated errors
            explain: about 1 where the sum is true, far above where it is not.
        without_errors: Streams whose error is more than noise, or not known, at some of these values.
    """

    rows: pl.DataFrame
    weights: dict[str, float]
    disagreement: float
    without_errors: tuple[str, ...] = ()

    @property
    def is_suspect(self) -> bool:
        """Whether the published values miss the sum by far more than their errors."""
        return self.disagreement > SUSPECT


def combine_published(
    total: Location | str,
    parts: Sequence[Location | str],
    first: date | None = None,
    last: date | None = None,
    public_key: GivenKeys | None = None,
) -> Combined:
    """Return published streams of which one is the sum of the others, brought to agree in every cell.

    Each is moved by its part of all variance, the same everywhere, so what added up over the hierarchy still
    does. Reads published folders alone; costs no privacy. No lower bound is applied: a value may lie a
    little below what its stream bounds.

    Args:
        total: The published folder of the stream that is the sum.
        parts: Those of the others, at least two, in the same unit, hierarchy and steps.
        first: The first local day; None for the first that is published.
        last: The last local day; None for the last that is published.
        public_key: The publisher's, as for `read_published`.

    Returns:
        The values, and how they were combined.

    Raises:
        ParameterError: Fewer than two parts, a stream twice, no cell that all have, or errors that are not
            stated.
        PublicationError: As for `read_published`.
    """
    if len(parts) < 2:
        raise ParameterError("a total must have at least two parts")
    names, found = [], None
    for folder in (total, *parts):
        name, rows = _read(folder, first, last, public_key)
        if name in names:
            raise ParameterError(f"stream {name!r} is given twice: name each published folder once")
        names.append(name)
        found = rows if found is None else found.join(rows.drop("timestamp", "parent", "level"), on=_CELL)
    assert found is not None
    if found.is_empty():
        raise ParameterError(
            f"{', '.join(names)} must have days, steps and nodes in common; they have none: give the days "
            "that all of them published"
        )
    values, errors, noise, whole = (
        np.stack([found[f"{name}{suffix}"].to_numpy() for name in names])
        for suffix in ("_published", "_error", "_noise", "_whole")
    )
    weights = known_sum_weights(errors**2)
    missing = values[0] - values[1:].sum(axis=0)
    made = agreeing(values, weights)
    deviations = np.sqrt(variances_of_agreeing(noise**2, weights))
    is_noise = whole == noise
    errors_known = is_noise.all(axis=0)
    columns = []
    for name, value, deviation in zip(names, made, deviations, strict=True):
        columns += [
            pl.Series(name, value),
            pl.Series(f"{name}_noise_se", deviation).fill_nan(None),
            pl.Series(f"{name}_se", np.where(errors_known, deviation, np.nan)).fill_nan(None),
            found[f"{name}_published"],
        ]
    rows = found.select(KEYS).with_columns(columns).sort("date", "step", "node")
    explained = float(np.sqrt((errors**2).sum(axis=0).mean()))
    return Combined(
        rows,
        dict(zip(names, weights.tolist(), strict=True)),
        float(np.sqrt((missing**2).mean())) / explained,
        tuple(name for name, own in zip(names, is_noise, strict=True) if not own.all()),
    )


_CELL = ["date", "step", "node"]


def _read(
    folder: Location | str, first: date | None, last: date | None, key: GivenKeys | None
) -> tuple[str, pl.DataFrame]:
    """Return the stream's name, and its rows by that name: value, best known error, noise, whole error."""
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, key)()
    rows = rows_of(storage, catalogue, (), first, last, verify=key is not None)
    name, value = catalogue.stream, catalogue.value_column
    noise, model = (pl.col(one).cast(pl.Float64) for one in error_columns(value))
    return name, rows.select(
        *KEYS,
        pl.col(value).cast(pl.Float64).alias(f"{name}_published"),
        pl.coalesce(model, noise).alias(f"{name}_error"),
        noise.fill_null(float("nan")).alias(f"{name}_noise"),
        model.fill_null(float("nan")).alias(f"{name}_whole"),
    )
