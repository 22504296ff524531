"""What `optstream audit` runs: the mechanisms of the house, the controls, and the controls' honest twins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from optstream.audit import controls
from optstream.audit.attack import ERROR, Progress, audit
from optstream.audit.mechanism import Auditable, MechanismSubject
from optstream.audit.neighbours import worst_cases
from optstream.audit.result import AuditResult
from optstream.audit.subject import Subject
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel
from optstream.privacy.model import Calibration, Unit
from optstream.stream import AggregationTree, Feature

Kind = Literal["ours", "control", "twin"]

RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "C": "B", "D": "B"})
"""Leaves at levels 1 and 2."""

FLAT = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
SINGLE = AggregationTree.from_parents({"all": None})


@dataclass(frozen=True, eq=False)
class Case:
    """One row of the audit's table. `ours` and `twin` must not exceed their claim, a `control` must.

    accountant: what the accountant says, where there is one. charged: what it charges this very change.
    """

    kind: Kind
    subject: Subject
    accountant: float | None = None
    charged: float | None = None

    @property
    def name(self) -> str:
        """Mechanism and neighbours."""
        return f"{self.subject.name}: {self.subject.neighbours}"

    def run(
        self, *, n_runs: int, noise: NoiseSource, error: float = ERROR, progress: Progress | None = None
    ) -> AuditResult:
        """Audit it, by enumeration where that is possible. Raises as `audit`."""
        if isinstance(self.subject, controls.SparseVector):
            return self.subject.enumerate()
        return audit(self.subject, n_runs=n_runs, noise=noise, error=error, progress=progress)

    def passes(self, result: AuditResult) -> bool:
        """Whether the result is what it must be."""
        return result.exceeds == (self.kind == "control")


def control_cases() -> tuple[Case, ...]:
    """Every mistake that the audit must catch, then the same mechanisms made right."""
    broken: Sequence[Subject] = (
        controls.SparseVector("sparse vector with half the query noise", query_factor=2.0),
        controls.SparseVector("sparse vector that reuses the query noise", shared=True),
        controls.counting_query(inverted=True),
        controls.fourier(normalised=False),
        controls.fourier_phase(),
        controls.scaled_noise(by_raw_mean=True),
        controls.points(raw=True),
        controls.redrawn(),
    )
    honest: Sequence[Subject] = (
        controls.SparseVector("sparse vector"),
        controls.counting_query(inverted=False),
        controls.fourier(normalised=True),
        controls.scaled_noise(by_raw_mean=False),
        controls.points(raw=False),
    )
    paper = mechanism_cases("OptStream, paper's feature scale taken for epsilon", _day("paper"), FLAT, [48])[
        0
    ]
    return (
        replace(paper, kind="control", subject=replace(paper.subject, claims=1.0)),
        *(Case("control", subject) for subject in broken),
        *(Case("twin", subject) for subject in honest),
    )


def our_cases(*, days: bool) -> tuple[Case, ...]:
    """The mechanisms of the house on their worst neighbours.

    days: with days of 46, 48 and 50 steps and a window of 48, as they are used; else short windows only, where
    a bound comes nearer to epsilon with fewer runs.
    """
    name = "OptStream, strict, window of"
    cases = [
        *mechanism_cases(f"{name} 2, points only", _points_only, SINGLE, [2])[:1],
        *mechanism_cases(f"{name} 6, ragged", _short(), RAGGED, [6]),
        *_across(mechanism_cases(f"{name} 6, ragged", _short(), RAGGED, [5, 6, 4], 3)),
        *mechanism_cases(f"{name} 6, two leaves roaming", _short(leaves_per_step=2), RAGGED, [6]),
        *mechanism_cases("OptStream, paper, window of 48", _day("paper"), FLAT, [48])[:1],
    ]
    if days:
        cases += mechanism_cases(f"{name} 48", _day("strict"), FLAT, [48])
        cases += _across(mechanism_cases(f"{name} 48", _day("strict"), FLAT, [46, 48, 50], 2))
    return tuple(cases)


def mechanism_cases(
    name: str,
    mechanism_for: Callable[[int], Auditable],
    tree: AggregationTree,
    lengths: Sequence[int],
    first_step: int = 0,
) -> tuple["Case", ...]:
    """Any mechanism on its worst neighbours; `mechanism_for(n_steps)` makes it for a period's length."""
    mechanisms = [mechanism_for(length) for length in lengths]
    pairs = worst_cases(mechanisms[0].model, tree, lengths, first_step)
    subjects = [MechanismSubject(name, mechanisms, pair) for pair in pairs]
    return tuple(Case("ours", subject, subject.accountant, subject.charged) for subject in subjects)


def _across(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if "across" in case.subject.neighbours]


def _points_only(n_steps: int) -> OptStream:
    """Two steps and nothing else: what is measured comes near to what is claimed."""
    model = PrivacyModel("1", n_steps, 1)
    return OptStream(model, SINGLE, sampling=EquallySpaced(2), features=[], level_shares=["1"])


def _short(leaves_per_step: int = 1) -> Callable[[int], OptStream]:
    unit: Unit = "customer" if leaves_per_step == 1 else "roaming"
    model = PrivacyModel("1", 6, 1, unit=unit, leaves_per_step=leaves_per_step)

    def build(n_steps: int) -> OptStream:
        halves = Feature((range(n_steps // 2), range(n_steps // 2, n_steps)), "halves")
        features = [halves, Feature((range(n_steps),), "whole")]
        shares = ["1/4", "1/4", "1/2"]
        return OptStream(model, RAGGED, sampling=EquallySpaced(2), features=features, level_shares=shares)

    return build


def _day(calibration: Calibration) -> Callable[[int], OptStream]:
    """The mechanism of the paper: half-hours, ten points, parts of the day and the day."""
    model = PrivacyModel("1", 48, 10)

    def build(n_steps: int) -> OptStream:
        edges = [0, 14, 24, 36, n_steps]
        parts = Feature(tuple(range(start, stop) for start, stop in pairwise(edges)), "day parts")
        features = [parts, Feature((range(n_steps),), "day")]
        shares = ["1/2", "1/2"]
        return OptStream(
            model, FLAT, sampling=EquallySpaced(10), features=features, level_shares=shares,
            calibration=calibration,
        )  # fmt: skip

    return build
