"""Prior medians for a stream from the days of another, which everybody may see."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from optstream.errors import DumpError
from optstream.mechanisms.history_informed.public_prior import learn_from_public, medians_of
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays
from studies.papers.advice import public_days
from tasks.config import Settings
from tasks.covariates.public_holidays import public_holidays

REGION = "region="


def learn_proxy(
    settings: Settings, folder: Path, days: Sequence[date], country: str | None
) -> dict[str, list[float]]:
    """Return the medians that public dumps show, for `[mechanism.proxy]`.

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
