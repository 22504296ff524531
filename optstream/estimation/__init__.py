"""Everything that is computed from noisy numbers alone. It costs no privacy and reads no raw value."""

from optstream.estimation.error_factor import SumOfValues
from optstream.estimation.estimate import Estimate
from optstream.estimation.hierarchy.solve import make_consistent
from optstream.estimation.reconstruction import reconstruct

__all__ = ["Estimate", "SumOfValues", "make_consistent", "reconstruct"]
