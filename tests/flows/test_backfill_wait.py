"""What a backfill waits for: a lease that ends soon, and none of a clock that ran ahead."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from flows.backfill import _is_free_soon
from tasks.release import LEASE
from tasks.work import Outcome, Status, Work

NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "ends_in", "is_waited_for"),
    [
        (Status.BUSY, timedelta(minutes=-1), True),
        (Status.BUSY, LEASE, True),
        (Status.BUSY, LEASE + timedelta(seconds=1), False),
        (Status.BUSY, timedelta(days=3650), False),
        (Status.FAILED, timedelta(minutes=1), False),
    ],
)
def test_a_day_is_waited_for_if_it_is_free_soon(status, ends_in, is_waited_for):
    outcome = Outcome(status, "held", free_at=NOW + ends_in)
    assert _is_free_soon(replace(Work(date(2016, 6, 1)), outcome=outcome), NOW) is is_waited_for
