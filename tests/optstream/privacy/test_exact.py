"""Numbers as parameters: numpy's become Python's, so that nothing overflows and JSON takes them."""

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
from optstream.privacy.exact import Bounds, exact

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
