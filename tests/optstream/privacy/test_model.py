"""Parameters of the privacy model: exact, in range, and named when they are not."""

from decimal import Decimal
from fractions import Fraction

import pytest

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import exact, root_above, round_up_to_float
from optstream.privacy.zero_concentrated import epsilon_of


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": "0"}, "epsilon of PrivacyModel must be greater than 0"),
        ({"epsilon": "-1"}, "epsilon of PrivacyModel must be greater than 0"),
        ({"epsilon": 0.1}, 'epsilon of PrivacyModel must be exact: an integer, or a string such as "0.1"'),
        ({"epsilon": "one"}, "epsilon of PrivacyModel must be a number"),
        ({"epsilon": "nan"}, "epsilon of PrivacyModel must be a number"),
        ({"epsilon": "1e999999999"}, "epsilon of PrivacyModel must be a number"),
        ({"alpha": 0}, "alpha of PrivacyModel must be greater than 0"),
        ({"window_length": 0}, "window_length of PrivacyModel must be an integer of at least 1"),
        ({"window_length": True}, "window_length of PrivacyModel must be an integer of at least 1"),
        ({"unit": "household"}, 'must be "customer" or "roaming"'),
        ({"leaves_per_step": 2}, 'use unit "roaming"'),
    ],
)
def test_bad_parameters_are_named(changed, message):
    with pytest.raises(ParameterError, match=message):
        PrivacyModel(**({"epsilon": "1", "window_length": 48, "alpha": 1} | changed))


def test_epsilon_is_kept_exact():
    assert PrivacyModel(epsilon="0.1", window_length=48, alpha=Decimal("2.5")).epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("alpha", "resolution", "units"), [("1", "0.001", 1000), ("1", "0.3", 4), ("0.1", "1", 1)]
)
def test_alpha_in_units_is_rounded_up(alpha, resolution, units):
    assert PrivacyModel(epsilon=1, window_length=2, alpha=alpha, resolution=resolution).alpha_units == units


def test_what_is_within_the_budget_is_told_as_no_more_than_its_epsilon():
    """Rho is rounded down and what it is told as up, here past the epsilon that it was made of."""
    model = PrivacyModel("1/3", window_length=2, alpha=1, delta="1e-6")
    assert epsilon_of(model.rho, model.delta) > model.to_epsilon(model.rho) == Fraction(1, 3)
    assert model.to_epsilon(2 * model.rho) > Fraction(1, 3)


@pytest.mark.parametrize("text", ["1/3", "0.1", "123456789.123456789", "1e-30"])
def test_scales_round_up_by_at_most_one_float(text):
    value = exact(text, "value")
    rounded = Fraction(round_up_to_float(value))
    assert value <= rounded <= value * (1 + Fraction(1, 2**52))


@pytest.mark.parametrize("text", ["1/3", "2", "3", "123456789.123456789", "1e-30"])
def test_a_root_is_rounded_up_by_at_most_a_few_floats(text):
    value = exact(text, "value")
    assert value <= Fraction(root_above(value)) ** 2 <= value * (1 + Fraction(1, 2**49))


def test_a_scale_that_overflows_is_refused():
    with pytest.raises(ParameterError, match="too large"):
        round_up_to_float(Fraction(10) ** 400)
