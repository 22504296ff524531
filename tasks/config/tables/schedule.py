"""The table [schedule]: when nights run under `optstream serve`."""

from collections.abc import Iterator
from datetime import time
from typing import Any

from pydantic import Field

from tasks.config.tables.base import Section
from tasks.config.tables.fields import Cron

EVERY_HOUR = "5 * * * *"
"""When a stream that is released by the hour runs, where nothing is said."""
CRON = 'five fields of numbers as cron takes them, such as "0 3 * * *"'


class Schedule(Section):
    """A configuration need not have it. Until which hour dumps are waited for is [watch] late_after."""

    cron: Cron = Field("0 3 * * *", validate_default=True, description=CRON)
    look_every_minutes: int = Field(30, ge=1, le=720, description="an integer in [1, 720]")
    catch_up_days: int = Field(7, ge=1, le=366, description="a number of days, an integer in [1, 366]")
    watch_cron: Cron = Field("5 * * * *", validate_default=True, description=CRON)
    port: int | None = Field(None, ge=1024, le=65535, description="an integer in [1024, 65535]")


def clock_of(cron: str) -> int | None:
    """The minute of the day at which a cron fires, or None if it does at several."""
    minute, hour, *_ = cron.split()
    return 60 * int(hour) + int(minute) if minute.isdigit() and hour.isdigit() else None


def minutes_of(clock: str) -> int:
    """The minute of the day of a clock time."""
    parsed = time.fromisoformat(clock)
    return 60 * parsed.hour + parsed.minute


def schedule_problems(schedule: Schedule, watch: Any, stream: Any) -> Iterator[str]:
    """A night begins before the hour at which its day is late; hours are not released once a day."""
    begins = clock_of(schedule.cron)
    if stream.period == "hour":
        if begins is not None and "cron" in schedule.model_fields_set:
            yield (
                f'schedule.cron must fire every hour for stream.period "hour", such as "{EVERY_HOUR}"; '
                f"got {schedule.cron!r}"
            )
        return
    if begins is not None and begins >= minutes_of(watch.late_after):
        yield (
            f"schedule.cron must begin before watch.late_after, {watch.late_after}, until which dumps are "
            f"waited for; got {schedule.cron!r}"
        )
