"""A reader: looks at a published folder again and again, and writes down everything that anybody could see.

`python -m tests.faults.processes.reader FOLDER NOTES PAUSE`, until its standard input is closed. A line of
NOTES is JSON: [what was read, day, revision, vintage, digest], or ["error", text]; each is noted once.
"""

import hashlib
import io
import json
import select
import sys
from collections.abc import Callable
from pathlib import Path

import fsspec
import polars as pl

from optstream.catalogue import find_catalogue, read_published
from optstream.errors import OptStreamError

Note = Callable[..., None]
KEY = ["date", "revision", "vintage"]


def digest_of(rows: pl.DataFrame) -> str:
    """Of the values, by column and row."""
    return hashlib.sha256(rows.sort(["step", "node"]).write_csv().encode()).hexdigest()


def look(folder: str, note: Note) -> None:
    """Once: with OptStream's reader, and past it."""
    where = folder if "://" in folder else Path(folder)
    catalogue = find_catalogue(where)
    if catalogue is None:
        return
    try:
        rows = read_published(where, verify=True)
        for (day, revision, vintage), part in rows.partition_by(KEY, as_dict=True).items():
            note("read_published", str(day), revision, vintage, digest_of(part))
    except OptStreamError as error:
        note("error", f"read_published: {error}")
    for entry in catalogue.entries:
        if entry.withdrawn:
            continue
        key = (str(entry.period), entry.revision, entry.vintage)
        try:
            with fsspec.open(f"{folder}/{entry.file}", "rb") as file:
                data = file.read()
        except FileNotFoundError:
            continue  # superseded or withdrawn since the catalogue was read
        note("bytes", *key, hashlib.sha256(data).hexdigest())
        try:
            note("plain polars", *key, digest_of(pl.read_parquet(io.BytesIO(data))))
        except pl.exceptions.PolarsError as error:
            note("error", f"polars cannot read {entry.file}: {error}")


def watch(folder: str, notes: Path, pause: float) -> None:
    """Until nobody is at the other end of standard input."""
    known = set()
    with notes.open("a") as file:

        def note(*seen: object) -> None:
            if seen not in known:
                known.add(seen)
                print(json.dumps(seen), file=file, flush=True)

        looks = 0
        while True:
            try:
                look(folder, note)
                looks += 1
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is to be known
                note("error", f"{type(error).__name__}: {error}")
            ready, _, _ = select.select([sys.stdin], [], [], pause)
            if ready:
                note("looks", looks)
                return


if __name__ == "__main__":
    watch(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
