"""The campaign of processes: what its seed decides, and by night a world on each database."""

from contextlib import nullcontext

import pytest

from tests.faults.kept import Kept
from tests.faults.processes import campaign
from tests.faults.processes.faults import draw_fault
from tests.faults.processes.machine import why_not
from tests.faults.processes.worlds import MECHANISMS, spec
from tests.temporary_postgresql import find_binaries

NOT_HERE = why_not() or (None if find_binaries() else "no PostgreSQL server")
KINDS = ("kill", "stop", "end", "clock", "slow")
"""Those that cost no more time than the run they strike."""


@pytest.mark.skipif(NOT_HERE is not None, reason=str(NOT_HERE))
@pytest.mark.nightly
def test_a_few_faults(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "A_WORLD", 1)
    monkeypatch.setattr(campaign, "ASKED_KINDS", KINDS)
    said = []
    good = campaign.run(faults=2, seed=2, into=tmp_path, at_once=2, say=said.append)
    assert good, "\n".join(said)
    databases = [line.split("(")[1].split(",")[0] for line in said if line.startswith("world ")]
    assert sorted(databases) == ["postgresql", "sqlite"]


def test_the_seed_decides_everything():
    def story(seed, number):
        chance = spec(seed, number).chance()
        return [draw_fault(chance, "postgresql", tuple(campaign.KINDS)) for _ in range(50)]

    assert story(1, 3) == story(1, 3)
    assert story(1, 3) != story(2, 3)
    assert story(1, 3) != story(1, 4)
    assert {fault.kind for fault in story(1, 3)} == set(campaign.KINDS)


def test_worlds_take_turns():
    worlds = [spec(1, number) for number in range(24)]
    assert {(one.database, one.mechanism) for one in worlds} == {
        (database, mechanism) for database in ("sqlite", "postgresql") for mechanism in MECHANISMS
    }
    assert {one.database for one in worlds if one.place == "s3"} == {"sqlite", "postgresql"}
    assert {(one.database, one.server) for one in worlds} == {
        (database, server) for database in ("sqlite", "postgresql") for server in (True, False)
    }
    assert {one.server for one in worlds if one.dask} == {True, False}
    for trait in ("database", "server", "place"):
        assert len({(getattr(one, trait), one.signed) for one in worlds}) == 4
    # SQLite is for processes of one machine
    assert {one.database for one in worlds if one.dask} == {"postgresql"}


def test_worlds_that_are_done_are_not_tried_again(tmp_path, monkeypatch):
    """A campaign of 20 that was stopped after 12: the rest alone is tried."""
    kept = Kept(tmp_path / "rows.json")
    kept.begin(20, 0, 5)
    done = campaign.Tally(12, kinds={"kill": 12})
    kept.keep("0", campaign.ROW, done)
    tried = []

    class Pool:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, _work, asked, *_):
            tried.append(asked.number)
            future = campaign.Future()
            future.set_result(campaign.Tally(8, kinds={"stop": 8}))
            return future

    monkeypatch.setattr(campaign, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(campaign, "standing_on", lambda: nullcontext(("", "")))
    said = []
    assert campaign.run(20, 5, tmp_path, at_once=1, say=said.append)
    assert tried == [1]
    assert said[-1].endswith("20 faults")
