"""The only rooms that touch private values."""

from optstream.measurement.linear import measure_points_and_sums
from optstream.measurement.sampling import EquallySpaced

__all__ = ["EquallySpaced", "measure_points_and_sums"]
