"""The machine whose clock and disk the campaign changes."""

import os
import subprocess
import sys
import time

import pytest

from tests.faults.processes.machine import Machine, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_the_clock_jumps_and_the_disk_is_slow_under_a_process_that_runs(tmp_path):
    """What it says after each line that it is given: the time, and how long a sync takes."""
    program = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for _ in sys.stdin:
    begun = time.monotonic()
    os.fsync(file)
    print(time.time(), time.monotonic() - begun, flush=True)
    """
    machine = Machine(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "file")],
        env=os.environ | machine.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def ask():
            print(file=process.stdin, flush=True)
            return [float(word) for word in process.stdout.readline().split()]

        assert abs(ask()[0] - time.time()) < 600
        machine.set_clock(-86_400)
        assert abs(ask()[0] + 86_400 - time.time()) < 600
        machine.slow_disk(300)
        assert ask()[1] >= 0.3
        process.stdin.close()


def test_who_sleeps_for_long_wakes_when_the_clock_is_there(tmp_path):
    machine = Machine(tmp_path)
    machine.let_time_pass()
    assert machine.ahead_seconds == 0
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(3600)"], env=os.environ | machine.environment
    ) as process:
        while machine.ahead_seconds == 0:
            machine.let_time_pass()
            time.sleep(0.01)
        assert process.wait(60) == 0
    assert 3600 - 60 <= machine.ahead_seconds <= 3660
