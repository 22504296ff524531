"""What each stream of a privacy budget is charged in a window: on every page they are shown together."""

import math
from contextlib import closing
from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from tasks.ledger.documents import shared_document
from tasks.ledger.show import read_book
from tasks.monitor.view import watch
from tasks.reports.write import write_pages
from tasks.ui.snapshot import take_snapshot
from tasks.ui.views.stream_page import stream_page
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
    assert [name for name, _ in shared.by_stream] == ["electricity", "gas"]
    assert sum(lost for _, lost in shared.by_stream) == shared.total == ledger.worst("people").epsilon
    assert all(Fraction(49, 100) < lost <= Fraction(1, 2) for _, lost in shared.by_stream)
    assert page.shared_words.startswith("electricity 0.5, gas 0.")
    assert "together epsilon 0.99" in page.shared_words or "together epsilon 1 of 1" in page.shared_words


def test_of_a_day_without_gas_the_parts_are_those_of_its_fullest_window(products):
    calendar = products["gas"].settings.calendar
    steps = range(calendar.first_step(NEXT) + 47, calendar.first_step(NEXT) + 48)
    shared = products["gas"].ledger.shared_window("people", steps)
    # a window that ends on the second day may begin on the first: never more than both, and gas less
    parts = dict(shared.by_stream)
    assert parts["electricity"] > parts["gas"]
    assert sum(parts.values()) == shared.total
    assert shared.total == products["gas"].ledger.window_spent("people", steps.start, 1).epsilon


def test_all_pages_show_them_together(products):
    gas = products["gas"]
    with closing(gas.ledger) as ledger:
        view = watch(gas.settings, ledger, NOW, live=False)
        words = view.facts.page.shared_words
        document = shared_document(view.facts.page)
        assert [one["stream"] for one in document["streams"]] == ["electricity", "gas"]
        written = write_pages(gas.settings, ledger, NOW)
    html = written.trusted.read_text()
    assert "The streams of privacy budget people share it." in html
    assert '<tr><th scope="row">electricity</th>' in html
    card = (gas.folder / "published/deployment-card.json").read_text()
    assert "1 other stream shares the budget: electricity." in card
    shown = stream_page(take_snapshot(gas.folder / "optstream.toml", NOW), NOW)
    assert shown["shared"] == words


def test_known_noise_is_lost_whole_in_its_stream_alone(products):
    gas = products["gas"]
    gas.ledger.compromise("gas", str(DAY), 0, "a stolen disk", NOW)
    parts = dict(page_of(gas).shared.by_stream)
    assert parts["gas"] == math.inf == page_of(gas).shared.total
    assert parts["electricity"] <= Fraction(1, 2)


def test_a_budget_of_one_stream_says_nothing_of_others(installation):
    installation.simulate(DAY)
    installation.release(DAY)
    page = page_of(installation)
    assert page.shared_words == ""
    assert sum(lost for _, lost in page.shared.by_stream) == page.shared.total
