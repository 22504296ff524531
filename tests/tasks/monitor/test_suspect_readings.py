"""Units and signs: shares of clamped, absent and doubled readings by region, by the last verdict of a day."""

from datetime import timedelta

import polars as pl
import pytest

from tasks.config import load_settings
from tasks.ingest.arrivals import EVERY
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
    assert line.startswith(f"{DAY}: readings were clamped in 84 (100%): ")
    assert "restatement_share is 0" in line


@pytest.mark.slow
def test_of_many_leaves_without_rows_a_run_verdict_and_watch_say_few_lines(small):
    """Of sparse meters half of the leaves may lack most steps every day."""
    leaves = [f"L{number}" for number in range(40)]
    stream = small(schema="metered", marker='region = "zone"')
    text = stream.settings.file.read_text()
    stream.settings.file.write_text(
        text.replace('84 = "FR"\n11 = "FR"', "\n".join(f'{leaf} = "FR"' for leaf in leaves))
    )
    stream.settings = load_settings(stream.settings.file)
    row = stream.metered("one", 1.0).with_columns(zone=pl.lit("L0"))
    stream.write(EVERY, row[:1])
    verdict = judged(stream)
    assert verdict.error is None
    (alarm,) = verdict.alarms
    assert "'L1'" in alarm
    assert "more)" in alarm
    (line,) = loudest(stream.settings, {DAY})
    assert line.startswith(f"{DAY}: readings were unusable in L1 (100%), L2 (100%)")
    assert "and 27 more" in line
