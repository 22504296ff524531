# The public names: read by type checkers, and when the package is imported (docs/decisions/0017).
from .accountant import WindowCost as WindowCost
from .accountant import charged_to_windows as charged_to_windows
from .accountant import worst_of_repeated as worst_of_repeated
from .accountant import worst_window as worst_window
from .model import PrivacyModel as PrivacyModel
from .spends import CappedSpend as CappedSpend
from .spends import GaussianSpend as GaussianSpend
from .spends import JointSpend as JointSpend
from .spends import OrderSpend as OrderSpend
from .spends import PeriodSpend as PeriodSpend
from .spends import Spend as Spend
from .spends import StepSpend as StepSpend
