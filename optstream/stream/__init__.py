"""The stream: its tree, features, calendar, raw periods and measurements."""

from optstream.stream.calendar import Calendar, days_from
from optstream.stream.changes import DatedHierarchy, TreeChange, Unit
from optstream.stream.features import Feature
from optstream.stream.lattice import Lattice
from optstream.stream.measured import BlockSums, FeatureSums, FourierCoordinates, Measured
from optstream.stream.period import (
    Hour,
    day_of,
    follows,
    partition_of,
    period_from,
    period_from_partition,
)
from optstream.stream.private_period import PrivatePeriod
from optstream.stream.public_days import PublicDays
from optstream.stream.state import RawState, State
from optstream.stream.tree import AggregationTree

__all__ = [
    "AggregationTree",
    "BlockSums",
    "Calendar",
    "DatedHierarchy",
    "Feature",
    "FeatureSums",
    "FourierCoordinates",
    "Hour",
    "Lattice",
    "Measured",
    "PrivatePeriod",
    "PublicDays",
    "RawState",
    "State",
    "TreeChange",
    "Unit",
    "day_of",
    "days_from",
    "follows",
    "partition_of",
    "period_from",
    "period_from_partition",
]
