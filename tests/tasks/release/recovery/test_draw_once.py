"""Exactly one draw: owners that raise, die, stall or wake up, and ledgers that forgot."""

import errno
import signal
import sqlite3
from contextlib import closing
from datetime import date
from fractions import Fraction

import pytest

from optstream.catalogue import read_catalogue
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from tasks.release import pipeline as steps
from tasks.release import publish as publish_module
from tasks.release import run as release
from tasks.release.outcomes import budget_of
from tasks.release.run import Status
from tasks.trusted import files as private_files
from tasks.trusted.files import DrawingFile
from tests.failing import Death, raising
from tests.tasks.release.noises import NoiseMeanwhile, failing_noise
from tests.tasks.two_regions import STEPS

FIRST, SECOND, THIRD = date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)
BEFORE_ESTIMATE = STEPS[:6]


def status(works, day):
    assert works[day].outcome is not None
    return works[day].outcome.status


@pytest.mark.parametrize("error", [MemoryError("71234"), ValueError("71234")], ids=str)
def test_an_exception_after_the_first_sample_voids_and_stays_charged(installation, error):
    works = installation.release(FIRST, noise=failing_noise(error))
    assert not works[FIRST].outcome.status.is_good
    assert "71234" not in works[FIRST].outcome.message
    assert "void, and stays charged" in works[FIRST].outcome.message
    record = installation.record(FIRST)
    assert record.state is ReleaseState.VOID
    assert record.spends
    assert installation.files("trusted/measurements") == {}
    assert budget_of(installation.settings, installation.ledger).spent > Fraction(9, 10)


def test_a_stop_signal_in_the_draw_waits_until_it_is_durable(installation):
    noise = NoiseMeanwhile(lambda: signal.raise_signal(signal.SIGTERM), at="each")
    before = signal.signal(signal.SIGTERM, raising(Death))
    try:
        with pytest.raises(Death):
            installation.release(FIRST, noise=noise)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert installation.record(FIRST).state is ReleaseState.DRAWN
    installation.later(hours=1)
    assert status(installation.release(FIRST), FIRST) is Status.PUBLISHED


def die_while_drawing(installation, owner):
    """Reserve, begin the draw, leave orphan bytes, and be gone: what a killed process leaves behind."""
    works = installation.release(FIRST, steps=STEPS[:5], owner=owner)
    reservation = works[FIRST].reservation
    assert reservation is not None, works[FIRST].outcome
    installation.ledger.begin_draw(reservation, installation.now)
    folder = installation.folder / f"trusted/measurements/two-regions/{FIRST}-r0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{reservation.fencing_token}.drawing").write_bytes(b"orphan")
    (folder / f"{reservation.fencing_token}-{'ab' * 16}").write_bytes(b"orphan")
    installation.later(hours=1)
    return reservation


@pytest.mark.quick
def test_a_dead_draw_is_drawn_afresh_and_its_orphan_bytes_are_destroyed(installation):
    assert die_while_drawing(installation, "first").redraws == 0
    assert die_while_drawing(installation, "second").redraws == 1
    works = installation.release(FIRST, owner="third")
    assert status(works, FIRST) is Status.PUBLISHED
    assert installation.record(FIRST).redraws == 2
    (kept,) = installation.files("trusted/measurements").values()
    assert kept != b"orphan"


failing = raising(LedgerError("the ledger cannot be reached"))
read_only = raising(OSError(errno.EROFS, "Read-only file system"))


def test_an_owner_that_raised_and_could_not_say_so_is_not_taken_for_dead(installation, monkeypatch):
    """The draw raised and the ledger was away: the next run must void, not draw again."""
    run = installation.run(noise=failing_noise(MemoryError()))
    monkeypatch.setattr(type(run.ledger), "void", failing)
    works = installation.release(FIRST, noise=failing_noise(MemoryError()))
    assert installation.record(FIRST).state is ReleaseState.RESERVED
    monkeypatch.undo()
    installation.later(hours=1)
    works = installation.release(FIRST)
    assert not works[FIRST].outcome.status.is_good
    assert installation.record(FIRST).state is ReleaseState.VOID
    assert not (installation.folder / "published").exists()


def test_the_word_that_a_draw_raised_needs_no_space(installation, monkeypatch):
    """The disk is full for the trusted folder and for the ledger: a rename still leaves the word."""

    write = private_files._write

    def full(path, *arguments):
        if "measurements" in path.parts:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *arguments)

    monkeypatch.setattr(type(installation.ledger), "void", failing)
    monkeypatch.setattr(private_files, "_write", full)
    installation.release(FIRST, noise=failing_noise(MemoryError()))
    assert installation.record(FIRST).drawing
    monkeypatch.undo()
    installation.later(hours=1)
    works = installation.release(FIRST)
    assert not works[FIRST].outcome.status.is_good
    assert installation.record(FIRST).state is ReleaseState.VOID


def test_a_folder_that_became_read_only_keeps_no_word_from_the_ledger(installation, monkeypatch):
    monkeypatch.setattr(DrawingFile, "mark_raised", read_only)
    monkeypatch.setattr(release, "destroy_raw", read_only)
    works = installation.release(FIRST, noise=failing_noise(MemoryError()))
    assert not works[FIRST].outcome.status.is_good
    assert installation.record(FIRST).state is ReleaseState.VOID


@pytest.mark.parametrize("raw_state_stays", [False, True])
def test_where_neither_a_rename_nor_the_ledger_keeps_the_word_a_person_is_told(
    installation, monkeypatch, raw_state_stays
):
    monkeypatch.setattr(DrawingFile, "mark_raised", read_only)
    if raw_state_stays:
        monkeypatch.setattr(release, "destroy_raw", read_only)
    monkeypatch.setattr(type(installation.ledger), "void", failing)
    works = installation.release(FIRST, noise=failing_noise(MemoryError()))
    assert "do not run it again before a person has made it VOID" in works[FIRST].outcome.message


def test_a_day_that_is_drawn_is_not_given_up_for_a_mark_that_cannot_be_removed(installation, monkeypatch):
    monkeypatch.setattr(DrawingFile, "settle", read_only)
    assert status(installation.release(FIRST), FIRST) is Status.PUBLISHED


def test_what_was_drawn_is_destroyed_when_it_cannot_be_recorded(installation, monkeypatch):
    monkeypatch.setattr(type(installation.ledger), "record_drawn", failing)
    installation.release(FIRST)
    monkeypatch.undo()
    assert installation.record(FIRST).state is ReleaseState.VOID
    assert installation.files("trusted/measurements") == {}


def test_terms_that_change_while_a_run_is_under_way_are_noticed(installation):
    """Enrolled under alpha 1; before it reserves, the file says 10 and another run enrols."""
    run, works = installation.through(STEPS[:4], FIRST)
    installation.configure('alpha = "1"', 'alpha = "10"')
    installation.run()
    (work,) = steps.reserve_budget(run, works)
    assert "changed while this run was under way" in work.outcome.message
    assert installation.record(FIRST) is None


@pytest.mark.parametrize("forgotten", [FIRST, SECOND], ids=["the first day", "the second day"])
def test_a_ledger_that_forgot_a_published_day_may_not_draw_it_again(installation, forgotten):
    other = SECOND if forgotten == FIRST else FIRST
    installation.released(other)
    older = installation.copy_ledger()
    installation.release(forgotten)
    installation.bring_back(older)
    drawn = installation.files("trusted/measurements")
    works = installation.release(forgotten)
    assert status(works, forgotten) is Status.FAILED
    assert installation.files("trusted/measurements") == drawn


def test_an_older_ledger_that_knows_a_drawn_day_may_neither_publish_nor_reserve(installation):
    """Were it to publish, its head would be the newest, and stand for a day that it never heard of."""
    installation.release(FIRST, steps=BEFORE_ESTIMATE)
    assert installation.record(FIRST).state is ReleaseState.DRAWN
    older = installation.copy_ledger()
    assert status(installation.release(SECOND), SECOND) is Status.PUBLISHED
    installation.bring_back(older)
    kept = installation.files("published", "trusted/measurements")
    never = date(2016, 6, 3)
    installation.simulate(never)
    for day in (FIRST, never):
        works = installation.release(day)
        assert status(works, day) is Status.FAILED
        assert "restored from an older copy" in works[day].outcome.message
    assert installation.files("published", "trusted/measurements") == kept
    assert installation.record(FIRST).state is ReleaseState.DRAWN
    assert installation.record(never) is None


def test_the_newest_head_of_a_catalogue_stands_for_all(installation, monkeypatch):
    """Two runs publish at once: whichever is last in the folder carries a head that has the other's."""
    run, works = installation.through(STEPS[:-1], FIRST, SECOND)
    publish = publish_module.publish_releases

    def another_comes_first(*arguments):
        monkeypatch.undo()
        steps.publish_releases(run, works[1:])
        return publish(*arguments)

    monkeypatch.setattr(publish_module, "publish_releases", another_comes_first)
    steps.publish_releases(run, works[:1])
    catalogue = read_catalogue(installation.settings.published_folder)
    first, second = (catalogue.entry(day).ledger_head for day in (FIRST, SECOND))
    assert catalogue.ledger_head == first
    with closing(sqlite3.connect(installation.folder / "trusted/ledger.sqlite")) as ledger:
        number = dict(ledger.execute("SELECT hash, number FROM events"))
    assert number[first] > number[second]


@pytest.mark.parametrize("mechanism", ["BudgetAbsorption", "BudgetDistribution", "Fast"])
@pytest.mark.parametrize("deaths", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_the_plan_that_was_charged_is_drawn_though_later_days_were_released_meanwhile(
    installation, mechanism, deaths
):
    """Their plans look at what was spent around: what came after the death was judged with the plan in it."""
    installation.change_mechanism(mechanism)
    installation.simulate(FIRST, SECOND, THIRD)
    installation.released(FIRST)
    for _ in range(deaths):
        run, works = installation.through(STEPS[:5], SECOND)
        run.ledger.begin_draw(works[0].reservation, installation.now)
        installation.later(minutes=1)
        after = installation.release(SECOND, THIRD)
        assert after[SECOND].outcome.status is Status.BUSY
        assert after[THIRD].outcome.status in (Status.PUBLISHED, Status.UNCHANGED)
        installation.later(hours=1)
    outcome = installation.release(SECOND)[SECOND].outcome
    assert outcome.status is Status.PUBLISHED, outcome
    record = installation.record(SECOND)
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, deaths)
    assert installation.ledger.worst("people").epsilon <= 1
    assert installation.problems() == []
