"""Attacks that measure epsilon from below, with broken mechanisms as controls.

An audit runs a mechanism many times on each of two neighbours, looks on some of the runs for an output that
is likelier on one side, and counts it on the others: whatever it finds, the true epsilon is at least the
bound, with a stated confidence. It can show a promise to be false, never to be true: that takes a proof.

False alarms: a bound lies above the true epsilon with probability at most 1e-9 an audit, unless another
error is asked for; `optstream audit` and the tests each run fewer than 200 audits, so a run of either
raises a false alarm with probability below 1e-6. The tests are seeded and count the same every time.
"""

from optstream.audit.attack import ERROR, audit
from optstream.audit.cases import Case, control_cases, mechanism_cases, our_cases
from optstream.audit.mechanism import MechanismSubject
from optstream.audit.neighbours import Neighbours, make_neighbours, worst_cases
from optstream.audit.result import AuditResult
from optstream.audit.subject import Outputs, Subject

__all__ = [
    "ERROR",
    "AuditResult",
    "Case",
    "MechanismSubject",
    "Neighbours",
    "Outputs",
    "Subject",
    "audit",
    "control_cases",
    "make_neighbours",
    "mechanism_cases",
    "our_cases",
    "worst_cases",
]
