"""The dumps and the configuration of half-hourly household meters, from the public file of them."""

from datetime import date
from pathlib import Path

import polars as pl

from studies.benchmarks.inputs.fixture import metered
from studies.papers.data import read_rows
from tasks.operate.simulate import stable_hash, write_dump

ZONES = ("zone-0", "zone-1", "zone-2", "zone-3")


def lay_out_meters(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=zone-<number>/date=<day>/part-0.parquet and marker for every zone and day; count the new.

    The file says nothing of where a household lives, so each is put into one of four zones. Gaps stay gaps;
    a zone without a household on some day gets no dump on it. Raises DumpError as `read_rows`.
    """
    rows = read_rows(data, ["customer_id", "timestamp_local", "energy_kwh"], first, last)
    rows = rows.sort("customer_id", "timestamp_local").with_columns(
        pl.col("customer_id").replace_strict(zones(rows["customer_id"])).alias("zone")
    )
    dumps = rows.rename({"timestamp_local": "timestamp"}).group_by("zone", "day", maintain_order=True)
    columns = ["customer_id", "timestamp", "energy_kwh"]
    return sum(write_dump(into, str(zone), day, dump.select(columns)) for (zone, day), dump in dumps)


def meters_configuration(dumps: Path) -> str:
    """Return the configuration that reads the meters' dumps: the same 48 slots on every local day."""
    return metered(dumps, ZONES, "Australia/Sydney", "fixed")


def zones(customers: pl.Series) -> dict[str, str]:
    """Return the zone of each customer, by a hash of the name alone."""
    return {name: ZONES[stable_hash(name) % len(ZONES)] for name in customers.unique(maintain_order=True)}
