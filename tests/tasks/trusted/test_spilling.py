"""Rows of a dump stay off the disk where memory is short."""

import os
import subprocess
import sys

import polars as pl

from tests.tasks.conftest import DAY

READ = """
import sys
from datetime import date
from pathlib import Path
from tasks.config import load_settings
from tasks.ingest import discover, ingest
if "spill" in sys.argv[3:]:
    from tasks.ingest import formats as files
    files.forbid_spilling = lambda: None
settings = load_settings(Path(sys.argv[1]))
(read,) = ingest(settings, list(discover(settings, [date.fromisoformat(sys.argv[2])]).values()))
print(read.metrics["rows"].sum())
"""
CUSTOMERS = 300
SHORT = {
    "POLARS_OOC_MEMORY_BUDGET_MB": "1",
    "POLARS_OOC_DRIFT_THRESHOLD": "1",
    "POLARS_OOC_SPILL_MIN_BYTES": "1",
}
"""As if the memory were full, whatever this process has read before."""


def test_rows_are_spilled_by_polars_and_not_by_us(small, tmp_path):
    """Who repeats a row is read again by name, with all of the customer's rows."""
    stream = small(schema="metered")
    rows = stream.metered("84", 1.0)
    crowd = pl.concat(
        rows.with_columns(pl.lit(f"c{number}").alias("customer_id")) for number in range(CUSTOMERS)
    )
    stream.write("84", pl.concat([crowd, crowd]))
    stream.write("11", stream.metered("11", 1.0))
    spilled = {}
    for how in ("spill", ""):
        place = tmp_path / f"place {how}"
        said = subprocess.run(
            [sys.executable, "-c", READ, str(stream.settings.file), str(DAY), how],
            env=os.environ | SHORT | {"POLARS_OOC_SPILL_DIR": str(place)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert int(said) > len(crowd)
        spilled[how] = place.exists()
    assert spilled == {"spill": True, "": False}
