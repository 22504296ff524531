"""A simulated day of household meters, metered and at any size, as dumps. Used by ingest.py.

What is laid out is made of integers, so that the exact sum of every cell is known beside it.
"""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DAY = date(2016, 2, 1)
START = datetime(2016, 2, 1, tzinfo=UTC)
STEPS = 48
FILES, ROW_GROUP = 4, 2**17
MOST_KWH = 6
ORDERS = ("customer", "step", "shuffled", "repeated")
"""Rows by customer and step; by step and customer; in no order; that, with 1 in 1,000 repeated or moved."""
EXPECTED = "expected_units.npy"
CONFIGURATION = """\
[stream]
name = "simulated-meters"
step = "30min"
time_zone = "UTC"
[mechanism]
name = "OptStream"
[privacy]
epsilon = "1"
population = "simulated-households"
window = 48
alpha = "6"
resolution = "0.001"
bounds = ["0", "6"]
[hierarchy.parents]
nation = ""
{parents}
[budget]
levels = ["1/2", "1/2"]
[sampling]
method = "equally_spaced"
n_samples = 10
[input]
folder = {folder}
schema = "metered"
timestamp = "timestamp"
customer = "customer_id"
value = "energy_kwh"
[published]
folder = "published"
value = "energy_kwh"
[trusted]
folder = "trusted"
[ledger]
url = "sqlite:///trusted/ledger.sqlite"
"""


@dataclass(frozen=True)
class Size:
    """regions; customers in each, who each have a reading at every one of the 48 steps; and the decimals of
    a reading in kWh (with 4, a tenth of them are ties of the resolution 0.001)."""

    regions: int = 12
    customers: int = 52_084
    decimals: int = 3

    @property
    def rows(self) -> int:
        return self.regions * self.customers * STEPS


def lay_out(folder: Path, order: str, size: Size, seed: int) -> Path:
    """Write the dumps of one day, the exact sums that they hold, and a configuration; return the latter.

    A customer is 14 digits as text. A region is four files of row groups of 131,072 rows, and one more where
    rows are repeated: the last, and of the regions after a mover's own, so that none of its rows counts.
    """
    rng = np.random.default_rng(seed)
    people = rng.choice(9 * 10**13, size.regions * size.customers, replace=False, shuffle=False) + 10**13
    regions = [f"zone-{number}" for number in range(size.regions)]
    names = [pl.Series(np.sort(own)).cast(pl.String) for own in np.split(people, size.regions)]
    expected = np.empty((size.regions, STEPS), dtype=np.int64)
    for number, region in enumerate(regions):
        which = _arranged(order, size.customers, rng)
        mantissas = _readings(which % STEPS, size, rng)
        expected[number] = _exact_sums(which % STEPS, mantissas, size)
        rows = _frame(names[number], which, mantissas, size)
        home = folder / "dumps" / f"region={region}" / f"date={DAY}"
        home.mkdir(parents=True)
        each = -(-rows.height // FILES)
        for file in range(FILES):
            _write(rows[file * each : (file + 1) * each], home / f"part-{file}.parquet")
        if order == "repeated":
            movers = _again(names[number - 1], size, rng) if number else rows.clear()
            _write(pl.concat([_again(names[number], size, rng), movers]), home / "part-9.parquet")
        (home / "_SUCCESS").touch()
    np.save(folder / EXPECTED, expected)
    parents = "\n".join(f'{region} = "nation"' for region in regions)
    file = folder / "optstream.toml"
    file.write_text(CONFIGURATION.format(parents=parents, folder=json.dumps(str(folder / "dumps"))))
    return file


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
    return np.floor(kwh * 10**size.decimals).astype(np.int64)


def _exact_sums(steps: NDArray[np.int64], mantissas: NDArray[np.int64], size: Size) -> NDArray[np.int64]:
    """The sums of the readings rounded half up to the resolution 0.001, in integers."""
    unit = 10 ** (size.decimals - 3)
    sums = np.zeros(STEPS, dtype=np.int64)
    np.add.at(sums, steps, (2 * mantissas + unit) // (2 * unit))
    return sums


def _again(names: pl.Series, size: Size, rng: np.random.Generator) -> pl.DataFrame:
    """A thousandth of a region's customers once more, each at every step, with other readings."""
    few = rng.choice(len(names), max(len(names) // 1000, 1), replace=False)
    which = (few[:, None] * STEPS + np.arange(STEPS)).ravel()
    return _frame(names, which, _readings(which % STEPS, size, rng), size)


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
