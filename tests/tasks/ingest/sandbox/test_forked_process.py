"""A reader of dumps that is a fork of who asks: it reads as a fresh one does, and ends as that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optstream.errors import DumpError
from tasks.config import load_settings
from tasks.ingest import discover
from tasks.ingest.sandbox.process import IDLE, fork_reader, reading_apart
from tests.flows.served import gone, until
from tests.tasks.conftest import DAY
from tests.tasks.ingest.sandbox.test_process import NEXT, metered, spoil

__all__ = ["metered"]  # a fixture

FORKS = "import sys; from tests.tasks.ingest.sandbox.test_forked_process import fork; fork(sys.argv[1])"
pytestmark = pytest.mark.slow


def asking(stream):
    """A process that forks its reader: this one has threads, and may not."""
    words = [sys.executable, "-c", FORKS, str(stream.settings.input_folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def fork(folder):
    """Read one day, say who reads and which files that one has, and read the day that ends it."""
    fork_reader()
    (reader,) = IDLE
    settings = load_settings(Path(folder).parent / "optstream.toml")
    with reading_apart() as read:
        (day,) = read(settings, list(discover(settings, [NEXT]).values()))
        pid = reader._process.pid
        open_files = sorted(str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (0, 1, 2))
        print(pid, day.day, day.metrics.height, *open_files, flush=True)
        if input() == "more":
            try:
                read(settings, list(discover(settings, [DAY]).values()))
            except DumpError as error:
                print(error)
    assert not any(process is reader for process in IDLE)


def test_a_fork_reads_and_a_file_that_ends_it_costs_its_own_day(metered):
    spoil(metered.folder("11") / "part-7.parquet")
    asker = asking(metered)
    said, erred = asker.communicate("more\n", timeout=240)
    first, second = said.splitlines()
    assert first.split()[1:] == [str(NEXT), "2", *[os.devnull] * 3]
    assert "part-7.parquet': the process that reads" in second
    assert "SIGABRT" in second
    assert erred == "", "what it says last may hold a reading"
    assert asker.returncode == 0


def test_a_fork_ends_with_who_asked(metered):
    asker = asking(metered)
    reader = int(asker.stdout.readline().split()[0])
    assert not gone([reader])
    asker.kill()
    asker.communicate()
    until("the reader is gone", lambda: gone([reader]), 30)
