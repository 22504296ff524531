"""No reading on a disk where memory is short."""

import json
from functools import cache

import polars as pl

LEAST_SPILLED = {"POLARS_OOC_SPILL_MIN_BYTES": str(2**63 - 1)}
"""No frame is so large."""


@cache
def forbid_spilling() -> None:
    """Keep rows that Polars holds off the disk from now on, here and in processes that this one starts.

    Where four fifths of the memory are taken, Polars writes rows in clear below /var/tmp, and a process that
    is killed leaves them there. Without that, a dump that is too large ends the process that reads it.
    """
    pl.Config.load(json.dumps({"environment": LEAST_SPILLED}))
