"""What a long span loses in rho: added up by all steps of each measurement, and told as an epsilon."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optstream.errors import ParameterError
from optstream.measurement.sums import SAMPLES
from optstream.privacy import GaussianSpend, StepSpend, worst_window
from optstream.privacy.horizon import loss_of_days, loss_over
from optstream.privacy.zero_concentrated import epsilon_of

DELTA = Fraction(1, 10**6)


def gaussian(first_step, *lengths):
    """Sums over so many steps each, one after the other, of sigma 10 and a change of 1."""
    stops = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    parts = tuple(range(stop - length, stop) for stop, length in zip(stops, lengths, strict=True))
    return GaussianSpend(0, "blocks", first_step, stops[-1], parts, Fraction(10), 1)


@pytest.mark.parametrize("adaptive", [False, True])
def test_rho_adds_up_over_a_span_by_all_steps_of_each_measurement(adaptive):
    spends = [gaussian(0, 1, 1, 2), gaussian(4, 3)]
    found = loss_over(spends, DELTA, adaptive=adaptive, window=None)
    assert (found.plain, found.composed) == (Fraction(1 + 1 + 4 + 9, 200), "rho")
    assert epsilon_of(found.plain, DELTA) <= Fraction(found.epsilon)
    assert found.epsilon == pytest.approx(float(epsilon_of(found.plain, DELTA)))


def test_a_sum_over_two_windows_costs_four_times_what_it_costs_one():
    """So whole windows are no bound in rho: two of them would state half of what is lost."""
    spend = gaussian(0, 4)
    window = (2, worst_window([spend], 2).epsilon)
    found = loss_over([spend], DELTA, adaptive=False, window=window)
    assert found.plain == 4 * window[1]
    days = loss_of_days([[spend], [replace(spend, first_step=4)]], 1, DELTA, window=window)
    assert (days.plain, days.epsilon) == (found.plain, found.epsilon)


def test_the_loss_of_any_days_in_a_row_is_that_of_the_dearest_in_rho():
    days = [[gaussian(0, 1)], [gaussian(1, 2)], [gaussian(3, 1)], [gaussian(4, 2)], [gaussian(6, 2)]]
    found = loss_of_days(days, 2, DELTA, window=None)
    assert found.plain == Fraction(8, 200)


def test_a_span_of_two_currencies_is_refused():
    mixed = [gaussian(0, 1), StepSpend(0, SAMPLES, 1, (1,), Fraction(3), 1)]
    with pytest.raises(ParameterError, match="never added up"):
        loss_over(mixed, DELTA, adaptive=False, window=None)
    with pytest.raises(ParameterError, match="never added up"):
        loss_of_days([[one] for one in mixed], 1, DELTA, window=None)
