"""Attacks that measure epsilon from below, with broken mechanisms as controls.

An audit runs a mechanism many times on each of two neighbours, looks on some of the runs for an output that
is likelier on one side, and counts it on the others: whatever it finds, the true epsilon is at least the
bound, with a stated confidence. It can show a guarantee to be false, never to be true: that takes a proof.

False alarms: a bound lies above the true epsilon with probability at most 1e-9 an audit, unless another
error is asked for; `python -m studies audit` and the tests each run fewer than 500 audits, so a run of either
raises a false alarm with probability below 1e-6. The tests are seeded and count the same every time.

What is audited: our mechanisms over made-up sums (`cases`, `plans`, `field`), the L1 sampler by enumeration
(`sampler`), mistakes and their honest twins (`controls`), and histories in which something else than a sum
changes (`histories`): privacy guarantees that were amended (`amendments`), and in `tasks`, for what they go
through is there, rows that come and go, customers who change leaf (`audit_rows`) and days beside one whose
noise leaked (`audit_compromised`).
"""

from studies.audit.attack import ERROR, audit
from studies.audit.cases import Case, control_cases, mechanism_cases, our_cases
from studies.audit.result import AuditResult
from studies.audit.subjects.amendments import amended_subjects, hasty_subjects
from studies.audit.subjects.changed_trees import broken_tree_subjects, changed_tree_subjects
from studies.audit.subjects.histories import HistorySubject
from studies.audit.subjects.mechanism import MechanismSubject
from studies.audit.subjects.neighbours import Neighbours, make_neighbours, worst_cases
from studies.audit.subjects.products import apart_subjects, product_subjects
from studies.audit.subjects.subject import Outputs, Subject

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
