"""Adds numpy's Laplace noise to each day's dumps and writes a file: a release without any guarantee.

The peer of `backfill`: no validation, ledger, exact noise, consistency or catalogue.

    python -m studies.benchmarks.peers.bare_script DUMPS VALUE-COLUMN INTO FIRST LAST
"""

import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

SCALE = 10.0


def main(dumps: str, value: str, into: str, first: str, last: str) -> None:
    """Read region=…/date=…/part-0.parquet below `dumps` for the days first to last; write a file a day."""
    generator = np.random.default_rng()
    Path(into).mkdir(parents=True, exist_ok=True)
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    while day <= end:
        noisy = {}
        for file in sorted(Path(dumps).glob(f"region=*/date={day}/part-0.parquet")):
            values = pl.read_parquet(file, hive_partitioning=False)[value].to_numpy()
            noisy[file.parts[-3]] = values + generator.laplace(0, SCALE, values.size)
        frame = pl.DataFrame(noisy).with_columns(nation=pl.sum_horizontal(pl.all()))
        frame.write_parquet(Path(into) / f"{day}.parquet")
        day += timedelta(days=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
