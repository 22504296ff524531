"""Backups: any of ledger, trusted folder and published folder, restored to an earlier moment of a history.

The ledger's file may lie in the trusted folder; here it is a store of its own, and the other two are the
rest. After a restore one night runs, of all days. What others could have read at any time before must not be
contradicted, no day that they saw may be drawn again, and whatever is missing must be told to somebody.
"""

import hashlib
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path

from sqlalchemy import make_url

from optstream.catalogue import find_catalogue
from optstream.errors import OptStreamError
from optstream.ledger import ReleaseRecord, open_ledger
from optstream.privacy import worst_window
from tasks.ledger.verify import verify
from tests.faults.bench import Bench
from tests.faults.books import read_books
from tests.faults.judge import Judge, Sight
from tests.faults.night import LastWords
from tests.faults.points.attacks import Tally
from tests.faults.world import DAYS, RESTATED, World, make_world

STORES = ("ledger", "trusted", "published")
SUBSETS = tuple(chain.from_iterable(combinations(STORES, size) for size in (1, 2, 3)))
LEDGER = "ledger.sqlite"
MOVED = "published-elsewhere"
UNKNOWABLE = " (nothing left to tell)"
TELLING = {
    "trusted": tuple(f"trusted/{part}" for part in ("witness", "measurements", "staging", "lineage")),
    "published": ("published",),
}
"""Where something can say what the ledger has forgotten. Reports and validation results cannot."""
RENEWED = tuple(f"trusted/{part}" for part in ("report", "validation", "witness"))
"""What changes in a night that draws nothing: nobody misses it, and the next night makes it anew."""
Draw = tuple[str, int, str]
"""Period, revision and the hash of the measurements."""


@dataclass(frozen=True)
class Moment:
    """A copy of everything, and what readers could see then. draws: what the ledger charged for each."""

    folder: Path
    sights: Mapping[Sight, str]
    draws: Mapping[Draw, ReleaseRecord]

    def digest(self, *stores: str, without: Sequence[str] = ()) -> str:
        """Changes when one of these stores, or folders of a store, does. without: folders left out."""
        digest = hashlib.sha256()
        for path in sorted(chain.from_iterable((self.folder / store).rglob("*") for store in stores)):
            name = path.relative_to(self.folder)
            if path.is_file() and not any(name.is_relative_to(folder) for folder in without):
                digest.update(f"{name}\n".encode() + path.read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Restored:
    """Which moment each store shows; the newest where it was not restored. moved: `[published] folder` names
    a new, empty folder, and the old one lies where it lay.
    """

    stores: Sequence[str]
    moments: Mapping[str, int]
    moved: bool
    newest: int

    def shown(self, store: str) -> int:
        return self.moments.get(store, self.newest)

    @property
    def name(self) -> str:
        where = ", ".join(f"{store} as after step {self.moments[store]}" for store in self.stores)
        return f"{where} of {self.newest}{', published moved' if self.moved else ''}"


@dataclass
class Past:
    """A random history of one world, a copy after each of its steps."""

    bench: Bench
    world: World
    moments: list[Moment] = field(default_factory=list)
    noise: str = ""

    def copy(self) -> None:
        """Take everything down as it is now."""
        into = self.world.folder.parent / f"{self.world.folder.name}-moment-{len(self.moments)}"
        for store in STORES:
            (into / store).mkdir(parents=True)
        settings = self.world.settings
        if settings.trusted_folder.exists():
            hidden = shutil.ignore_patterns(f"{LEDGER}*")
            shutil.copytree(settings.trusted_folder, into / "trusted", ignore=hidden, dirs_exist_ok=True)
        if settings.published_folder.exists():
            shutil.copytree(settings.published_folder, into / "published", dirs_exist_ok=True)
        if self.schema is None:
            for path in settings.trusted_folder.glob(f"{LEDGER}*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, into / "ledger")
        else:
            dump = into / "ledger" / "dump.sql"
            self._postgresql("pg_dump", "--schema", self.schema, "--file", str(dump))
            # newer programs frame it with a word by chance
            dump.write_text(re.sub(r"(?m)^\\(un)?restrict .*$", "", dump.read_text()))
        catalogue = find_catalogue(settings.published_folder)
        sights = Judge(self.world).sights(catalogue, settings.published_folder) if catalogue else {}
        self.moments.append(Moment(into, sights, _draws(self.world)))

    @property
    def schema(self) -> str | None:
        """PostgreSQL's, of this ledger; None on SQLite."""
        address = make_url(self.world.settings.ledger_url)
        if address.get_backend_name() == "sqlite":
            return None
        return str(address.query["options"]).partition("search_path=")[2].split()[0]

    def _postgresql(self, program: str, *words: str) -> None:
        address = make_url(self.world.settings.ledger_url)
        where = f"host={address.query['host']} user=owner dbname=postgres"
        assert self.bench.binaries is not None
        subprocess.run(
            [self.bench.binaries / program, "--dbname", where, *words], check=True, capture_output=True
        )

    def lay(self, restored: Restored) -> World:
        """Put the world's folder into the restored state."""
        folder = self.world.folder
        for name in ("trusted", "published", MOVED):
            shutil.rmtree(folder / name, ignore_errors=True)
        for store in ("trusted", "published"):
            source = self.moments[restored.shown(store)].folder / store
            if any(source.iterdir()):
                shutil.copytree(source, folder / store)
        ledger = self.moments[restored.shown("ledger")].folder / "ledger"
        if self.schema is None:
            for path in ledger.iterdir():
                (folder / "trusted").mkdir(mode=0o700, exist_ok=True)
                shutil.copy(path, folder / "trusted")
        else:
            self._postgresql("psql", "--command", f"DROP SCHEMA {self.schema} CASCADE")
            self._postgresql("psql", "--file", str(ledger / "dump.sql"))
        text = self.world.configuration.read_text().replace(f'folder = "{MOVED}"', 'folder = "published"')
        if restored.moved:
            text = text.replace('folder = "published"', f'folder = "{MOVED}"')
        self.world.configuration.write_text(text)
        self.world.noise_log.write_text(self.noise)
        return World(folder)

    def seen(self) -> dict[Sight, str]:
        """All that others saw at any moment."""
        return {key: digest for moment in self.moments for key, digest in moment.sights.items()}

    def draws(self) -> dict[Draw, ReleaseRecord]:
        """All that was ever drawn, whatever a ledger has forgotten since."""
        return {key: record for moment in self.moments for key, record in moment.draws.items()}

    def knowable(self, restored: Restored) -> bool:
        """Whether anything that is left can say what the ledger has forgotten."""
        old = restored.shown("ledger")
        said = ["trusted"]
        # a folder that was moved is found by the ledger's own terms, if it has any yet
        if not restored.moved or old > 0:
            said.append("published")
        newer = [store for store in said if restored.shown(store) > old]
        return any(
            self.moments[restored.shown(store)].digest(*TELLING[store])
            != self.moments[old].digest(*TELLING[store])
            for store in newer
        )

    def forgotten(self, restored: Restored) -> bool:
        """Whether something is missing that the newest copies have."""
        newest = self.moments[restored.newest]
        return any(
            self.moments[restored.shown(store)].digest(store, without=RENEWED)
            != newest.digest(store, without=RENEWED)
            for store in STORES
        )

    def remove(self) -> None:
        """Leave nothing."""
        for moment in self.moments:
            shutil.rmtree(moment.folder)
        self.world.remove()


def _draws(world: World) -> dict[Draw, ReleaseRecord]:
    records = read_books(world).records
    return {
        (record.period, record.revision, record.measurements_hash): record
        for record in records
        if record.measurements_hash is not None
    }


def happen(bench: Bench, chance: random.Random, points: Sequence[str], n_steps: int) -> Past:
    """Live through days in random order, kills, restatements and withdrawals. points: to be killed at."""
    url = bench.new_url() if bench.new_url else None
    folder = bench.folder / f"past-{next(bench.numbers)}"
    past = Past(bench, make_world(folder, bench.folder / "dumps", url, budget=RESTATED))
    past.copy()
    # two days are kept for the night after the restore
    days = chance.sample(DAYS[:-2], len(DAYS) - 2)
    published: list[date] = []
    for step in range(n_steps):
        hours = 2.0 * step
        kind = chance.choice(["days", "days", "kill", "restate", "withdraw"]) if published else "days"
        if kind in ("days", "kill") and days:
            some = [days.pop() for _ in range(min(len(days), chance.choice([1, 1, 2])))]
            if kind == "kill":
                bench.run(past.world, some, hours=hours, act="kill", point=chance.choice(points))
            else:
                bench.run(past.world, some, hours=hours)
            catalogue = find_catalogue(past.world.settings.published_folder)
            listed = catalogue.entries if catalogue else ()
            published = [entry.period for entry in listed if not entry.withdrawn]
        elif published:
            day = chance.choice(published)
            act = "withdraw" if kind == "withdraw" else "restate"
            bench.run(past.world, [day], hours=hours, **{act: True})
        past.copy()
    past.noise = past.world.noise_log.read_text()
    return past


def restores(past: Past, chance: random.Random, times: int = 1) -> Iterator[Restored]:
    """Every subset of the stores, with the published folder where it was and moved, to random moments."""
    newest = len(past.moments) - 1
    for _ in range(times):
        for stores in SUBSETS:
            for moved in (False, True):
                together = chance.randrange(newest)
                alike = chance.random() < 0.5
                moments = {store: together if alike else chance.randrange(newest) for store in stores}
                yield Restored(stores, moments, moved, newest)


def restore(past: Past, restored: Restored) -> Tally:
    """Bring the backups back, run all days, and judge: what others saw, what was drawn, who was told."""
    world = past.lay(restored)
    hours = 2.0 * len(past.moments) + 2
    told = _told_before(world)
    _, words = past.bench.run(world, DAYS, hours=hours)
    tally = Tally(tried=1)
    tally.broken += [f"{line} [{restored.name}]" for line in _judged(past, world)]
    for moment in past.moments:
        tally.releases_checked += len(moment.sights)
    told = told or _is_told(words)
    if past.forgotten(restored) and not told:
        tally.broken.append(f"NOBODY IS TOLD: [{restored.name}]: {words}")
    return tally


def _judged(past: Past, world: World) -> Iterator[str]:
    seen = past.seen()
    periods = {period for period, _, _ in seen}
    before = past.noise.split()
    for period in sorted(set(before) | {day.isoformat() for day in world.samplings()}):
        again = [day.isoformat() for day in world.samplings()].count(period) > before.count(period)
        if again and period in periods:
            yield f"DOUBLE SPEND: {period}, which others saw, was drawn again"
    for folder in {world.settings.published_folder, world.folder / "published"}:
        with suppress(OptStreamError, OSError):
            catalogue = find_catalogue(folder)
            found = Judge(world).sights(catalogue, folder) if catalogue else {}
            for key, digest in found.items():
                if seen.get(key, digest) != digest:
                    yield f"DOUBLE SPEND: {key[0]} shows other values than others saw before"
    draws = past.draws() | _draws(world)
    spends = [spend for record in draws.values() for spend in record.spends]
    model = world.settings.model
    worst = worst_window(spends, model.window_length, model.windows).epsilon
    if worst > Fraction(model.epsilon):
        yield f"WINDOW: all that was ever drawn costs {worst} in the worst window"


def _told_before(world: World) -> bool:
    """Whether `optstream ledger verify` says that something is wrong."""
    try:
        if not read_books(world).events:
            return bool(verify(world.settings, None).problems)
        ledger = open_ledger(world.settings.ledger_url)
        try:
            return bool(verify(world.settings, ledger).problems)
        finally:
            ledger.close()
    except OptStreamError:
        return True


def _is_told(words: LastWords | None) -> bool:
    """Whether the run itself says so: a day that ended in a good state is no word of warning."""
    return words is None or not words.is_good


def campaign(bench: Bench, seed: int, restored: int, n_steps: int = 6) -> dict[str, Tally]:
    """So many restores, of as many histories as it takes; by subset. What nothing left could tell of is a
    row of its own, and its doubles are no failure.
    """
    chance = random.Random(seed)
    points = bench.record(bench.world(), DAYS[:1]).moments
    rows: dict[str, Tally] = {}
    while sum(tally.tried for tally in rows.values()) < restored:
        past = happen(bench, chance, points, n_steps)
        for one in restores(past, chance):
            tally = restore(past, one)
            name = " + ".join(one.stores) + (", published moved" if one.moved else "")
            name += "" if past.knowable(one) or "ledger" not in one.stores else UNKNOWABLE
            row = rows.setdefault(name, Tally())
            row.tried += tally.tried
            row.releases_checked += tally.releases_checked
            row.broken += tally.broken
        past.remove()
    return rows
