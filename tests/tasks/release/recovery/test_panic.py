"""A panic of polars, which Python does not count as an `Exception`, is treated as any library's failure."""

from datetime import date, timedelta

import polars as pl
import pytest

from tasks.ingest import validate
from tasks.release import pipeline as steps
from tasks.release import run as release
from tasks.release import statement
from tasks.release.stages import Status

DAY = date(2016, 6, 1)
OTHER = DAY + timedelta(days=1)
TEXT = "called `Result::unwrap()` on an `Err` value: 71234.5 of Kq7Zx9"


def panics_on(day, real, days_of):
    def fails(*arguments, **more):
        if day in days_of(*arguments):
            raise pl.exceptions.PanicException(TEXT)
        return real(*arguments, **more)

    return fails


STEPS = {
    "ingest": (steps, "ingest", lambda settings, dumps, *_: [dump.day for dump in dumps]),
    "validate": (validate, "validate", lambda settings, days, **_: [one.day for one in days]),
    "estimate": (statement, "published_rows", lambda settings, day, *_: [day]),
    "look up": (release, "look_up", lambda run, work: [work.day]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_panic_costs_its_own_day_and_its_text_is_withheld(installation, monkeypatch, step):
    module, name, days_of = STEPS[step]
    monkeypatch.setattr(module, name, panics_on(DAY, getattr(module, name), days_of))
    works = installation.release(DAY, OTHER)
    assert works[DAY].outcome.status is Status.FAILED
    assert "unexpected PanicException" in works[DAY].outcome.message
    assert "71234" not in works[DAY].outcome.message
    assert works[OTHER].outcome.status is Status.PUBLISHED
