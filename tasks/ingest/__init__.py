"""From raw dumps to private periods: found, read, summed and measured for the contracts."""

from tasks.ingest.days import IngestedDay, ingest
from tasks.ingest.discover import Dump, LateDumpError, days_with_dumps, discover

__all__ = ["Dump", "IngestedDay", "LateDumpError", "days_with_dumps", "discover", "ingest"]
