"""The stair of windows: where it is by what they are charged, and the limit above it."""

from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from types import SimpleNamespace

from tasks.ledger.show import WindowHeadroom
from tasks.ui.views.guarantees import GuaranteeRow
from tasks.ui.views.window_plot import HIGH, window_plot


def page(*lefts, grant=1):
    at = datetime(2016, 6, 1, tzinfo=UTC)
    windows = tuple(
        WindowHeadroom(10 * number, 10 * number + 9, at, at, left) for number, left in enumerate(lefts)
    )
    terms = SimpleNamespace(model=SimpleNamespace(budget=Fraction(grant)))
    return SimpleNamespace(windows=windows, terms=terms)


def test_a_stair_from_left_to_right():
    plot = SimpleNamespace(**window_plot(page(Fraction(1), Fraction(0))))
    assert plot.limit == round(HIGH * (1 - 1 / 1.1))
    assert plot.line == f"M0 {HIGH}H500L500 {plot.limit}H1000"
    assert (plot.limit_words, plot.fullest_words) == ("1", "1")
    assert plot.fullest == plot.limit
    assert plot.words == "the fullest of 2 groups of windows is charged 1 of 1"
    assert plot.first == "2016-06-01 00:00 UTC"


def test_a_window_above_its_limit_is_drawn_above_it():
    plot = SimpleNamespace(**window_plot(page(Fraction(-1, 2), -inf)))
    assert plot.line.startswith(f"M0 {HIGH // 4}H500L500 0")
    assert plot.limit == HIGH // 2
    assert (plot.fullest, plot.fullest_words) == (0, "2")


def test_nothing_is_drawn_of_nothing():
    assert window_plot(None) is None
    assert window_plot(page()) is None


def test_an_earlier_guarantee_is_a_limit_over_the_windows_that_touch_its_days():
    """Of days that end within the picture, and of some that are over before it begins."""

    def row(steps, limit):
        return GuaranteeRow(0, "2", "sliding, 4 steps", "1", "", False, steps, limit)

    plot = SimpleNamespace(
        **window_plot(page(Fraction(1), Fraction(0)), [row(range(-3, 10), 2.0), row(range(-9, 0), 5.0)])
    )
    assert plot.earlier == f"M0 {round(HIGH * (1 - 2 / 2.2))}H500"
    assert plot.limit == round(HIGH * (1 - 1 / 2.2))
    assert window_plot(page(Fraction(1)))["earlier"] == ""
