"""Faults of the systems that a world stands on; each is over when its block is."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.faults.world import World


@contextmanager
def locked(world: World) -> Iterator[None]:
    url = world.settings.ledger_url
    is_file = url.get_backend_name() == "sqlite"
    engine = create_engine(url if is_file else url.set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        if is_file:
            connection.connection.dbapi_connection.isolation_level = None  # type: ignore[union-attr]
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            # readers are not kept out
            connection.execute(text("LOCK TABLE streams, releases IN EXCLUSIVE MODE"))
        yield


def mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


@cache
def why_no_mounts() -> str | None:
    """Why no mount can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root may mount"
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount("-t", "tmpfs", "tmpfs", folder)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"mount is refused ({type(error).__name__})"
        subprocess.run(["umount", folder], check=True)
    return None


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """For root too."""
    folder.mkdir(exist_ok=True)
    mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", folder)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def on_a_disk_of(size_kb: int, folder: Path) -> Iterator[None]:
    """The folder lies on a disk of this size, with its files as they were."""
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    mount("-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", folder)
    try:
        for path, data in kept.items():
            path.write_bytes(data)
        yield
    finally:
        os.sync()
        subprocess.run(["umount", folder], check=True)
