"""What a worker of a cluster does, with none of the tests' libraries: those take seconds to import."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from flows.orchestration.workers import over_cluster
from optstream.stream.private_period import open_private_period
from tasks.config import load_settings
from tasks.ingest import discover, ingest
from tests.killed_once import killed_once


def read(
    file: Path, days: Sequence[date], mark: Path | None = None
) -> tuple[list[Any], list[Any], list[int]]:
    """What a month's task does on a worker, as plain values; in how many parts it was read.

    mark: a file that is not there before the first part, whose worker is then killed.
    """
    settings, spread = load_settings(file), over_cluster()
    asked: list[int] = []

    def counted(work: Any, items: Any) -> Any:
        asked.append(len(items))
        assert spread is not None
        return spread(partial(killed_once, work, mark) if mark else work, items)

    found = discover(settings, days)
    done = ingest(settings, [found[day] for day in days], counted if spread else None)  # type: ignore[misc]
    periods = [None if day.period is None else open_private_period(day.period).tolist() for day in done]
    return periods, [day.metrics.to_dicts() for day in done], asked
