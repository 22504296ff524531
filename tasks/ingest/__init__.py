"""From raw dumps to private periods: found, read, summed and measured for the contracts."""

from tasks.ingest.arrivals import Arrival, Dump, LateDumpError, arrivals_of, days_with_dumps, discover
from tasks.ingest.sums import IngestedDay, Reader, ingest

__all__ = [
    "Arrival",
    "Dump",
    "IngestedDay",
    "LateDumpError",
    "Reader",
    "arrivals_of",
    "days_with_dumps",
    "discover",
    "ingest",
]
