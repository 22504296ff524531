"""What may happen to a load, put into real days: arrays in, arrays out, the same every time."""

from collections.abc import Callable

import numpy as np

from studies.evaluation.data import STEPS_PER_DAY, Values

NOTHING, JOINS = "nothing", "a region joins"
CUSTOMER_MW = 1000.0
NOON, MORNING = 24, 20
"""Slots of the day: 12:00 and 10:00."""


def changed(days: Values, what: str) -> Values:
    """Return the days (n_days, n_regions, 48) with something that begins on the first of them. Raises
    KeyError.
    """
    load = days.copy()
    HAPPENINGS[what](load)
    return load


def _largest(load: Values) -> int:
    return int(load[0].mean(axis=1).argmax())


def _smallest(load: Values) -> int:
    return int(load[0].mean(axis=1).argmin())


def _nothing(load: Values) -> None:
    """The days as they were; of a region that joins, it is the days before that differ."""


def _holiday(load: Values) -> None:
    load[0] *= 0.8


def _heat_wave(load: Values) -> None:
    load[0] *= 1.0 + 0.15 * np.arange(STEPS_PER_DAY) / STEPS_PER_DAY
    load[1:] *= 1.15


def _region_dark(load: Values) -> None:
    load[0, _largest(load), MORNING : MORNING + 12] *= 0.05


def _nation_dark(load: Values) -> None:
    load[0, :, MORNING : MORNING + 8] *= 0.1


def _customer(load: Values) -> None:
    load[:, _smallest(load)] += CUSTOMER_MW


def _step(load: Values) -> None:
    region = _largest(load)
    load[0, region, NOON:] *= 1.3
    load[1:, region] *= 1.3


HAPPENINGS: dict[str, Callable[[Values], None]] = {
    NOTHING: _nothing,
    "a holiday nobody announced": _holiday,
    "a heat wave": _heat_wave,
    "a blackout of a region": _region_dark,
    "a blackout everywhere": _nation_dark,
    "a new large customer": _customer,
    "a step change": _step,
    JOINS: _nothing,
}
"""20 % less everywhere for a day; 15 % more within a day, permanently; the largest region at 5 % for 6 hours;
all at 10 % for 4 hours; 1,000 MW more in the smallest region, permanently; the largest region 30 % higher
from noon on, permanently; the largest region at 0 until that day."""


def before(lead: Values, what: str, first: Values) -> Values:
    """Return the days before, (n_days, n_regions, 48), as they are if this happens. first: the day it
    happens.
    """
    if what != JOINS:
        return lead
    load = lead.copy()
    load[:, int(first.mean(axis=1).argmax())] = 0.0
    return load
