"""What simulated load looks like: public means of the French regions, and a rough shape around them."""

import zlib
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optstream.stream import Calendar

Values = NDArray[np.float64]


class Region(NamedTuple):
    """Rounded figures of a region. Seasons and Sunday are ratios: to the year, and to a working day."""

    name: str
    mean_mw: float
    winter: float
    summer: float
    sunday: float


FRENCH_REGIONS = {
    "11": Region("Île-de-France", 8310, 1.25, 0.74, 0.86),
    "24": Region("Centre-Val de Loire", 2150, 1.27, 0.76, 0.85),
    "27": Region("Bourgogne-Franche-Comté", 2490, 1.20, 0.79, 0.81),
    "28": Region("Normandie", 3260, 1.22, 0.78, 0.87),
    "32": Region("Hauts-de-France", 5850, 1.19, 0.80, 0.86),
    "44": Region("Grand Est", 5310, 1.19, 0.79, 0.82),
    "52": Region("Pays de la Loire", 3140, 1.23, 0.78, 0.80),
    "53": Region("Bretagne", 2560, 1.25, 0.76, 0.81),
    "75": Region("Nouvelle-Aquitaine", 4990, 1.21, 0.85, 0.87),
    "76": Region("Occitanie", 4270, 1.23, 0.87, 0.88),
    "84": Region("Auvergne-Rhône-Alpes", 7690, 1.21, 0.81, 0.85),
    "93": Region("Provence-Alpes-Côte d'Azur", 4660, 1.22, 0.90, 0.93),
}
"""RTE éCO2mix definitive 2016, yearly means, rounded (54,680 MW together); ratios likewise, two digits."""

# Hour of the clock and load relative to the day's mean: a few knots, two digits, after the same source's
# national mean of winter and summer working days. Weather and noise below are made up.
WINTER_DAY = {
    0: 1.00, 4: 0.85, 7: 1.02, 9: 1.08, 13: 1.06, 16.5: 0.99, 19: 1.12, 22: 0.97, 23: 1.00, 24: 1.00,
}  # fmt: skip
SUMMER_DAY = {0: 0.97, 4.5: 0.80, 8: 0.99, 12.5: 1.14, 16: 1.08, 19: 1.06, 22: 0.97, 23: 1.04, 24: 0.97}

MEMORY_DAYS = 30
DAY_TO_DAY = 0.75
"""Weather is AR(1) from day to day; after MEMORY_DAYS a shock is below a thousandth, and left out."""
SHARED_WEATHER, OWN_WEATHER, OWN_NOISE = 0.035, 0.012, 0.004
"""Standard deviations relative to the load: of the weather in winter, and of the noise from step to step."""


def region_of(leaf: str, mean: float | None) -> Region:
    """A French region's figures by its code; else figures around `mean` (1000) by a hash of the name."""
    if mean is None and leaf in FRENCH_REGIONS:
        return FRENCH_REGIONS[leaf]
    spread = stable_hash(leaf) / 2**32
    return Region(leaf, (1000.0 if mean is None else mean) * (0.5 + spread), 1.22, 0.80, 0.85)


def stable_hash(text: str) -> int:
    """32 bits of a text, the same in every process."""
    return zlib.crc32(text.encode("utf-8"))


def daily_load(region: Region, leaf: str, day: date, calendar: Calendar, seed: int) -> Values:
    """Load of one leaf at each step of a day, in the unit of `region.mean_mw`, shape (n_steps,).

    It is a function of its arguments alone: any range of days gives the same days.
    """
    hours = np.array([stamp.hour + stamp.minute / 60 for stamp in calendar.local_times(day)])
    coldness = _coldness(day, hours)
    first, second = (region.winter - region.summer) / 2, (region.winter + region.summer) / 2 - 1
    season = 1 + first * coldness + second * (2 * coldness**2 - 1)
    heated = (1 + coldness) / 2
    clock = heated * _clock_curve(WINTER_DAY, hours) + (1 - heated) * _clock_curve(SUMMER_DAY, hours)
    weather = (0.3 + 0.7 * heated) * (
        SHARED_WEATHER * _weather(seed, day, hours, "") + OWN_WEATHER * _weather(seed, day, hours, leaf)
    )
    noise = OWN_NOISE * day_generator(seed, day, leaf).standard_normal(hours.size)
    load: Values = region.mean_mw * season * _week(region, day, hours) * clock * (1 + weather + noise)
    return np.maximum(load, 0.0)


def day_generator(seed: int, day: date, purpose: str) -> np.random.Generator:
    """The randomness of one day and purpose (a leaf; "" is shared by all), whatever else is simulated."""
    return np.random.default_rng(np.random.SeedSequence([seed, day.toordinal(), stable_hash(purpose)]))


def _coldness(day: date, hours: Values) -> Values:
    """1 in late January, -1 in late July."""
    since = (day - date(day.year, 1, 25)).days + hours / 24
    return np.cos(2 * np.pi * since / 365.25)


def _clock_curve(knots: dict[float, float], hours: Values) -> Values:
    """The day's curve, eased from knot to knot, with mean 1."""
    places, heights = np.array(list(knots)), np.array(list(knots.values()))

    def eased(at: Values) -> Values:
        last = np.clip(np.searchsorted(places, at, side="right") - 1, 0, len(places) - 2)
        share = (at - places[last]) / (places[last + 1] - places[last])
        result: Values = heights[last] + (heights[last + 1] - heights[last]) * (1 - np.cos(np.pi * share)) / 2
        return result

    return eased(hours) / float(np.mean(eased(np.arange(0, 24, 0.25))))


def _week(region: Region, day: date, hours: Values) -> Values:
    """Working days against the weekend, with mean 1 over a week; a night belongs to the day before it."""
    saturday = 1 - 0.65 * (1 - region.sunday)
    factors = np.array([1.0] * 5 + [saturday, region.sunday])
    factors /= factors.mean()
    before, now = float(factors[day.weekday() - 1]), float(factors[day.weekday()])
    return before + (now - before) * np.minimum(hours / 7, 1.0)


def shared_weather(seed: int, day: date) -> float:
    """Return a day's mean of the weather that moves all leaves together, in its standard deviations."""
    return float(np.mean(_weather(seed, day, np.arange(24.0), "")))


def _weather(seed: int, day: date, hours: Values, purpose: str) -> Values:
    """AR(1) from day to day with variance 1, and a straight line from one midnight to the next."""
    days = [day + timedelta(days=offset) for offset in range(-MEMORY_DAYS, 2)]
    shocks = np.array([day_generator(seed, each, f"weather {purpose}").standard_normal() for each in days])
    weights = np.sqrt(1 - DAY_TO_DAY**2) * DAY_TO_DAY ** np.arange(MEMORY_DAYS, -1, -1.0)
    today, tomorrow = shocks[:-1] @ weights, shocks[1:] @ weights
    result: Values = today + (tomorrow - today) * hours / 24
    return result
