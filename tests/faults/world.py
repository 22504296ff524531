"""A small stream of its own for each fault: two regions, short days, either database; faults around it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tasks.config import Settings, load_settings
from tasks.operate.simulate import simulate
from tests.tasks.two_regions import CONFIGURATION, released_by

STREAM = "two-regions"
DAYS = tuple(date(2016, 5, 29) + timedelta(days=number) for number in range(6))
"""Of two months: a backfill divides them among its workers."""
RESTATED = 'restatement_share = "1/4"'
LEDGER = "sqlite:///trusted/ledger.sqlite"


def configured(
    ledger: str = LEDGER, mechanism: str = "OptStream", dumps: Path | str = "dumps", **more: str
) -> str:
    """The text of a configuration: two regions by the hour, in UTC, in windows of a day. more: changes."""
    changes = {
        'step = "30min"': 'step = "1h"',
        "Europe/Paris": "UTC",
        "window = 48": "window = 24",
        'restatement_share = "0"\n': "",
        "n_samples = 10": "n_samples = 6",
        'folder = "dumps"': f'folder = "{dumps}"',
        LEDGER: ledger,
    }
    text = CONFIGURATION
    for old, new in (changes | more).items():
        assert old in text
        text = text.replace(old, new)
    return text if mechanism == "OptStream" else released_by(mechanism, text)


def configure(folder: Path, text: str) -> Settings:
    """Write a folder's configuration, and load it."""
    (folder / "optstream.toml").write_text(text)
    return load_settings(folder / "optstream.toml")


def deliver(settings: Settings, days: Sequence[date]) -> None:
    simulate(settings, days, seed=1)


@dataclass(frozen=True)
class World:
    """A configured folder, and outside of it the log of who drew noise."""

    folder: Path

    @property
    def configuration(self) -> Path:
        return self.folder / "optstream.toml"

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.configuration)

    @property
    def noise_log(self) -> Path:
        """A line for each process that drew: day and revision. Written before its first sample."""
        return self.folder.parent / f"{self.folder.name}.noise"

    @property
    def clock_jump(self) -> float:
        """Hours, for all processes of this world."""
        jump = self.noise_log.with_suffix(".clock")
        return float(jump.read_text()) if jump.exists() else 0.0

    def set_clock(self, ahead_hours: float) -> None:
        self.noise_log.with_suffix(".clock").write_text(str(ahead_hours))

    def samplings(self) -> list[date]:
        """The days whose noise was begun, once for each time."""
        log = self.noise_log.read_text() if self.noise_log.exists() else ""
        return [date.fromisoformat(line.split()[0]) for line in log.splitlines()]

    def copied(self, folder: Path) -> "World":
        """Return a copy in a new folder. Its ledger, if that is SQLite, and its log of noise are its own."""
        shutil.copytree(self.folder, folder)
        copy = World(folder)
        if self.noise_log.exists():
            shutil.copy(self.noise_log, copy.noise_log)
        return copy

    def remove(self) -> None:
        shutil.rmtree(self.folder)
        self.noise_log.unlink(missing_ok=True)


def make_world(
    folder: Path, dumps: Path, ledger: str | None = None, mechanism: str = "OptStream", **more: str
) -> World:
    """A new world that may restate; its dumps are shared and only read. more: changes of the text."""
    folder.mkdir()
    changes = {"[budget]\n": f"[budget]\n{RESTATED}\n", **more}
    (folder / "optstream.toml").write_text(configured(ledger or LEDGER, mechanism, dumps, **changes))
    return World(folder)


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
