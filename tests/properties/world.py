"""A configured folder with its ledger, into which hostile input is put and read as the night reads it."""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from optstream.errors import DumpError, OptStreamError
from optstream.ledger import open_ledger
from optstream.noise import secure_noise
from tasks.config import load_settings
from tasks.ingest import discover, ingest
from tasks.ingest.sandbox import read_apart
from tasks.release.run import Ended, Held, Requested, Run, Status, enrol
from tests.properties.damage import CANARY_TEXT
from tests.properties.dumps import FIRST_DAY, Delivered, sound
from tests.tasks.two_regions import READING, RELEASING, released_by

NOW = datetime(2025, 4, 2, tzinfo=UTC)
CONFIGURATION = released_by("Laplace").replace("two-regions", "small").replace('alpha = "1"', 'alpha = "10"')
CONFIGURATION = CONFIGURATION.replace('"aggregated"\nvalue = "load_mw"', '"SCHEMA"\nvalue = "load"')


class World:
    """root: an empty folder of the test's own; everything outside `hostile` must stay as it is."""

    def __init__(self, root: Path) -> None:
        self.hostile = root / "hostile"
        self.hostile.mkdir()
        self.settings = {}
        self._ledger, self._fresh = root / "trusted" / "ledger.sqlite", root / "fresh.sqlite"
        for schema in ("aggregated", "metered"):
            path = root / f"{schema}.toml"
            path.write_text(CONFIGURATION.replace("SCHEMA", schema))
            settings = load_settings(path)
            self.settings[schema] = settings.model_copy(
                update={"input": settings.input.model_copy(update={"folder": "hostile"})}
            )
            run = self._run(schema)
            enrol(run)
            run.ledger.close()
        self._ledger.replace(self._fresh)
        self.renew()

    def renew(self) -> None:
        """A ledger in which nothing was spent."""
        for rest in self._ledger.parent.glob("ledger.sqlite*"):
            rest.unlink()
        shutil.copy(self._fresh, self._ledger)

    @property
    def n_spends(self) -> int:
        """The spends of the other ledger, and the reservations that would charge one."""
        return self._count("spends") + self._count("releases")

    def _count(self, table: str) -> int:
        with sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True) as connection:
            (count,) = connection.execute(f"select count(*) from {table}").fetchone()
        connection.close()
        return count

    def empty(self) -> None:
        shutil.rmtree(self.hostile)
        self.hostile.mkdir()

    def put(self, name: str, content: bytes) -> Path | None:
        """Write a file below `hostile`, or with "link:" and a target a link; None if no file is called so."""
        path = self.hostile / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if content == b"link:fifo":
                os.mkfifo(path)
            elif content.startswith(b"link:"):
                path.symlink_to(content[5:].decode())
            else:
                path.write_bytes(content)
        except (OSError, ValueError):
            return None
        return path

    def deliver(self, days: Sequence[Sequence[Delivered]]) -> None:
        """Lay out what was delivered for these days, as far as such names can exist below `hostile`."""
        for number, regions in enumerate(days):
            day = FIRST_DAY + timedelta(days=number)
            for region in regions:
                if "/" in region.folder.removesuffix("/"):
                    continue
                for name, content in (*region.files, *([("_SUCCESS", b"")] if region.marker else ())):
                    data = content if isinstance(content, bytes) else f"link:{content}".encode()
                    if "/" not in name:
                        self.put(f"{region.folder}/date={day}/{name}", data)

    def deliver_whole_day(self, name: str = "part-0.parquet") -> None:
        """Nothing but the first day, whole, of both regions; the file of the one is called `name`."""
        self.empty()
        part = sound(FIRST_DAY, metered=False)
        regions = (("region=84", name), ("region=11", "part-0.parquet"))
        self.deliver([[Delivered(folder, ((file, part),)) for folder, file in regions]])

    def take(self, schema: str, days: Sequence[date]) -> list[str]:
        """The reading half of the flow and the reservation; the words of each day that ended."""
        run, works = self._run(schema), [Requested(day) for day in days]
        try:
            for step in (*READING, RELEASING[0]):
                works = step(run, works)
            reserved = [work for work in works if isinstance(work, Held)]
            for work in reserved:
                if not self._is_sound(schema, work.day):
                    raise AssertionError(f"{work.day} was charged, and its dump is not whole")
        finally:
            run.ledger.close()
        n_charged = self._count("releases")
        if reserved:
            self.renew()
        assert n_charged == len(reserved), "something was charged for nothing"
        texts = []
        for work in works:
            if isinstance(work, Ended):
                assert work.status is not Status.FAILED, work.message
                texts.append(work.message)
        assert not any(CANARY_TEXT in text for text in texts), "an outcome shows a reading"
        return texts

    def ingest(self, schema: str, days: Sequence[date]) -> list[str]:
        """Find and read the dumps, without contracts and ledger; the words of each day that is refused."""
        settings = self.settings[schema]
        found = discover(settings, days)
        texts = [str(entry) for entry in found.values() if isinstance(entry, OptStreamError)]
        sound = []
        for dump in found.values():
            # apart, as the night does; then, where that ended nothing, here: a fuzzer sees what is reached
            try:
                if not isinstance(dump, OptStreamError):
                    read_apart(settings, [dump])
                    sound.append(dump)
            except DumpError as error:
                texts.append(str(error))
        texts += [repr(day) for day in ingest(settings, sound) if day.period is None]
        assert not any(CANARY_TEXT in text for text in texts), "an error shows a reading"
        return texts

    def _run(self, schema: str) -> Run:
        settings = self.settings[schema]
        ledger = open_ledger(settings.ledger_url)
        return Run(settings, ledger, secure_noise(), "owner", lambda: NOW, read=read_apart)

    def _is_sound(self, schema: str, day: date) -> bool:
        """Whether the files have every step of each region; of customers' rows readable is enough."""
        settings = self.settings[schema]
        for leaf in settings.tree_of(date.min).leaves:
            files = sorted((self.hostile / f"region={leaf}" / f"date={day}").glob("[!._]*.parquet"))
            # a column that nobody reads may be broken
            frames = [pl.read_parquet(path.read_bytes(), columns=["timestamp", "load"]) for path in files]
            rows = pl.concat(frames, how="diagonal_relaxed")
            stamps = rows["timestamp"]
            if stamps.dtype.time_zone is None:
                stamps = stamps.dt.replace_time_zone(settings.calendar.time_zone)
            found = stamps.dt.convert_time_zone("UTC").sort().to_list()
            is_whole = found == list(settings.calendar.utc_times(day)) and not rows["load"].null_count()
            if schema == "aggregated" and not is_whole:
                return False
        return True


def refusal_of(read) -> str | None:
    """What the reader refuses with, None if it reads; any other exception passes, and one with a canary."""
    refused = None
    try:
        read()
    except OptStreamError as error:
        refused = str(error)
    assert CANARY_TEXT not in (refused or ""), "an error shows a reading"
    return refused
