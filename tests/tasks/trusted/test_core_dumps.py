"""A process that reads or draws leaves no core dump, however it ends; real processes, ended by abort()."""

import os
import resource
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.tasks.two_regions import Installation

pytestmark = pytest.mark.slow

DAY = date(2016, 6, 1)
PROGRAM = """
import sys
from pathlib import Path
from tests.tasks.trusted.test_core_dumps import run_until
run_until(Path(sys.argv[1]), sys.argv[2])
"""


class Aborting:
    simulated = False

    def discrete_laplace(self, scale, size):
        os.abort()


def run_until(folder, end):
    """What the process under test does: take a day's steps, and end it at this place."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.chdir(folder)
    installation = Installation(folder)
    if end == "before it reads":
        os.abort()
    installation.release(DAY, noise=Aborting())


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0
    or Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"),
    reason="this machine writes no core file for anybody",
)
@pytest.mark.parametrize(
    ("end", "dumped"),
    [pytest.param("before it reads", True, marks=pytest.mark.nightly), ("at its first sample", False)],
)
def test_a_process_that_draws_leaves_no_core_dump(installation, end, dumped):
    """Control: the same process before it has read a dump leaves one."""
    ended = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(installation.folder), end], stderr=subprocess.DEVNULL
    )
    _, status = os.waitpid(ended.pid, 0)
    ended.returncode = os.waitstatus_to_exitcode(status)
    for core in installation.folder.glob("core*"):
        core.unlink()
    assert os.WIFSIGNALED(status)
    assert os.WCOREDUMP(status) == dumped


def test_it_is_not_dumpable_either_where_core_dumps_go_to_a_program():
    """The kernel does not ask the limit there; whether it is dumpable it always asks."""
    program = (
        "from tasks.trusted.files import forbid_core_dumps; import ctypes, resource; "
        "get = 3; before = ctypes.CDLL(None).prctl(get, 0, 0, 0, 0); forbid_core_dumps(); "
        "print(before, ctypes.CDLL(None).prctl(get, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "1 0 0\n"
