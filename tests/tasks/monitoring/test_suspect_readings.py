"""Units and signs: shares of clamped, absent and doubled readings by region, by the last verdict of a day."""

from datetime import timedelta

import pytest

from tasks.ingest.validate import validate
from tasks.monitor.facts import Suspect, loudest, suspect_readings
from tests.tasks.conftest import DAY, NOW

NOTHING = Suspect(0.0, 0.0, 0.0)


def shares(stream, day):
    return suspect_readings(stream.settings, {day}).get(day, {})


def judged(stream, now=NOW):
    (verdict,) = validate(stream.settings, stream.ingest(), now=now)
    return verdict


@pytest.mark.slow
def test_the_newest_verdict_of_the_day_counts_and_others_do_not(small):
    stream = small()
    assert shares(stream, DAY) == {}
    for later, load in ((1, 1e9), (2, 40.0)):
        for region in ("84", "11"):
            stream.write(region, stream.rows(load))
        judged(stream, NOW + timedelta(minutes=later))
    assert shares(stream, DAY) == {"84": NOTHING, "11": NOTHING}
    assert shares(stream, DAY + timedelta(days=1)) == {}


def test_a_run_says_loudly_what_is_most_of_a_region(small):
    """A thousandfold delivery is clamped whole, and appears: the operator hears of it at once."""
    stream = small()
    stream.write("84", stream.rows(100_000.0))
    stream.write("11", stream.rows(1.0))
    assert judged(stream).error is None
    (line,) = loudest(stream.settings, {DAY})
    assert line.startswith(f"{DAY}: 84: 100% of the readings were clamped")
    assert "restatement_share is 0" in line
