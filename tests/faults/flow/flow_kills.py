"""Killing the real flow, many times, beside one server that outlives them all."""

import json
import os
import random
import subprocess
import sys
import time

from tests.faults.bench import Bench
from tests.faults.fork_server import CHECKOUT, die_with_parent
from tests.faults.judge import Judge
from tests.faults.night import LastWords
from tests.faults.points.attacks import Tally
from tests.faults.world import DAYS, World

LONGEST_SECONDS = 180


def start_flow(world: World, api: str, **wishes: object) -> "subprocess.Popen[str]":
    """The first day through the real flow, in a process of its own. wishes: of `real_flow`."""
    environment = os.environ | {
        "PREFECT_API_URL": api,
        "PYTHONPATH": str(CHECKOUT),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_HOME": str(world.folder.parent / "prefect"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.flow.real_flow", str(world.configuration), json.dumps(wishes)],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent,
    )


def wait_until_ready(process: "subprocess.Popen[str]") -> None:
    """Until it has imported everything and is about to enter the flow."""
    assert process.stdout
    while line := process.stdout.readline():
        if line.startswith("READY"):
            return
    raise AssertionError(f"the flow ended before it began: {process.wait()}")


def wait_until_stopped(process: "subprocess.Popen[str]") -> None:
    """Until it stands still at its point."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status


def ended(process: "subprocess.Popen[str]") -> LastWords:
    """What it says, as a night would: one day, good or not."""
    output, _ = process.communicate(timeout=LONGEST_SECONDS)
    good = process.returncode == 0
    return LastWords(
        {DAYS[0].isoformat(): "published" if good else "failed"},
        {DAYS[0].isoformat(): output},
        None if process.returncode in (0, 1) else f"exit code {process.returncode}",
    )


def kill_flows(bench: Bench, kills: int, seed: int, api: str) -> Tally:
    """Kill the flow at random times after it begins, each in a world of its own; then let it finish."""
    chance, tally = random.Random(seed), Tally()
    process = start_flow(bench.world(), api)
    wait_until_ready(process)
    begun = time.monotonic()
    ended(process)
    longest = time.monotonic() - begun
    while tally.tried < kills:
        judge = Judge(bench.world())
        process = start_flow(judge.world, api)
        wait_until_ready(process)
        time.sleep(chance.uniform(0, longest))
        process.kill()
        process.communicate()
        broken = judge.look()
        rerun = start_flow(judge.world, api, hours=1)
        said = ended(rerun)
        tally.add([judge], broken + judge.at_the_end([DAYS[0]], said), int(process.returncode == -9))
    return tally
