"""Which mechanism, how many samples, which shares for a configured stream: tried out on public days.

Nothing of the stream itself is read, no dump and no ledger: choosing by looking at private data would leak,
and no accountant would see it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError, ParameterError
from optstream.noise import simulated_noise
from optstream.stream import AggregationTree
from tasks.config import Settings
from tasks.config.paths import lies_within
from tasks.covariates.private_zones import private_zones
from tasks.planning.advice.candidates import Choice, mechanism_choices, share_choices
from tasks.release.build_mechanism import mechanism_for
from tasks.sample_data.load_shapes import daily_load, region_of

Values = NDArray[np.float64]
SEED_OF_DAYS = 0


@dataclass(frozen=True)
class Tried:
    """How far a choice's releases missed, over days and trials.

    errors: mean absolute error a step and node, by level, in the unit of the readings. relative: the mean
    over levels of that error as a part of the level's mean reading.
    """

    choice: Choice
    errors: tuple[float, ...]
    relative: float


@dataclass(frozen=True)
class Advice:
    """Everything that was tried, best first; `shares` are other level shares for the best of `mechanisms`."""

    mechanisms: tuple[Tried, ...]
    shares: tuple[Tried, ...]

    @property
    def best(self) -> Tried:
        return min((*self.mechanisms, *self.shares), key=lambda tried: tried.relative)


def advise(settings: Settings, days: Mapping[date, Values], *, trials: int, seed: int) -> Advice:
    """Try every mechanism on these days, then other shares for the best of them.

    days: the leaves' values by day, shape (n_leaves, n_steps), consecutive and public. Simulated noise; costs
    no privacy, for the days are public.
    """
    tried = [one for choice in mechanism_choices(settings) for one in _try(choice, days, trials, seed)]
    tried.sort(key=lambda one: one.relative)
    best = tried[0].choice
    shares = [one for choice in share_choices(best) for one in _try(choice, days, trials, seed)]
    return Advice(tuple(tried), tuple(sorted(shares, key=lambda one: one.relative)))


def _try(choice: Choice, days: Mapping[date, Values], trials: int, seed: int) -> Iterator[Tried]:
    """Release the days so often; nothing for a choice that does not fit the stream."""
    try:
        runs = [_run(choice.settings, days, seed + trial) for trial in range(trials)]
    except ParameterError:
        return
    missed, size = np.mean([run[0] for run in runs], axis=0), runs[0][1]
    relative = float(np.mean(missed / np.maximum(size, float(choice.settings.privacy.resolution))))
    yield Tried(choice, tuple(float(error) for error in missed), relative)


def _run(settings: Settings, days: Mapping[date, Values], seed: int) -> tuple[Values, Values]:
    """Mean absolute error and mean reading by level, over one trial."""
    noise, state = simulated_noise(seed), None
    missed, truths = [], []
    for day, values in days.items():
        mechanism, tree = mechanism_for(settings, day), settings.tree_of(day)
        release = mechanism.release(
            values, noise=noise, first_step=settings.calendar.first_step(day), state=state
        )
        state, truth = release.state, tree.add_up(values)
        missed.append(_by_level(tree, np.abs(release.values - truth)))
        truths.append(_by_level(tree, np.abs(truth)))
    return np.mean(missed, axis=0), np.mean(truths, axis=0)


def _by_level(tree: AggregationTree, values: Values) -> Values:
    return np.array([values[nodes.start : nodes.stop].mean() for nodes in tree.levels])


def simulated_days(settings: Settings, days: Iterable[date], mean: float | None) -> dict[date, Values]:
    """Made-up days of the stream's leaves. mean: a leaf's typical reading, from public knowledge."""
    return {
        day: np.array(
            [
                daily_load(region_of(leaf, mean), leaf, day, settings.calendar, SEED_OF_DAYS)
                for leaf in settings.tree_of(day).leaves
            ]
        )
        for day in days
    }


def public_days(
    settings: Settings, folder: Path, days: Sequence[date], leaves: Sequence[str] | None = None
) -> dict[date, Values]:
    """Days that are public, from dumps in the stream's own layout, a row a step.

    leaves: others than the stream's. Raises DumpError naming the dump that is not there or not whole, and
    ParameterError for one that is private.
    """
    found, zones = {}, private_zones(settings, folder)
    for day in days:
        places = [
            folder / f"region={leaf}" / f"date={day}" for leaf in leaves or settings.tree_of(day).leaves
        ]
        _refuse_private(zones, (folder, *places))
        found[day] = np.array([_row(settings, place, day) for place in places])
    return found


def _refuse_private(zones: Mapping[str, Path], places: Iterable[Path]) -> None:
    """Raise ParameterError if any of these lies in a folder that no covariate may lie in, links followed: an
    input or trusted folder of this stream, or of another that is known. Whatever is computed from raw
    readings, an error's size too, leaves the trusted zone uncharged.
    """
    for file in (file for place in places for file in (place, *place.glob("*.parquet"))):
        for key, zone in zones.items():
            if lies_within(file, zone):
                raise ParameterError(
                    f"{file} leads into {key}.folder, which is private: what is learned from it would leak, "
                    "and no ledger would see it; name dumps that are public"
                )


def _row(settings: Settings, place: Path, day: date) -> Values:
    layout = settings.input_of(day)
    try:
        # a region's name may hold what a pattern would take for its own
        frame = pl.read_parquet(sorted(place.glob("*.parquet")), glob=False).sort(layout.timestamp)
        values = frame[layout.value].cast(pl.Float64).to_numpy() * float(layout.factor)
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise DumpError(
            f"{place} holds no dump with the configured columns; give the days that are there"
        ) from None
    if values.shape != (settings.calendar.n_steps(day),) or not np.isfinite(values).all():
        raise DumpError(f"{place} must hold a number for each step of the day; choose other days")
    return np.asarray(values)
