"""`optstream serve` of a stream by the hour, on a real server; prints how long each hour took."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from optstream.ledger import open_ledger
from optstream.stream import partition_of
from optstream.stream.period import day_of
from tasks.config import load_settings
from tasks.monitor.facts import last_ended
from tasks.operate.simulate import simulate
from tests.faults.world import configured
from tests.flows.served import ask, runs_of, serving, until

HOURS = 5
"""That are timed."""


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream of one step an hour, looked at every minute, and its last hours without dumps."""
    folder = tmp_path_factory.mktemp("hours") / "here"
    folder.mkdir()
    text = configured(mechanism="PeGaSus")
    text = text.replace("two-regions", "hours").replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
    file = folder / "optstream.toml"
    file.write_text(text)
    calendar = load_settings(file).calendar
    last = last_ended(load_settings(file), datetime.now(UTC))
    later = [calendar.after(last, -number) for number in range(HOURS - 1, -1, -1)]
    day = day_of(later[0])
    file.write_text(
        f'{text}[schedule]\ncron = "* * * * *"\nwatch_cron = "59 23 31 12 *"\ncatch_up_days = 2\n'
        f'[watch]\nlate_after = "00:00"\nfirst_day = {day}\n'
    )
    settings = load_settings(file)
    days = [day, day + timedelta(days=1)]
    simulate(settings.input_folder, leaves=("84", "11"), calendar=calendar, days=days, seed=1)
    for hour in later:
        for region in ("84", "11"):
            dump = place(settings, hour, region)
            dump.rename(dump.with_name(f"_{dump.name}"))
    return settings, later


def place(settings, hour, region):
    return Path(str(settings.input_folder)) / f"region={region}" / partition_of(hour)


def release_dumps(settings, hour):
    """Give an hour its dumps."""
    for region in ("84", "11"):
        dump = place(settings, hour, region)
        dump.with_name(f"_{dump.name}").rename(dump)


@pytest.mark.nightly
def test_hours_are_published_by_looks_that_are_one_run_each(stream):
    settings, timed = stream
    with serving(settings) as served:
        url = served.says("dashboard: ")
        served.says("Ctrl-C")
        until("the ledger is there", (settings.trusted_folder / "ledger.sqlite").exists, 300)
        before = settings.calendar.after(timed[0], -1)
        until("the hours before", lambda: (served.state_of(before) or [""])[0] == "PUBLISHED", 400)
        seconds = [time_of(served, url, hour) for hour in timed]
        print(f"median {median(seconds):.2f} s of {HOURS} after the time of the look")
        assert ask(url, served.password, "task_runs/filter", {}) == []
        assert runs_of(url, served.password, "optstream-release", "hours") == []


def time_of(served, url, hour):
    """Seconds from the time of the look that published the hour to the hour's row in the ledger."""
    release_dumps(served.settings, hour)
    until(f"{hour} is published", lambda: (served.state_of(hour) or [""])[0] == "PUBLISHED", 400)
    ledger = open_ledger(served.settings.ledger_url)
    at = ledger.event_times("hours", "published")[str(hour), 0]
    ledger.close()
    runs = runs_of(url, served.password, "optstream-nightly", "hours")
    due = [datetime.fromisoformat(run["expected_start_time"]) for run in runs if run["start_time"]]
    return (at - max(one for one in due if one < at)).total_seconds()
