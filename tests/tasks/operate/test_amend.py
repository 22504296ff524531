"""A guarantee or a plan that changes under released days: which days wait, and what the statements say."""

import shutil
from datetime import date, timedelta

import pytest

from optstream.errors import LedgerError
from tasks.ledger.show import read_book
from tasks.operate.amend import declare, rehearse
from tasks.release.run import terms_of
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

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
    waits = rehearse(released.settings, released.ledger)
    assert (waits.changed, waits.first) == (("alpha",), DAYS[3])
    assert [day for day, _ in waits.refused] == [DAYS[2]]
    lines = waits.lines("two-regions")
    assert lines[0] == "two-regions: alpha would change; nothing was declared"
    assert lines[1].startswith("2016-06-03 would wait: some window would lose epsilon ")
    assert "by privacy guarantee 0, which gives 1 and holds for days in it" in lines[1]
    assert lines[2].startswith("2016-06-04 is the first day")
    assert released.ledger.head("two-regions") == head

    released.ledger.amend(terms_of(released.settings), "smaller customers", released.now)
    done = released.release(*DAYS[2:])
    assert [done[day].outcome.status for day in DAYS[2:]] == [Status.REFUSED, Status.PUBLISHED]
    refused = done[DAYS[2]].outcome.message
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
def test_what_the_ledger_has_is_told_although_its_witness_cannot_be(released, what, act):
    """The command failed, and what it did is permanent: who restores the configuration would be refused."""
    witness = released.folder / "trusted/witness"
    shutil.rmtree(witness)
    witness.touch()
    with pytest.raises(LedgerError, match=f"the {what}, permanently, and nothing is drawn before it is"):
        act(released)
