"""Noise that others know: what is drawn is void, what is reserved in its windows is never drawn."""

import math

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import ReleaseState


@pytest.mark.slow
def test_a_drawn_release_is_void_and_stays_charged(ledger, drawn, kit):
    held = drawn()
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    found = ledger.find("load", "day 0")
    assert (found.state, found.compromised) == (ReleaseState.VOID, "stolen")
    assert ledger.worst("customers").epsilon == math.inf
    with pytest.raises(LedgerError, match="it is VOID"):
        ledger.record_staged("load", "day 0", 0, "staged", "release-1.parquet", kit.now, held)
    assert ledger.verify() == []


def test_a_published_release_stays_published(ledger, publish, kit):
    publish()
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    assert ledger.find("load", "day 0").state is ReleaseState.PUBLISHED


def test_a_plan_that_was_reserved_before_is_not_drawn(ledger, publish, reserve, kit):
    publish()
    near = reserve("day 1", kit.plan(4, "1/4"))
    far = reserve("day 9", kit.plan(36, "1/4"))
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    with pytest.raises(BudgetError, match="was compromised after"):
        ledger.begin_draw(near, kit.now)
    assert not ledger.find("load", "day 1").drawing
    ledger.begin_draw(far, kit.now)
    assert ledger.verify() == []
