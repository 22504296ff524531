"""Ledgers of earlier versions verify, and release nothing before another privacy guarantee is declared."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import open_ledger
from optstream.ledger.accounting import Guarantees, History, spend_rows
from optstream.ledger.schema import metadata
from optstream.privacy import PeriodSpend, PrivacyModel

STORED = json.loads(Path(__file__).with_name("aligned_ledger.json").read_text(encoding="utf-8"))
"""From the version of 2026-11-28: epsilon 1, windows of 4 steps inside a day of 4, calibration "paper".

Days 0 and 1 were charged 1/2, 3/4, 7/8 or 1 for one to four steps, day 2 1/2 for each of its last two steps.
Day 3 is reserved: at most two steps of 1/2 each in any window, less those of day 2.
"""


@pytest.fixture
def stored(url, round_the_library):
    open_ledger(url).close()
    with round_the_library() as connection:
        for table, rows in STORED.items():
            connection.execute(metadata.tables[table].insert(), rows)
            if connection.dialect.name == "postgresql" and "id" in rows[0]:
                key = f"pg_get_serial_sequence('{table}', 'id')"
                connection.exec_driver_sql(f"SELECT setval({key}, {len(rows)})")
    opened = open_ledger(url)
    yield opened
    opened.close()


def test_a_stored_ledger_verifies_and_no_window_is_charged_less_than_it_may_have_spent(stored):
    assert stored.verify() == []
    assert stored.terms("load").model.windows == "aligned"
    half, whole = Fraction(1, 2), Fraction(1)
    day = [half, Fraction(3, 4), Fraction(7, 8), whole]
    # by hand, from the window of step 0 on: parts of two days add up, and day 3 may take any two steps
    expected = [whole] + [day[2 - n] + day[n] for n in range(3)]
    expected += [whole] + [day[2 - n] + taken for n, taken in enumerate([0, 0, half])]
    expected += [whole, whole + half, 2 * whole, half + whole]
    charged = {
        start: one.charged
        for one in stored.charged_windows("customers", range(16))
        for start in range(one.first_start, one.last_start + 1)
    }
    assert [charged[start] for start in range(12)] == expected
    assert stored.worst("customers").epsilon == 2


def test_nothing_more_is_released_before_another_guarantee_is_declared(stored, kit):
    terms = stored.terms("load")
    with pytest.raises(LedgerError, match=r"inside one period .* `optstream ledger amend`"):
        stored.reserve("load", "day 9", 0, kit.plan(36, "1/8"), "night", kit.now, kit.lease, terms=terms)
    assert stored.find("load", "day 9") is None
    sliding = replace(terms, model=replace(terms.model, windows="sliding"), calibration="strict")
    stored.amend(sliding, "every window", kit.now)
    with pytest.raises(BudgetError):
        stored.reserve("load", "day 4", 0, kit.plan(16, "1/4"), "night", kit.now, kit.lease, terms=sliding)
    stored.reserve("load", "day 5", 0, kit.plan(20, "1/4"), "night", kit.now, kit.lease, terms=sliding)
    assert stored.verify() == []


@pytest.mark.parametrize(("times", "found"), [(1, 1), (2, 2)])
def test_a_period_that_lost_more_than_an_aligned_guarantee_gives_is_found(times, found):
    spends = [PeriodSpend(0, "sums", at, (Fraction(0), *[Fraction(1)] * 4)) for at in (0, 4, *[8] * times)]
    history = History()
    for _, first_step, _, document in spend_rows(spends):
        history.add(0, first_step, document)
    ((_, model, cost),) = history.costs(Guarantees({0: PrivacyModel("1", 4, "1", windows="aligned")}, 0))
    assert cost.epsilon == found
    assert (cost.epsilon > model.budget) == (times > 1)
