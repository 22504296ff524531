"""Private readings, raw state and measurements: exact rounding, nothing shown, nothing passed for another."""

import copy
import json
import math
import pickle
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.estimation.estimate import invert_coordinates
from optstream.estimation.problem import reconstruct, targets_of
from optstream.history.blocks import BlockHistory
from optstream.measurement.grouping import open_raw_state
from optstream.stream import Measured, PrivatePeriod, RawState
from optstream.stream.measured import FORMAT
from optstream.stream.private_period import (
    open_customers,
    open_private_period,
    public_part,
    quantise,
    raw_bytes,
    with_raw,
)

resolutions = st.sampled_from(
    [Fraction(1, 1000), Fraction(1), Fraction(1, 4), Fraction(3, 1000), Fraction(5)]
)
STORED = {
    kind: text.encode()
    for kind, text in json.loads(Path(__file__).with_name("stored_answers.json").read_text("utf-8")).items()
}
"""As the code before these types wrote them: the ledger has the hashes of such bytes."""
READERS = {
    "FeatureSums": (reconstruct, targets_of),
    "BlockSums": (BlockHistory.of,),
    "FourierCoordinates": (invert_coordinates,),
}
SECRET = {"limit": 71234, "exact": [81234]}
STATE = {"levels": {"0": {"mechanism": "A", "held": [1], "raw": RawState(SECRET)}, "1": {"mechanism": "B"}}}


def half_up(value, resolution):
    """Straight from the definition, in exact arithmetic."""
    quotient = Fraction(Decimal(str(value))) / resolution + Fraction(1, 2)
    return math.floor(quotient)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.decimals(-10000, 10000, places=4), min_size=1, max_size=20), resolutions)
@pytest.mark.slow
def test_floats_are_rounded_as_the_decimals_that_they_show(decimals, resolution):
    for dtype in (np.float64, np.float32):
        values = np.array([float(value) for value in decimals], dtype=dtype)
        assert quantise(values, resolution).tolist() == [half_up(value, resolution) for value in values]


@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**7), 10**7), st.decimals("0.0001", 50, places=4), st.integers(0, 10**6), resolutions)
def test_values_alpha_apart_give_integers_at_most_alpha_apart(ten_thousandths, alpha, share, resolution):
    low = Decimal(ten_thousandths) / 10000
    high = low + (alpha * share / 10**6).quantize(Decimal("0.0001"), rounding=ROUND_FLOOR)
    units = quantise(np.array([float(low), float(high)]), resolution)
    assert 0 <= units[1] - units[0] <= math.ceil(Fraction(alpha) / resolution)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "units"), [(np.nan, 0), (np.inf, 2**50), (-np.inf, -(2**50)), (3e38, 2**50), (-3e38, -(2**50))]
)
def test_no_value_is_refused(value, units, dtype):
    assert quantise(np.array([1.5, value], dtype=dtype), Fraction(1, 1000)).tolist() == [1500, units]


@pytest.mark.parametrize("resolution", [Fraction(1, 1000), Fraction(1, 3), Fraction(7), Fraction(1)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_around_2_to_the_50_units_values_are_clamped_exactly(resolution, dtype):
    middle = math.floor(2**50 * resolution)
    values = np.array([middle + step for step in range(-20, 21)], dtype=dtype)
    expected = [min(half_up(value, resolution), 2**50) for value in values]
    assert quantise(values, resolution).tolist() == expected
    if dtype != np.uint64:
        negative = [max(half_up(-value, resolution), -(2**50)) for value in values]
        assert quantise(-values, resolution).tolist() == negative


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
    with pytest.raises(ValueError, match="read-only"):
        open_private_period(period)[0, 0] = 2
    for customers in (None, np.ones(3, dtype=np.int64)):
        with pytest.raises(ParameterError, match="customers of this period were not counted"):
            open_customers(PrivatePeriod(units, resolution=Fraction(1), first_step=0, customers=customers))
    with pytest.raises(ParameterError, match="int64"):
        PrivatePeriod(units.astype(float), resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match="at least one step"):
        PrivatePeriod(units[:, :0], resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match=r"first_step of a period must be a whole number; got 4\.0"):
        PrivatePeriod(units, resolution=Fraction(1), first_step=4.0)


def test_the_largest_integers_are_clamped_and_sums_of_a_private_period_cannot_overflow():
    extreme = np.full((2, 3), np.iinfo(np.int64).min)
    extreme[1] = np.iinfo(np.int64).max
    assert np.abs(quantise(extreme, Fraction(1, 3))).tolist() == [[2**50] * 3] * 2
    units = open_private_period(PrivatePeriod(extreme, resolution=Fraction(1), first_step=0))
    assert units.tolist() == [[-(2**49)] * 3, [2**49] * 3]


@pytest.mark.parametrize("kind", STORED)
def test_stored_answers_are_read_as_what_was_asked_and_written_as_they_were(kind):
    measured = Measured.from_bytes(STORED[kind])
    assert type(measured.answers).__name__ == kind
    assert measured.to_bytes() == STORED[kind]


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("other", READERS)
def test_no_kind_of_answers_passes_for_another(kind, other):
    """Sums and coordinates are arrays of one shape: read as each other they would be published."""
    measured = Measured.from_bytes(STORED[kind])
    for read in READERS[other]:
        if kind == other:
            read(measured)
        else:
            with pytest.raises(ParameterError, match="these measurements"):
                read(measured)


@pytest.mark.parametrize(
    ("sums", "more", "message"),
    [
        ([np.zeros((2, 1))], {}, r"feature_sums\[0\]"),
        ([], {"positions": [2, 1]}, "positions"),
        ([np.zeros((3, 1))], {"variances": [1.0]}, "one entry for the steps"),
        ([], {"variances": [0.0]}, r"variances\[0\] must be greater than 0"),
        ([np.zeros((3, 1))], {"variances": [1.0, np.ones((3, 4))]}, r"variances\[1\] must be .* or \(3, 1\)"),
    ],
)
def test_public_measurements_must_fit_together(sums, more, message):
    with pytest.raises(ParameterError, match=message):
        Measured.from_public(np.zeros((3, 4)), sums, **more)


def test_bytes_that_are_no_measurements_are_refused():
    other = STORED["FeatureSums"].replace(json.dumps(FORMAT).encode(), b'"other"')
    for data in (b"", b"[]", b"{}", other, b"\xff"):
        with pytest.raises(ParameterError):
            Measured.from_bytes(data)


def test_nothing_shows_what_is_inside():
    raw = RawState(SECRET)
    assert "1234" not in repr(raw) + str(raw) + repr(STATE)
    with pytest.raises(AttributeError, match="cannot be changed"):
        raw.content = 1
    with pytest.raises(TypeError):
        json.dumps({"raw": raw})
    assert open_raw_state(raw) == SECRET


@pytest.mark.parametrize(
    "private",
    [RawState(SECRET), PrivatePeriod.from_values([[71234.5]], resolution=Fraction(1), first_step=0)],
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_private_values_are_not_pickled(private, protocol):
    """A persisted result of the orchestrator would be a pickle, in clear."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps({"inside": [private]}, protocol)
    with pytest.raises(TypeError, match="not pickled"):
        copy.deepcopy(private)


def test_public_and_raw_parts_are_distinguished_and_put_together_again():
    public, raw = public_part(STATE), raw_bytes(STATE)
    assert public == {"levels": {"0": {"mechanism": "A", "held": [1]}, "1": {"mechanism": "B"}}}
    assert b"71234" in raw
    assert b"held" not in raw
    whole = with_raw(public, raw)
    assert public_part(whole) == public
    assert open_raw_state(whole["levels"]["0"]["raw"]) == SECRET
    assert raw_bytes({"mechanism": "A", "levels": {"0": {"held": [1]}}}) is None
    assert raw_bytes(None) is None
    assert public_part(None) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"not json", b'{"levels": 1}'])
def test_bytes_that_are_no_raw_state_are_refused_without_showing_them(data):
    with pytest.raises(ParameterError, match="no raw state"):
        with_raw({}, data)
