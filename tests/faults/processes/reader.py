"""Looks all the time at what a reader could see, and remembers it."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import polars as pl

from optstream.catalogue import find_catalogue, read_published
from optstream.errors import OptStreamError
from tests.faults.judge import Seen

KEY = ["date", "revision", "vintage"]
SECONDS_BETWEEN_LOOKS = 0.3


def digest_of(rows: pl.DataFrame) -> str:
    """Of the values, by column and row."""
    return hashlib.sha256(rows.sort(["step", "node"]).write_csv().encode()).hexdigest()


def look(where: Path, seen: set[Seen], public_key: Path | None = None) -> None:
    """Once: with OptStream's reader, which asks for signatures where there is a key, and past it."""
    catalogue = find_catalogue(where)
    if catalogue is None:
        return
    try:
        rows = read_published(where, verify=True, public_key=public_key)
        for (day, revision, vintage), part in rows.partition_by(KEY, as_dict=True).items():
            seen.add(("read_published", str(day), revision, vintage, digest_of(part)))
    except OptStreamError as error:
        seen.add(("error", f"read_published: {error}"))
    for entry in catalogue.entries:
        if entry.withdrawn:
            continue
        key = (str(entry.period), entry.revision, entry.vintage)
        try:
            data = (where / entry.file).read_bytes()
        except FileNotFoundError:
            continue  # superseded or withdrawn since the catalogue was read
        seen.add(("bytes", *key, hashlib.sha256(data).hexdigest()))
        try:
            seen.add(("plain polars", *key, digest_of(pl.read_parquet(io.BytesIO(data)))))
        except pl.exceptions.PolarsError as error:
            seen.add(("error", f"polars cannot read {entry.file}: {error}"))


@contextmanager
def reading(where: Path, public_key: Path | None) -> Iterator[set[Seen]]:
    """What is seen while the block runs."""
    seen, over = set[Seen](), Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            try:
                look(where, seen, public_key)
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is to be known
                seen.add(("error", f"{type(error).__name__}: {error}"))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
