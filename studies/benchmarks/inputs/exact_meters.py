"""Writes a simulated day of household meters, of any size, as dumps. Used by `ingest`.

It is made of integers, so that the exact sum of every cell is known.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from studies.benchmarks.inputs.fixture import STEPS, metered, stream

DAY = date(2016, 2, 1)
START = datetime(2016, 2, 1, tzinfo=UTC)
FILES, ROW_GROUP = 4, 2**17
MOST_KWH = 6
ORDERS = ("customer", "step", "shuffled", "repeated")
"""Rows by customer and step; by step and customer; in no order; that, with 1 in 1,000 repeated or moved."""
EXPECTED = "expected_units.npy"


@dataclass(frozen=True)
class Size:
    """How much is written. customers: in each region; each has a reading at every one of the 48 steps.

    decimals: of a reading in kWh; with 4, a tenth of the readings are ties of the resolution 0.001.
    """

    regions: int = 12
    customers: int = 52_084
    decimals: int = 3

    @property
    def rows(self) -> int:
        """The number of readings, those that are repeated not counted."""
        return self.regions * self.customers * STEPS


def lay_out(folder: Path, order: str, size: Size, seed: int) -> Path:
    """Write the dumps of one day, the exact sums that they hold, and a configuration; return the latter.

    A customer is 14 digits as text. A region is four files of row groups of 131,072 rows. Where rows are
    repeated it is one more, read last: customers of the region itself, whose first rows count, and of the
    region before, who are then in two regions at a step and count in neither.
    """
    rng = np.random.default_rng(seed)
    people = rng.choice(9 * 10**13, size.regions * size.customers, replace=False, shuffle=False) + 10**13
    regions = [f"zone-{number}" for number in range(size.regions)]
    names = [pl.Series(np.sort(own)).cast(pl.String) for own in np.split(people, size.regions)]
    expected, before = np.empty((size.regions, STEPS), dtype=np.int64), None
    for number, region in enumerate(regions):
        which = _arranged(order, size.customers, rng)
        mantissas = _readings(which % STEPS, size, rng)
        expected[number] = _exact_sums(which % STEPS, mantissas, size)
        rows = _frame(names[number], which, mantissas, size)
        home = folder / "dumps" / f"region={region}" / f"date={DAY}"
        home.mkdir(parents=True)
        each = -(-rows.height // FILES)
        for part in range(FILES):
            _write(rows[part * each : (part + 1) * each], home / f"part-{part}.parquet")
        if order == "repeated":
            again, _ = _again(names[number], size, rng)
            if before is not None:
                moved, movers = _again(names[number - 1], size, rng)
                own = np.isin(before[0] // STEPS, movers)
                expected[number - 1] -= _exact_sums(before[0][own] % STEPS, before[1][own], size)
                again = pl.concat([again, moved])
            _write(again, home / "part-9.parquet")
            before = which, mantissas
        (home / "_SUCCESS").touch()
    np.save(folder / EXPECTED, expected)
    return stream(folder, metered(folder / "dumps", regions)).file


def _arranged(order: str, customers: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each row customer * 48 + step."""
    everything = np.arange(customers * STEPS)
    if order == "customer":
        return everything
    if order == "step":
        return everything.reshape(customers, STEPS).T.ravel()
    return rng.permutation(everything)


def _readings(steps: NDArray[np.int64], size: Size, rng: np.random.Generator) -> NDArray[np.int64]:
    """Skewed, with a daily swing, in units of the last decimal."""
    swing = 0.15 + 0.1 * np.sin(steps * (2 * np.pi / STEPS))
    kwh = np.minimum(rng.gamma(1.5, size=len(steps)) * swing, MOST_KWH)
    units: NDArray[np.int64] = np.floor(kwh * 10**size.decimals).astype(np.int64)
    return units


def _exact_sums(steps: NDArray[np.int64], mantissas: NDArray[np.int64], size: Size) -> NDArray[np.int64]:
    """The sums of the readings rounded half up to the resolution 0.001, in integers."""
    unit = 10 ** (size.decimals - 3)
    sums = np.zeros(STEPS, dtype=np.int64)
    np.add.at(sums, steps, (2 * mantissas + unit) // (2 * unit))
    return sums


def _again(names: pl.Series, size: Size, rng: np.random.Generator) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """A thousandth of a region's customers once more, each at every step, with other readings; and who."""
    few = rng.choice(len(names), max(len(names) // 1000, 1), replace=False)
    which = (few[:, None] * STEPS + np.arange(STEPS)).ravel()
    return _frame(names, which, _readings(which % STEPS, size, rng), size), few


def _frame(
    names: pl.Series, which: NDArray[np.int64], mantissas: NDArray[np.int64], size: Size
) -> pl.DataFrame:
    stamps = pl.Series(which % STEPS) * timedelta(minutes=30) + START
    return pl.DataFrame(
        {
            "customer_id": names.gather(which // STEPS),
            "timestamp": stamps.cast(pl.Datetime("us", "UTC")),
            "energy_kwh": mantissas / 10**size.decimals,
        }
    )


def _write(rows: pl.DataFrame, file: Path) -> None:
    rows.write_parquet(file, row_group_size=ROW_GROUP)
