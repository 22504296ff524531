"""Writes down all that a reader could see: `python -m tests.faults.processes.reader FOLDER NOTES [KEY]`."""

import hashlib
import io
import json
import os
import select
import sys
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path

import polars as pl

from optstream.catalogue import find_catalogue, read_published
from optstream.errors import OptStreamError

Note = Callable[..., None]
KEY = ["date", "revision", "vintage"]
SECONDS_OF_A_GLANCE = 0.2
"""Between two glances at names, sizes and times: a look at all contents follows only where they changed."""
SECONDS_OF_A_LOOK = 5.0
"""After so long all contents are looked at again whatever a glance says."""


def digest_of(rows: pl.DataFrame) -> str:
    """Of the values, by column and row."""
    return hashlib.sha256(rows.sort(["step", "node"]).write_csv().encode()).hexdigest()


def look(folder: str, note: Note, public_key: str | None = None) -> None:
    """Once: with OptStream's reader, which asks for signatures where there is a key, and past it."""
    where = Path(folder)
    catalogue = find_catalogue(where)
    if catalogue is None:
        return
    try:
        rows = read_published(where, verify=True, public_key=public_key)
        for (day, revision, vintage), part in rows.partition_by(KEY, as_dict=True).items():
            note("read_published", str(day), revision, vintage, digest_of(part))
    except OptStreamError as error:
        note("error", f"read_published: {error}")
    for entry in catalogue.entries:
        if entry.withdrawn:
            continue
        key = (str(entry.period), entry.revision, entry.vintage)
        try:
            data = (where / entry.file).read_bytes()
        except FileNotFoundError:
            continue  # superseded or withdrawn since the catalogue was read
        note("bytes", *key, hashlib.sha256(data).hexdigest())
        try:
            note("plain polars", *key, digest_of(pl.read_parquet(io.BytesIO(data))))
        except pl.exceptions.PolarsError as error:
            note("error", f"polars cannot read {entry.file}: {error}")


def glance(folder: str) -> Hashable:
    found = set()
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                known = os.lstat(f"{place}/{name}")
                found.add((place, name, known.st_ino, known.st_size, known.st_mtime_ns))
    return frozenset(found)


def watch(folder: str, notes: Path, public_key: str | None = None) -> None:
    """Until nobody is at the other end of standard input."""
    known = set()
    with notes.open("a") as file:

        def note(*seen: object) -> None:
            if seen not in known:
                known.add(seen)
                print(json.dumps(seen), file=file, flush=True)

        looks, glanced, due = 0, None, 0.0
        while True:
            try:
                seen = glance(folder)
                if seen != glanced or time.monotonic() >= due:
                    look(folder, note, public_key)
                    looks += 1
                    glanced, due = seen, time.monotonic() + SECONDS_OF_A_LOOK
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is to be known
                note("error", f"{type(error).__name__}: {error}")
            ready, _, _ = select.select([sys.stdin], [], [], SECONDS_OF_A_GLANCE)
            if ready:
                note("looks", looks)
                return


if __name__ == "__main__":
    watch(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
