"""Kinds of example configurations: mechanism, readings, hierarchy and period, as `optstream init` asks."""

from dataclasses import dataclass

from optstream.errors import ParameterError
from optstream.mechanisms import mechanism_named
from tasks.config.tables.mechanisms import MECHANISMS, NAMES, kinds_with

MOST_LEVELS = 4
LEVELS = f"an integer in [2, {MOST_LEVELS}]"


@dataclass(frozen=True)
class Words:
    """What an example says of its readings; numbers are texts of the file, in `unit`."""

    what: str
    people: str
    unit: str
    column: str
    alpha: str
    resolution: str
    largest: str
    scale: str
    threshold: str


LOAD = Words("load", "customers", "MW", "load_mw", "10", "0.001", "20000", "5000.0", "500")
VISITS = Words("visits", "visitors", "visits", "visits", "1", "1", "20000", "1000.0", "50")
METERS = Words("consumption", "customers", "kWh", "energy_kwh", "5", "0.001", "5", "15.0", "50")
METERED_VISITS = Words("visits", "visitors", "visits", "visits", "5", "1", "5", "15.0", "50")


@dataclass(frozen=True)
class Kind:
    """Which example is wanted: of whole numbers of visits (counts) or a load; with a row a customer and step
    (metered) or a row a step; of so many levels, the root's counted; with a release an hour or a night.
    """

    mechanism: str = "OptStream"
    counts: bool = False
    metered: bool = False
    levels: int = 2
    hourly: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ParameterError(f"mechanism of the example must be {NAMES}; got {self.mechanism!r:.80}")
        if not 2 <= self.levels <= MOST_LEVELS:
            raise ParameterError(f"levels of the example must be {LEVELS}; got {self.levels!r:.80}")
        if self.hourly and not mechanism_named(self.mechanism).serves_hours:
            raise ParameterError(
                f"an example by the hour is for mechanism {kinds_with('serves_hours')}; got "
                f"{self.mechanism!r}, which is made for days as a whole"
            )

    @property
    def words(self) -> Words:
        """What is said of its readings."""
        if self.counts:
            return METERED_VISITS if self.metered else VISITS
        return METERS if self.metered else LOAD
