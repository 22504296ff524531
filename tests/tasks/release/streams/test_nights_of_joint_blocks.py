"""Nights of HistoryInformed with joint noise: restated, void, amended; every window within what was said."""

from dataclasses import replace

import pytest

from optstream.privacy import JointSpend
from tasks.release.run import terms_of
from tasks.release.stages import Status
from tests.optstream.ledger.brute_force import Charged, above, broken
from tests.tasks.release.vintage_nights import DAYS, night
from tests.tasks.two_regions import FEW_BLOCKS, STEPS

pytestmark = pytest.mark.slow

FIRST, SECOND, VOID, FOURTH, FIFTH, SIXTH = DAYS


@pytest.fixture
def joint(learning):
    """Twelve blocks, in groups at every level; a tenth of epsilon is kept for restatements."""
    learning.configure('name = "two-regions"', 'name = "two-regions"\nleaves_per_period = 1')
    learning.configure(FEW_BLOCKS, 'noise = "joint"\nscale = 1000.0')
    return learning


def charged(installation):
    """All that the ledger has, each release under its own guarantee."""
    ledger = installation.ledger
    return [
        Charged(record.spends, record.amendment)
        for day in DAYS
        for revision in (0, 1)
        if (record := ledger.find("two-regions", day.isoformat(), revision))
    ]


def groups(installation, day, revision=0):
    """How many groups each level was drawn in."""
    record = installation.ledger.find("two-regions", day.isoformat(), revision)
    assert {type(spend) for spend in record.spends} == {JointSpend}
    assert [spend.n_nodes for spend in record.spends] == [1, 2]
    return [len(spend.groups) for spend in record.spends]


def test_restated_void_and_amended_nights_keep_every_guarantee(joint):
    guarantees = [joint.settings.model]
    night(joint, FIRST)
    night(joint, SECOND)
    full = groups(joint, SECOND)
    assert full[0] > 1
    # a restatement has its own part of epsilon, and fewer groups
    (restated,) = joint.release(FIRST, restate=True).values()
    assert restated.outcome.status is Status.PUBLISHED, restated.outcome
    assert [0, 0] < groups(joint, FIRST, 1) < full
    # a day that was reserved and given up stays charged for its plan
    joint.release(VOID, steps=STEPS[:5])
    joint.ledger.void("two-regions", VOID.isoformat(), 0, "given up", joint.now)
    night(joint, FOURTH)
    assert groups(joint, FOURTH) == full
    joint.assert_sound()
    # larger changes: what was drawn counts twice, so windows across midnight are full, and a day waits
    joint.configure('alpha = "1"', 'alpha = "2"')
    joint.ledger.amend(terms_of(joint.settings), "larger customers", joint.now)
    guarantees.append(joint.settings.model)
    (waits,) = joint.release(FIFTH).values()
    assert waits.outcome.status is Status.REFUSED, waits.outcome
    night(joint, SIXTH)
    assert [0, 0] < groups(joint, SIXTH) <= full
    joint.assert_sound()
    # what was drawn is what was charged, and no window of either guarantee is above it
    for day in (FIRST, SECOND, FOURTH, SIXTH):
        assert joint.measured(day).spends == joint.record(day).spends
    spends = charged(joint)
    assert not above(guarantees, spends)
    # the control: the same spends under half of epsilon
    assert list(broken([replace(one, epsilon=one.epsilon / 2) for one in guarantees], spends))
    # and a day that is withdrawn stays charged
    joint.withdraw(SECOND)
    assert charged(joint) == spends
    joint.assert_sound()
