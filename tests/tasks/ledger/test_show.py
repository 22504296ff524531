"""The operator's view: which days, at what charge, what is left where, and when it returns."""

import json
import math
from datetime import date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from flows.cli.ledger import show_book
from flows.cli.output import Terminal
from optstream.errors import LedgerError
from optstream.ledger import Key, ReleaseState, StreamTerms
from optstream.mechanisms import blocks
from optstream.mechanisms.blocks import choose_tree_blocks
from optstream.privacy import PrivacyModel, StepSpend
from tasks.ledger.show import Book, read_book, refused_changes
from tasks.release.mechanism import mechanism_for, plan_of, planner_for, recall
from tasks.release.outcomes import budget_of
from tasks.release.run import terms_of
from tests.tasks.two_regions import two_products

PARIS = ZoneInfo("Europe/Paris")
DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
LATER = timedelta(minutes=10)


@pytest.fixture
def released(installation):
    """Two days, charged half an epsilon a step in their last two hours."""
    run = installation.run()
    for day in DAYS:
        first = installation.settings.calendar.first_step(day)
        weights = (0,) * 44 + (Fraction(1, 8),) * 4
        plan = (StepSpend(0, "samples", first, weights, Fraction(1000), 1000),)
        held = run.ledger.reserve(Key(run.stream, day.isoformat()), plan, "owner", installation.now, LATER)
        run.ledger.begin_draw(held, installation.now)
        run.ledger.record_drawn(held, "0" * 64, plan, installation.now)
    return installation


def at(day, hour, minute=0):
    return datetime(2016, 6, day, hour, minute, tzinfo=PARIS)


@pytest.mark.parametrize("keys", ["scale = 100.0", "scale = 100.0\nn_blocks = 3", ""])
def test_whether_a_day_is_refused_is_judged_by_the_plan_of_its_run(installation, keys, monkeypatch):
    """Blocks are chosen once for a configuration, and the same whether they are read or chosen."""
    installation.change_mechanism("HistoryInformed", keys)
    settings, ledger, day = installation.settings, installation.ledger, DAYS[0]

    def plan(mechanism):
        memory = recall(settings, ledger, mechanism, day, 0)
        return plan_of(settings, mechanism, day, state=memory.state)

    wanted = plan(mechanism_for(settings, day))
    assert plan(planner_for(settings, day)) == wanted
    monkeypatch.setattr(blocks, "expected_error_of", pytest.fail)
    choose_tree_blocks.cache_clear()
    assert plan(planner_for(settings, day)) == wanted
    monkeypatch.undo()
    for damage in (b"", b"[]", b"\xff"):
        settings.blocks_file.write_bytes(damage)
        assert plan(planner_for(settings, day)) == wanted
    installation.configure('epsilon = "1"', 'epsilon = "1/1000"')
    settings = installation.settings
    wanted = plan(mechanism_for(settings, day))
    assert plan(planner_for(settings, day)) == wanted


def test_windows_and_days_tell_what_they_have_left_and_whether_they_may_be_released(released):
    (page,) = read_book(released.settings, released.ledger)
    listed = [(one.begin_first, one.begin_last, one.left) for one in page.windows]
    quarters = [Fraction(n, 8) for n in range(9)]
    # every window that ends on the last day sees the charged hours of one of the days
    assert listed[0] == (at(1, 0), at(2, 22), quarters[4])
    assert listed[1:] == [
        (at(2, 22, 30), at(2, 22, 30), quarters[5]),
        (at(2, 23), at(2, 23), quarters[6]),
        (at(2, 23, 30), at(2, 23, 30), quarters[7]),
    ]
    assert page.free_from_time == at(3, 0)
    assert (
        released.ledger.window_spent("people", range(page.free_from + 47, page.free_from + 48)).epsilon == 0
    )
    assert released.ledger.window_spent("people", range(page.free_from + 46, page.free_from + 47)).epsilon > 0
    days = {one.day: one for one in page.days}
    assert min(days) == DAYS[0]  # a fortnight, if there is so much of it
    assert max(days) == date(2016, 6, 4)  # the first that no charged window meets
    assert days[date(2016, 6, 3)].left == Fraction(1, 2)
    assert days[date(2016, 6, 4)].left == 1
    assert [days[day].may for day in DAYS] == [None, None]
    # the plan of a day costs up to 1 in any window, its own samples included
    assert days[date(2016, 6, 4)].may
    assert not days[date(2016, 6, 3)].may
    assert "some window would lose" in days[date(2016, 6, 3)].because
    (stream,) = page.streams
    assert [(one.period, one.state, one.epsilon) for one in stream.releases] == [
        (day.isoformat(), ReleaseState.DRAWN, Fraction(1, 2)) for day in DAYS
    ]
    assert stream.counts == {ReleaseState.DRAWN: 2}


def test_streams_of_one_grant_share_a_page_and_others_have_their_own(released):
    ledger, terms = released.ledger, terms_of(released.settings)
    ledger.enrol(StreamTerms(**{**terms.__dict__, "stream": "second"}), released.now)
    model = PrivacyModel(epsilon="2", window_length=4, alpha="1")
    ledger.enrol(StreamTerms("third", "others", model, "tree", "words of another"), released.now)
    plan = (StepSpend(0, "samples", 8, (1,) * 6, Fraction(4), 1),)
    ledger.reserve(Key("third", "one"), plan, "owner", released.now, LATER)
    pages = {page.name: page for page in read_book(released.settings, ledger)}
    assert [one.terms.stream for one in pages["people"].streams] == ["second", "two-regions"]
    other = pages["others"]
    assert other.calendar is None
    assert other.days == ()
    left = [(one.first_step, one.left) for one in other.windows]
    assert left == [(5, 7 / 4), (6, 3 / 2), (7, 5 / 4), (8, 1), (11, 5 / 4), (12, 3 / 2), (13, 7 / 4)]
    assert {one.begin_first for one in other.windows} == {None}
    assert other.free_from == 14


def test_a_stream_without_releases_that_shares_its_budget_is_refused_for_what_others_rely_on(installation):
    installation.run()
    installation.configure('name = "two-regions"', 'name = "others"')
    installation.configure('epsilon = "1"', 'epsilon = "2"')
    assert refused_changes(installation.settings, installation.ledger) == ["epsilon"]
    with pytest.raises(LedgerError):
        installation.run()
    installation.configure('epsilon = "2"', 'epsilon = "1"')
    installation.run()
    change = '[[hierarchy.changes]]\nvalid_from = 2016-06-02\nrenamed = { 84 = "85" }\n[budget]'
    installation.configure("[budget]", change)
    known = installation.ledger.terms(installation.settings.stream.name)
    assert known.differing(terms_of(installation.settings)) == ["hierarchy_hash"]
    assert refused_changes(installation.settings, installation.ledger) == []
    installation.run()


def test_compromised_windows_have_nothing_left_and_are_reported(released, capsys):
    released.ledger.compromise(Key("two-regions", DAYS[0].isoformat()), "a leak", released.now)
    pages = read_book(released.settings, released.ledger)
    assert min(one.left for one in pages[0].days) == -math.inf
    book = Book(stream="two-regions", changed_in_configuration=[], grants=pages, horizons=())
    show_book(book, Terminal())
    assert "nothing: noise was compromised" in capsys.readouterr().out
    budget = budget_of(released.settings, released.ledger)
    charged = budget.to_json()
    for document in (book.to_json(), charged):
        json.dumps(document, allow_nan=False)
    assert (charged["spent"], charged["spent_float"]) == ("inf", None)


@pytest.mark.slow
def test_the_streams_parts_add_up_to_what_the_window_lost(tmp_path):
    both = two_products(tmp_path)
    for name, days in (("electricity", DAYS), ("gas", DAYS[:1])):
        both[name].simulate(*days)
        both[name].release(*days)
    (page,) = read_book(both["gas"].settings, both["gas"].ledger)
    shared = page.shared
    assert [one.stream for one in shared.streams] == ["electricity", "gas"]
    total = both["gas"].ledger.worst("people").epsilon
    assert sum(one.charged for one in shared.streams) == shared.charged == total
    assert all(Fraction(49, 100) < one.charged <= Fraction(1, 2) for one in shared.streams)
    assert page.shared_words.startswith("electricity 0.5, gas 0.")
    assert "together epsilon 0.99" in page.shared_words or "together epsilon 1 of 1" in page.shared_words
