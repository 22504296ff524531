"""Whatever happens on a night, no day is drawn twice, lost or half published; the next run completes all."""

import random
from itertools import product

import pytest

from optstream.catalogue import find_catalogue
from tests.by_night import few, on_both
from tests.faults.hook import REFUSALS, is_refusable
from tests.faults.life import FIRST, MECHANISMS, Life, live, night_by, strike_at_each
from tests.faults.night import Night
from tests.faults.world import DAYS, mount, on_a_disk_of, why_no_mounts

PREALLOCATING = "before mkdir in make_private_folder < DrawingFile.preallocate, 1"
BEGUN, DRAWN, STAGED = (
    f"after commit in Ledger.{method}, 1" for method in ("begin_draw", "record_drawn", "record_staged")
)
FILLING = "before write in _write < DrawingFile.fill, 1"


def test_any_nights(bench):
    """A seeded search, by day of few lives: nights of any kind with faults of any kind anywhere."""
    for seed in range(40 if bench.cluster else 3):
        chance = random.Random(seed)
        life = Life(bench, MECHANISMS[seed % len(MECHANISMS)])
        nights = [night_by(chance, bench) for _ in range(3)]
        for night in nights:
            life.happen(night)
            assert life.broken == [], nights
        assert life.end(runs=2).broken == [], (nights, life.said)
        life.world.remove()


@pytest.fixture(scope="module")
def points(sqlite_bench):
    return FIRST.points(sqlite_bench)


def test_every_kind_of_write_is_a_point(points):
    said = " ".join(points)
    for primitive in ("write", "fsync", "posix_fallocate", "replace", "link", "unlink", "mkdir", "create"):
        assert f"before {primitive} in " in said
        assert f"after {primitive} in " in said
    for method in ("enrol", "reserve", "begin_draw", "record_drawn", "record_staged", "record_published"):
        assert f"before commit in Ledger.{method}, 1" in points
        assert f"after commit in Ledger.{method}, 1" in points
    assert len(set(points)) == len(points) > 150


def test_nothing_gets_its_name_before_its_bytes_are_synced(points):
    """A SIGKILL loses nothing that was not synced, a power cut does: the order of the calls is looked at."""
    unsynced = False
    named = []
    for point in points:
        moment, primitive = point.split()[:2]
        unsynced = (unsynced or primitive == "write") and not (moment == "after" and primitive == "fsync")
        if moment == "before" and primitive in ("replace", "link"):
            assert not unsynced, point
            named.append(point)
    assert len(named) > 5
    for place, point in enumerate(points):
        if point.startswith("after replace"):
            following = points[place + 1]
            assert following.startswith(("before fsync in sync_folder", "before fsync in replace ")), point
        if point.startswith("after link"):
            # the name that it had aside goes first
            unlinked, following = points[place + 2], points[place + 3]
            assert unlinked.startswith("after unlink"), point
            assert following.startswith("before fsync in write_new"), point


def test_death_after_every_commit_of_a_first_day(sqlite_bench, points):
    moments = [one for one in points if one.startswith("after commit")]
    tally = strike_at_each(sqlite_bench, moments, ["kill"], FIRST)
    assert tally.broken == []
    assert tally.tried > 5
    assert tally.voids == 0


def test_refusals_over_a_first_day(sqlite_bench, points):
    """Full, read-only and broken by turns, for all are an OSError."""
    # one of them in the draw, whatever their distance
    every = [point for point in points if is_refusable(point)]
    drawn = next(number for number, point in enumerate(every) if "DrawingFile.fill" in point) + 1
    some = every[drawn % 40 :: 40]
    tally = strike_at_each(sqlite_bench, some, list(REFUSALS), FIRST)
    assert tally.broken == []
    # between the first sample and DRAWN an exception may depend on the draw
    assert 0 < tally.voids < len(some) / 5


POINTS = (PREALLOCATING, BEGUN, DRAWN, STAGED)
ON_ANY = [
    ("locked", BEGUN),
    ("trusted read-only", BEGUN),
    ("joined", PREALLOCATING),
    ("joined", FILLING),
    ("overtaken", FILLING),
    *(("locked", point) for point in (PREALLOCATING, DRAWN, STAGED)),
    ("published read-only", DRAWN),
    ("trusted read-only", DRAWN),
    ("published read-only", BEGUN),
]
OF_PROCESSES = [
    ("terminated", FILLING),
    ("with another", PREALLOCATING),
    *product(["terminated"], POINTS),
    ("with seven", PREALLOCATING),
    ("clock ahead", BEGUN),
    ("clock back", BEGUN),
]
TWICE = [("joined", FILLING), ("overtaken", FILLING)]
OF_SERVERS = [("restarted", DRAWN), *product(("away", "restarted"), POINTS)]


@pytest.mark.parametrize(
    ("bench", "case"),
    [
        *on_both(ON_ANY, 4, 1),
        *on_both(OF_PROCESSES, 2),
        *(pytest.param("postgresql", *case.values, marks=case.marks) for case in few(OF_SERVERS, 1)),
    ],
    indirect=["bench"],
)
def test_what_happens_while_a_run_is_at_a_point(bench, case):
    """Nothing is given up or sampled by two; where another owner took over, only its draw is recorded."""
    meanwhile, point = case
    if meanwhile not in bench.meanwhile:
        pytest.skip(f"no mounts here: {why_no_mounts()}")
    life = Life(bench)
    patience = 30.0 if meanwhile.startswith("with ") else 0.2  # eight runs wait for each other
    how = life.happen(Night(act="stop", point=point, meanwhile=meanwhile, patience_seconds=patience))
    assert how == ("terminated" if meanwhile == "terminated" else "ended")
    is_good = life.said is not None and life.said.is_good
    goes_on = ("with another", "with seven", "restarted", "clock ahead", "clock back")
    assert is_good is (meanwhile in goes_on), life.said
    assert life.end().broken == []
    assert life.judge.voids() == 0
    assert life.world.samplings() == [DAYS[0]] * (2 if case in TWICE else 1)


def test_a_chunk_of_days_among_nights(bench):
    """As in a backfill: many days in one chunk, while each of them is also asked for alone."""
    life = Life(bench)
    for process in [life.begin(Night(days)) for days in ((0, 1, 2), (0,), (1,), (2,))]:
        assert process.wait() == "ended"
    assert life.judge.look() == []
    assert len(life.world.samplings()) == len(set(life.world.samplings()))
    assert life.end().broken == []
    assert sorted(life.world.samplings()) == list(DAYS[:3])


@pytest.mark.parametrize("shared", ["ledger", "published"])
def test_a_copied_trusted_folder_run_on_two_machines_at_once(request, shared):
    """What they share, the ledger or the published folder, gives the day to one of them."""
    bench = request.getfixturevalue("postgresql_bench" if shared == "ledger" else "sqlite_bench")
    first = live(bench, [Night()]).world
    second = first.copied(first.folder.with_name(f"{first.folder.name}-copy"))
    if shared == "published":
        text, place = second.configuration.read_text(), first.settings.published_folder
        second.configuration.write_text(text.replace('folder = "published"', f'folder = "{place}"'))
    for process in [bench.start(world, Night((1,))) for world in (first, second)]:
        assert process.wait() == "ended"
    day = DAYS[1]
    draws = sum(world.samplings().count(day) for world in (first, second))
    catalogues = [find_catalogue(world.settings.published_folder) for world in (first, second)]
    shown = {entry.file_hash for catalogue in catalogues if (entry := catalogue.entry(day))}
    assert len(shown) == 1
    assert shared != "ledger" or draws == 1


@pytest.mark.skipif(why_no_mounts() is not None, reason=f"no mounts here: {why_no_mounts()}")
@pytest.mark.parametrize("size_kb", few([150, 300], 1))
def test_a_small_disk_that_is_full(sqlite_bench, size_kb):
    life = Life(sqlite_bench)
    with on_a_disk_of(size_kb, life.world.folder):
        life.happen(Night())
        mount("-o", "remount,size=64m", life.world.folder)
        assert life.end().broken == []
        assert life.judge.voids() == 0
