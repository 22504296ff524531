"""What a run and the process that reads its dumps say to each other: JSON and Arrow, data and no code."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from optstream.catalogue.backends import Location, StoreUrl
from optstream.errors import OptStreamError
from optstream.stream import period_from
from tasks.config import Settings
from tasks.ingest import Dump
from tasks.ingest.days import ReadDay
from tasks.ingest.places import Place
from tasks.ingest.schema import UNREADABLE

UNITS = "units"


def request(settings: Settings, dumps: Sequence[Dump], *, footers: bool = False) -> bytes:
    """The dumps, and of the settings what reading needs: no ledger, no mechanism's keys, no folder.

    footers: nothing else of them is read.
    """
    known = settings.model_dump(mode="json", by_alias=True, exclude={"mechanism", "ledger", "folder", "file"})
    rest = {
        "mechanism": {"name": settings.mechanism.name},
        "ledger": {"url": ""},
        "folder": ".",
        "file": ".",
    }
    days = [
        {
            "day": dump.day.isoformat(),
            "files": [[[str(file), dump.hashes.get(file, "")] for file in own] for own in dump.files],
        }
        for dump in dumps
    ]
    return json.dumps({"settings": known | rest, "dumps": days, "footers": footers}).encode()


def requested(message: bytes) -> tuple[Settings, list[Dump], bool]:
    """What `request` said."""
    given = json.loads(message)
    dumps = []
    for dump in given["dumps"]:
        files = tuple(tuple(_located(file) for file, _ in own) for own in dump["files"])
        hashes = {_located(file): tag for own in dump["files"] for file, tag in own if tag}
        dumps.append(Dump(period_from(dump["day"]), files, hashes))
    return Settings.model_validate_json(json.dumps(given["settings"])), dumps, given["footers"]


def _located(text: str) -> Location:
    # of a path pathlib makes no text with "//"
    return StoreUrl(text) if "://" in text else Path(text)


def answer(read: Sequence[ReadDay] | str) -> Iterator[bytes]:
    """The days that were read, or in words why not, in several messages: raw sums are among them."""
    if isinstance(read, str):
        yield json.dumps({"error": read}).encode()
        return
    days = [
        {
            "day": day.day.isoformat(),
            "sound": day.units is not None,
            "fits_clock": day.fits_clock,
            "places": [[*key, place.file, place.step, place.found] for key, place in day.places.items()],
        }
        for day in read
    ]
    yield json.dumps({"days": days}).encode()
    for day in read:
        yield _arrow(day.metrics)
        if day.units is not None:
            yield _arrow(pl.DataFrame({UNITS: day.units.ravel()}))


def answered(messages: Iterable[bytes], settings: Settings, dumps: Sequence[Dump]) -> list[ReadDay] | str:
    """What `answer` said, taken from as many messages as it has.

    The process has decoded files that others made, so nothing that it says is taken for granted. Raises
    OptStreamError, repeating none of it, where it is no answer to this request.
    """
    source = iter(messages)
    try:
        given = json.loads(next(source))
        if "error" in given:
            return str(given["error"])
        if [day["day"] for day in given["days"]] != [dump.day.isoformat() for dump in dumps]:
            raise ValueError
        pairs = zip(dumps, given["days"], strict=True)
        return [_day(dump.day, said, source, settings) for dump, said in pairs]
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        StopIteration,
        RecursionError,
        *UNREADABLE,
    ) as error:
        if isinstance(error, OSError):
            raise  # it is gone
        raise OptStreamError(
            f"{dumps[0].day}: the process that reads dumps gave no answer to what it was asked; run again"
        ) from None


def _day(day: date, said: Any, source: Iterator[bytes], settings: Settings) -> ReadDay:
    leaves = settings.tree_of(day).leaves
    metrics = pl.read_ipc_stream(BytesIO(next(source)))
    if metrics["region"].to_list() != list(leaves):
        raise ValueError
    units = None
    if said["sound"]:
        shape = (len(leaves), settings.calendar.n_steps(day))
        sums = pl.read_ipc_stream(BytesIO(next(source)))[UNITS]
        if sums.dtype != pl.Int64 or sums.null_count():
            raise ValueError
        units = sums.to_numpy().reshape(shape).astype(np.int64)
    places = {
        (str(region), str(rule)): Place(
            None if file is None else str(file),
            None if step is None else int(step),
            tuple(str(name) for name in found),
        )
        for region, rule, file, step, found in said["places"]
    }
    return ReadDay(day, units, metrics, places, said["fits_clock"] is True)


def _arrow(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()
