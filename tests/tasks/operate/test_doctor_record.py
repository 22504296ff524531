"""What the doctor says of ledger, published folder and dumps beside each other."""

import os
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from optstream.noise import simulated_noise
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


def test_a_clock_behind_the_ledger_is_wrong(open_installation, around):
    last = open_installation.ledger.last_event_at("two-regions")
    assert last == open_installation.now
    assert around(open_installation, now=last - timedelta(minutes=5)) == []
    ((severity, place, words),) = around(open_installation, now=last - timedelta(minutes=6))
    assert (severity, place) == ("wrong", "the clock of this machine")
    assert "2016-07-01 00:00" in words


def test_seeded_noise_in_a_production_stream_is_wrong(open_installation, around):
    (open_installation.folder / "dumps").chmod(0o700)
    open_installation.simulate(NEXT)
    open_installation.release(NEXT, steps=STEPS[:6])
    assert around(open_installation) == []
    third = NEXT + timedelta(days=1)
    open_installation.simulate(third)
    open_installation.release(third, steps=STEPS[:6], noise=simulated_noise(7))
    ((severity, place, words),) = around(open_installation)
    assert severity == "wrong"
    assert place.endswith(f"{third}-r0")
    assert "seeded noise, which protects nobody" in words


def test_a_ledger_that_is_gone_or_another_is_wrong(open_installation, around):
    away = open_installation.folder / "trusted/ledger.sqlite"
    away.rename(away.with_suffix(".kept"))
    ((severity, place, words),) = around(open_installation)
    assert (severity, place) == ("wrong", str(away))
    assert "restore it from a backup" in words
    assert not away.exists()
    open_installation.ledger.close()
    found = around(open_installation)
    assert {severity for severity, _, _ in found} == {"wrong"}
    places = [place.removeprefix(f"{open_installation.folder}/") for _, place, _ in found]
    assert places == ["published", "ledger.url", f"trusted/measurements/two-regions/{DAY}-r0"]
    assert all("another" in words for _, _, words in found)


def test_dumps_without_any_marker_are_told(open_installation, around):
    open_installation.configure("[input]", '[input]\nmarker = "DONE"')
    ((severity, place, words),) = around(open_installation)
    assert (severity, place) == ("warning", str(open_installation.folder / "dumps"))
    assert "DONE" in words
    assert "input.marker" in words


@pytest.mark.parametrize(
    ("place", "act", "said"),
    [
        ("_delta_log", Path.mkdir, f"refuses {NEXT} and 1 more: '_delta_log' is the log of a table"),
        ("region=84/x.csv", Path.touch, "'x.csv' is no folder date="),
        (f"region=84/date={DAY}/x.csv", Path.touch, None),
        (
            f"region=84/date={NEXT}/x.csv",
            Path.touch,
            f"refuses {NEXT}: region=84/date={NEXT}/'x.csv' must end",
        ),
        (f"region=84/date={NEXT}/_SUCCESS", lambda path: (path.unlink(), path.mkdir()), "must be a file"),
        (
            f"region=84/date={NEXT}/part-0.parquet",
            lambda path: os.truncate(path, 2**41),
            "has 2,048.0 of the day's 2,048.0 GiB",
        ),
    ],
)
def test_what_the_next_run_refuses_is_told(open_installation, around, place, act, said):
    open_installation.simulate(NEXT)
    (open_installation.folder / "dumps").chmod(0o700)
    assert around(open_installation) == []
    act(open_installation.folder / "dumps" / place)
    found = around(open_installation)
    assert [entry[0] for entry in found] == ["warning"] * (said is not None)
    assert said is None or said in found[0][2]


def test_a_broken_catalogue_and_a_ledger_that_does_not_answer_are_findings(open_installation, around):
    (open_installation.folder / "trusted/ledger.sqlite").write_bytes(
        b"not a database, but long enough to be one"
    )
    (open_installation.folder / "trusted/ledger.sqlite-wal").unlink(missing_ok=True)
    assert [entry[:2] for entry in around(open_installation)] == [("wrong", "ledger.url")]
    (open_installation.folder / "published/catalogue.json").write_text("{")
    assert [entry[:2] for entry in around(open_installation)] == [
        ("wrong", str(open_installation.folder / "published"))
    ]


def test_leases_that_no_run_can_have_days_left_and_files_from_the_future_are_told(open_installation, around):
    open_installation.simulate(NEXT)
    (open_installation.folder / "dumps").chmod(0o700)
    open_installation.release(NEXT, steps=STEPS[:6])
    until = open_installation.ledger.latest("two-regions", NEXT.isoformat()).lease_until
    for now, said in (
        (until - timedelta(days=1), None),
        (until - timedelta(days=3650), "release-lease 2016-06-02"),
        (until + timedelta(days=1), None),
        (until + timedelta(days=1, seconds=1), "run --date 2016-06-02"),
    ):
        found = [words for _, place, words in around(open_installation, now=now) if str(NEXT) in place]
        assert (len(found), said is None or said in found[0]) == (said is not None, True)
    ahead = open_installation.folder / "trusted/staging/two-regions"
    os.utime(ahead, (time.time() + 10**8, time.time() + 10**8))
    ((severity, place, words),) = around(open_installation, now=until)
    assert (severity, place) == ("warning", str(ahead))
    assert "lies ahead" in words
