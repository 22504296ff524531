"""Paths, scales and numbers, against what they say when they are read back."""

import re
from datetime import date, timedelta
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from optstream.catalogue import Catalogue
from optstream.stream import Hour
from tasks.reports.drawing.figures import figures_of
from tasks.reports.drawing.paths import HEIGHT, Scale, band, dots, line
from tasks.reports.facts import RECENT_DAYS, Daily, Node, PublicFacts, Recent
from tasks.reports.numbers import amount, brief, day_in_words, decimal, quantity_of, shown, ticks, unit_of

NARROWEST, LETTER = 266, 6.9
"""Pixels: a plot on a page of 360, and a letter of its labels (12 px DejaVu Sans, dates)."""


@pytest.mark.parametrize("n_days", [*range(1, 60, 3), 366, 730, 731, 734, 1100, 3650])
def test_no_label_below_a_curve_is_cut_at_its_end(n_days):
    """Ends of months and years too: the first days fall anywhere near the right border."""
    first, every = date(2016, 1, 29), np.full((1, n_days), 7.0)
    daily = Daily(first, every, every, every, every, every, [48] * n_days)
    n_recent = min(n_days, RECENT_DAYS)
    start = first + timedelta(days=n_days - n_recent)
    days = tuple(start + timedelta(days=number) for number in range(n_recent))
    steps = (np.full((1, 48), 7.0),) * n_recent
    recent = Recent(start, days[-1], days, steps, steps, steps)
    facts = PublicFacts(Catalogue("s", "load_mw", "", ()), None, (Node("FR", None, 0),), daily, recent)
    for plot in figures_of(facts, "MW", "load")[0].plots:
        for text, left in plot.x_labels:
            assert left * NARROWEST / 100 + LETTER * len(text) <= NARROWEST, (plot.title, text)
        assert plot.x_labels or "Daily" in plot.title


@pytest.mark.parametrize("knows_total", [True, False])
def test_a_band_is_drawn_of_the_total_error_and_never_of_noise_alone(knows_total):
    day, seven = date(2016, 1, 29), np.full((1, 2), 7.0)
    one, three = np.full((1, 2), 1.0), np.full((1, 2), 3.0 if knows_total else nan)
    daily = Daily(day, seven, seven, seven, one, three, [2] * 2)
    recent = Recent(day, day, (day,), (seven,), (one,), (three,))
    facts = PublicFacts(Catalogue("s", "load_mw", "", ()), None, (Node("FR", None, 0),), daily, recent)
    assert facts.has_total == knows_total
    for plot in figures_of(facts, "MW", "load")[0].plots:
        assert bool(plot.band) == knows_total
        highest = max(float(label.replace("−", "-")) for label, _ in plot.y_labels)
        assert (highest >= 7 + 1.96 * 3) == knows_total


def corners(path):
    """The absolute corners of each piece of a path of M, relative l, h0 and z."""
    pieces = []
    for piece in filter(None, path.split("M")):
        start, _, rest = piece.rstrip("z").removesuffix("h0").partition("l")
        at = [int(number) for number in start.split()]
        steps = [int(number) for number in re.findall(r"-?\d+", rest)]
        found = [tuple(at)]
        for across, down in zip(steps[::2], steps[1::2], strict=True):
            at = [at[0] + across, at[1] + down]
            found.append(tuple(at))
        pieces.append(found)
    return pieces


def test_a_line_goes_through_every_value():
    rng = np.random.default_rng(1)
    values, places, scale = rng.normal(size=200), np.arange(200.0), Scale(-4, 4)
    (found,) = corners(line(places, values, scale))
    assert [x for x, _ in found] == list(range(200))
    heights = (4 - values) / 8 * HEIGHT
    assert np.abs(np.array([y for _, y in found]) - heights).max() <= 0.5


def test_what_is_not_known_breaks_the_line_and_a_lone_value_is_a_dot():
    path = line(np.arange(6.0), np.array([1, 1, nan, 2, nan, nan]), Scale(0, 2))
    assert corners(path) == [[(0, 200), (1, 200)], [(3, 0)]]
    assert path.endswith("h0")
    assert dots(np.arange(6.0), np.array([1, 1, nan, 2, nan, nan]), Scale(0, 2)) == "M3 0h0"
    assert line(np.arange(2.0), np.array([nan, nan]), Scale(0, 1)) == ""


def test_a_band_goes_there_above_and_back_below():
    places, lower, upper = np.arange(3.0), np.array([0.0, 1, 0]), np.array([2.0, 3, 4])
    (found,) = corners(band(places, lower, upper, Scale(0, 4)))
    assert found == [(0, 200), (1, 100), (2, 0), (2, 400), (1, 300), (0, 400)]
    assert band(places, lower * nan, upper, Scale(0, 4)) == ""


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 7), (52_888, 64_402), (0.001, 0.0013), (5, 5), (0, 0), (-1e9, 1e9)]
)
def test_ticks_are_round_and_hold_the_span(low, high):
    found = ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high
    assert 2 <= len(found) <= 8
    assert len(set(map(shown, found))) == len(found)


def test_long_fractions_are_decimals_and_other_text_stays():
    """An exact share is no reading matter; what somebody else wrote in its place is text, not arithmetic."""
    told = {
        "1/2": "1/2",
        "4897118041412579/1125899906842624": "4.35",
        "even": "even",
        "1e999999999": "1e999999999",
    }
    assert {text: brief(text) for text in told} == told
    assert [decimal(text) for text in ("400", "10/4", "1/0", "1e9", Fraction(1, 3))] == [
        "400", "2.5", "1/0", "1e9", "0.3333",
    ]  # fmt: skip


def test_numbers_in_words():
    shown_as = {1234567.8: "1,234,568", 999.94: "999.9", 0: "0", 12.5: "12.5", 0.01234: "0.01234", nan: "–"}
    assert {value: shown(value) for value in shown_as} == shown_as
    assert [amount(value) for value in (Fraction(1, 48), inf, -inf)] == ["0.0208333", "∞", "−∞"]
    assert [amount(value) for value in (6.54836e-17, -1e-12, 0, 1e-6)] == ["≈ 0", "≈ 0", "0", "1e-06"]
    assert day_in_words(date(2016, 2, 1)) == "1 Feb 2016"
    assert day_in_words(Hour(date(2016, 10, 30), 2, again=True)) == "30 Oct 2016, hour 02B"
    assert [unit_of(name) for name in ("load_mw", "energy_kwh", "devices", "load")] == ["MW", "kWh", "", ""]
    assert [quantity_of(name) for name in ("net_load_mw", "devices", "mw")] == ["net load", "devices", "mw"]
