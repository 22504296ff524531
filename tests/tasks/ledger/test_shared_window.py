"""What each stream of a privacy budget is charged in a window: on every page they are shown together."""

from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from tasks.ledger.show import read_book
from tests.tasks.products import two_products

pytestmark = pytest.mark.slow

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def products(tmp_path):
    """Electricity for two days and gas for one, within one epsilon."""
    both = two_products(tmp_path)
    for one, days in ((both["electricity"], (DAY, NEXT)), (both["gas"], (DAY,))):
        one.simulate(*days)
        one.release(*days)
    return both


def page_of(one, *days):
    (page,) = read_book(one.settings, one.ledger, *days)
    return page


def test_the_streams_parts_add_up_to_what_the_window_lost(products):
    ledger = products["gas"].ledger
    page = page_of(products["gas"])
    shared = page.shared
    assert [one.stream for one in shared.streams] == ["electricity", "gas"]
    assert sum(one.charged for one in shared.streams) == shared.charged == ledger.worst("people").epsilon
    assert all(Fraction(49, 100) < one.charged <= Fraction(1, 2) for one in shared.streams)
    assert page.shared_words.startswith("electricity 0.5, gas 0.")
    assert "together epsilon 0.99" in page.shared_words or "together epsilon 1 of 1" in page.shared_words
