"""A restatement is a new measurement: it has its own share of the grant, or is refused."""

from datetime import date, timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest

from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from tasks.release import pipeline as steps
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
L1 = ('method = "equally_spaced"\nn_samples = 10', 'method = "l1"\nn_samples = 10\nthreshold = "50"')
UNTIL_DRAW = STEPS[:6]


@pytest.fixture
def kept_back(installation):
    """A tenth of epsilon is kept back; two days are released from the rest."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY, NEXT)
    return installation


def spent(installation):
    return installation.ledger.worst("people").epsilon


def restate(installation, *days, **more):
    return [work.outcome for work in installation.release(*days, restate=True, **more).values()]


def test_first_releases_leave_the_share_alone_and_restatements_use_no_more(kept_back):
    assert Fraction(89, 100) < spent(kept_back) <= Fraction(9, 10)
    assert [outcome.status for outcome in restate(kept_back, DAY, NEXT)] == [Status.PUBLISHED] * 2
    assert Fraction(99, 100) < spent(kept_back) <= 1
    assert kept_back.ledger.verify() == []
    rows = read_published(kept_back.folder / "published", verify=True)
    assert rows["revision"].unique().to_list() == [1]
    assert check_files(kept_back.folder / "published") == []
    assert len(list((kept_back.folder / "published/superseded").rglob("*.parquet"))) == 2


def test_the_share_holds_one_restatement_of_a_day(kept_back):
    restate(kept_back, DAY)
    before = kept_back.files("published", "trusted/measurements")
    (again,) = restate(kept_back, DAY)
    assert again.status is Status.REFUSED
    assert "revision 2" in again.message
    assert "Nothing was reserved" in again.message
    assert kept_back.files("published", "trusted/measurements") == before
    assert kept_back.ledger.latest("two-regions", DAY.isoformat()).revision == 1


def test_without_a_share_nothing_is_measured_again(installation):
    installation.released(DAY)
    before = installation.files("published")
    (refused,) = restate(installation, DAY)
    assert refused.status is Status.REFUSED
    assert "restatement_share" in refused.message
    assert installation.files("published") == before
    assert installation.ledger.latest("two-regions", DAY.isoformat()).revision == 0


@pytest.mark.parametrize("asked_again", [True, False])
def test_a_restatement_that_was_cut_short_goes_on_from_its_measurements(kept_back, asked_again):
    kept_back.release(DAY, steps=UNTIL_DRAW, restate=True)
    drawn = kept_back.files("trusted/measurements")
    assert kept_back.ledger.latest("two-regions", DAY.isoformat()).state is ReleaseState.DRAWN
    kept_back.later(hours=1)
    assert kept_back.release(DAY, restate=asked_again)[DAY].outcome.status is Status.PUBLISHED
    assert kept_back.files("trusted/measurements") == drawn
    assert read_catalogue(kept_back.folder / "published").entry(DAY).revision == 1


def test_l1_plans_of_one_share_do_not_look_at_the_other(installation):
    """Windows full of first points leave restatements their points, and the other way round."""
    installation.configure(*L1)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.simulate(date(2016, 6, 3))
    installation.released(DAY, NEXT)
    assert [outcome.status for outcome in restate(installation, NEXT, DAY)] == [Status.PUBLISHED] * 2
    first = installation.release(date(2016, 6, 3))[date(2016, 6, 3)]
    assert first.outcome.status is Status.PUBLISHED
    assert spent(installation) <= 1
    assert installation.ledger.verify() == []


def test_a_live_owner_keeps_its_day(installation):
    (work,) = installation.release(DAY, steps=STEPS[:5]).values()
    run = installation.run()
    for step in STEPS[5:7]:
        installation.later(minutes=6)
        (work,) = step(run, [work])
    installation.later(minutes=14)
    with pytest.raises(LedgerError, match="another run"):
        run.ledger.adopt(
            "two-regions", DAY.isoformat(), 0, "a thief", installation.now, timedelta(minutes=15)
        )
    installation.later(minutes=20)
    (published,) = steps.publish_releases(run, [work])
    assert published.outcome.status is Status.PUBLISHED


def test_an_owner_that_was_taken_over_while_away_does_not_renew(installation):
    (work,) = installation.release(DAY, steps=STEPS[:5]).values()
    away = installation.run()
    installation.later(minutes=20)
    installation.release(DAY)
    installation.later(minutes=20)
    (stale,) = steps.draw_measurements(away, [work])
    assert stale.outcome.status is Status.FAILED
    assert "taken over by another run" in stale.outcome.message
    assert installation.ledger.verify() == []


def test_a_restatement_that_would_measure_nothing_is_refused(either, learning, monkeypatch):
    """HistoryInformed has nothing left for a second one: the first stays what readers have."""
    learning.release(DAY, NEXT)
    assert [outcome.status for outcome in restate(learning, DAY)] == [Status.PUBLISHED]
    before = learning.files("published", "trusted/measurements")
    (again,) = restate(learning, DAY)
    assert again.status is Status.REFUSED
    assert "would measure nothing" in again.message
    assert learning.files("published", "trusted/measurements") == before
    assert learning.ledger.latest("two-regions", DAY.isoformat()).revision == 1
    assert learning.problems() == []
    # the fault: nobody looks at what the plan costs
    monkeypatch.setattr("tasks.release.reserve.worst_window", lambda *_: SimpleNamespace(epsilon=1))
    assert [outcome.status for outcome in restate(learning, DAY)] == [Status.PUBLISHED]
    (problem,) = learning.problems()
    assert "revision 2 measured nothing" in problem
