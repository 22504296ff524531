"""Everything that is computed from noisy numbers alone. It costs no privacy and reads no raw value."""

from optstream.estimation.estimate import Estimate, SumOfValues
from optstream.estimation.least_squares import make_consistent
from optstream.estimation.problem import reconstruct

__all__ = ["Estimate", "SumOfValues", "make_consistent", "reconstruct"]
