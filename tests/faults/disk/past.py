"""A random history of one world, and copies of everything after each night and in its middle."""

import hashlib
import json
import random
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from sqlalchemy import make_url

from optstream.catalogue import find_catalogue
from optstream.catalogue.layout import CATALOGUE
from optstream.ledger import ReleaseRecord
from tasks.release.lineage import EVENTS
from tasks.trusted.files import NAMED
from tests.faults.bench import Bench
from tests.faults.books import Books, read_books
from tests.faults.judge import Judge, Sight
from tests.faults.night import LastWords
from tests.faults.world import DAYS, RESTATED, World, make_world

STORES = ("ledger", "trusted", "published")
SECOND = "second-witness"
"""A second place that knows how far the ledger is. It is never restored."""
LEDGER = "ledger.sqlite"
MOVED = "published-elsewhere"
MECHANISMS = ("OptStream", "HistoryInformed", "PeGaSus")
KINDS = ("days", "days", "days", "days", "kill", "restate", "restate", "withdraw", "compromise", "amend")
DECISIVE = ("begin_draw", "DrawingFile.fill", "record_")
"""Steps about which the ledger and what was drawn say different things: every second night stops at one."""
AMENDED = ('epsilon = "1"', 'epsilon = "5/4"')
Draw = tuple[str, int, str]
"""Period, revision and the hash of the measurements."""
Points = Mapping[str, Sequence[str]]
"""Where a night may be stopped or killed, by what it does."""


@dataclass(frozen=True)
class Moment:
    """A copy of everything, and what readers could see then.

    draws: what the ledger charged for each. n_events: of the ledger. known: how many of them each store
    knows. noise: the log of who drew. amended: whether the configuration has the later guarantee.
    middle: of a night.
    """

    folder: Path
    sights: Mapping[Sight, str]
    draws: Mapping[Draw, ReleaseRecord]
    n_events: int
    known: Mapping[str, int]
    noise: str
    amended: bool
    middle: bool

    def to_be_missed(self) -> dict[str, str]:
        """By file, the hashes of what no night makes again: catalogue, measurements of draws, lineage."""
        drawn = {digest[:NAMED] for _, _, digest in self.draws}
        named = [self.folder / "published" / CATALOGUE, self.folder / "trusted/lineage" / EVENTS]
        measured = (self.folder / "trusted/measurements").rglob("*")
        named += [path for path in measured if path.name.partition("-")[2] in drawn]
        return {
            path.relative_to(self.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in named
            if path.is_file()
        }


@dataclass(frozen=True)
class Restored:
    """Which moment each store shows; the newest where it was not restored."""

    stores: Sequence[str]
    moments: Mapping[str, int]
    moved: bool
    newest: int

    def shown(self, store: str) -> int:
        return self.moments.get(store, self.newest)

    @property
    def name(self) -> str:
        where = ", ".join(f"{store} as in copy {self.moments[store]}" for store in self.stores)
        return f"{where} of {self.newest}{', published moved' if self.moved else ''}"


@dataclass
class Past:
    """A random history of one world. story: in words. second: whether it has a second witness."""

    bench: Bench
    world: World
    second: bool = False
    moments: list[Moment] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def copy(self, middle: bool = False) -> None:
        """Take everything down as it is now. middle: of a night, which stands still."""
        into = self.world.folder.parent / f"{self.world.folder.name}-moment-{len(self.moments)}"
        for store in (*STORES, SECOND):
            (into / store).mkdir(parents=True)
        settings = self.world.settings
        hidden = shutil.ignore_patterns(f"{LEDGER}*")
        places = {"trusted": settings.trusted_folder, "published": settings.published_folder}
        for store, place in (places | {SECOND: self.world.folder / SECOND}).items():
            if place.exists():
                shutil.copytree(place, into / store, ignore=hidden, dirs_exist_ok=True)
        if self.schema is None:
            for path in settings.trusted_folder.glob(f"{LEDGER}*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, into / "ledger")
        else:
            dump = into / "ledger" / "dump.sql"
            self._postgresql(
                "pg_dump", "--schema", self.schema, "--lock-wait-timeout=5s", "--file", str(dump)
            )
            # newer programs frame it with a word by chance
            dump.write_text(re.sub(r"(?m)^\\(un)?restrict .*$", "", dump.read_text()))
        log = self.world.noise_log
        noise = log.read_text() if log.exists() else ""
        books = read_books(self.world)
        self._numbers |= {event.digest: number + 1 for number, event in enumerate(books.events)}
        catalogue = find_catalogue(into / "published")
        known = {
            store: _witnessed(into / where)
            for store, where in (("trusted", "trusted/witness"), (SECOND,) * 2)
        }
        known["published"] = self._numbers[catalogue.ledger_head] if catalogue else 0
        sights = Judge(self.world).sights(catalogue, into / "published") if catalogue else {}
        amended = AMENDED[1] in self.world.configuration.read_text()
        n_events = len(books.events)
        self.moments.append(Moment(into, sights, drawn(books), n_events, known, noise, amended, middle))

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
        """Put the world's folder into the restored state, configured as its ledger was."""
        folder = self.world.folder
        for name in ("trusted", "published", MOVED, SECOND):
            shutil.rmtree(folder / name, ignore_errors=True)
        for store in ("trusted", "published", SECOND):
            source = self.moments[restored.shown(store)].folder / store
            if any(source.iterdir()):
                shutil.copytree(source, folder / store)
        moment = self.moments[restored.shown("ledger")]
        if self.schema is None:
            for path in (moment.folder / "ledger").iterdir():
                (folder / "trusted").mkdir(mode=0o700, exist_ok=True)
                shutil.copy(path, folder / "trusted")
        else:
            self._postgresql("psql", "--command", f"DROP SCHEMA {self.schema} CASCADE")
            self._postgresql("psql", "--file", str(moment.folder / "ledger" / "dump.sql"))
        text = self.world.configuration.read_text().replace(f'folder = "{MOVED}"', 'folder = "published"')
        if restored.moved:
            text = text.replace('folder = "published"', f'folder = "{MOVED}"')
        self.world.configuration.write_text(text.replace(*AMENDED[:: 1 if moment.amended else -1]))
        self.world.noise_log.write_text(self.moments[restored.newest].noise)
        return World(folder)

    def live(self, kind: str, days: Sequence[date], points: Sequence[str], **more: object) -> None:
        """A night, with a copy at each of these points that it comes to, and one after it."""
        self.story.append(f"{len(self.moments)}: {kind} {' '.join(map(str, days))}")
        night = self.bench.night(self.world, days, **more, act="stop", point="\n".join(points))
        process = self.bench.fork_server.start(night)
        while process.wait() == "stopped":
            self.copy(middle=True)
            process.go_on()
        self.copy()

    def seen(self, newest: int) -> dict[Sight, str]:
        """All that others saw at any moment until then."""
        until = self.moments[: newest + 1]
        return {key: digest for moment in until for key, digest in moment.sights.items()}

    def draws(self, newest: int) -> dict[Draw, ReleaseRecord]:
        """All that was ever drawn until then, whatever a ledger has forgotten since."""
        until = self.moments[: newest + 1]
        return {key: record for moment in until for key, record in moment.draws.items()}

    def knowable(self, restored: Restored) -> bool:
        """Whether anything that is left knows of an event that the ledger has forgotten."""
        n_events = self.moments[restored.shown("ledger")].n_events
        said = {"trusted"} | ({SECOND} if self.second else set())
        # a folder that was moved is found by the ledger's own terms, if it has any yet
        if not restored.moved or n_events:
            said.add("published")
        return any(self.moments[restored.shown(store)].known[store] > n_events for store in said)

    def blind(self, restored: Restored) -> bool:
        """Whether a day that others saw may have been forgotten, and nothing that is left can know of it."""
        unseen = "published" in restored.stores or restored.moved
        is_blind = unseen and {"ledger", "trusted"} <= {*restored.stores} and not self.second
        return is_blind and not self.knowable(restored)

    def forgotten(self, restored: Restored) -> bool:
        """Whether something is missing that the newest copies have and no night rebuilds."""
        newest = self.moments[restored.newest]
        if self.moments[restored.shown("ledger")].n_events < newest.n_events:
            return True
        shown = {store: self.moments[restored.shown(store)].to_be_missed() for store in STORES}
        return any(
            shown[name.partition("/")[0]].get(name) != digest
            for name, digest in newest.to_be_missed().items()
        )

    def remove(self) -> None:
        """Leave nothing."""
        for moment in self.moments:
            shutil.rmtree(moment.folder)
        self.world.remove()


def _witnessed(place: Path) -> int:
    """How many events of the ledger a witness knows of."""
    file = place / "ledger-heads.json"
    grants = json.loads(file.read_bytes())["grants"] if file.exists() else {}
    return max((one["events"] for heads in grants.values() for one in heads.values()), default=0)


def drawn(books: Books) -> dict[Draw, ReleaseRecord]:
    """What was drawn, as a ledger has it."""
    return {
        (record.period, record.revision, record.measurements_hash): record
        for record in books.records
        if record.measurements_hash is not None
    }


def _amend(world: World) -> World:
    world.configuration.write_text(world.configuration.read_text().replace(*AMENDED))
    return World(world.folder)


def record_points(bench: Bench) -> Points:
    """Name the durable steps of each kind of night."""
    world = new_world(bench, "HistoryInformed", second=True)
    found = {
        "days": [*_steps(bench.record(world)), *_steps(bench.record(world, DAYS[1:2], hours=2.0))],
        "restate": _steps(bench.record(world, hours=4.0, restate=True)),
        "withdraw": _steps(bench.record(world, hours=6.0, withdraw=True)),
        "compromise": _steps(bench.record(world, DAYS[1:2], hours=8.0, compromise=True)),
        "amend": _steps(bench.record(_amend(world), hours=10.0, amend=True)),
    }
    world.remove()
    return {kind: sorted(set(points)) for kind, points in found.items()}


def _steps(said: LastWords) -> list[str]:
    assert said.error is None, said.error
    return [point for point in said.moments if not point.startswith("before commit")]


def new_world(bench: Bench, mechanism: str, second: bool) -> World:
    """A world in which days may be restated. second: whether it has a second witness."""
    url = bench.new_url() if bench.new_url else None
    folder = bench.folder / f"past-{next(bench.numbers)}"
    world = make_world(folder, bench.folder / "dumps", url, mechanism, RESTATED)
    if second:
        text = world.configuration.read_text()
        world.configuration.write_text(text.replace("[trusted]\n", f'[trusted]\nwitness = "{SECOND}"\n'))
    return world


def happen(bench: Bench, chance: random.Random, points: Points, n_steps: int) -> Past:
    """Live through days in random order, kills, and nights that draw nothing."""
    second, mechanism = chance.random() < 0.5, chance.choice(MECHANISMS)
    past = Past(bench, new_world(bench, mechanism, second), second)
    past.story.append(f"{mechanism}, {'two witnesses' if second else 'one witness'}")
    past.copy()
    # two days are kept for the night after the restore
    days = list(DAYS[:-2]) if chance.random() < 0.5 else chance.sample(DAYS[:-2], len(DAYS) - 2)
    for step in range(n_steps):
        listed = _listed(past.world)
        # once all days had their turn, what there is besides
        kind = chance.choice(KINDS[4 if not days else 0 :]) if listed else chance.choice(("days", "kill"))
        if kind == "amend" and past.moments[-1].amended:
            kind = "withdraw" if listed else "days"
        if kind in ("days", "kill"):
            some = days[: chance.choice([1, 1, 2])] or [chance.choice(DAYS[:-2])]
            days = [day for day in days if day not in some]
        else:
            some = [chance.choice(listed)]
        more = {} if kind in ("days", "kill") else {kind: True}
        stops = chance.sample(points["days" if kind == "kill" else kind], chance.choice([1, 1, 3]))
        if kind == "kill":
            past.story.append(f"{len(past.moments)}: kill {' '.join(map(str, some))} {stops[0]}")
            bench.run(past.world, some, hours=2.0 * step, act="kill", point=stops[0])
            past.copy()
            continue
        if kind == "amend":
            past.world = _amend(past.world)
        decisive = [point for point in points[kind] if any(one in point for one in DECISIVE)]
        if decisive and chance.random() < 0.5:
            stops.append(chance.choice(decisive))
        past.live(kind, some, stops, hours=2.0 * step, **more)
    return past


def _listed(world: World) -> list[date]:
    catalogue = find_catalogue(world.settings.published_folder)
    return [entry.period for entry in catalogue.entries if not entry.withdrawn] if catalogue else []
