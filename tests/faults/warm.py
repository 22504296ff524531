"""Imports, computes and compiles what each first night would, but for polars' threads."""

import gc
import tempfile
from datetime import timedelta
from pathlib import Path

from optstream.stream import days_from
from tasks.plan import long_spans
from tests.faults import night  # noqa: F401
from tests.faults.world import DAYS, make_world
from tests.warm_libraries import warm_libraries

warm_libraries()
# no fault is of what is planned for a month and a year
long_spans.HORIZONS = (2, 5)
long_spans.days_from = lambda first, _: days_from(first, first + timedelta(days=9))
with tempfile.TemporaryDirectory() as folder:
    for mechanism in ("OptStream", "HistoryInformed", "PeGaSus"):
        world = make_world(Path(folder, mechanism), Path(folder), mechanism=mechanism)
        long_spans.long_spans_of(world.settings, DAYS[0], 0)
gc.freeze()  # else each fork copies what its collections look through
