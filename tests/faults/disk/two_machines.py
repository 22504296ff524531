"""Two machines: the trusted folder is copied elsewhere, and both release the same day.

The copy has a ledger of its own, which came with the folder, or shares PostgreSQL; it has a published folder
of its own, or shares the first machine's.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from optstream.catalogue import find_catalogue
from tests.faults.bench import Bench
from tests.faults.judge import Judge, Sight
from tests.faults.night import LastWords, Night
from tests.faults.world import DAYS, World

BEFORE, DAY = DAYS[0], DAYS[1]
"""The day that was released before the folder was copied, and the one that both release."""
DRAWN = "after commit in Ledger.record_drawn, 1"
"""Where the first machine stands still while the second runs."""


@dataclass(frozen=True)
class Pair:
    """Two machines' folders. shared_ledger: one PostgreSQL. shared_published: one published folder."""

    first: World
    second: World
    shared_ledger: bool
    shared_published: bool

    @property
    def blind(self) -> bool:
        """Whether neither has any way to see the other."""
        return not self.shared_ledger and not self.shared_published


@dataclass(frozen=True)
class Outcome:
    """What came of it. draws: of the day, on both. shown: what readers of any folder found of the day, each
    once. before_draw: whether the second machine drew nothing. words: the second machine's.
    """

    draws: int
    shown: frozenset[str]
    before_draw: bool
    words: LastWords | None

    @property
    def is_double(self) -> bool:
        return len(self.shown) > 1

    @property
    def is_told(self) -> bool:
        """Whether the second machine says that it did not publish the day."""
        return self.words is None or not self.words.is_good


def make_pair(bench: Bench, shared_published: bool) -> Pair:
    """A day is released; then everything is copied."""
    first = bench.world()
    bench.run(first, [BEFORE])
    folder = bench.folder / f"{first.folder.name}-copy"
    shutil.copytree(first.folder, folder)
    if shared_published:
        shutil.rmtree(folder / "published")
        text = (folder / "optstream.toml").read_text()
        named = text.replace('folder = "published"', f'folder = "{first.settings.published_folder}"')
        (folder / "optstream.toml").write_text(named)
    return Pair(first, World(folder), bench.new_url is not None, shared_published)


def one_after_the_other(bench: Bench, pair: Pair) -> Outcome:
    """The second begins when the first has published."""
    bench.run(pair.first, [DAY])
    _, words = bench.run(pair.second, [DAY])
    return _outcome(pair, words)


def out_of_sight(bench: Bench, pair: Pair) -> Outcome:
    """The second begins when the first has published, where no path leads to the first's folders."""
    bench.run(pair.first, [DAY])
    away = pair.first.folder.with_name(f"{pair.first.folder.name}-away")
    pair.first.folder.rename(away)
    _, words = bench.run(pair.second, [DAY])
    away.rename(pair.first.folder)
    return _outcome(pair, words)


def while_the_first_stands_still(bench: Bench, pair: Pair) -> Outcome:
    """The second runs from its beginning to its end while the first has drawn and not published."""
    first = bench.fork_server.start(bench.night(pair.first, [DAY], act="stop", point=DRAWN))
    assert first.wait() == "stopped"
    _, words = bench.run(pair.second, [DAY], patience_seconds=1.0)
    first.go_on()
    first.wait()
    return _outcome(pair, words)


def at_once(bench: Bench, pair: Pair) -> Outcome:
    """Both begin at the same moment."""
    nights: list[Night] = [bench.night(world, [DAY]) for world in (pair.first, pair.second)]
    started = [bench.fork_server.start(night) for night in nights]
    for process in started:
        process.wait()
    return _outcome(pair, started[1].last_words())


ORDERS = {
    "one after the other": one_after_the_other,
    "while the first stands still": while_the_first_stands_still,
    "at once": at_once,
}


def _outcome(pair: Pair, words: LastWords | None) -> Outcome:
    draws = [world.samplings().count(DAY) for world in (pair.first, pair.second)]
    return Outcome(sum(draws), frozenset(_shown(pair, DAY)), draws[1] == 0, words)


def _shown(pair: Pair, day: date) -> Iterator[str]:
    for world in (pair.first, pair.second):
        catalogue = find_catalogue(world.settings.published_folder)
        found: Mapping[Sight, str] = {}
        if catalogue is not None:
            found = Judge(world).sights(catalogue, world.settings.published_folder)
        yield from (digest for (period, _, _), digest in found.items() if period == day.isoformat())


def remove(pair: Pair) -> None:
    """Leave nothing."""
    pair.first.remove()
    pair.second.remove()
