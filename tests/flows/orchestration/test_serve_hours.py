"""`optstream serve` of a stream by the hour, on a real server: its runs are forked, and go on without.

Prints (`-s`) how long hours took from their run's start to their row in the ledger, what processor the run
and its reader of dumps used until then, and the load.
"""

import os
import re
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from optstream.ledger import open_ledger
from optstream.stream import Hour, partition_of
from optstream.stream.period import day_of
from tasks.config import load_settings
from tasks.monitor.facts import last_ended
from tasks.operate.simulate import simulate
from tests.faults.world import configured
from tests.flows.served import ask, descendants, runs_of, serving, until

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
    later = [calendar.after(last, -number) for number in range(HOURS + 1, -1, -1)]
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


def published(served, hour):
    """The hour's events by their kinds, once it is published."""
    release_dumps(served.settings, hour)
    until(f"{hour} is published", lambda: (served.state_of(hour) or [""])[0] == "PUBLISHED", 400)
    return served.events_of(hour)


@pytest.mark.nightly
def test_an_hour_is_released_by_a_forked_run_and_by_a_fresh_one_where_there_is_none_to_fork(stream):
    settings, (*timed, two, _) = stream
    one = timed[0]
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
        seconds = [time_of(served, url, warm, hour) for hour in timed]
        print(f"median {median(seconds):.2f} s of {HOURS}; load {os.getloadavg()[0]:.1f}")
        assert tasks_of(served, url) == []
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


def time_of(served, url, warm, hour):
    """Seconds from the run's start to the hour's row; prints them, and what processor its processes used."""
    others, used, own = {*descendants(warm)}, {}, os.sysconf("SC_CLK_TCK")

    def look():
        for process in {*descendants(warm)} - others:
            with suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                used[process] = (int(fields[11]) + int(fields[12])) / own
        return (served.state_of(hour) or [""])[0] == "PUBLISHED"

    release_dumps(served.settings, hour)
    until(f"{hour} is published", look, 400)
    assert len(used) >= 2, "a run, and who stands between"
    ledger = open_ledger(served.settings.ledger_url)
    at = ledger.event_times("hours", "published")[str(hour), 0]
    ledger.close()
    runs = runs_of(url, served.password, "optstream-nightly", "hours")
    begun = [datetime.fromisoformat(run["start_time"]) for run in runs if run["start_time"]]
    seconds = (at - max(one for one in begun if one < at)).total_seconds()
    print(f"\n{hour}: published {seconds:.2f} s after its run began; {sum(used.values()):.2f} s of processor")
    return seconds


def tasks_of(served, url):
    """The tasks and runs below the forked runs: none, each would have cost calls of the API."""
    found = ask(url, served.password, "task_runs/filter", {})
    return [*found, *runs_of(url, served.password, "optstream-release", "hours")]
