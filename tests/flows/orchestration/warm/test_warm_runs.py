"""The process that runs are forked from: a run has the worker's environment, and ends with its starter."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from flows.orchestration import warm_start
from tests.flows.served import CHECKOUT, descendants, gone, until

pytestmark = pytest.mark.slow

RUN = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A warm process in a folder of a long name, and its socket."""
    folder = tmp_path_factory.mktemp("warm") / ("long" * 40)
    folder.mkdir()
    path = folder / "warm.socket"
    words = [sys.executable, "-m", "flows.orchestration.warm_runs", str(path)]
    process = subprocess.Popen(words, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)})
    until("it answers", path.exists, 300)
    yield process, path
    process.kill()
    process.wait()


@pytest.fixture
def silent_server():
    """The address of an API that takes a run's question and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/api"


def start(path, tmp_path, run=RUN, **variables):
    command = [sys.executable, "-I", "-S", warm_start.__file__, str(path)]
    environment = os.environ | {"PREFECT__FLOW_RUN_ID": run, "PREFECT_HOME": str(tmp_path)} | variables
    return subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_run_ends_as_it_would_by_itself_and_says_so_to_the_worker(warm, tmp_path):
    started = start(warm[1], tmp_path, run="none")
    _, said = started.communicate(timeout=120)
    assert started.returncode == 1
    assert "Invalid flow run id" in said


def test_only_the_owner_reaches_it(warm):
    assert warm[1].stat().st_mode & 0o777 == 0o600


def run_of(warm):
    """The process of the one run that is under way: a child of a child of the warm process. It may have begun
    the one that reads its dumps.
    """
    return until("a run is under way", lambda: descendants(warm[0].pid)[1:2], 120)


def test_a_run_has_the_environment_and_the_folder_of_the_worker(warm, tmp_path, silent_server):
    started = start(warm[1], tmp_path, PREFECT_API_URL=silent_server, MARK="of the worker")
    (run,) = run_of(warm)
    until("it is there", lambda: Path(f"/proc/{run}/cwd").readlink() == tmp_path, 30)
    for number in (1, 2):
        its, ours = (Path(f"/proc/{one}/fd/{number}").readlink() for one in (run, started.pid))
        assert its == ours
    started.kill()
    started.communicate()
    until("the run is gone", lambda: gone([run]), 30)
    until("nobody stands between", lambda: not descendants(warm[0].pid), 30)


def test_a_polite_stop_reaches_the_run(warm, tmp_path, silent_server):
    started = start(warm[1], tmp_path, PREFECT_API_URL=silent_server)
    (run,) = run_of(warm)
    until("it knows the run", lambda: _handles(started.pid, signal.SIGTERM), 30)
    started.terminate()
    started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert gone([run])


def test_a_run_that_is_killed_is_told_as_killed(warm, tmp_path, silent_server):
    started = start(warm[1], tmp_path, PREFECT_API_URL=silent_server)
    (run,) = run_of(warm)
    os.kill(run, signal.SIGKILL)
    started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGKILL


def test_a_run_ends_with_the_process_that_stands_between(warm, tmp_path, silent_server):
    started = start(warm[1], tmp_path, PREFECT_API_URL=silent_server)
    (run,) = run_of(warm)
    os.kill(descendants(warm[0].pid)[0], signal.SIGKILL)
    started.communicate(timeout=60)
    assert started.returncode == warm_start.CRASHED
    until("the run is gone", lambda: gone([run]), 30)


def test_a_stop_that_comes_when_the_run_is_over_changes_nothing_of_how_it_ended(tmp_path):
    """The run is gone, and how it ended is still on its way: nobody is there to be stopped."""
    over = subprocess.Popen(["true"])
    over.wait()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        started = start(tmp_path / "s", tmp_path)
        end, _ = listening.accept()
        with end:
            end.sendall(f"{over.pid}\n".encode())
            until("it knows the run", lambda: _handles(started.pid, signal.SIGTERM), 30)
            started.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                started.wait(0.5)
            end.sendall(b"0\n")
            assert started.wait(60) == 0
    assert started.communicate() == ("", "")  # its streams lay in the socket until now


@pytest.mark.parametrize("name", ["s", "none"])
def test_a_warm_process_that_hangs_or_is_not_there_is_not_waited_for_without_end(tmp_path, name):
    """Nights are forked from it."""
    waits = f"""
import pathlib, runpy
main = runpy.run_path({warm_start.__file__!r})["main"]
main.__globals__.update(PATIENCE=0.5, FRESH=("-c", "print('fresh')"))
main(pathlib.Path({str(tmp_path / name)!r}))
"""
    said = tmp_path / "said"  # a pipe would lie open in the socket
    with socket.socket(socket.AF_UNIX) as listening, said.open("w") as out:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        subprocess.run([sys.executable, "-I", "-S", "-c", waits], stdout=out, check=True, timeout=60)
    assert said.read_text() == "fresh\n"


@pytest.mark.nightly
def test_where_no_warm_process_answers_a_fresh_one_runs(tmp_path):
    started = start(tmp_path / "none.socket", tmp_path, run="none")
    _, said = started.communicate(timeout=300)
    assert started.returncode == 1
    assert "Invalid flow run id" in said


def _handles(process, number):
    """Whether a process has a handler of its own for a signal."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
