"""The judge can fail: each broken world here must be found out, and a whole one must not."""

import json
from datetime import UTC, datetime

import pytest

from tasks.operate.keys import new_key
from tests.faults.books import forge
from tests.faults.judge import Judge
from tests.faults.night import LastWords
from tests.faults.world import DAYS

DAY = DAYS[0]
NOW = datetime(2016, 6, 2, tzinfo=UTC)
SAID = LastWords({DAY.isoformat(): "published"})


@pytest.fixture(scope="module")
def published(sqlite_bench):
    """A world with one published day; only copied."""
    world = sqlite_bench.world()
    how, said = sqlite_bench.run(world)
    assert (how, said.is_good) == ("ended", True)
    return world


@pytest.fixture
def judge(published, tmp_path):
    """Of a copy of that world, which it has seen."""
    world = published.copied(tmp_path / "world")
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
    "an unsigned catalogue": (
        lambda world: new_key(world.folder / "trusted/signing.pem"),
        "NOT WHOLE",
    ),
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
    world = sqlite_bench.world()
    sqlite_bench.run(world, raises=True)
    failed = LastWords({DAY.isoformat(): "void"})
    judge = Judge(world)
    assert judge.at_the_end([DAY], failed) == []
    assert "nobody is alerted" in " ".join(judge.at_the_end([DAY], SAID))
    # but who withdrew it himself
    assert judge.at_the_end([DAY], SAID, {DAY.isoformat()}) == []
    world.settings.report_file.unlink()
    assert "nobody is alerted" in " ".join(judge.at_the_end([DAY], failed))
