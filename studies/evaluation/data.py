"""What the experiments run on: arrays that the caller has read, and the days of them that are compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

Values = NDArray[np.float64]
STEPS_PER_DAY = 48
NATION = "nation"


@dataclass(frozen=True, eq=False)
class Load:
    """Days of load in MW.

    Args:
        values: (n_days, n_regions, 48) from `first_day` on.
        regions: Names, sorted.
        first_day: Day of the first row.
        holidays: Public ones, for mechanisms that know the calendar.
        origin: The day from which running steps are counted, whatever was read, so that a rule that drifts
            falls alike in any selection; None for `first_day`.
        covariates: Public series that explain part of it; their days are counted from the origin.

    Raises:
        ParameterError: For values of another shape.
    """

    values: Values
    regions: tuple[str, ...]
    first_day: date
    holidays: tuple[date, ...] = ()
    origin: date | None = None
    covariates: tuple[Covariate, ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[1:] != (len(self.regions), STEPS_PER_DAY):
            raise ParameterError(
                f"load must be (n_days, {len(self.regions)} regions, {STEPS_PER_DAY} steps); "
                f"got {self.values.shape}"
            )

    @property
    def tree(self) -> AggregationTree:
        """The nation above its regions."""
        return AggregationTree.from_parents({NATION: None} | dict.fromkeys(self.regions, NATION))

    @property
    def public_days(self) -> PublicDays:
        """The calendar of its running steps."""
        return PublicDays.from_date(self.origin or self.first_day, STEPS_PER_DAY, self.holidays)

    def running_day(self, row: int) -> int:
        """Return how many days after the origin a row's day is."""
        return row + (self.first_day - (self.origin or self.first_day)).days

    def index_of(self, day: date) -> int:
        """Return the row of a day. Raises ParameterError if it is not there."""
        row = (day - self.first_day).days
        if not 0 <= row < len(self.values):
            raise ParameterError(
                f"the load has no {day}; it has {len(self.values)} days from {self.first_day}"
            )
        return row

    def of_region(self, region: str) -> Values:
        """Return one region's load.

        Returns (n_days, 1, 48), in MW. Raises ParameterError for an unknown region.
        """
        if region not in self.regions:
            raise ParameterError(f"the load has no region {region!r}; it has {', '.join(self.regions)}")
        row = self.regions.index(region)
        return self.values[:, row : row + 1]


@dataclass(frozen=True, eq=False)
class Counts:
    """One finite series as FAST was made for, protected as a whole.

    Args:
        name: Of the series.
        unit: Of its values.
        values: (n_steps,).
        resolution: The unit in which they are counted, exact decimal.
        deviation: How far it is taken to move in a step: a round number that everybody knows.
        size: How large it is, likewise.
        cycle: Steps after which it repeats its shape.
        published_steps: How many are published at a time by a mechanism that learns from its past.
    """

    name: str
    unit: str
    values: Values
    resolution: str
    deviation: float
    size: float | None = None
    cycle: int | None = None
    published_steps: int | None = None


@dataclass(frozen=True, eq=False)
class StudyData:
    """Everything that the experiments read.

    Args:
        load: Of the year that is compared.
        counts: By name.
        forecast_region: The region whose stream is forecast.
        largest_move_mw: By how much a region moves from one half-hour to the next, at most: a figure of the
            year before, as public knowledge would be.
        usual_move_mw: The same on average.
        history: The load of several years, for studies of what a stream makes of its past; None where no cell
            asks.
    """

    load: Load
    counts: Mapping[str, Counts]
    forecast_region: str
    largest_move_mw: float
    usual_move_mw: float
    history: Load | None = None


@dataclass(frozen=True)
class Span:
    """Days that are compared, first to last, and days before them that are released too but not compared."""

    name: str
    first: date
    last: date

    @property
    def n_days(self) -> int:
        """Days that are compared."""
        return (self.last - self.first).days + 1

    @classmethod
    def of_day(cls, name: str) -> "Span":
        """Return one day, by its ISO name. Raises ParameterError for another name."""
        try:
            day = date.fromisoformat(name)
        except ValueError:
            raise ParameterError(f"span must be a day, such as 2016-04-13; got {name!r}") from None
        return cls(name, day, day)

    @classmethod
    def named(cls, name: str, known: Mapping[str, "Span"]) -> "Span":
        """Return one of these, by its name. Raises ParameterError for another."""
        if name not in known:
            raise ParameterError(f"span must be one of {', '.join(known)}; got {name!r}")
        return known[name]

    def day(self, number: int) -> date:
        """Return the day of this number, from 0."""
        return self.first + timedelta(days=number)

    def rows(self, load: Load, lead_days: int) -> range:
        """Return the rows of the load from the first lead day to the last day. Raises ParameterError as
        `index_of`.
        """
        first = load.index_of(self.first - timedelta(days=lead_days))
        return range(first, load.index_of(self.last) + 1)


FEBRUARY = Span("2016-02", date(2016, 2, 1), date(2016, 2, 29))
JUNE = Span("2016-06", date(2016, 6, 1), date(2016, 6, 30))
OCTOBER = Span("2016-10", date(2016, 10, 1), date(2016, 10, 31))
YEAR = Span("2016", date(2016, 1, 1), date(2016, 12, 31))
"""The months of the paper, and the year of its larger grid."""
ALL_YEARS = Span("2013-2016", date(2013, 1, 2), date(2016, 12, 31))
BEGINNING = Span("2013, nine weeks", date(2013, 1, 2), date(2013, 3, 5))
"""A stream from the first whole day of the published load, and its first weeks."""
