"""Measurements: parts that must fit together, and bytes that are none."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Measured


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
