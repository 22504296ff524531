"""Several runs of the same day at once, and a chunk of many days among runs of one: one release a day."""

import pytest

from optstream.catalogue import find_catalogue
from tests.by_night import few
from tests.faults.fork_server import Started
from tests.faults.judge import Judge
from tests.faults.world import DAYS


def start_all(bench, nights):
    started = [Started(night) for night in nights]
    for process in started:
        assert process.wait() == "ended"
    return [process.last_words() for process in started]


@pytest.mark.parametrize("runs", few([2, 3, 8], 1))
def test_runs_of_the_same_day(bench, runs):
    world = bench.world()
    judge = Judge(world)
    said = start_all(bench, [bench.night(world) for _ in range(runs)])
    assert judge.look() == []
    assert world.samplings() == [DAYS[0]]
    outcomes = [words.outcomes.get(DAYS[0].isoformat()) for words in said]
    assert outcomes.count("published") == 1
    assert bench.rerun([judge]) == []
    assert world.samplings() == [DAYS[0]]


def test_a_chunk_of_days_beside_nights(bench):
    """What a backfill will be: many days in one chunk, while each of them is also asked for alone."""
    world = bench.world()
    judge = Judge(world)
    days = DAYS[:3]
    start_all(bench, [bench.night(world, days), *(bench.night(world, [day]) for day in days)])
    assert judge.look() == []
    assert sorted(world.samplings()) == sorted(set(world.samplings()))
    assert bench.rerun([judge], days) == []
    assert sorted(world.samplings()) == list(days)


@pytest.mark.parametrize("shared", ["ledger", "published"])
def test_a_copied_trusted_folder_run_on_two_machines_at_once(request, shared):
    """What they share, the ledger or the published folder, gives the day to one of them."""
    bench = request.getfixturevalue("postgresql_bench" if shared == "ledger" else "sqlite_bench")
    first = bench.world()
    bench.run(first)
    second = first.copied(first.folder.with_name(f"{first.folder.name}-copy"))
    if shared == "published":
        text, place = second.configuration.read_text(), first.settings.published_folder
        second.configuration.write_text(text.replace('folder = "published"', f'folder = "{place}"'))
    day = DAYS[1]
    start_all(bench, [bench.night(world, [day]) for world in (first, second)])
    draws = sum(world.samplings().count(day) for world in (first, second))
    catalogues = [find_catalogue(world.settings.published_folder) for world in (first, second)]
    shown = {entry.file_hash for catalogue in catalogues if (entry := catalogue.entry(day))}
    assert len(shown) == 1
    assert shared != "ledger" or draws == 1


def test_an_owner_that_wakes_up_while_another_draws(bench):
    """Both have sampled: only what the newest owner drew may be recorded."""
    world = bench.world()
    judge = Judge(world)
    nights = []
    for hours in range(2):
        point = "before write in _write < DrawingFile.fill, 1"
        night = Started(bench.night(world, hours=hours, act="stop", point=point))
        assert night.wait() == "stopped"
        nights.append(night)
    for night in nights:
        night.go_on()
        assert night.wait() == "ended"
    sleeper, newest = (night.last_words() for night in nights)
    assert not sleeper.is_good
    assert newest.is_good
    assert judge.look() == []
    assert bench.rerun([judge], hours=2) == []
    assert judge.voids() == 0
