"""Imports, computes and compiles what each first night would, but for polars' threads."""

import gc
import tempfile
from pathlib import Path

from tasks.release import mechanism
from tests.cheap_days import plan_few_days, warm_libraries
from tests.faults import night  # noqa: F401
from tests.faults.world import DAYS, make_world

warm_libraries()
plan_few_days()
with tempfile.TemporaryDirectory() as folder:
    for name in ("OptStream", "HistoryInformed", "PeGaSus"):
        world = make_world(Path(folder, name), Path(folder), mechanism=name)
        mechanism.long_spans_of(world.settings, DAYS[0], 0)
gc.freeze()  # else each fork copies what its collections look through
