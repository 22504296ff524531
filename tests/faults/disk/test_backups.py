"""Restored backups: nothing that others saw is drawn or shown again, and an alert is sent."""

import random

import pytest

from tests.faults.disk import backups
from tests.faults.disk.backups import _judged, restores
from tests.faults.disk.past import STORES, Past, Restored, happen, new_world, record_points
from tests.faults.world import DAYS

SEED = 20160603
BEGUN = "after commit in Ledger.begin_draw, 1"
WRITING = "during write in _write < DrawingFile.fill, 1"
STOPS = [BEGUN, "after commit in Ledger.record_drawn, 1", "after commit in Ledger.record_staged, 1"]
IN_A_DRAW, DRAWN, IN_A_RESTATEMENT = 2, 3, 8
"""The copies in which the second day's draw has begun, is recorded, and is being written once more."""


def lived(bench, second):
    """Two days, of which one is taken back, and the other restated; once, for there is a share for one."""
    past = Past(bench, new_world(bench, "OptStream", second), second)
    past.copy()
    past.live("days", DAYS[:1], [])
    past.live("days", DAYS[1:2], STOPS, hours=2.0)
    past.live("withdraw", DAYS[:1], ["after commit in Ledger.withdraw, 1"], hours=4.0, withdraw=True)
    past.live("restate", DAYS[1:2], [WRITING], hours=6.0, restate=True)
    past.live("restate", DAYS[1:2], [], hours=8.0, restate=True)
    middle = [moment.middle for moment in past.moments]
    assert middle == [False, False, True, True, True, False, True, False, True, False, False]
    return past


@pytest.fixture(scope="module")
def past(bench):
    """Without a second witness."""
    return lived(bench, second=False)


@pytest.fixture(scope="module")
def witnessed(bench):
    """With one."""
    return lived(bench, second=True)


def restore(past, one):
    """And then a night of the days that were lived and of one more."""
    return backups.restore(past, one, DAYS[:3])


def before_a_day(past):
    """The newest moment at which readers had not yet seen some day that they saw later."""
    periods = [{period for period, _, _ in moment.sights} for moment in past.moments]
    ever = set().union(*periods)
    return max(number for number in range(len(periods)) if set().union(*periods[: number + 1]) < ever)


BY_NIGHT_ALONE = [pytest.param([store], marks=pytest.mark.nightly) for store in ("published", "trusted")]


@pytest.mark.parametrize("stores", [["trusted", "published"], [], *BY_NIGHT_ALONE], ids=" + ".join)
def test_the_newest_ledger_knows_all(past, stores):
    newest = len(past.moments) - 1
    assert restore(past, Restored(stores, dict.fromkeys(stores, 1), False, newest)).broken == []


OLDER = (["ledger"], ["ledger", "published"], ["ledger", "trusted"])
MOVED_TOO = [(stores, stores != ["ledger"]) for stores in OLDER]
BY_NIGHT = [pytest.param(stores, not moved, marks=pytest.mark.nightly) for stores, moved in MOVED_TOO]


@pytest.mark.parametrize(("stores", "moved"), [*MOVED_TOO, *BY_NIGHT])
def test_an_older_ledger_draws_no_day_that_others_saw(past, stores, moved):
    newest = len(past.moments) - 1
    one = Restored(stores, dict.fromkeys(stores, before_a_day(past)), moved, newest)
    assert past.knowable(one)
    assert restore(past, one).broken == []


def everything(past, number, newest=None):
    """All three stores as in one copy, at the end or when there was no newer copy than that."""
    return Restored(STORES, dict.fromkeys(STORES, number), False, newest or len(past.moments) - 1)


def test_a_restatement_that_died_in_its_draw_is_drawn_afresh(past):
    """Nobody saw that revision: that others saw the one before does not make it a second draw."""
    stores = ("trusted", "published")
    assert restore(past, Restored(stores, dict.fromkeys(stores, 1), False, IN_A_RESTATEMENT)).broken == []
    assert past.world.sampled().count((DAYS[1].isoformat(), 1)) == 2


AGAIN = {
    "which others saw": (IN_A_RESTATEMENT, 0),
    "whose draw the ledger has": (DRAWN, 0),
    "": (IN_A_RESTATEMENT, 1),
}


@pytest.mark.parametrize("said", AGAIN)
def test_another_draw_is_caught_where_others_saw_the_first_or_the_ledger_has_it(past, said):
    newest, revision = AGAIN[said]
    one = Restored([], {}, False, newest)
    world = past.lay(one)
    with world.noise_log.open("a") as log:
        log.write(f"{DAYS[1]} {revision}\n")
    found = list(_judged(past, world, one))
    assert [said in line and line.startswith("DOUBLE SPEND") for line in found] == ([True] if said else [])


@pytest.mark.parametrize(
    ("store", "copy", "newest", "forgotten"),
    [
        ("trusted", 1, IN_A_DRAW, False),
        ("trusted", IN_A_DRAW, DRAWN, True),
        ("trusted", 4, 5, True),  # the lineage alone
        ("published", IN_A_DRAW, DRAWN, False),
        ("published", DRAWN, 5, True),
        ("ledger", 1, IN_A_DRAW, True),
    ],
)
def test_a_file_that_a_night_rebuilds_needs_no_alert(past, monkeypatch, store, copy, newest, forgotten):
    one = Restored([store], {store: copy}, False, newest)
    assert past.forgotten(one) == forgotten
    if forgotten and past.knowable(one):
        monkeypatch.setattr(backups, "_alerted_before", lambda world: False)
        monkeypatch.setattr(backups, "_is_alert", lambda words: False)
        assert any("NOBODY IS ALERTED" in line for line in restore(past, one).broken)


def test_the_control_is_caught(past):
    """All three at once leave no trace: the judge, who saw everything, finds the second draw."""
    one = everything(past, IN_A_DRAW)
    assert past.blind(one)
    assert restore(past, one).double_spends


@pytest.mark.nightly
@pytest.mark.parametrize("copies", [(IN_A_DRAW, 5), (1, 5), (6, 7), (8, 9)], ids=str)
def test_a_second_witness_knows_what_readers_saw(witnessed, copies):
    """Also where all else is of the middle of a draw, of a withdrawal or of a restatement."""
    one = everything(witnessed, *copies)
    assert not witnessed.blind(one)
    assert restore(witnessed, one).broken == []


@pytest.mark.nightly
def test_a_random_history_with_nights_that_draw_nothing(bench):
    chance = random.Random(SEED)
    past = happen(bench, chance, record_points(bench), 7)
    for one in list(restores(past, chance))[::3]:
        assert past.blind(one) or restore(past, one).broken == []


def test_every_subset_is_restored(past):
    tried = list(restores(past, random.Random(SEED)))
    assert len({(one.stores, one.moved) for one in tried}) == 14
