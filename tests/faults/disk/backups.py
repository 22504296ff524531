"""Backups: any of ledger, trusted folder and published folder, restored to an earlier moment."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from fractions import Fraction
from itertools import chain, combinations

from optstream.catalogue import check_files, find_catalogue
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from optstream.privacy import worst_window
from tasks.ledger.verify import verify
from tests.faults.bench import Bench
from tests.faults.books import read_books
from tests.faults.disk.past import AMENDED, STORES, Past, Points, Restored, drawn, happen, record_points
from tests.faults.judge import Judge
from tests.faults.night import LastWords
from tests.faults.points.attacks import Tally
from tests.faults.world import DAYS, World, sampled_in

SUBSETS = tuple(chain.from_iterable(combinations(STORES, size) for size in (1, 2, 3)))
UNKNOWABLE = " (nothing left to tell)"
Release = tuple[str, int]
"""Period and revision."""


def restores(past: Past, chance: random.Random, times: int = 1) -> Iterator[Restored]:
    """Every subset of the stores, to random moments, at the history's end and as if it had ended before."""
    last = len(past.moments) - 1
    for _ in range(times):
        for stores in SUBSETS:
            for moved in (False, True):
                newest = chance.choice((last, chance.randint(1, last)))
                middle = [number for number in range(newest) if past.moments[number].middle]
                together = chance.choice((*middle, *range(newest)))
                alike = chance.random() < 0.5
                moments = {store: together if alike else chance.randrange(newest) for store in stores}
                yield Restored(stores, moments, moved, newest)


def restore(past: Past, restored: Restored, days: Sequence[date] = DAYS) -> Tally:
    """Bring the backups back, run these days, and judge."""
    world = past.lay(restored)
    hours = 2.0 * len(past.moments) + 2
    alerted = _alerted_before(world)
    _, words = past.bench.run(world, days, hours=hours)
    tally = Tally(tried=1)
    broken = [*_judged(past, world, restored), *(_stale(world) if words and words.is_good else ())]
    for moment in past.moments[: restored.newest + 1]:
        tally.releases_checked += len(moment.sights)
    alerted = alerted or _is_alert(words)
    if past.forgotten(restored) and not alerted:
        broken.append(f"NOBODY IS ALERTED: {words}")
    if "ledger" in restored.stores and not past.knowable(restored) and not past.blind(restored):
        broken = [line for line in broken if line.startswith("DOUBLE SPEND")]
    tally.broken += [f"{line} [{restored.name}; {'; '.join(past.story)}]" for line in broken]
    return tally


def _judged(past: Past, world: World, restored: Restored) -> Iterator[str]:
    newest = restored.newest
    seen = past.seen(newest)
    yield from _drawn_again(past, world, restored, {(period, revision) for period, revision, _ in seen})
    for folder in {world.settings.published_folder, world.folder / "published"}:
        with suppress(OptStreamError, OSError):
            catalogue = find_catalogue(folder)
            found = Judge(world).sights(catalogue, folder) if catalogue else {}
            for key, digest in found.items():
                if seen.get(key, digest) != digest:
                    yield f"DOUBLE SPEND: {key[0]} shows other values than others saw before"
    draws = past.draws(newest) | drawn(read_books(world))
    spends = [spend for record in draws.values() for spend in record.spends]
    model = world.settings.model
    worst = worst_window(spends, model.window_length).epsilon
    # what a guarantee allows that is declared once stays allowed
    allowed = max(Fraction(model.epsilon), *(_epsilon(moment.amended) for moment in past.moments))
    if worst > allowed:
        yield f"WINDOW: all that was ever drawn costs {worst} in the worst window"


def _drawn_again(past: Past, world: World, restored: Restored, seen: set[Release]) -> Iterator[str]:
    """Of a revision that others saw, or whose draw the restored ledger has."""
    known = {(period, revision) for period, revision, _ in past.moments[restored.shown("ledger")].draws}
    before = Counter(sampled_in(past.moments[restored.newest].noise))
    for (period, revision), times in sorted(Counter(world.sampled()).items()):
        again = times > before[period, revision]
        if again and (period, revision) in seen:
            yield f"DOUBLE SPEND: {period} revision {revision}, which others saw, was drawn again"
        elif again and (period, revision) in known:
            yield f"DOUBLE SPEND: {period} revision {revision}, whose draw the ledger has, was drawn again"


def _stale(world: World) -> Iterator[str]:
    """Pages and descriptions may be missing: the next night rebuilds them."""
    with suppress(OptStreamError):
        found = check_files(world.settings.published_folder)
        yield from (f"STALE: {line}" for line in found if "is not of" in line)


def _epsilon(amended: bool) -> Fraction:
    return Fraction(AMENDED[amended].split('"')[1])


def _alerted_before(world: World) -> bool:
    """Whether `optstream ledger verify` says that something is wrong, or that a record lacks something."""
    try:
        if not read_books(world).events:
            return bool(verify(world.settings, None).problems)
        ledger = open_ledger(world.settings.ledger_url)
        try:
            found = verify(world.settings, ledger)
            return bool(found.problems) or any(
                word in note for note in found.notes for word in ("lineage", "tombstone")
            )
        finally:
            ledger.close()
    except OptStreamError:
        return True


def _is_alert(words: LastWords | None) -> bool:
    """Whether the run itself says so: a day that ended in a good state is no word of warning."""
    return words is None or not words.is_good


def row_of(past: Past, one: Restored) -> str:
    """The name of a restore's row in the table."""
    middle = any(past.moments[number].middle for number in one.moments.values())
    name = " + ".join(one.stores) + (", published moved" if one.moved else "")
    name += ", middle of a night" if middle else ""
    if "ledger" in one.stores and not past.knowable(one):
        name += UNKNOWABLE if past.blind(one) else ", nobody knew"
    return name


def campaign(
    bench: Bench, seed: int, histories: Sequence[int], say: Callable[[str], None], n_steps: int = 7
) -> dict[str, Tally]:
    """All restores of each of these histories, which the seed makes; by subset."""
    points: Points = record_points(bench) if histories else {}
    rows: dict[str, Tally] = {}
    for number in histories:
        chance = random.Random(f"{seed} {number}")
        past = happen(bench, chance, points, n_steps)
        for one in restores(past, chance):
            tally = restore(past, one)
            row = rows.setdefault(row_of(past, one), Tally())
            row.tried += tally.tried
            row.releases_checked += tally.releases_checked
            row.broken += tally.broken
            for line in tally.broken:
                say(f"  history {number}: {line}")
        past.remove()
    return rows
