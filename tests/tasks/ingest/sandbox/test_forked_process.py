"""A reader of dumps that is a fork of who asks: it reads as a fresh one does, and ends as that."""

import os
import subprocess
import sys

import pytest

from tests.flows.served import gone, until
from tests.tasks.conftest import DAY
from tests.tasks.ingest.sandbox.test_process import NEXT, metered, spoil

__all__ = ["metered"]  # a fixture

FORKS = "import sys; from tests.tasks.ingest.sandbox.askers import fork; fork(*sys.argv[1:])"
pytestmark = pytest.mark.slow


def asking(stream):
    """A process that forks its reader: this one has threads, and may not."""
    words = [sys.executable, "-c", FORKS, str(stream.settings.file), str(NEXT), str(DAY)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


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
