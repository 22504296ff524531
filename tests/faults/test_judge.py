"""The judges can fail: each broken world here must be found out, and a whole one must not."""

import json
import shutil

import pytest

from tasks.operate.keys import new_key
from tests.faults.commands import look
from tests.faults.judge import Judge, forge, judge_remains, judge_sightings, read_books
from tests.faults.life import Life
from tests.faults.night import LastWords, Night
from tests.faults.world import DAYS

DAY = DAYS[0]
SAID = LastWords({DAY.isoformat(): "published"})


@pytest.fixture(scope="module")
def two_worlds(sqlite_bench):
    """Each with the same day, published: two draws of the same readings. Only copied."""
    lives = [Life(sqlite_bench) for _ in range(2)]
    for life in lives:
        assert (life.happen(Night()), life.said.is_good) == ("ended", True)
    return [life.world for life in lives]


@pytest.fixture
def world(two_worlds, tmp_path):
    return two_worlds[0].copied(tmp_path / "world")


@pytest.fixture
def judge(world):
    judge = Judge(world)
    assert judge.look() == []
    assert judge.at_the_end([DAY], SAID) == []
    return judge


def verdict(judge, said=SAID):
    return " ".join(judge.at_the_end([DAY], said))


def file_of(world):
    (path,) = world.settings.published_folder.glob("data/*/*.parquet")
    return path


def catalogue_of(world):
    return world.settings.published_folder / "catalogue.json"


def rewriting(place, change):
    return lambda world: place(world).write_bytes(change(place(world).read_bytes()))


def forging(statement):
    return lambda world: forge(world, statement)


def second_live_file(world):
    file_of(world).with_name(f"release-{'ab' * 32}.parquet").write_bytes(file_of(world).read_bytes())


def draw_that_nobody_announced(world):
    world.noise_log.write_text(world.noise_log.read_text() + f"{DAY} 0\n")


SECOND_DRAW = (
    "INSERT INTO events (stream_id, number, at, kind, period, revision, body, previous, hash) SELECT "
    "stream_id, number + 100, at, kind, period, revision, body, previous, hash || 'x' FROM events "
    "WHERE kind IN ('draw begun', 'drawn')"
)
HARMED = {
    "a cut file": (rewriting(file_of, lambda data: data[:-1]), "NOT WHOLE"),
    "a longer file": (rewriting(file_of, lambda data: data + b"x"), "NOT WHOLE"),
    "an empty file": (rewriting(file_of, lambda _: b""), "NOT WHOLE"),
    "a cut catalogue": (rewriting(catalogue_of, lambda data: data[:-20]), "NOT WHOLE"),
    "an unsigned catalogue": (lambda world: new_key(world.folder / "trusted/signing.pem"), "NOT WHOLE"),
    "a second live file of a day": (second_live_file, "LIVE"),
    "an entry that the ledger does not know": (
        forging("UPDATE releases SET staged_hash = 'other'"),
        "the ledger does not stand behind it",
    ),
    "an edited ledger": (forging("UPDATE events SET body = '{}' WHERE kind = 'drawn'"), "LEDGER"),
    "a draw that nobody announced": (draw_that_nobody_announced, "DOUBLE SPEND"),
    "a second draw in the events": (forging(SECOND_DRAW), "was drawn again after it was drawn"),
    "a reserved day": (forging("UPDATE releases SET state = 'RESERVED'"), f"LOST: {DAY} is RESERVED"),
    "a drawn day": (forging("UPDATE releases SET state = 'DRAWN'"), f"LOST: {DAY} is DRAWN"),
    "a day that is not listed": (
        rewriting(catalogue_of, lambda data: json.dumps(json.loads(data) | {"periods": {}}).encode()),
        "the catalogue does not list it",
    ),
}


@pytest.mark.parametrize(("harm", "words"), HARMED.values(), ids=HARMED)
def test_a_broken_world_is_found_out(judge, harm, words):
    harm(judge.world)
    assert words in " ".join(judge.look()) or words in verdict(judge)


def test_a_void_day_without_an_alert(sqlite_bench):
    life = Life(sqlite_bench)
    life.happen(Night(raises=True))
    failed = LastWords({DAY.isoformat(): "void"})
    world, judge = life.world, life.judge
    assert judge.at_the_end([DAY], failed) == []
    assert "nobody is alerted" in " ".join(judge.at_the_end([DAY], SAID))
    # but who withdrew it himself
    assert judge.at_the_end([DAY], SAID, {DAY.isoformat()}) == []
    world.settings.report_file.unlink()
    assert "nobody is alerted" in " ".join(judge.at_the_end([DAY], failed))


# From outside: what readers saw.


def altered(world, _other):
    file_of(world).write_bytes(file_of(world).read_bytes()[:-1] + b"x")


def drawn_again(world, other):
    """Whole and consistent each time: only who remembers can tell."""
    shutil.rmtree(world.settings.published_folder)
    shutil.copytree(other.settings.published_folder, world.settings.published_folder)


def given_up(world, _other):
    forge(
        world, "UPDATE releases SET state = 'VOID', reason = 'OperationalError after the first noise sample'"
    )


SEEN = {
    "a whole world": (lambda *_: None, []),
    "a file that is altered between two reads": (altered, ["READER: read_published", "had 2 contents"]),
    "a day that is published again from another draw": (
        drawn_again,
        [f"had 2 contents for readers ({way})" for way in ("read_published", "bytes", "plain polars")]
        + ["in bytes that the ledger does not know"],
    ),
    "a day that readers saw and the ledger gave up": (
        given_up,
        [
            f"readers saw {DAY} revision 0 vintage 0, which is VOID",
            f"LOST: {DAY} revision 0 is VOID after 1 draws",
        ],
    ),
}


@pytest.mark.parametrize(("harm", "words"), SEEN.values(), ids=SEEN)
def test_what_readers_saw_is_remembered(two_worlds, world, tmp_path, harm, words):
    seen = set()
    look(world.settings.published_folder, seen)
    assert {kind for kind, *_ in seen} == {"read_published", "bytes", "plain polars"}
    harm(world, two_worlds[1])
    look(world.settings.published_folder, seen)
    (tmp_path / "tmp").mkdir()
    books = read_books(world)
    said = [*judge_sightings(seen, books), *judge_remains(world, tmp_path / "tmp")]
    said = " ".join([*said, *Judge(world)._voids(books)])
    assert [one for one in words if one not in said] == []
    assert bool(said) == bool(words)
    assert harm is altered or "READER" not in said


def test_only_three_deaths_or_a_withdrawal_make_a_day_void(world):
    forge(world, "UPDATE releases SET state = 'VOID', reason = 'its owner died 3 times while drawing'")
    judge = Judge(world)
    assert "after 1 draws" in verdict(judge)
    judge.may_be_void.add(DAY.isoformat())
    assert "after 1 draws" not in verdict(judge)
