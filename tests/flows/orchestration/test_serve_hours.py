"""`optstream serve` of a stream by the hour, on a real server: its runs are forked, and go on without.

Prints (`-s`) how long an hour took from its run's start to its row in the ledger, beside the load.
"""

import os
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from optstream.ledger import open_ledger
from optstream.stream import Hour, partition_of
from tasks.config import load_settings
from tasks.monitoring.deadlines import last_ended
from tasks.sample_data.simulate import simulate
from tests.faults.world import CONFIGURATION
from tests.flows.served import descendants, runs_of, serving, until


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream of one step an hour, looked at every minute, and its last four hours without dumps."""
    folder = tmp_path_factory.mktemp("hours") / "here"
    folder.mkdir()
    text = CONFIGURATION.format(
        mechanism="PeGaSus", sampling="", dumps="dumps", ledger="sqlite:///trusted/ledger.sqlite"
    )
    text = text.replace("two-regions", "hours").replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
    file = folder / "optstream.toml"
    file.write_text(text)
    calendar = load_settings(file).calendar
    last = last_ended(load_settings(file), datetime.now(UTC))
    day = (datetime.now(UTC) - timedelta(hours=4)).date()
    file.write_text(
        f'{text}[schedule]\ncron = "* * * * *"\nwatch_cron = "59 23 31 12 *"\ncatch_up_days = 1\n'
        f'[watch]\nlate_after = "00:00"\nfirst_day = {day}\n'
    )
    settings = load_settings(file)
    days = [day, day + timedelta(days=1)]
    simulate(settings.input_folder, leaves=("84", "11"), calendar=calendar, days=days, seed=1)
    later = [calendar.after(last, -number) for number in range(3, -1, -1)]
    for hour in later:
        for region in ("84", "11"):
            dump = place(settings, hour, region)
            dump.rename(dump.with_name(f"x{dump.name}"))
    return settings, later


def place(settings, hour, region):
    return Path(str(settings.input_folder)) / f"region={region}" / partition_of(hour)


def published(served, hour):
    """The hour's events by their kinds, once it is published."""
    settings = served.settings
    for region in ("84", "11"):
        dump = place(settings, hour, region)
        dump.with_name(f"x{dump.name}").rename(dump)
    until(f"{hour} is published", lambda: (served.state_of(hour) or [""])[0] == "PUBLISHED", 400)
    return served.events_of(hour)


@pytest.mark.nightly
def test_an_hour_is_released_by_a_forked_run_and_by_a_fresh_one_where_there_is_none_to_fork(stream):
    settings, (one, two, *_) = stream
    assert isinstance(one, Hour)
    with serving(settings) as served:
        url = served.says("dashboard: ")
        served.says("Ctrl-C")
        (warm,) = until("it is there", lambda: processes(served, "warm_runs"), 60)
        until("it forks", (settings.serve_folder / "warm-hours.socket").exists, 300)
        until("the ledger is there", (settings.trusted_folder / "ledger.sqlite").exists, 300)
        before = settings.calendar.after(one, -1)
        # by the first run, which began while the other process imported
        until("the hours before", lambda: (served.state_of(before) or [""])[0] == "PUBLISHED", 400)
        seen = set()

        def forked():
            seen.update(descendants(warm))
            return (served.state_of(one) or [""])[0] == "PUBLISHED"

        for region in ("84", "11"):
            dump = place(settings, one, region)
            dump.with_name(f"x{dump.name}").rename(dump)
        until(f"{one} is published", forked, 400)
        assert len(seen) >= 2, "a run, and who stands between"
        tell_time(served, url, one)
        os.kill(warm, signal.SIGKILL)
        served.says("the process that runs are forked from ended")
        assert published(served, two)[-1] == "published"
        assert served.state_of(two) == ("PUBLISHED", 0)


def processes(served, word):
    """The processes of a module below `serve`."""
    found = []
    for process in descendants(served.process.pid):
        words = Path(f"/proc/{process}/cmdline").read_bytes()
        if re.search(rb"flows\.orchestration\.warm\." + word.encode(), words):
            found.append(process)
    return found[:1]


def tell_time(served, url, hour):
    """Print it, and the machine's load."""
    ledger = open_ledger(served.settings.ledger_url)
    at = ledger.event_times("hours", "published")[str(hour), 0]
    ledger.close()
    runs = runs_of(url, served.password, "optstream-nightly", "hours")
    begun = [datetime.fromisoformat(run["start_time"]) for run in runs if run["start_time"]]
    seconds = (at - max(one for one in begun if one < at)).total_seconds()
    print(f"\n{hour}: published {seconds:.2f} s after its run began; load {os.getloadavg()[0]:.1f}")
