"""Files that change behind the flow's back, and a clock that is set back."""

import pytest

from optstream.catalogue import check_files, read_published
from optstream.errors import PublicationError
from optstream.ledger import ReleaseState
from tests.by_night import few, on_both
from tests.faults.books import read_books
from tests.faults.judge import Judge
from tests.faults.world import DAYS

SPOILED = {
    "altered": lambda path: path.write_bytes(path.read_bytes().replace(b"2016", b"2017", 1) + b"x"),
    "deleted": lambda path: path.unlink(),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
}


def stopped_at(bench, world, point):
    """A night that stands still there."""
    night = bench.fork_server.start(bench.night(world, act="stop", point=point))
    assert night.wait() == "stopped"
    return night


@pytest.mark.parametrize(("bench", "how"), on_both(SPOILED, 1), indirect=["bench"])
def test_a_staged_file_spoiled_before_it_is_published(bench, how):
    """The run dies, the bytes are spoiled: the next makes the same ones again from the measurements."""
    world = bench.world()
    judge = Judge(world)
    night = stopped_at(bench, world, "after commit in Ledger.record_staged, 1")
    assert judge.look() == []
    night.kill()
    assert night.wait() == "killed"
    for staged in [*world.settings.staging_of(DAYS[0], 0).iterdir()]:
        SPOILED[how](staged)
    assert bench.rerun([judge]) == []
    assert world.samplings() == [DAYS[0]]
    assert judge.voids() == 0


@pytest.mark.parametrize("how", few(SPOILED, 1))
def test_measurements_spoiled_after_the_draw(sqlite_bench, how):
    """What was drawn is gone, and is never drawn again: VOID, charged, alarmed."""
    world = sqlite_bench.world()
    judge = Judge(world)
    night = stopped_at(sqlite_bench, world, "after commit in Ledger.record_drawn, 1")
    night.kill()
    night.wait()
    folder = world.settings.measurements_of(DAYS[0], 0)
    (measured,) = (path for path in folder.iterdir() if path.stat().st_size)
    SPOILED[how](measured)
    assert sqlite_bench.rerun([judge]) == []
    assert judge.voids() == 1
    assert world.samplings() == [DAYS[0]]


@pytest.mark.parametrize("how", few(SPOILED, 1))
def test_a_published_file_spoiled(sqlite_bench, how):
    """Its reader is refused, a check names it, no run overwrites it or draws again."""
    world = sqlite_bench.world()
    judge = Judge(world)
    sqlite_bench.run(world)
    assert judge.look() == []
    folder = world.settings.published_folder
    (path,) = folder.glob("data/*/*.parquet")
    whole = path.read_bytes()
    SPOILED[how](path)
    with pytest.raises(PublicationError):
        read_published(folder, verify=True)
    assert DAYS[0].isoformat() in " ".join(check_files(folder))
    left = path.read_bytes() if path.exists() else None
    sqlite_bench.run(world, DAYS[:2], hours=1)
    assert (path.read_bytes() if path.exists() else None) == left
    assert sorted(world.samplings()) == list(DAYS[:2])
    path.write_bytes(whole)
    assert judge.look() == []


def test_a_file_in_the_way_of_a_publication(sqlite_bench):
    """Altered between the file and the catalogue: nothing false is listed, and nothing is overwritten."""
    world = sqlite_bench.world()
    judge = Judge(world)
    night = stopped_at(sqlite_bench, world, "before create in _write_aside < replace, 1")
    night.kill()
    night.wait()
    (path,) = world.settings.published_folder.glob("data/*/*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    _, said = sqlite_bench.run(world, hours=1)
    assert not said.is_good
    assert "never overwritten" in said.messages[DAYS[0].isoformat()]
    assert judge.look() == []
    path.write_bytes(whole)
    assert sqlite_bench.rerun([judge], hours=2) == []


@pytest.mark.parametrize(
    ("bench", "point"),
    on_both(["after commit in Ledger.begin_draw, 1", "after commit in Ledger.record_drawn, 1"], 1),
    indirect=["bench"],
)
def test_a_clock_set_back_by_a_day(bench, point):
    """The dead run's lease seems to last: the day waits, alarmed; with the right clock it is completed."""
    world = bench.world()
    judge = Judge(world)
    night = stopped_at(bench, world, point)
    night.kill()
    night.wait()
    _, said = bench.run(world, hours=-24)
    assert not said.is_good
    assert judge.look() == []
    assert read_books(world).records[0].state in (ReleaseState.RESERVED, ReleaseState.DRAWN)
    assert bench.rerun([judge]) == []
    assert judge.voids() == 0


@pytest.mark.nightly
def test_the_third_redraw_after_a_death_voids(bench):
    world = bench.world()
    judge = Judge(world)
    point = "before write in _write < DrawingFile.fill, 1"
    for hours in range(3):
        how, _ = bench.run(world, act="kill", point=point, hours=hours)
        assert how == "killed"
        assert judge.look() == []
    assert bench.rerun([judge], hours=4) == []
    assert judge.voids() == 1
    assert len(world.samplings()) == 3


@pytest.mark.parametrize(
    ("bench", "point"),
    on_both(["after replace in DrawingFile.fill < _drawn, 1", "before commit in Ledger.record_drawn, 1"], 1),
    indirect=["bench"],
)
def test_a_draw_that_is_whole_is_taken_up_and_not_drawn_again(bench, point):
    """However often the runs that should record it die: one draw, no VOID day."""
    world = bench.world()
    judge = Judge(world)
    how, _ = bench.run(world, act="kill", point=point)
    assert how == "killed"
    for hours, later in enumerate(
        ("after replace in take_up < _taken_up, 1", "before commit in Ledger.record_drawn, 1"), 1
    ):
        how, _ = bench.run(world, act="kill", point=later, hours=hours)
        assert how == "killed"
        assert judge.look() == []
    assert bench.rerun([judge], hours=4) == []
    assert judge.voids() == 0
    assert world.samplings() == [DAYS[0]]
