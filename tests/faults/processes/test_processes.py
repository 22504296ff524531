"""The campaign of processes: what its seed decides, and by night a world on each database."""

import pytest

from tests.faults.processes import campaign
from tests.faults.processes.faults import KINDS, draw_fault
from tests.faults.processes.machine import why_not
from tests.faults.processes.worlds import MECHANISMS, spec
from tests.temporary_postgresql import find_binaries

NOT_HERE = why_not() or (None if find_binaries() else "no PostgreSQL server")
FAST_KINDS = ("kill", "stop", "end", "clock", "slow")
"""Those that cost no more time than the run they strike."""


@pytest.mark.skipif(NOT_HERE is not None, reason=str(NOT_HERE))
@pytest.mark.nightly
def test_a_few_faults(tmp_path):
    said = []
    good = campaign.run(2, 2, tmp_path, iter(range(2)), of_a_world=1, kinds=FAST_KINDS, say=said.append)
    assert good, "\n".join(said)
    databases = [line.split("(")[1].split(",")[0] for line in said if line.startswith("world ")]
    assert sorted(databases) == ["postgresql", "sqlite"]


def test_the_seed_decides_everything():
    def story(seed, number):
        chance = spec(seed, number).chance()
        return [draw_fault(chance, "postgresql", tuple(KINDS)) for _ in range(50)]

    assert story(1, 3) == story(1, 3)
    assert story(1, 3) != story(2, 3)
    assert story(1, 3) != story(1, 4)
    assert {fault.kind for fault in story(1, 3)} == set(KINDS)


def test_worlds_take_turns():
    worlds = [spec(1, number) for number in range(24)]
    assert len({(one.database, one.mechanism, one.server, one.signed) for one in worlds}) == 24
    assert {one.mechanism for one in worlds} == {*MECHANISMS}
