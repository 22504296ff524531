"""What is protected, and what it costs."""

from optstream.privacy.accounting import WindowCost, worst_window
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import PeriodSpend, Spend, StepSpend

__all__ = ["PeriodSpend", "PrivacyModel", "Spend", "StepSpend", "WindowCost", "worst_window"]
