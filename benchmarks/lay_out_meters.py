"""Lay half-hourly household meters out as daily metered dumps, one a zone.

    python benchmarks/lay_out_meters.py --data FILE --from 2013-02-01 --to 2013-02-07 --into DUMPS

FILE has the columns customer_id, timestamp_local (wall clock) and energy_kwh. It says nothing of where a
household lives, so each is put into one of four zones, zone-0 to zone-3, by a hash of its name, for good.
With --configuration METERS.toml it also writes a configuration that reads the dumps. It is there to run the
metered path: among 50 households the noise that protects one of them hides the others too.
"""

import json
import sys
from datetime import date
from pathlib import Path

import polars as pl

from benchmarks.lay_out import command_line, read_days, write_days
from tasks.load_shapes import stable_hash

ZONES = ("zone-0", "zone-1", "zone-2", "zone-3")
CONFIGURATION = """\
# OptStream: a nightly private release of metered household electricity, kWh a half-hour.

[stream]
name = "household-meters"
step = "30min"
time_zone = "Australia/Sydney"
day = "fixed"                   # the meters have the same 48 slots on every local day

[mechanism]
name = "OptStream"

[privacy]
epsilon = "1"
population = "trial-households"
window = 48
alpha = "6"                     # kWh: the whole of a reading, so that presence is protected too
resolution = "0.001"            # kWh
bounds = ["0", "6"]             # kWh in a step; beyond them a reading is clamped

[hierarchy.parents]
town = ""
zone-0 = "town"
zone-1 = "town"
zone-2 = "town"
zone-3 = "town"

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
marker = "_SUCCESS"

[published]
folder = "published"
value = "energy_kwh"

[trusted]
folder = "trusted"

[ledger]
url = "sqlite:///trusted/ledger.sqlite"
"""


def lay_out_meters(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=zone-<number>/date=<day>/part-0.parquet and marker for every zone and day; count the new.

    Gaps stay gaps. A zone without a household on some day gets no dump on it. Raises DumpError (see
    `read_days`), or where another dump lies.
    """
    columns = ["customer_id", "timestamp_local", "energy_kwh"]
    rows = read_days(data, columns, first, last).sort("customer_id", "timestamp_local")
    # Through the text, so that a 32-bit value stays the decimal that was delivered.
    rows = rows.with_columns(
        pl.col("timestamp_local").alias("timestamp"),
        pl.col("energy_kwh").cast(pl.String).cast(pl.Float64),
        pl.col("customer_id").replace_strict(zones(rows["customer_id"])).alias("zone"),
    )
    return write_days(rows, "zone", into, ["customer_id", "timestamp", "energy_kwh"])


def zones(customers: pl.Series) -> dict[str, str]:
    """The zone of each customer, by name alone."""
    return {name: ZONES[stable_hash(name) % len(ZONES)] for name in customers.unique(maintain_order=True)}


def meters_configuration(dumps: Path) -> str:
    """A configuration that reads these dumps: metered, the four zones below one root."""
    return CONFIGURATION.format(folder=json.dumps(str(dumps)))


if __name__ == "__main__":
    sys.exit(
        command_line(
            "Lay household meters out as daily metered dumps, one a zone.",
            lay_out_meters,
            meters_configuration,
        )
    )
