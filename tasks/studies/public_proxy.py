"""Prior medians for a stream from the days of another, which everybody may see."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from optstream.errors import DumpError, ParameterError
from optstream.mechanisms.history_informed.public_prior import learn_from_public, medians_of
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.config.paths import lies_within
from tasks.covariates.public_holidays import public_holidays
from tasks.studies.evaluation.advice import public_days

REGION = "region="


def learn_proxy(
    settings: Settings, folder: Path, days: Sequence[date], country: str | None
) -> dict[str, list[float]]:
    """Return the medians that public dumps show, for `[mechanism.proxy]`.

    settings: for the layout and the clock of the dumps; their regions are those that lie in the folder. Reads
    neither the stream's own dumps nor its ledger. Raises DumpError for dumps that are not there or not whole,
    ParameterError for too few days.
    """
    regions = sorted(place.name.removeprefix(REGION) for place in folder.glob(f"{REGION}*"))
    if not regions:
        raise DumpError(f"{folder} holds no folder {REGION}…; name the one in which public dumps lie")
    _refuse_own_dumps(settings, folder, days, regions)
    values = np.concatenate(list(public_days(settings, folder, days, regions).values()), axis=1)
    holidays = () if country is None else public_holidays(country, {day.year for day in days})
    clock = PublicDays.from_calendar(settings.calendar, holidays)
    public = replace(Measured.from_public(values, []), first_step=settings.calendar.first_step(days[0]))
    return medians_of(learn_from_public(public, clock))


def _refuse_own_dumps(settings: Settings, folder: Path, days: Sequence[date], regions: Sequence[str]) -> None:
    """Raise ParameterError if any of these dumps is the stream's own input or lies in it, links followed."""
    dumps = [folder / f"{REGION}{region}" / f"date={day}" for region in regions for day in days]
    files = (file for dump in dumps for file in dump.glob("*.parquet"))
    for place in (folder, *dumps, *files):
        if lies_within(place, settings.input_folder):
            raise ParameterError(
                f"{place} is the stream's own input: medians learned from it would leak, and no ledger would "
                "see it; name dumps that are public"
            )
