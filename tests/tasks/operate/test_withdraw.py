"""Withdrawals and amendments, in the ledger and for readers."""

import shutil
from datetime import date, timedelta

import pytest

from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from tasks.ledger.show import read_book
from tasks.ledger.verify import verify
from tasks.operate import declare as withdraw_module
from tasks.operate.declare import declare, rehearse
from tasks.release import pipeline as steps
from tasks.release.publish import publish
from tasks.release.run import Status, terms_of
from tests.failing import death_at
from tests.tasks.two_regions import STEPS, assert_ended

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
UNTIL_STAGED = STEPS[:7]


def test_a_withdrawn_day_is_out_of_the_folder_and_still_charged(installation):
    installation.released(DAY, NEXT)
    spent = installation.spent
    assert_ended(*installation.take_back(DAY), Status.WITHDRAWN, "stays charged")
    assert installation.rows()["date"].unique().to_list() == [NEXT]
    assert installation.entry(DAY).withdrawn
    assert installation.spent == spent
    assert installation.problems() == []
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    assert_ended(installation.outcome(DAY), Status.WITHDRAWN, "a wrong meter")
    assert installation.problems() == []


def test_a_restatement_takes_a_withdrawn_days_place(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    installation.take_back(DAY)
    assert installation.status(DAY, restate=True) is Status.PUBLISHED
    assert installation.entry(DAY).revision == 1
    assert installation.problems() == []
    installation.take_back(DAY)
    assert installation.problems() == []


def test_a_draw_that_was_never_published_is_given_up(installation):
    installation.release(DAY, steps=UNTIL_STAGED)
    assert_ended(*installation.take_back(DAY), Status.FAILED, "holds 2016-06-01 until")
    installation.later(hours=1)
    assert_ended(*installation.take_back(DAY), Status.VOID)
    assert installation.record(DAY).state is ReleaseState.VOID
    assert installation.status(DAY) is Status.VOID
    assert installation.problems() == []


def test_a_first_day_given_up_in_its_publication_keeps_no_other_day(installation):
    """Its run died with the file in its place and no catalogue; what is left is an empty folder."""
    works = list(installation.release(DAY, steps=UNTIL_STAGED).values())
    with death_at("optstream.catalogue.backends.replace"):
        steps.publish_releases(installation.run(), works)
    installation.later(hours=1)
    assert "run its day again, or withdraw it" in installation.outcome(NEXT).message
    assert installation.take_back(DAY)[0].status is Status.VOID
    assert installation.status(NEXT) is Status.PUBLISHED
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
    assert installation.entry(DAY) is not None
    assert installation.problems() != []


def test_a_day_that_is_listed_but_not_recorded_was_published(installation):
    run = installation.run()
    works = list(installation.release(DAY, steps=UNTIL_STAGED).values())
    with death_at(run.ledger, "record_published"):
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
        assert_ended(*installation.take_back(DAY), Status.FAILED)
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
    assert_ended(*installation.take_back(DAY), Status.WITHDRAWN, "lists nothing of it, and it stays charged")
    assert installation.problems() == []


DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]


@pytest.fixture
def released(installation):
    """Two days released at alpha 10, and a configuration that says alpha 1."""
    installation.configure('alpha = "1"', 'alpha = "10"')
    installation.simulate(*DAYS)
    installation.released(*DAYS[:2])
    installation.configure('alpha = "10"', 'alpha = "1"')
    return installation


def test_a_dry_run_says_how_long_days_wait_and_they_do(released):
    head = released.ledger.head("two-regions")
    lines = rehearse(released.settings, released.ledger)
    assert len(lines) == 3
    assert lines[0] == "two-regions: alpha would change; nothing was declared"
    assert lines[1].startswith("2016-06-03 would wait: some window would lose epsilon ")
    assert "by privacy guarantee 0, which gives 1 and holds for days in it" in lines[1]
    assert lines[2].startswith("2016-06-04 is the first day")
    assert released.ledger.head("two-regions") == head

    released.ledger.amend(terms_of(released.settings), "smaller customers", released.now)
    done = released.release(*DAYS[2:])
    assert [done[day].status for day in DAYS[2:]] == [Status.REFUSED, Status.PUBLISHED]
    refused = done[DAYS[2]].message
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1, window 48, alpha 10)" in refused
    assert released.ledger.verify() == []
    (page,) = read_book(released.settings, released.ledger, DAYS[2], DAYS[2])
    assert page.days[0].may is False
    assert "by privacy guarantee 0" in page.days[0].because


def test_a_dry_run_says_that_an_open_draw_refuses_the_amendment(released):
    released.configure('alpha = "1"', 'alpha = "10"')
    released.release(DAYS[2], steps=STEPS[:6])
    released.configure('alpha = "10"', 'alpha = "1"')
    for act in (lambda *_: rehearse(released.settings, released.ledger), released.ledger.amend):
        with pytest.raises(
            LedgerError, match=f"{DAYS[2]} of stream 'two-regions' is drawn and not published"
        ):
            act(terms_of(released.settings), "smaller customers", released.now)


def declared(released):
    declare(released.settings, released.ledger, "smaller customers", released.now)


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("amendment is declared", declared),
        ("noise is marked as known", lambda released: released.compromise(DAYS[0])),
    ],
)
def test_what_the_ledger_has_is_reported_although_its_witness_cannot_be(released, what, act):
    """The command failed, and what it did is permanent: who restores the configuration would be refused."""
    witness = released.folder / "trusted/witness"
    shutil.rmtree(witness)
    witness.touch()
    with pytest.raises(LedgerError, match=f"the {what}, permanently, and nothing is drawn before it is"):
        act(released)


def test_a_withdrawal_records_a_restatement_published_while_it_waited(installation, monkeypatch):
    """`latest` is read before the publishers' lock: the tombstone names revision 1, the ledger gets 0."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.release(DAY)
    genuine = withdraw_module.withdraw_published

    def waits(*arguments, **named):
        installation.release(DAY, restate=True)
        return genuine(*arguments, **named)

    monkeypatch.setattr(withdraw_module, "withdraw_published", waits)
    installation.withdraw(DAY)
    assert installation.entry(DAY).withdrawn
    monkeypatch.undo()
    assert installation.status(DAY) is Status.WITHDRAWN
