"""What the releases of a long span were charged, and whether any of them chose what it measured."""

from fractions import Fraction

import pytest

from optstream.ledger import Key
from optstream.privacy import CappedSpend, StepSpend


@pytest.fixture
def charged(ledger, reserve, kit):
    """Three periods of four steps under plans that left nothing to be chosen."""
    for number in range(3):
        reserve(f"day {number}", kit.plan(4 * number, "1/8"))
    return ledger


def test_a_span_has_the_spends_of_its_periods_and_what_a_window_is_given(charged):
    found = charged.spent_over("customers", range(0, 8))
    assert [spend.first_step for spend in found.spends] == [0, 4]
    assert (found.compromised, found.adaptive, found.window) == (False, False, (4, Fraction(1)))
    assert charged.spent_over("customers", range(40, 48)).spends == ()


def test_a_plan_that_left_a_choice_is_remembered_after_it_was_settled(charged, drawn):
    plan = (CappedSpend(0, "samples", 12, 4, 2, (), Fraction(8), 1),)
    drawn("day 3", plan, outcome=(StepSpend(0, "samples", 12, (0, 1, 0, 0), Fraction(8), 1),))
    assert isinstance(charged.find(Key("load", "day 3")).spends[0], StepSpend)
    assert charged.spent_over("customers", range(8, 16)).adaptive
    # the day before it may have been released later, and measured what its choice left
    assert charged.spent_over("customers", range(0, 12)).adaptive
    assert not charged.spent_over("customers", range(0, 8)).adaptive


def test_after_an_amendment_no_figure_holds_for_every_window(charged, kit):
    charged.amend(kit.terms(epsilon="2"), "a larger epsilon", kit.now)
    assert charged.spent_over("customers", range(0, 12)).window is None


def test_compromised_noise_is_told(charged, kit):
    charged.void(Key("load", "day 1"), "given up", kit.now)
    charged.compromise(Key("load", "day 1"), "stolen", kit.now)
    assert charged.spent_over("customers", range(0, 12)).compromised
    assert not charged.spent_over("customers", range(8, 12)).compromised
