"""The audits of mechanisms, of controls that are broken on purpose, and of the controls' honest twins.

`python -m studies audit` runs these and the seventh family (`history_cases` in `studies/audit/run.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from optstream.mechanisms import OptStream
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource
from optstream.stream import AggregationTree
from studies.audit import controls, gaussian_noise
from studies.audit.attack import ERROR, Progress, audit
from studies.audit.field import FIELD, FieldCase, on_tree
from studies.audit.gaussian_noise import EnumeratedGaussian
from studies.audit.result import AuditResult
from studies.audit.sampler import EnumeratedSampler
from studies.audit.subjects import margins, plans
from studies.audit.subjects.mechanism import MechanismSubject
from studies.audit.subjects.neighbours import worst_cases
from studies.audit.subjects.plans import FLAT, RAGGED, SINGLE
from studies.audit.subjects.subject import Subject

Kind = Literal["ours", "control", "twin"]


@dataclass(frozen=True, eq=False)
class Case:
    """One row of the audit's table.

    kind: "ours" and "twin" must not exceed their claim, a "control" must. subject: what is audited.
    """

    kind: Kind
    subject: Subject | EnumeratedSampler | EnumeratedGaussian

    @property
    def accountant(self) -> float | None:
        """What the accountant says that any window loses; None for what it never saw."""
        figure: float | None = getattr(self.subject, "accountant", None)
        return figure

    @property
    def charged(self) -> float | None:
        """What the accountant charges this very change; None where it does not say."""
        if isinstance(self.subject, EnumeratedSampler | EnumeratedGaussian):
            return self.subject.claimed
        return self.subject.charged if isinstance(self.subject, MechanismSubject) else None

    @property
    def name(self) -> str:
        """The case's name: mechanism and neighbours."""
        return f"{self.subject.name}: {self.subject.neighbours}"

    def run(
        self, *, n_runs: int, noise: NoiseSource, error: float = ERROR, progress: Progress | None = None
    ) -> AuditResult:
        """Audit the subject, by enumeration where that is possible.

        Returns the bound, exact for an enumeration. Raises ParameterError as `audit`.
        """
        if isinstance(self.subject, (controls.SparseVector, EnumeratedSampler, EnumeratedGaussian)):
            return self.subject.enumerate()
        return audit(self.subject, n_runs=n_runs, noise=noise, error=error, progress=progress)

    def passes(self, result: AuditResult) -> bool:
        """Return whether a result is what it must be.

        result: of this case. Returns whether it exceeds the claim, for a control; whether it does not, for
        the others.
        """
        return result.exceeds == (self.kind == "control")


def control_cases() -> tuple[Case, ...]:
    """Return every mistake that the audit must catch, then the same mechanisms made right.

    Returns controls, which must exceed their claim, and their honest twins, which must not.
    """
    broken: Sequence[Subject | EnumeratedGaussian] = (
        controls.SparseVector("sparse vector with half the query noise", query_factor=2.0),
        controls.SparseVector("sparse vector that reuses the query noise", shared=True),
        controls.counting_query(inverted=True),
        controls.fourier(normalised=False),
        controls.fourier_phase(),
        controls.scaled_noise(by_raw_mean=True),
        controls.points(raw=True),
        controls.redrawn(),
        gaussian_noise.small_sigma(),
        gaussian_noise.sum_of_steps(squared=False),
    )
    honest: Sequence[Subject] = (
        controls.SparseVector("sparse vector"),
        controls.counting_query(inverted=False),
        controls.fourier(normalised=True),
        controls.scaled_noise(by_raw_mean=False),
        controls.points(raw=False),
        gaussian_noise.sum_of_steps(squared=True),
    )
    name = "OptStream, the paper's feature scale taken for epsilon"
    paper = mechanism_cases(name, plans.day(plans.PaperOptStream), FLAT, [48], claims=1.0)[0]
    of_margins = (
        mechanism_cases(f"Laplace, {name}", build, margins.CELLS, [1], claims=margins.CLAIMED)[0]
        for name, build in margins.BROKEN.items()
    )
    name = "OptStream, a margin whose sums are not charged"
    of_sums = mechanism_cases(name, margins.uncharged_sums, margins.CELLS, [4], claims=margins.CLAIMED)[0]
    return (
        *(replace(case, kind="control") for case in (paper, *of_margins, of_sums)),
        *(Case("control", subject) for subject in broken),
        *(Case("twin", subject) for subject in honest),
    )


def our_cases(*, days: bool) -> tuple[Case, ...]:
    """Return our mechanisms on their worst neighbours.

    days: with days of 46, 48 and 50 steps and a window of 48, as they are used; else short windows only,
    where a bound comes nearer to epsilon with fewer runs.
    """
    name, l1 = "OptStream, strict, window of", "OptStream, L1 sampling, window of"
    cases = [
        *mechanism_cases(f"{name} 2, points only", plans.two_points, SINGLE, [2])[:1],
        *_across(mechanism_cases(f"{name} 2, points only", plans.two_points, SINGLE, [3, 1, 2])),
        *mechanism_cases(f"{name} 2, deepest leaf", plans.two_points_deep, RAGGED, [2])[:1],
        *mechanism_cases(f"{name} 4, one sum", plans.one_sum, SINGLE, [4])[:1],
        *mechanism_cases(f"{name} 2, two leaves roaming", plans.two_points_roaming, FLAT, [2])[:1],
        *mechanism_cases(f"{name} 6, ragged tree", plans.short(), RAGGED, [6]),
        *_across(mechanism_cases(f"{name} 6, ragged tree", plans.short(), RAGGED, [5, 6, 4], 3)),
        *mechanism_cases(f"{name} 6, two leaves roaming", plans.short(leaves_per_step=2), RAGGED, [6]),
        *mechanism_cases(f"{l1} 6", plans.short_l1, SINGLE, [6]),
        *_across(mechanism_cases(f"{l1} 6", plans.short_l1, SINGLE, [5, 6, 7], 3)),
        *(Case("ours", sampler) for sampler in plans.enumerated_samplers()),
        *mechanism_cases("Laplace beside a margin", margins.beside_a_margin, margins.CELLS, [1])[:1],
        *mechanism_cases("OptStream beside a margin", margins.sums_beside_a_margin, margins.CELLS, [4])[:1],
        Case("ours", gaussian_noise.enumerated_window()),
    ]
    for field in FIELD:
        cases += _field_cases(field, days)
    if days:
        cases += mechanism_cases(f"{name} 48", plans.day(OptStream), FLAT, [48])
        cases += _across(mechanism_cases(f"{name} 48", plans.day(OptStream), FLAT, [46, 48, 50], 2))
        cases += mechanism_cases(f"{l1} 48", plans.day_l1, FLAT, [48])
        cases += _across(mechanism_cases(f"{l1} 48", plans.day_l1, FLAT, [46, 48, 50], 2))
    return tuple(cases)


def _field_cases(field: FieldCase, everything: bool) -> list[Case]:
    """Return the cases of another mechanism of the field: one window, windows across borders, and a tree; all
    pairs if asked.
    """
    whole, periods = field.lengths
    name = f"{field.name}, window of {field.model.window_length}"
    trees = mechanism_cases(f"{field.name} on a tree, two roaming", on_tree(field, RAGGED), RAGGED, [4])
    return [
        *mechanism_cases(name, field.alone, SINGLE, whole, base=field.base)[: None if everything else 1],
        *_across(mechanism_cases(name, field.alone, SINGLE, periods, base=field.base)),
        *trees[: None if everything else 1],
    ]


def mechanism_cases(
    name: str,
    mechanism_for: Callable[[int], Mechanism],
    tree: AggregationTree,
    lengths: Sequence[int],
    first_step: int = 0,
    claims: float | None = None,
    base: float = 0.0,
) -> tuple[Case, ...]:
    """Return the cases of any mechanism on its worst neighbours.

    name: of the mechanism. mechanism_for: makes the mechanism for a period of so many steps. tree: the
    hierarchy, whose leaves the readings are of. lengths: steps of each period, released in a row. first_step:
    running index of the first period's first step. claims: what the mechanism is held to; None for the
    accountant's figure. base: the readings that both sides differ from, in their unit. Returns a case of kind
    "ours" for each of `worst_cases`. Raises ParameterError if the mechanism refuses a length, or its model
    does not protect the neighbours.
    """
    mechanisms = [mechanism_for(length) for length in lengths]
    pairs = worst_cases(mechanisms[0].model, tree, lengths, first_step, base)
    return tuple(Case("ours", MechanismSubject(name, mechanisms, pair, claims)) for pair in pairs)


def _across(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if "across" in case.subject.neighbours]
