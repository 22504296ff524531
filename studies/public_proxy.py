"""Prior medians for a stream from the days of another, which everybody may see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError, ParameterError
from optstream.mechanisms.history_informed import learn_from_public, medians_of
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.config.fields import lies_within
from tasks.config.holidays import public_holidays
from tasks.trusted.covariates import private_zones

REGION = "region="
Values = NDArray[np.float64]


def learn_proxy(
    settings: Settings, folder: Path, days: Sequence[date], country: str | None
) -> dict[str, list[float]]:
    """Return the medians that public dumps show, for `with_medians` of HistoryInformed.

    settings: for the layout and the clock of the dumps; their regions are those that lie in the folder. Reads
    neither the stream's own dumps nor its ledger. Raises DumpError for dumps that are not there or not whole,
    ParameterError for the stream's own (`public_days`) and for too few days.
    """
    regions = sorted(place.name.removeprefix(REGION) for place in folder.glob(f"{REGION}*"))
    if not regions:
        raise DumpError(f"{folder} holds no folder {REGION}…; name the one in which public dumps lie")
    values = np.concatenate(list(public_days(settings, folder, days, regions).values()), axis=1)
    holidays = () if country is None else public_holidays(country, {day.year for day in days})
    clock = PublicDays.from_calendar(settings.calendar, holidays)
    public = replace(Measured.from_public(values, []), first_step=settings.calendar.first_step(days[0]))
    return medians_of(learn_from_public(public, clock))


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
