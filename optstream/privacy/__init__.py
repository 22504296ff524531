"""The privacy guarantee, and its accounting."""

from optstream.privacy.accountant import WindowCost, charged_to_windows, worst_of_repeated, worst_window
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import (
    CappedSpend,
    GaussianSpend,
    JointSpend,
    OrderSpend,
    PeriodSpend,
    Spend,
    StepSpend,
)

__all__ = [
    "CappedSpend",
    "GaussianSpend",
    "JointSpend",
    "OrderSpend",
    "PeriodSpend",
    "PrivacyModel",
    "Spend",
    "StepSpend",
    "WindowCost",
    "charged_to_windows",
    "worst_of_repeated",
    "worst_window",
]
