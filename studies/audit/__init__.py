"""Attacks that measure epsilon from below, with broken mechanisms as controls.

An audit runs a mechanism many times on each of two neighbours, looks on some of the runs for an output that
is likelier on one side, and counts it on the others: whatever it finds, the true epsilon is at least the
bound, with a stated confidence. It can show a guarantee to be false, never to be true: that takes a proof.
A bound lies above the true epsilon with probability at most 1e-9 an audit, and a run has fewer than 500.
"""

from studies.audit.attack import ERROR, AuditResult, audit
from studies.audit.cases import Case, control_cases, mechanism_cases, our_cases
from studies.audit.histories import HistorySubject, MechanismSubject, Outputs, Subject
from studies.audit.ledgers import (
    amended_subjects,
    apart_subjects,
    broken_tree_subjects,
    changed_tree_subjects,
    hasty_subjects,
    product_subjects,
)
from studies.audit.neighbours import Neighbours, make_neighbours, worst_cases

__all__ = [
    "ERROR",
    "AuditResult",
    "Case",
    "HistorySubject",
    "MechanismSubject",
    "Neighbours",
    "Outputs",
    "Subject",
    "amended_subjects",
    "apart_subjects",
    "audit",
    "broken_tree_subjects",
    "changed_tree_subjects",
    "control_cases",
    "hasty_subjects",
    "make_neighbours",
    "mechanism_cases",
    "our_cases",
    "product_subjects",
    "worst_cases",
]
