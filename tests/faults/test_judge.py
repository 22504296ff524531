"""The judge can fail: each broken world here must be found out, and a whole one must not."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from optstream.catalogue.layout import DESCRIPTIONS
from optstream.ledger import Key, open_ledger
from tasks.operate.keys import new_key
from tests.faults.books import forge
from tests.faults.judge import Judge
from tests.faults.night import LastWords
from tests.faults.world import DAYS, STREAM

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


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_may_be_a_run_behind_while_one_is_under_way_and_never_half(judge, name):
    """As a kill between the catalogue and the descriptions leaves it: of another catalogue, and whole."""
    path = judge.world.settings.published_folder / name
    whole = path.read_bytes()
    assert b"1.0.0+" in whole
    path.write_bytes(whole.replace(b"1.0.0+", b"1.0.0+0"))
    assert judge.look() == []
    assert f"{name} is not of the days" in verdict(judge)
    path.write_bytes(whole[:-20])
    assert f"half of {name}" in " ".join(judge.look())


def test_errors_of_a_release_may_come_before_it_and_must_not_stay(judge):
    """As a kill just before the catalogue leaves them."""
    (path,) = judge.world.settings.published_folder.glob("errors/*/*.parquet")
    later = path.with_name(path.name.replace("vintage-0", "vintage-1"))
    later.write_bytes(path.read_bytes())
    assert judge.look() == []
    assert "LIVE: " in verdict(judge)
    assert "is of no listed release" in verdict(judge)


def test_an_overspent_window(judge):
    """The grant of the configuration is smaller than what was charged."""
    model = judge.world.settings.model
    judge.world.__dict__["settings"] = SmallerGrant(judge.world.settings, model)
    assert "WINDOW" in " ".join(judge.look())


class SmallerGrant:
    """The same settings, with half the grant."""

    def __init__(self, settings, model):
        self._settings, self.model = settings, replace(model, epsilon=Fraction(model.epsilon) / 2)

    def __getattr__(self, name):
        return getattr(self._settings, name)


def test_measurements_that_changed_and_such_that_were_kept(judge):
    folder = judge.world.settings.measurements_of(DAY, 0)
    (folder / "7-orphan").write_bytes(b"another draw")
    assert "keeps 2 files" in verdict(judge)
    forge(judge.world, "UPDATE releases SET measurements_hash = 'other'")
    assert "the measurements of 2016-06-01 changed" in verdict(judge)


def test_a_lost_day(judge):
    later = DAY + timedelta(days=1)
    assert "LOST" in " ".join(judge.at_the_end([later], SAID))


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


def test_two_processes_of_the_fork_server_never_share_noise(sqlite_bench):
    """They were forked from one; had it drawn before, both would hold the rest of one buffer."""
    worlds = [sqlite_bench.world() for _ in range(2)]
    for world in worlds:
        sqlite_bench.run(world)
    kept = []
    for world in worlds:
        ledger = open_ledger(world.settings.ledger_url)
        kept.append(ledger.find(Key(STREAM, DAY.isoformat())).measurements_hash)
    assert len(set(kept)) == 2
