"""The study of streams of many kinds, in a short form."""

import pytest

from studies.streams import KINDS
from tests.studies.command import invoke


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("load")])
def test_each_made_up_stream_has_a_row_for_each_level(kind, tmp_path):
    done = invoke("streams", "--data", str(tmp_path), "--stream", kind, "--draws", "1", "--days", "8")
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(f"{kind} ")]
    assert [row[1] for row in rows] == [str(level) for level in range(len(rows))]
    assert all(len(row) == 16 for row in rows)


def test_an_unknown_stream_is_refused(tmp_path):
    assert invoke("streams", "--data", str(tmp_path), "--stream", "gas").exit_code == 2
