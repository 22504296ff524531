"""How many customers stand behind each leaf of a period, with noise of a share of its own."""

from dataclasses import replace
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy import PeriodSpend, Spend
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import Measured, PrivatePeriod
from optstream.stream.private_period import open_customers

MOVED = 2
"""The most by which one customer moves the counts of a period together: out of one leaf, into another."""


def customers_spend(
    level: int, first_step: int, n_steps: int, epsilon: Fraction, n_periods: int
) -> PeriodSpend:
    """Return the price of a period's counts, at which no window loses more than `epsilon` by all counts.
    n_periods: the most of which one window has steps, over windows with a step of this one. Privacy: none;
    all is public."""
    scale = Fraction(round_up_to_float(MOVED * n_periods / epsilon))
    return PeriodSpend(level, CUSTOMERS, first_step, (Fraction(0), *[MOVED / scale] * n_steps))


def scale_of(spend: Spend) -> Fraction:
    """Return the scale of the noise that a spend of `customers_spend` prices. Privacy: none; it is public."""
    return MOVED / spend.whole_charge


def with_customers(measured: Measured, period: PrivatePeriod, spend: Spend, noise: NoiseSource) -> Measured:
    """Return the measurements with the noisy number of customers of each leaf, and its spend.
    Privacy: Lemma 24: every window with a step of the period loses MOVED / b, which is the spend's charge."""
    if (spend.stage, spend.first_step, spend.n_steps) != (CUSTOMERS, period.first_step, period.n_steps):
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price this period's customers")
    exact = open_customers(period)
    noisy = exact + noise.discrete_laplace(float(scale_of(spend)), exact.shape)
    return replace(measured, customers=tuple(noisy.tolist()), spends=(*measured.spends, spend))
