"""The only package that touches private values."""

from optstream.measurement.linear import measure_points_and_sums
from optstream.measurement.sampling import EquallySpaced, L1Sampling

__all__ = ["EquallySpaced", "L1Sampling", "measure_points_and_sums"]
