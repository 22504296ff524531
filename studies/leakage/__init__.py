"""What is lost to an adversary who knows how one customer's values follow each other: a Markov chain.

Source of the whole package: Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous
Data Release under Temporal Correlations, IEEE TKDE 2018. docs/methods/leakage.md says what it is for.
"""

from studies.leakage.budgets import Budgets, constant_budget, exact_budgets
from studies.leakage.charges import period_charge, step_charges
from studies.leakage.loss import LossFunction
from studies.leakage.over_time import (
    backward_leakage,
    forward_leakage,
    sequence_leakage,
    total_leakage,
)
from studies.leakage.row_pairs import loss_by_row_pairs
from studies.leakage.suprema import repeated_leakage, supremum
from studies.leakage.transition import backward_transition, stationary_distribution

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
