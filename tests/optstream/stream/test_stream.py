"""Tree, features, calendar, and the two types that carry values."""

from datetime import UTC, date, datetime, time
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import AggregationTree, Calendar, Feature, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

RAGGED = {"b1": "b", "world": None, "a": "world", "b": "world", "b2": "b"}


def test_nodes_stand_root_first_and_in_input_order_within_a_level():
    tree = AggregationTree.from_parents(RAGGED)
    assert tree.nodes == ("world", "a", "b", "b1", "b2")
    assert tree.leaves == ("a", "b1", "b2")
    assert tree.levels == (range(0, 1), range(1, 3), range(3, 5))
    assert tree.leaves_below.tolist() == [3, 1, 2, 1, 1]


def test_every_node_is_the_sum_of_its_children():
    tree = AggregationTree.from_parents(RAGGED)
    leaves = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    totals = tree.add_up(leaves)
    assert totals.dtype == np.int64
    assert np.array_equal(totals[:, 2], leaves[:, 1] + leaves[:, 2])
    assert np.array_equal(totals[:, 0], leaves.sum(axis=1))
    with pytest.raises(ParameterError, match="3 leaves"):
        tree.add_up(leaves[:, :2])


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": None, "b": None}, "exactly one root.*'a', 'b'"),
        ({"a": "b", "b": "a"}, "exactly one root.*none"),
        ({"r": None, "a": "b", "b": "a"}, "cycle through 'a', 'b'"),
        ({"r": None, "a": "x"}, "parent 'x' of node 'a'"),
        ({"": None}, "not empty"),
        ({}, "exactly one root"),
    ],
)
def test_what_is_not_a_tree_is_refused(parents, message):
    with pytest.raises(ParameterError, match=message):
        AggregationTree.from_parents(parents)


def test_day_parts_are_those_of_the_paper():
    parts, day = Feature.day_parts(48)
    assert parts.parts == (range(0, 14), range(14, 24), range(24, 36), range(36, 48))
    assert day.parts == (range(0, 48),)
    for bad in (46, 50, 12, 0, 48.0):
        with pytest.raises(ParameterError, match="7, 12 and 18 h"):
            Feature.day_parts(bad)


@pytest.mark.parametrize("day", [date(2016, 3, 27), date(2016, 10, 30), date(2016, 2, 1)])
def test_clock_features_follow_the_wall_clock_on_every_day(day):
    times = Calendar(30, "Europe/Paris").local_times(day)
    feature = Feature.from_clock(["07:00", time(12), "18:00"], times)
    assert feature.n_steps == len(times)
    assert [times[part.start].time() for part in feature.parts] == [time(0), time(7), time(12), time(18)]


@pytest.mark.parametrize("times", [["12:00", "07:00"], ["07:00", "07:00"], ["7 h"], [7]])
def test_bad_clock_times_are_named(times):
    with pytest.raises(ParameterError, match="times of feature 'f'"):
        Feature.from_clock(times, Calendar(30, "UTC").local_times(date(2016, 1, 1)), "f")


@pytest.mark.parametrize(
    "parts", [(), (range(0, 2), range(1, 3)), (range(0, 2), range(3, 4)), (range(1, 2),)]
)
def test_parts_that_overlap_or_leave_a_gap_are_refused(parts):
    with pytest.raises(ParameterError, match="part"):
        Feature(parts)


def test_feature_sums_are_those_of_its_matrix():
    feature = Feature.day_parts(48)[0]
    values = np.arange(96, dtype=np.int64).reshape(2, 48)
    assert np.array_equal(feature.sums(values), values @ feature.matrix.T)


def test_clock_changes_shorten_and_lengthen_the_elapsed_day():
    calendar = Calendar(30, "Europe/Paris")
    assert [calendar.n_steps(date(2016, month, day)) for month, day in ((3, 27), (10, 30), (6, 1))] == [
        46,
        50,
        48,
    ]
    spring = calendar.local_times(date(2016, 3, 27))
    assert time(2) not in {stamp.time() for stamp in spring}
    assert calendar.first_step(date(2016, 3, 28)) == calendar.first_step(date(2016, 3, 27)) + 46
    assert calendar.first_step(date(2000, 1, 1)) == 0
    assert calendar.first_step(date(1999, 12, 31)) == -48


def test_fixed_slots_mark_what_does_not_exist():
    calendar = Calendar(30, "Europe/Paris", "fixed")
    assert calendar.n_steps(date(2016, 3, 27)) == calendar.n_steps(date(2016, 10, 30)) == 48
    stamps = calendar.utc_times(date(2016, 3, 27))
    assert [step for step, stamp in enumerate(stamps) if stamp is None] == [4, 5]
    assert stamps[6] == datetime(2016, 3, 27, 1, tzinfo=UTC)
    assert calendar.utc_times(date(2016, 10, 30))[4] == datetime(2016, 10, 30, 0, tzinfo=UTC)


def test_a_step_that_a_day_does_not_hold_is_refused():
    with pytest.raises(ParameterError, match="whole number of steps"):
        Calendar(120, "Europe/Paris").n_steps(date(2016, 3, 27))
    with pytest.raises(ParameterError, match="divide a day"):
        Calendar(7 * 11, "UTC")
    with pytest.raises(ParameterError, match="IANA"):
        Calendar(30, "Mars/Olympus")


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


def test_sums_of_a_private_period_cannot_overflow_and_size_stops_no_day():
    extreme = np.full((2, 3), np.iinfo(np.int64).min)
    extreme[1] = np.iinfo(np.int64).max
    units = open_private_period(PrivatePeriod(extreme, resolution=Fraction(1), first_step=0))
    assert units.tolist() == [[-(2**49)] * 3, [2**49] * 3]


def test_public_measurements_must_fit_together():
    with pytest.raises(ParameterError, match=r"feature_sums\[0\]"):
        Measured.from_public(np.zeros((3, 4)), [np.zeros((2, 1))])
    with pytest.raises(ParameterError, match="positions"):
        Measured.from_public(np.zeros((3, 4)), [], positions=[2, 1])
    with pytest.raises(ParameterError, match="one entry for the steps"):
        Measured.from_public(np.zeros((3, 4)), [np.zeros((3, 1))], variances=[1.0])
    with pytest.raises(ParameterError, match=r"variances\[0\] must be greater than 0"):
        Measured.from_public(np.zeros((3, 4)), [], variances=[0.0])


def test_bytes_that_are_no_measurements_are_refused():
    for data in (b"", b"[]", b"{}", b'{"format":"other"}', b"\xff"):
        with pytest.raises(ParameterError):
            Measured.from_bytes(data)


@pytest.mark.parametrize("kind", ["elapsed", "fixed"])
@pytest.mark.parametrize("day", [date(1999, 12, 31), date(2016, 3, 27), date(2016, 6, 1), date(2016, 10, 30)])
def test_the_local_time_of_a_step_is_the_one_that_its_day_gives_it(kind, day):
    calendar = Calendar(30, "Europe/Paris", kind)
    first = calendar.first_step(day)
    times = [calendar.local_time(first + number) for number in range(calendar.n_steps(day))]
    assert tuple(time.replace(tzinfo=None, fold=0) for time in times) == calendar.local_times(day)
    assert [time.tzinfo is None for time in times] == [kind == "fixed"] * len(times)
