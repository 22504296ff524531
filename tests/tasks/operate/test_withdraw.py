"""Days that are taken back: out of the catalogue or never in it, charged all the same."""

import shutil
from datetime import date

import pytest

from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from tasks.ledger.verify import verify
from tasks.operate import withdraw as withdraw_module
from tasks.release import pipeline as steps
from tasks.release.publish import publish
from tasks.release.stages import Status
from tests.failing import Death, raising
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
UNTIL_STAGED = STEPS[:7]


def test_a_withdrawn_day_is_out_of_the_folder_and_still_charged(installation):
    installation.released(DAY, NEXT)
    spent = installation.ledger.worst("people")
    (outcome,) = installation.take_back(DAY)
    assert outcome.status is Status.WITHDRAWN
    assert "stays charged" in outcome.message
    published = installation.folder / "published"
    assert read_published(published)["date"].unique().to_list() == [NEXT]
    assert read_catalogue(published).entry(DAY).withdrawn
    assert installation.ledger.worst("people") == spent
    assert installation.problems() == []
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    again = installation.release(DAY)[DAY].outcome
    assert (again.status, "a wrong meter" in again.message) == (Status.WITHDRAWN, True)
    assert installation.problems() == []


def test_a_restatement_takes_a_withdrawn_days_place(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    installation.take_back(DAY)
    assert installation.release(DAY, restate=True)[DAY].outcome.status is Status.PUBLISHED
    assert read_catalogue(installation.folder / "published").entry(DAY).revision == 1
    assert installation.problems() == []
    installation.take_back(DAY)
    assert check_files(installation.folder / "published") == []
    assert installation.problems() == []


def test_a_draw_that_was_never_published_is_given_up(installation):
    installation.release(DAY, steps=UNTIL_STAGED)
    (held,) = installation.take_back(DAY)
    assert (held.status, "holds 2016-06-01 until" in held.message) == (Status.FAILED, True)
    installation.later(hours=1)
    (outcome,) = installation.take_back(DAY)
    assert outcome.status is Status.VOID
    assert installation.record(DAY).state is ReleaseState.VOID
    assert installation.release(DAY)[DAY].outcome.status is Status.VOID
    assert installation.problems() == []


def test_a_first_day_given_up_in_its_publication_keeps_no_other_day(installation, monkeypatch):
    """Its run died with the file in its place and no catalogue; what is left is an empty folder."""
    works = list(installation.release(DAY, steps=UNTIL_STAGED).values())
    with monkeypatch.context() as patch:
        patch.setattr("optstream.catalogue.backends.replace", raising(Death))
        with pytest.raises(Death):
            steps.publish_releases(installation.run(), works)
    installation.later(hours=1)
    assert "run its day again, or withdraw it" in installation.release(NEXT)[NEXT].outcome.message
    assert installation.take_back(DAY)[0].status is Status.VOID
    assert installation.release(NEXT)[NEXT].outcome.status is Status.PUBLISHED
    assert installation.problems() == []


def test_a_publisher_that_wakes_up_after_the_withdrawal_publishes_nothing(installation, monkeypatch):
    """It has looked, and goes to sleep before the lock; the control publishes without looking again."""
    (work,) = installation.release(DAY, steps=UNTIL_STAGED).values()
    asleep = installation.run()
    installation.later(hours=1)
    installation.take_back(DAY)
    with pytest.raises(LedgerError, match="as DRAWN, but VOID"):
        publish(asleep, [work])
    assert not (installation.folder / "published/catalogue.json").exists()
    monkeypatch.setattr("tasks.release.publish._check_may_be_listed", lambda _run, _work: None)
    publish(asleep, [work])
    assert read_catalogue(installation.folder / "published").entry(DAY) is not None
    assert installation.problems() != []


def test_a_day_that_is_listed_but_not_recorded_was_published(installation, monkeypatch):
    run = installation.run()
    works = list(installation.release(DAY, steps=UNTIL_STAGED).values())
    with monkeypatch.context() as patch:
        patch.setattr(run.ledger, "record_published", raising(Death))
        with pytest.raises(Death):
            steps.publish_releases(run, works)
    installation.later(hours=1)
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    record = installation.record(DAY)
    assert (record.state, record.withdrawn) == (ReleaseState.PUBLISHED, "a wrong meter")
    assert installation.problems() == []


def test_a_withdrawal_cut_short_is_found_and_completed(installation, monkeypatch):
    installation.release(DAY)
    with monkeypatch.context() as patch:
        patch.setattr(
            withdraw_module,
            "withdraw_published",
            lambda _folder, _day, tell, **_: 1 / 0 if tell(None, None) else 0,
        )
        (outcome,) = installation.take_back(DAY)
    assert outcome.status is Status.FAILED
    (problem,) = installation.problems()
    assert "according to the ledger alone; `optstream withdraw --date 2016-06-01 --reason WHY`" in problem
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    assert installation.problems() == []


def test_a_folder_that_was_lost_and_published_again_lacks_nothing_of_a_withdrawn_day(installation):
    installation.released(DAY, NEXT)
    installation.withdraw(DAY)
    shutil.rmtree(installation.folder / "published")
    assert installation.publish_again(NEXT)[0].status is Status.PUBLISHED
    assert installation.problems() == []
    (note,) = verify(installation.settings, installation.ledger).notes
    assert "no tombstone of 2016-06-01" in note
    (again,) = installation.take_back(DAY)
    assert (again.status, "lists nothing of it" in again.message) == (Status.WITHDRAWN, True), again
    assert installation.problems() == []
