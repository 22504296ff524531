"""Metrics beside the formulas, written out."""

import numpy as np
import pytest

from studies.evaluation.metrics import relative_error


def test_relative_error_has_a_floor():
    assert relative_error(np.array([3.0, 1.0]), np.array([4.0, 0.0]), 1.0) == pytest.approx((0.25 + 1.0) / 2)
    assert relative_error(np.array([3.0, 1.0]), np.array([4.0, 0.0]), 10.0) == pytest.approx(0.1)
