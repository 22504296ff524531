"""Simulated dumps: the same in any range, whole or absent, and completed by their marker."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from tasks.operate.simulate import simulate
from tests.failing import death_at

pytestmark = pytest.mark.slow

MONDAY = date(2016, 2, 1)


def test_a_dump_is_whole_or_absent_and_one_without_its_marker_is_completed(small):
    settings = small().settings
    folder = settings.input_folder / "region=84" / f"date={MONDAY}"
    with death_at(Path, "rename", error=KeyboardInterrupt):
        simulate(settings, [MONDAY])
    assert list(folder.parent.iterdir()) == []
    for is_new in (True, False):
        assert simulate(settings, [MONDAY]) == [True, is_new]
        assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]
        (folder / "_SUCCESS").unlink()
    # the same in any range
    assert simulate(settings, [MONDAY, MONDAY + timedelta(days=1)])[:2] == [True, False]
