"""What a spend counts in temporal leakage: per step when one step changes, per period when all of it does."""

import numpy as np

from optstream.errors import ParameterError
from optstream.privacy.spends import CappedSpend, JointSpend, PeriodSpend, Spend, StepSpend
from studies.leakage.amounts import Floats


def step_charges(spend: Spend) -> Floats:
    """Return what each step of the spend's period loses when only that step changes.

    A step spend its charges; a period spend charges[1] at each of its steps; a capped spend its unit charge
    at each, for any may be chosen; a joint spend its unit charge at each step that is measured. The
    recursions of leakage hold for measurements that are joint over steps too (docs/methods/leakage.md,
    section 3).

    spend: of one measurement. Returns shape (n_steps,). Raises ParameterError for a spend of no known kind:
    it has no price.
    """
    match spend:
        case StepSpend():
            # each distinct weight is priced once, exactly
            priced = {weight: float(weight * spend.unit_charge) for weight in set(spend.weights)}
            return np.array([priced[weight] for weight in spend.weights])
        case PeriodSpend():
            return np.full(spend.n_steps, float(spend.charges[1]))
        case CappedSpend():
            return np.full(spend.n_steps, float(spend.unit_charge) if spend.cap else 0.0)
        case JointSpend():
            return np.array(spend.weights) * float(spend.unit_charge)
    raise ParameterError(f"temporal leakage cannot price a {type(spend).__name__}: it is of epsilon alone")


def period_charge(spend: Spend, window_length: int) -> float:
    """Return what the spend loses when all steps of its period change.

    spend: of one measurement. window_length: a capped spend holds its cap in every window, a longer period
    perhaps several times. Raises ParameterError for a spend of no known kind.
    """
    match spend:
        case StepSpend():
            return float(sum(spend.weights) * spend.unit_charge)
        case PeriodSpend():
            return float(spend.charges[-1])
        case CappedSpend():
            windows = -(-spend.n_steps // window_length)
            return float(min(spend.n_steps, windows * spend.cap) * spend.unit_charge)
        case JointSpend():
            return float(sum(spend.largest_parts) * spend.unit_charge)
    raise ParameterError(f"temporal leakage cannot price a {type(spend).__name__}: it is of epsilon alone")
