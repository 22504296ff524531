"""Real command lines that are killed: the remains are safe, and the next command completes the days."""

import os
import signal
import subprocess
import sys
from datetime import date

import pytest

from optstream.ledger import ReleaseState
from tests.faults.books import read_books
from tests.faults.judge import Judge
from tests.faults.world import deliver, make_world
from tests.flows.served import CHECKOUT, POINT, PROGRAM, optstream, stand_still_once, until, without_prefect

DAYS = (date(2016, 5, 31), date(2016, 6, 1))
"""In two months: a backfill divides them among its workers."""
RUN = ("run", *(word for day in DAYS for word in ("--date", str(day))))
BACKFILL = ("backfill", "--from", str(DAYS[0]), "--to", str(DAYS[-1]), "--workers", "2")
DRAWN = "after commit in Ledger.record_drawn, 1"


@pytest.mark.parametrize(
    ("words", "of", "point"), [(RUN, "run", POINT), (BACKFILL, "--multiprocessing-fork", DRAWN)], ids=str
)
@pytest.mark.nightly
def test_a_command_killed_in_its_draw_is_completed_by_the_next(tmp_path, words, of, point):
    world = make_world(tmp_path / "world", tmp_path / "dumps")
    deliver(world.settings, DAYS)
    judge, config = Judge(world), ("-c", str(world.configuration))
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, *words, *config],
        env=without_prefect() | stand_still_once(tmp_path, of) | {"STAND_STILL_AT": point},
        cwd=CHECKOUT,
        start_new_session=True,
    )
    try:
        until("it stands still", lambda: list(tmp_path.glob("still.[0-9]*")), 120)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert judge.look() == []
    held = [one for one in read_books(world).records if one.state is not ReleaseState.PUBLISHED]
    assert held
    for one in held:
        freed = optstream("ledger", "release-lease", one.period, "--why", "it was killed", *config)
        assert freed.returncode == 0, freed.stderr
    again = optstream(*words, *config)
    assert again.returncode == 0, again.stdout + again.stderr
    assert judge.at_the_end([*DAYS], None) == []
    assert judge.voids() == 0
    assert max(one.redraws for one in read_books(world).records) == (point == POINT)
    verified = optstream("ledger", "verify", *config)
    assert verified.returncode == 0, verified.stdout + verified.stderr
