"""Equally spaced points: exactly k in every window, whatever the days are like."""

import pytest

from optstream.measurement import EquallySpaced


@pytest.mark.parametrize(("window", "count"), [(48, 10), (48, 2), (48, 48), (7, 3), (2, 2), (336, 20)])
def test_every_window_holds_exactly_k_points_over_days_of_46_48_and_50_steps(window, count):
    sampled, at = set(), 0
    for length in [48, 46, 48, 50, 48, 48, 50, 46] * 3:
        sampled |= {at + step for step in EquallySpaced(count).positions(length, at, window)}
        at += length
    for start in range(at - window + 1):
        assert len(sampled & set(range(start, start + window))) == count


def test_a_whole_window_has_points_at_both_ends():
    assert EquallySpaced(10).positions(48, 0, 48) == (0, 5, 10, 16, 21, 26, 31, 37, 42, 47)
