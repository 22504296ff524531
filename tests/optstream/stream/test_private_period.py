"""A private period: shows no value, and its sums cannot overflow."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import PrivatePeriod
from optstream.stream.private_period import open_private_period


def test_a_private_period_shows_no_value():
    period = PrivatePeriod.from_values([[71234.5, 1], [2, 3]], resolution=Fraction(1), first_step=5)
    assert repr(period) == "PrivatePeriod(n_leaves=2, n_steps=2, first_step=5)"
    assert "71234" not in str(period)
    assert not [
        name for name in dir(period) if isinstance(getattr(period, name), np.ndarray) and "__" not in name
    ]
    with pytest.raises(AttributeError):
        period.first_step = 0


def test_a_private_period_is_a_copy_of_integers():
    units = np.ones((2, 3), dtype=np.int64)
    period = PrivatePeriod(units, resolution=Fraction(1), first_step=0)
    units[0, 0] = 5
    assert open_private_period(period).tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(ParameterError, match="int64"):
        PrivatePeriod(units.astype(float), resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match="at least one step"):
        PrivatePeriod(units[:, :0], resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match=r"first_step of a period must be a whole number; got 4\.0"):
        PrivatePeriod(units, resolution=Fraction(1), first_step=4.0)


def test_sums_of_a_private_period_cannot_overflow_and_size_stops_no_day():
    extreme = np.full((2, 3), np.iinfo(np.int64).min)
    extreme[1] = np.iinfo(np.int64).max
    units = open_private_period(PrivatePeriod(extreme, resolution=Fraction(1), first_step=0))
    assert units.tolist() == [[-(2**49)] * 3, [2**49] * 3]
