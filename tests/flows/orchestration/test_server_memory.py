"""The temporary server's database and log stay bounded however many runs there are."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial

import pytest

from flows.orchestration import server
from flows.orchestration.server_memory import DATABASE, LARGEST, LOG, bound_memory

ROWS = 50
START = """
import sys
from pathlib import Path
from flows.orchestration import server_memory
server_memory.bound_memory.__defaults__ = (1000,)
from flows.orchestration.server import prepare
prepare(Path(sys.argv[1])).wait(300)
"""
ASKED = """
import sys
from pathlib import Path
from flows.orchestration import environment, server
environment.start_server = lambda home, secret, bounded: print(bounded) or server.Orchestrator("")
environment.prepare(Path(sys.argv[1]))
"""


def run(home):
    """What a run leaves: rows in write-ahead mode, as Prefect's server has its database, and log lines."""
    with closing(sqlite3.connect(home / DATABASE)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE IF NOT EXISTS runs (text TEXT)")
        database.executemany("INSERT INTO runs VALUES (?)", [("x" * 1000,)] * ROWS)
        database.commit()
    with (home / LOG).open("a") as log:
        log.write("y" * 50_000)


def total(home):
    return sum(path.stat().st_size for path in home.iterdir())


def rows(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT count(*) FROM runs").fetchone()[0]


def test_runs_do_not_grow_it_without_bound(tmp_path):
    """The control, without the bound, does."""
    bounded, control = tmp_path / "bounded", tmp_path / "control"
    sizes = []
    for home in (bounded, control):
        home.mkdir()
        for _ in range(40):
            if home is bounded:
                bound_memory(home, 200_000)
            run(home)
        sizes.append(total(home))
    assert sizes[0] < 4 * 300_000
    assert sizes[1] > 40 * 100_000
    assert {path.name for path in bounded.iterdir()} == {DATABASE, LOG, f"{DATABASE}.old", f"{LOG}.old"}
    assert rows(bounded / f"{DATABASE}.old") >= ROWS, "what was in the write-ahead log is kept"


def test_what_is_small_stays(tmp_path):
    bound_memory(tmp_path)
    run(tmp_path)
    bound_memory(tmp_path)
    assert rows(tmp_path / DATABASE) == ROWS
    assert LARGEST > 10**7


def test_a_database_that_a_server_has_open_stays(tmp_path):
    run(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as other:
        other.execute("SELECT count(*) FROM runs").fetchone()
        bound_memory(tmp_path, 1000)
        assert rows(tmp_path / DATABASE) == ROWS
        assert not (tmp_path / f"{DATABASE}.old").exists()
    bound_memory(tmp_path, 1000)
    assert not (tmp_path / DATABASE).exists()


@pytest.mark.parametrize(
    ("chosen", "bounded"),
    [
        ({}, True),
        ({"PREFECT_HOME": "own"}, False),
        ({"PREFECT_API_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///own.db"}, False),
    ],
)
def test_what_the_operator_chose_is_not_cleared(tmp_path, chosen, bounded):
    done = started(ASKED, tmp_path, **chosen)
    assert done.stdout.strip() == str(bounded), done.stderr


def test_a_real_server_s_database_is_put_aside(tmp_path):
    """Two runs, each with a server of its own."""
    home = tmp_path / "trusted/prefect"
    for times in range(2):
        assert (home / f"{DATABASE}.old").exists() is False
        done = started(START, tmp_path)
        assert done.returncode == 0, (times, done.stderr)
    assert (home / DATABASE).is_file()
    assert (home / f"{DATABASE}.old").is_file()


def started(text, folder, **chosen):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", text, str(folder / "trusted")]
    return subprocess.run(command, env=plain | chosen, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("parent", "code"), [(os.getpid, 0), (lambda: 2**30, 1)])
def test_a_child_whose_parent_is_gone_before_it_asks_does_not_begin(parent, code):
    """Linux would never tell it."""
    child = subprocess.Popen(
        [sys.executable, "-c", ""], preexec_fn=partial(server._end_with_parent, parent())
    )
    assert child.wait() == code
