"""The only package that touches private values."""

from optstream.measurement.sampling import EquallySpaced, L1Sampling
from optstream.measurement.sums import measure_points_and_sums

__all__ = ["EquallySpaced", "L1Sampling", "measure_points_and_sums"]
