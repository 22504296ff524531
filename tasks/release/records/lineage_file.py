"""What the file of lineage events says: read without OpenLineage's client, whose import takes long."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import date

import orjson

from tasks.config import Settings

EVENTS = "events.jsonl"


def told_releases(settings: Settings, days: Sequence[date] | None = None) -> frozenset[tuple[str, int]]:
    """The days, and their revisions, that the lineage of the configured stream knows as published.

    days: only of these. Ten years of many regions are gigabytes: no more than a line is held, and only those
    that name a day are parsed.
    """
    job, told = f"{settings.stream.name}.release", set()
    wanted = None if days is None else [day.isoformat().encode() for day in days]
    with ExitStack() as stack:
        try:
            lines = stack.enter_context((settings.lineage_folder / EVENTS).open("rb"))
        except FileNotFoundError:
            return frozenset()
        for line in lines:
            if wanted is not None and not any(day in line for day in wanted):
                continue
            with suppress(ValueError, KeyError, TypeError):  # a torn line tells nothing
                event = orjson.loads(line)
                if event["job"]["name"] == job:
                    statement = event["run"]["facets"]["optstream_privacy"]["statement"]
                    told.add((str(statement["period"]), int(statement["revision"])))
    return frozenset(told)
