"""Parameters of the privacy model: exact, in range, and named when they are not."""

import json
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from optstream import (
    AggregationTree,
    EquallySpaced,
    Fast,
    Fourier,
    HistoryInformed,
    L1Sampling,
    Laplace,
    OptStream,
    ParameterError,
    PrivacyModel,
    PrivatePeriod,
    PublicDays,
)
from optstream.privacy.exact import Bounds, exact, root_above, round_up_to_float
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


MODEL = PrivacyModel(1, 4, 10)
FOUR, HALF = np.int64(4), np.float32(0.5)
TREE = AggregationTree.from_parents({"all": None, "A": "all"})


def test_an_exact_number_of_numpys_does_not_overflow():
    """A Fraction of a numpy integer would keep it: 2^70 times it is an error, and less may be wrong."""
    number = exact(np.int64(3), "three")
    assert {type(number.numerator), type(number.denominator)} == {int}
    assert number * 2**70 == Fraction(3 * 2**70)


@pytest.mark.parametrize(
    "made",
    [
        PrivacyModel(np.int64(1), FOUR, np.int32(10)),
        EquallySpaced(FOUR),
        L1Sampling(FOUR, np.int64(2)),
        Laplace(MODEL, "joint", (FOUR, np.int64(5)), np.int64(1)),
        Fourier(MODEL, n_coefficients=np.int64(2), shortest_period=FOUR),
        Fast(MODEL, n_samples=np.int64(2), set_point=HALF, integration_time=np.int8(1)),
        HistoryInformed(MODEL, np.int64(1), np.int64(2), scale=HALF, history_days=np.uint8(7)),
        PublicDays(FOUR, first_weekday=np.int64(0)),
        OptStream(
            MODEL,
            TREE,
            sampling=EquallySpaced(FOUR),
            features=[],
            level_shares=[np.int64(0), np.int64(1)],
            lower_bound=HALF,
            shortest_period=FOUR,
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_numpys_numbers_are_parameters(made):
    for field in fields(made):
        value = getattr(made, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            assert not isinstance(one, np.generic), field.name
            if isinstance(one, Fraction):
                assert type(one.numerator) is int


def test_a_period_knows_its_first_step_as_an_integer():
    period = PrivatePeriod.from_values(np.ones((1, 4)), resolution=MODEL.resolution, first_step=np.int64(96))
    assert json.dumps(period.first_step) == "96"


@pytest.mark.parametrize("value", [np.float64(0.1), 0.1, np.bool_(True), True])
def test_what_is_not_exact_is_refused(value):
    with pytest.raises(ParameterError, match=r'epsilon of PrivacyModel must be exact.*"0.1"'):
        PrivacyModel(value, 4, 10)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2), Fraction(5), Fraction(7)])
@pytest.mark.parametrize("name", ["exp", "ln"])
def test_bounds_lie_on_their_side_of_what_decimal_rounds_to_the_nearest(name, value):
    many = Context(50)
    whole = getattr(many, name)(many.divide(Decimal(value.numerator), Decimal(value.denominator)))
    below, above = (getattr(Bounds(side, 4), name)(value) for side in (ROUND_FLOOR, ROUND_CEILING))
    assert below < whole < above
    assert above - below <= abs(whole) / 100, "nor far from it"
