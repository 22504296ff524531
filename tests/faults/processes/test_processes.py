"""The campaign of processes: by night a world on each database."""

import pytest

from tests.faults.processes import campaign
from tests.faults.processes.machine import why_not
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
