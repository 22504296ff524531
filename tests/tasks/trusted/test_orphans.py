"""Real processes whose starter is killed: they end, busy or not, and also when it died before they began."""

import os
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest

REPOSITORY = str(Path(__file__).parents[3])
LONGEST_WAIT = 60.0
BUSY = """
import sys, time
from multiprocessing.connection import Connection
from tasks.ingest.sandbox import end_with_peer
asker = Connection(int(sys.argv[1]))
{begin}
print("begun", flush=True)
while True:
    sum(range(100_000))
"""
POOL = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from tests.tasks.trusted.test_orphans import busy
{imports}
if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"){initializer})
    for _ in range(2):
        pool.submit(busy)
    time.sleep(600)
"""


def busy():
    os.write(1, f"{os.getpid()}\n".encode())  # at once: there are two of them
    while True:
        sum(range(100_000))


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds=LONGEST_WAIT):
    deadline = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(lives, pids))


def started(text, *words, **more):
    return subprocess.Popen(
        [sys.executable, "-c", text, *words], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, **more
    )


@pytest.mark.parametrize(("begin", "ends"), [("end_with_peer(asker.fileno())", True), ("", False)])
@pytest.mark.slow
def test_a_busy_process_ends_when_its_peer_is_closed(begin, ends):
    """The control, which does not watch, does not end."""
    own, theirs = Pipe()
    process = started(BUSY.format(begin=begin), str(theirs.fileno()), pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        assert process.stdout.readline() == "begun\n"
        own.send("nobody reads this: it is busy")
        assert lives(process.pid)
        own.close()
        assert gone([process.pid], LONGEST_WAIT if ends else 1.0) is ends
    finally:
        process.kill()
        process.communicate()


def test_a_peer_that_was_gone_before_is_noticed():
    own, theirs = Pipe()
    own.close()
    process = started(BUSY.format(begin="end_with_peer(asker.fileno())"), str(theirs.fileno()),
                      pass_fds=[theirs.fileno()])  # fmt: skip
    theirs.close()
    try:
        assert gone([process.pid])
    finally:
        process.kill()
        process.communicate()


def workers_of(initializer, imports):
    """A process with a pool of two that are busy, and their ids."""
    pool = started(POOL.format(initializer=initializer, imports=imports))
    return pool, [int(pool.stdout.readline()) for _ in range(2)]


@pytest.mark.parametrize("watched", [True, False])
def test_a_pool_s_workers_end_when_its_owner_is_killed(watched):
    """The control's workers live on."""
    pool, workers = workers_of(
        ", initializer=end_with_parent" if watched else "",
        "from tasks.ingest.sandbox import end_with_parent",
    )
    try:
        assert all(map(lives, workers))
        pool.kill()
        pool.wait()
        assert gone(workers, LONGEST_WAIT if watched else 1.0) is watched
    finally:
        pool.kill()
        for pid in filter(lives, workers):
            os.kill(pid, 9)
        pool.communicate()
