"""The table [watch]: a stream may go without it, its keys are checked, and no release depends on it."""

from datetime import UTC, date, datetime, timedelta

import pytest

from tasks.monitor.facts import last_ended, late_from, max_runtime, raw_expires
from tests.tasks.config.refused import refused
from tests.tasks.two_regions import CONFIGURATION


@pytest.fixture
def load(load_text):
    """Load a configuration with this [watch], and this line in [input]."""

    def read(watch="", source=""):
        text = CONFIGURATION + (f"[watch]\n{watch}\n" if watch else "")
        return load_text(text, ("[input]\n", f"[input]\n{source}\n"))

    return read


def test_deadlines_are_of_the_stream_s_own_clock_also_when_it_changes(load):
    settings = load('late_after = "02:30"\nmax_runtime = "90min"', "raw_retention_days = 3")
    assert late_from(settings, date(2016, 6, 1)).astimezone(UTC) == datetime(2016, 6, 2, 0, 30, tzinfo=UTC)
    # the day after is the one that has no half past two
    assert late_from(settings, date(2016, 3, 26)).astimezone(UTC) == datetime(2016, 3, 27, 1, 30, tzinfo=UTC)
    assert max_runtime(settings) == timedelta(minutes=90)
    ends = datetime(2016, 6, 4, 22, tzinfo=UTC)
    assert raw_expires(settings, date(2016, 6, 1)) == ends
    assert last_ended(settings, datetime(2016, 6, 1, 21, 59, tzinfo=UTC)) == date(2016, 5, 31)
    assert last_ended(settings, datetime(2016, 6, 1, 22, 0, tzinfo=UTC)) == date(2016, 6, 1)


@pytest.mark.parametrize(
    ("watch", "message"),
    [
        ('late_after = "25:00"', 'watch.late_after must be a clock time such as "12:00"'),
        ("max_runtime = 60", 'such as "30min" or "2h", at most "9999h"; got 60'),
        ('first_day = "tomorrow"', "watch.first_day must be the first day"),
        ('accepted_gaps = ["2016-02-30"]', "watch.accepted_gaps must be a list of at most 10000 days"),
        ('notify = ["Custom Webhook"]', "watch.notify must be a list of at most 20 notification blocks"),
        ('notify = ["a/b/c"]', "watch.notify must be"),
        (
            'log = "trusted/ledger.sqlite"',
            "watch.log must be the path of a file that ends in .jsonl, such as",
        ),
        ('log = "a\\u0000.jsonl"', "watch.log must be the path"),
        ('log = "s3://bucket/x.jsonl"', "watch.log must be the path"),
        ('log = "published/x.jsonl"', "watch.log must not lie in published.folder, which is the public zone"),
        ('late_aftr = "06:00"', "watch.late_aftr is not a known key; did you mean late_after?"),
    ],
)
def test_wrong_keys_are_named_with_their_legal_range(load, watch, message):
    assert message in refused(load, watch)
