"""The one judge: looks at a world after each fault and at its end, and says which guarantee is broken."""

import hashlib
import json
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.pool import NullPool

from optstream.catalogue import Catalogue, check_files, find_catalogue, read_published
from optstream.catalogue.layout import ABOUT, DESCRIPTIONS, PAGE
from optstream.errors import OptStreamError
from optstream.ledger import ReleaseEvent, ReleaseRecord, ReleaseState, Vintage, open_ledger
from optstream.privacy import worst_window
from tasks.pages.render import day_in_words
from tests.faults.night import LastWords
from tests.faults.world import STREAM, World


@dataclass(frozen=True)
class Books:
    """A ledger's; problems are those of `verify`, missing heads those that only the catalogue has."""

    records: tuple[ReleaseRecord, ...] = ()
    vintages: Mapping[tuple[str, int], tuple[Vintage, ...]] = field(default_factory=dict)
    events: tuple[ReleaseEvent, ...] = ()
    problems: tuple[str, ...] = ()
    worst: Fraction = Fraction(0)
    missing_heads: tuple[str, ...] = ()

    def kinds(self, record: ReleaseRecord, *kinds: str) -> list[str]:
        """Of a release's events, those of these kinds."""
        named = (record.period, record.revision)
        return [one.kind for one in self.events if (one.period, one.revision) == named and one.kind in kinds]


def read_books(world: World) -> Books:
    """Empty where there is no ledger, or one without tables."""
    with _undisturbed(world) as url:
        if url is None or not _has_tables(url):
            return Books()
        with closing(open_ledger(url)) as ledger:
            events = ledger.events_of(STREAM)
            records = ledger.releases(STREAM)
            charged = [spend for record in records for spend in record.spends]
            # added up here from the releases, and there from the rows that are in force
            known = ledger.worst(world.settings.privacy.population).epsilon if events else Fraction(0)
            again = worst_window(charged, world.settings.model.window_length).epsilon
            problems, worst = tuple(ledger.verify()), max(known, again)
            missing = tuple(ledger.missing_heads(_heads(world)))
            return Books(records, ledger.vintages(STREAM), events, problems, worst, missing)


def _heads(world: World) -> list[str]:
    """Those that the catalogue names, if it can be read."""
    with suppress(OptStreamError):
        if catalogue := find_catalogue(world.settings.published_folder):
            return [entry.ledger_head for entry in catalogue.entries]
    return []


@contextmanager
def _undisturbed(world: World) -> Iterator[str | None]:
    """The URL of the PostgreSQL ledger, or of a copy of the SQLite one."""
    address = make_url(world.settings.ledger_url)
    if address.get_backend_name() != "sqlite":
        yield world.settings.ledger_url.render_as_string(hide_password=False)
        return
    file = Path(str(address.database))
    if not file.exists():
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        # commits that are not in the file yet, and what a crash in the middle of a write left to be undone
        for end in ("", "-wal", "-journal"):
            path = file.with_name(f"{file.name}{end}")
            if path.exists():
                shutil.copy(path, folder)
        yield f"sqlite:///{folder}/{file.name}"


def _has_tables(url: str) -> bool:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    return inspect(engine).has_table("events")


def forge(world: World, statement: str) -> None:
    """Change a world's SQLite ledger behind its back; the triggers that would refuse it are dropped first."""
    engine = create_engine(world.settings.ledger_url)
    with engine.begin() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars()
        for name in names.all():
            connection.execute(text(f"DROP TRIGGER {name}"))
        connection.execute(text(statement))
    engine.dispose()


PUBLIC_KEY = "trusted/signing.pub"
Sight = tuple[str, int, str]
"""Period, revision and what of it."""
LIVE = (ReleaseState.DRAWN, ReleaseState.PUBLISHED)
MOST_REDRAWS = 2
DIED_TOO_OFTEN = re.compile(r"its owner died \d+ times while drawing")
UNDER_WAY = (
    "is not listed",
    "is of no listed release",
    "is not of the days",
    "is of a day that was withdrawn",
    "is not of index.html",
    "answers of other releases",
)
"""What a run may leave for the next one: files that no index lists, of values and of errors, or of a day
whose withdrawal was cut short; a page, descriptions (and the card) or answers that are one run behind. Of
these none may be half a file at any time, and none may be there, or behind, at the end."""


@dataclass
class Judge:
    """One world's. seen: measurements and staged bytes of each release, as first met; they may not change.

    may_be_void: days that somebody withdrew, or whose draw raised.
    """

    world: World
    seen: dict[Sight, str] = field(default_factory=dict)
    may_be_void: set[str] = field(default_factory=set)

    def look(self) -> list[str]:
        """Guarantees broken now, whatever is under way: empty if every one holds."""
        return self._always(read_books(self.world))

    def at_the_end(
        self, days: list[date], last: LastWords | None, given_up: Collection[str] = ()
    ) -> list[str]:
        """As `look`, and every day must be over. last: what the last run said. given_up: days withdrawn."""
        books = read_books(self.world)
        broken = self._always(books)
        broken += [line for day in days for line in self._over(books, day, last, day.isoformat() in given_up)]
        broken += self._voids(books)
        broken += self._sharpened(books)
        broken += self._strays(books)
        return broken

    def _always(self, books: Books) -> list[str]:
        grant = Fraction(self.world.settings.model.epsilon)
        over = [f"WINDOW: the worst one costs {books.worst} of {grant}"] if books.worst > grant else []
        over += [f"LEDGER: {problem}" for problem in books.problems]
        return [*over, *self._draws(books), *self._kept(books), *self._catalogue(books)]

    def voids(self) -> int:
        return sum(record.state is ReleaseState.VOID for record in read_books(self.world).records)

    def _draws(self, books: Books) -> list[str]:
        """A draw must have been announced, and only one may ever be recorded."""
        broken = []
        begun_on: Counter[str] = Counter()
        for record in books.records:
            named = f"{record.period} revision {record.revision}"
            story = books.kinds(record, "draw begun", "drawn")
            n_begun = story.count("draw begun")
            begun_on[record.period] += n_begun
            # of a draw that was called off no sample was drawn
            n_begun -= len(books.kinds(record, "draw called off"))
            if story.count("drawn") > 1 or "draw begun" in story[_end(story, "drawn") :]:
                broken.append(f"DOUBLE SPEND: {named} was drawn again after it was drawn")
            if n_begun > record.redraws + 1 or (
                record.redraws > MOST_REDRAWS and record.state is not ReleaseState.VOID
            ):
                broken.append(f"DOUBLE SPEND: {named} began {n_begun} draws")
            if not record.spends:
                broken.append(f"DOUBLE SPEND: {named} is charged nothing")
        for period, times in Counter(day.isoformat() for day in self.world.samplings()).items():
            if times > begun_on[period]:
                broken.append(
                    f"DOUBLE SPEND: {period} was sampled {times} times, announced {begun_on[period]}"
                )
        return broken

    def _kept(self, books: Books) -> list[str]:
        """What was drawn and staged stays what it was."""
        broken = []
        for record in books.records:
            facts = {"measurements": record.measurements_hash, "staged bytes": record.staged_hash}
            for name, digest in facts.items():
                key = (record.period, record.revision, name)
                if digest is not None and self.seen.setdefault(key, digest) != digest:
                    broken.append(f"DOUBLE SPEND: the {name} of {record.period} changed")
            for one in books.vintages.get((record.period, record.revision), ()):
                key = (record.period, record.revision, f"vintage {one.number}")
                if self.seen.setdefault(key, one.staged_hash) != one.staged_hash:
                    broken.append(f"DOUBLE SPEND: vintage {one.number} of {record.period} changed")
            if len(books.kinds(record, "staged")) > 1:
                broken.append(f"DOUBLE SPEND: {record.period} was staged again")
        return broken

    def _catalogue(self, books: Books) -> list[str]:
        folder = self.world.settings.published_folder
        try:
            catalogue = find_catalogue(folder)
            if catalogue is None:
                return []
            read_published(folder, verify=True, public_key=self._public_key)
            problems = [line for line in self._checked() if not any(one in line for one in UNDER_WAY)]
        except OptStreamError as error:
            return [f"NOT WHOLE: {error}"]
        broken = [f"NOT WHOLE: {line}" for line in [*problems, *half_files(folder)]]
        return broken + _unfounded(books, catalogue) + self._other_bytes(catalogue)

    @property
    def _public_key(self) -> Path | None:
        path = self.world.folder / PUBLIC_KEY
        return path if path.exists() else None

    def _checked(self) -> list[str]:
        return check_files(self.world.settings.published_folder, self._public_key)

    def _other_bytes(self, catalogue: Catalogue) -> list[str]:
        """What readers find is what was staged first."""
        broken = []
        for key, digest in self.sights(catalogue, self.world.settings.published_folder).items():
            if self.seen.setdefault(key, digest) != digest:
                broken.append(f"DOUBLE SPEND: {key[0]} is published with other bytes than were staged")
        return broken

    def sights(self, catalogue: Catalogue, folder: Path) -> dict[Sight, str]:
        """The hashes of the bytes that readers of this catalogue find."""
        found = {}
        for entry in catalogue.entries:
            if not entry.withdrawn:
                what = f"vintage {entry.vintage}" if entry.vintage else "staged bytes"
                digest = hashlib.sha256((folder / entry.file).read_bytes()).hexdigest()
                found[entry.period.isoformat(), entry.revision, what] = digest
        return found

    def _over(self, books: Books, day: date, last: LastWords | None, given_up: bool) -> list[str]:
        """Published, and in the catalogue; or VOID, charged and alarmed."""
        records = [record for record in books.records if record.period == day.isoformat()]
        if not records:
            return [f"LOST: {day} is not in the ledger"]
        record = records[-1]
        catalogue = find_catalogue(self.world.settings.published_folder)
        entry = catalogue.entry(day) if catalogue else None
        if record.withdrawn is not None or (given_up and record.state is ReleaseState.VOID):
            gone = entry is None or entry.withdrawn
            return [] if gone else [f"LOST: {day} was withdrawn and the catalogue lists it"]
        if record.state is ReleaseState.PUBLISHED:
            listed = entry is not None and entry.file_hash in [*_staged(books, record).values()][-1:]
            return [] if listed else [f"LOST: {day} is PUBLISHED and the catalogue does not list it"]
        if record.state is not ReleaseState.VOID:
            words = _words(last, day)
            # a day before it was released meanwhile: an operator decides
            is_refused = record.state is ReleaseState.RESERVED and "under another plan" in words
            return [] if is_refused else [f"LOST: {day} is {record.state} after the rerun: {words}"]
        report = self.world.settings.report_file
        named = (
            report.exists() and f'<th scope="row">{day_in_words(day)}</th><td>void</td>' in report.read_text()
        )
        if last is None or last.is_good or not named:
            return [f"LOST: {day} is VOID and nobody is alerted"]
        return []

    def _voids(self, books: Books) -> list[str]:
        """A day may also be VOID if three owners died while they drew."""
        broken = []
        for record in books.records:
            begun = len(books.kinds(record, "draw begun"))
            died = begun >= 3 and DIED_TOO_OFTEN.search(record.reason or "")
            if record.state is ReleaseState.VOID and not died and record.period not in self.may_be_void:
                named = f"{record.period} revision {record.revision}"
                broken.append(f"LOST: {named} is VOID after {begun} draws: {record.reason}")
        return broken

    def _sharpened(self, books: Books) -> list[str]:
        """Every day's newest estimate is published and recorded, and every one that is due was made."""
        catalogue = find_catalogue(self.world.settings.published_folder)
        broken = []
        for (period, revision), vintages in books.vintages.items():
            entry = catalogue.entry(date.fromisoformat(period)) if catalogue else None
            if entry is not None and entry.revision > revision:
                continue  # restated since
            if not vintages[-1].published or entry is None or entry.vintage != vintages[-1].number:
                broken.append(f"LOST: {period} has vintage {vintages[-1].number}, and readers do not")
        if self.world.settings.revise_days and catalogue is not None:
            # a restated day keeps its estimate; it stops the smoothing of the day before, and so does a
            # withdrawn one
            due = [
                one
                for one, after in pairwise(catalogue.entries)
                if not (one.revision or after.revision or one.withdrawn or after.withdrawn)
            ]
            broken += [f"LOST: {one.period} was never sharpened" for one in due if not one.vintage]
        return broken

    def _strays(self, books: Books) -> list[str]:
        """Nothing but what the catalogue lists, all descriptions; nothing drawn but what the ledger knows."""
        folder, broken = self.world.settings.published_folder, []
        if find_catalogue(folder):
            broken += [f"LIVE: {line}" for line in self._checked()]
            missing = [name for name in DESCRIPTIONS if not (folder / name).exists()]
            broken += [f"LOST: there is no {name}" for name in missing]
        for record in books.records:
            if record.state in LIVE:
                broken += self._measurements(record)
        return broken

    def _measurements(self, record: ReleaseRecord) -> list[str]:
        folder = self.world.settings.measurements_of(date.fromisoformat(record.period), record.revision)
        found = folder.iterdir() if folder.is_dir() else ()
        kept = [path.read_bytes() for path in found if path.suffix != ".raw"]
        # space that was held for a draw that never began is all zeros
        digests = [hashlib.sha256(data).hexdigest() for data in kept if data.strip(b"\0")]
        if digests != [record.measurements_hash]:
            return [f"DOUBLE SPEND: {record.period} keeps {len(digests)} files, not the one that was drawn"]
        return []


def half_files(folder: Path) -> list[str]:
    """Files other than data that a reader would find half-written."""
    names = [*DESCRIPTIONS, ABOUT, PAGE]
    return [f"half of {name}" for name in names if (folder / name).exists() and _is_half(folder / name)]


def _is_half(path: Path) -> bool:
    data = path.read_bytes()
    if path.suffix == ".html":
        return not data.rstrip().endswith(b"</html>")
    try:
        json.loads(data)
    except ValueError:
        return True
    return False


def _end(story: list[str], kind: str) -> int:
    return story.index(kind) + 1 if kind in story else len(story)


def _staged(books: Books, record: ReleaseRecord) -> dict[int, str]:
    """The hash of each vintage, the newest last."""
    first = {} if record.staged_hash is None else {0: record.staged_hash}
    known = books.vintages.get((record.period, record.revision), ())
    return first | {one.number: one.staged_hash for one in known}


def _words(last: LastWords | None, day: date) -> str:
    return json.dumps(last.error or last.messages.get(day.isoformat())) if last else "it said nothing"


def _unfounded(books: Books, catalogue: Catalogue) -> list[str]:
    live = {(record.period, record.revision): record for record in books.records if record.state in LIVE}
    broken = []
    for entry in catalogue.entries:
        record = live.get((entry.period.isoformat(), entry.revision))
        founded = record is not None and _staged(books, record).get(entry.vintage) == entry.file_hash
        if not founded or entry.ledger_head in books.missing_heads:
            broken.append(
                f"LIVE: the catalogue lists {entry.period}, and the ledger does not stand behind it"
            )
    return broken


# From outside: what readers saw, and leftovers.


Seen = tuple[Any, ...]
"""("error", text), or the way of reading, period, revision, vintage and hash."""


def judge_sightings(seen: Iterable[Seen], books: Books) -> list[str]:
    """One content for each day, revision and vintage, however and whenever read; it is the ledger's."""
    broken, contents = [], defaultdict[tuple[Any, ...], set[str]](set)
    for kind, *rest in seen:
        if kind == "error":
            broken.append(f"READER: {rest[0]}")
        else:
            *key, digest = rest
            contents[kind, *key].add(digest)
    records = {(record.period, record.revision): record for record in books.records}
    for (kind, day, revision, vintage), digests in contents.items():
        named = f"{day} revision {revision} vintage {vintage}"
        if len(digests) > 1:
            broken.append(f"DOUBLE SPEND: {named} had {len(digests)} contents for readers ({kind})")
        record = records.get((day, revision))
        if record is None or record.state not in LIVE:
            state = record and record.state
            broken.append(f"DOUBLE SPEND: readers saw {named}, which is {state} in the ledger")
        elif kind == "bytes" and not digests <= {_staged(books, record).get(vintage)}:
            broken.append(f"LIVE: readers saw {named} in bytes that the ledger does not know")
    return broken


def judge_remains(world: World, temporary: Path) -> list[str]:
    """No temporary file, no mark, no raw state but the newest day's, no half-written file."""
    left = [path for path in temporary.rglob("*") if path.is_file() or path.is_symlink()]
    trusted = world.folder / "trusted"
    left += trusted.glob(".backfill-*")
    left += [*trusted.rglob("*.raw")][1:]
    return [f"LEFT BEHIND: {path.relative_to(world.folder.parent)}" for path in sorted(left)[:5]]
