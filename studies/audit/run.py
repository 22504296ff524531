"""The audit as a task: run the cases, put what was found in a table and a document."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.noise import NoiseSource, secure_noise, simulated_noise
from studies.audit import (
    ERROR,
    AuditResult,
    Case,
    Subject,
    amended_subjects,
    apart_subjects,
    broken_tree_subjects,
    changed_tree_subjects,
    control_cases,
    hasty_subjects,
    mechanism_cases,
    our_cases,
    product_subjects,
)
from studies.audit.compromised import broken_compromised_subjects, compromised_subjects
from studies.audit.rows import broken_row_subjects, row_subjects
from tasks.config import Settings
from tasks.release.mechanism import mechanism_for

FORMAT = "optstream.audit/1"

Progress = Callable[[str, int, int], None]
"""Told the case, the runs done and the runs in all, both sides together."""


@dataclass(frozen=True)
class AuditRow:
    """One audit: what was asked of the mechanism, what was found, how long it took."""

    kind: str
    accountant: float | None
    charged: float | None
    passed: bool
    seconds: float
    result: AuditResult

    def to_document(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "kind": self.kind,
            **self.result.to_document(),
            "accountant": self.accountant,
            "charged": self.charged,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
        }


def audit_cases(days: bool = False, only: str = "") -> tuple[Case, ...]:
    """Our mechanisms, histories, the controls and their twins: those whose name contains `only`.

    days: with days of 46, 48 and 50 half-hours too. Raises ParameterError if none is left.
    """
    return _chosen((*our_cases(days=days), *history_cases(), *control_cases()), only)


def history_cases() -> tuple[Case, ...]:
    """Rows that come and go, customers who change leaf, streams whose guarantee or hierarchy changed, days
    beside a compromised one, products of one budget; then the same with rules that are broken on purpose.
    """
    ours: Sequence[Subject] = (
        *row_subjects(), *amended_subjects(), *changed_tree_subjects(), *compromised_subjects(),
        *product_subjects(),
    )  # fmt: skip
    broken: Sequence[Subject] = (
        *broken_row_subjects(), *hasty_subjects(), *broken_tree_subjects(), *broken_compromised_subjects(),
        *apart_subjects(),
    )  # fmt: skip
    return (*(Case("ours", subject) for subject in ours), *(Case("control", subject) for subject in broken))


def configured_cases(settings: Settings, day: date, only: str = "") -> tuple[Case, ...]:
    """The configured mechanism on the worst neighbours of that day. Raises as `mechanism_for`, and
    ParameterError if no name contains `only`.
    """
    first_step, n_steps = settings.calendar.first_step(day), settings.calendar.n_steps(day)
    mechanism = mechanism_for(settings, day)
    name = f"stream {settings.stream.name}"
    return _chosen(
        mechanism_cases(name, lambda _: mechanism, settings.tree_of(day), [n_steps], first_step), only
    )


def run_audit(
    cases: Sequence[Case],
    *,
    n_runs: int,
    seed: int = 0,
    secure: bool = False,
    error: float = ERROR,
    progress: Progress | None = None,
) -> Iterator[AuditRow]:
    """Audit one case after the other; each row comes as soon as it is known.

    n_runs: of each side of the neighbours. secure: noise as it is published, slower; else seeded.
    error: the probability that a bound is above the true epsilon, for each case.
    Raises ParameterError as `studies.audit.audit`.
    """
    seeds = np.random.SeedSequence(seed).spawn(len(cases))
    for case, own in zip(cases, seeds, strict=True):
        noise: NoiseSource = secure_noise() if secure else simulated_noise(own)
        started = time.perf_counter()
        result = case.run(n_runs=n_runs, noise=noise, error=error, progress=_named(progress, case.name))
        yield AuditRow(
            kind=case.kind,
            accountant=case.accountant,
            charged=case.charged,
            passed=case.passes(result),
            seconds=time.perf_counter() - started,
            result=result,
        )


def audit_document(rows: Sequence[AuditRow], secure: bool, seed: int) -> dict[str, Any]:
    """`python -m studies audit --json`: versioned, for machines."""
    return {
        "format": FORMAT,
        "passed": all(row.passed for row in rows),
        "noise": "secure" if secure else f"simulated, seed {seed}",
        "false_alarms": sum(row.result.error for row in rows),
        "seconds": round(sum(row.seconds for row in rows), 3),
        "audits": [row.to_document() for row in rows],
    }


def _chosen(cases: Sequence[Case], only: str) -> tuple[Case, ...]:
    chosen = tuple(case for case in cases if only.casefold() in case.name.casefold())
    if not chosen:
        raise ParameterError(f"no audit is named like {only!r}; leave --only out to see all names")
    return chosen


def _named(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total)
