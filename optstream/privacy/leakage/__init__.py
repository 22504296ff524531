"""What is lost to an adversary who knows how one customer's values follow each other: a Markov chain.

Source of the whole package: Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous
Data Release under Temporal Correlations, IEEE TKDE 2018. docs/methods/leakage.md says what it is for.
"""

from optstream.privacy.leakage.budgets import Budgets, constant_budget, exact_budgets
from optstream.privacy.leakage.charges import period_charge, step_charges
from optstream.privacy.leakage.loss import LossFunction
from optstream.privacy.leakage.over_time import (
    backward_leakage,
    forward_leakage,
    sequence_leakage,
    total_leakage,
)
from optstream.privacy.leakage.row_pairs import loss_by_row_pairs
from optstream.privacy.leakage.suprema import repeated_leakage, supremum
from optstream.privacy.leakage.transition import backward_transition, stationary_distribution

__all__ = [
    "Budgets",
    "LossFunction",
    "backward_leakage",
    "backward_transition",
    "constant_budget",
    "exact_budgets",
    "forward_leakage",
    "loss_by_row_pairs",
    "period_charge",
    "repeated_leakage",
    "sequence_leakage",
    "stationary_distribution",
    "step_charges",
    "supremum",
    "total_leakage",
]
