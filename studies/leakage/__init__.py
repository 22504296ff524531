"""What is lost to an adversary who knows how one customer's values follow each other: a Markov chain.

Source of the whole package: Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous
Data Release under Temporal Correlations, IEEE TKDE 2018. docs/methods/leakage.md says what it is for.
"""

from studies.leakage.charges import period_charge, step_charges
from studies.leakage.loss import LossFunction, backward_transition, loss_by_row_pairs, stationary_distribution
from studies.leakage.over_time import (
    Budgets,
    backward_leakage,
    constant_budget,
    exact_budgets,
    forward_leakage,
    repeated_leakage,
    sequence_leakage,
    supremum,
    total_leakage,
)

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
