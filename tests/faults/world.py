"""A small stream of its own for each fault: two regions, short days, either database."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

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
    folder: Path,
    dumps: Path,
    ledger: str | None = None,
    mechanism: str = "OptStream",
    **more: str,
) -> World:
    """A world in which nothing has happened; its dumps are shared and only read. more: changes of the text.

    Days may be released again.
    """
    folder.mkdir()
    changes = {"[budget]\n": f"[budget]\n{RESTATED}\n", **more}
    text = configured(ledger or LEDGER, mechanism, dumps, **changes)
    (folder / "optstream.toml").write_text(text)
    return World(folder)
