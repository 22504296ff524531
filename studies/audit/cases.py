"""The tables of audits: mechanisms, controls that are broken on purpose, and the controls' honest twins.

`python -m studies audit` runs these and the histories of `studies/audit/run.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optstream import mechanisms
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sampling import Allocation
from optstream.mechanisms import (
    MECHANISMS,
    Fast,
    Fourier,
    Gaussian,
    Hierarchical,
    HistoryInformed,
    Laplace,
    OptStream,
)
from optstream.mechanisms.base import Mechanism, SeriesMechanism
from optstream.mechanisms.optstream import LevelPlan
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import round_up_to_float
from optstream.stream import AggregationTree, Feature, Lattice
from optstream.stream.public_days import PublicDays
from optstream.stream.tree import Number
from studies.audit import controls
from studies.audit.attack import ERROR, AuditResult, Progress, audit
from studies.audit.enumeration import EnumeratedGaussian, EnumeratedSampler, enumerated_window
from studies.audit.histories import MechanismSubject, Subject
from studies.audit.neighbours import worst_cases

Kind = Literal["ours", "control", "twin"]
Build = Callable[[int], Mechanism]
"""A mechanism for a period of so many steps."""


@dataclass(frozen=True, eq=False)
class Case:
    """One row of the audit's table: "ours" and "twin" must not exceed their claim, a "control" must."""

    kind: Kind
    subject: Subject | EnumeratedSampler | EnumeratedGaussian

    @property
    def accountant(self) -> float | None:
        """The accountant's loss of any window; None for a mechanism that it never saw."""
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
        """Audit the subject, by enumeration where that is possible. Raises ParameterError as `audit`."""
        if isinstance(self.subject, controls.SparseVector | EnumeratedSampler | EnumeratedGaussian):
            return self.subject.enumerate()
        return audit(self.subject, n_runs=n_runs, noise=noise, error=error, progress=progress)

    def passes(self, result: AuditResult) -> bool:
        """Return whether a result exceeds the claim, for a control; whether it does not, for others."""
        return result.exceeds == (self.kind == "control")


def mechanism_cases(
    name: str,
    mechanism_for: Build,
    tree: AggregationTree,
    lengths: Sequence[int],
    first_step: int = 0,
    claims: float | None = None,
    base: float = 0.0,
) -> tuple[Case, ...]:
    """Return the cases of any mechanism on its worst neighbours, over periods of these lengths in a row."""
    made = [mechanism_for(length) for length in lengths]
    pairs = worst_cases(made[0].model, tree, lengths, first_step, base)
    return tuple(Case("ours", MechanismSubject(name, made, pair, claims)) for pair in pairs)


def _first(*row: Any, **options: Any) -> list[Case]:
    """Return the case of a whole window whose steps all change."""
    return [*mechanism_cases(*row, **options)[:1]]


def _across(*row: Any, **options: Any) -> list[Case]:
    """Return the cases of windows across a border."""
    return [case for case in mechanism_cases(*row, **options) if "across" in case.subject.neighbours]


# OptStream: small plans that measure tightly, and days as they are.

RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "C": "B", "D": "B"})
"""Leaves at levels 1 and 2."""
FLAT = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
SINGLE = AggregationTree.from_parents({"all": None})
PAIR, ROAMING = PrivacyModel("1", 2, 1), PrivacyModel("1", 2, 1, unit="roaming", leaves_per_step=2)
SIX, DAY = PrivacyModel("1", 6, 1), PrivacyModel("1", 48, 10)


def _no_features(n_steps: int) -> list[Feature]:
    return []


def _whole(n_steps: int) -> list[Feature]:
    return [Feature((range(n_steps),), "whole")]


def _halves(n_steps: int) -> list[Feature]:
    half = n_steps // 2
    return [Feature((range(half), range(half, n_steps)), "halves"), *_whole(n_steps)]


def _day_parts(n_steps: int) -> list[Feature]:
    parts = tuple(range(start, stop) for start, stop in pairwise([0, 14, 24, 36, n_steps]))
    return [Feature(parts, "day parts"), *_whole(n_steps)]


def plan(
    model: PrivacyModel,
    tree: AggregationTree,
    shares: Sequence[str],
    features: Callable[[int], list[Feature]] = _no_features,
    kind: type[OptStream] = OptStream,
    **given: Any,
) -> Build:
    """Return what makes OptStream of these terms, with two points of a window unless others are given."""
    options = {"sampling": EquallySpaced(2)} | given
    return lambda n_steps: kind(model, tree, features=features(n_steps), level_shares=list(shares), **options)


SUMS: dict[str, Any] = {"features": _whole, "stage_shares": ["1/10", "9/10"]}
"""Nearly all of epsilon on the sum of a period, which all of its steps move."""
short = plan(SIX, RAGGED, ["1/4", "1/4", "1/2"], _halves)
short_l1 = plan(SIX, SINGLE, ["1"], sampling=L1Sampling(2, "10"), shortest_period=5)
TEN: dict[str, Any] = {"sampling": EquallySpaced(10)}
TEN_L1: dict[str, Any] = {"sampling": L1Sampling(10, "100"), "shortest_period": 46}
STRICT, L1 = "OptStream, strict, window of", "OptStream, L1 sampling, window of"


class PaperLevelPlan(LevelPlan):
    """BROKEN ON PURPOSE: sums by Theorem 9 of the paper, as if a window moved a feature by alpha in all."""

    @property
    def features_scale(self) -> Fraction:
        """The sums' scale."""
        moved = self.model.moved_units * len(self.features)
        return Fraction(round_up_to_float(moved / self.epsilons["features"]))


class PaperOptStream(OptStream):
    """BROKEN ON PURPOSE: OptStream by the paper's scale of sums."""

    @property
    def levels(self) -> tuple[PaperLevelPlan, ...]:
        """The measured levels, root first."""
        return tuple(PaperLevelPlan(self, one.level, one.share) for one in super().levels)


def enumerated_samplers() -> tuple[EnumeratedSampler, ...]:
    """Return the L1 sampler of a window of 6 in units of alpha, each allocation on a series of its own."""
    rows: tuple[tuple[Allocation, str, tuple[int, ...]], ...] = (
        ("even", "a hump", (0, 20, 30, 30, 20, 0)),
        ("optimal", "level", (0,) * 6),
    )
    found = []
    for allocation, shape, base in rows:
        made = OptStream(
            PrivacyModel("1", 6, 1, resolution=1), SINGLE, sampling=L1Sampling(2, "10", allocation),
            features=[], level_shares=["1"],
        )  # fmt: skip
        found.append(EnumeratedSampler(f"L1 sampler, {allocation} allocation, {shape}", made, base))
    return tuple(found)


# A hierarchy with a margin: nearly all of epsilon 2 at the margin, where a mistake shows.

_SECTORS = {sector: [f"A-{sector}", f"B-{sector}"] for sector in "stuvwxyz"}
_REGIONS = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", **{cell: cell[0] for cells in _SECTORS.values() for cell in cells}}
)
CELLS = Lattice.of_tree(_REGIONS, "sector", _SECTORS)
SHARES, CLAIMED = ("0", "0", "1/10", "9/10"), 2
UNCHARGED = ("0", "0", "1/5", "4/5")
"""Of five times as much: cells have all that is claimed, and the margin four times as much with it."""


class Overlapping(Lattice):
    """BROKEN ON PURPOSE: each node of its margin has every cell, so that one cell moves them all."""

    def add_up(self, leaf_values: NDArray[Number]) -> NDArray[Number]:
        """Return every node's values, the margin's too large."""
        found = super().add_up(leaf_values)
        found[..., self.margin_nodes.start :, :] = leaf_values.sum(axis=-2, keepdims=True)
        return np.asarray(found)


OVERLAPPING = Overlapping.of_tree(_REGIONS, "sector", _SECTORS)


def _cells(epsilon: int, tree: Lattice = CELLS, shares: Sequence[str] = SHARES) -> Build:
    return lambda n_steps: Hierarchical(Laplace(PrivacyModel(epsilon, 1, 1)), tree, shares)


def _cell_sums(epsilon: int, shares: Sequence[str]) -> Build:
    return plan(PrivacyModel(epsilon, 4, 1), CELLS, shares, **SUMS)


# Every mechanism over plain series: windows so short that a bound comes near.

Alone = Callable[[PrivacyModel], SeriesMechanism]
DECIDING = PrivacyModel("4", 2, 10, resolution=1)
"""First publications have a scale of 40 / 4, and distances lie on either side of that."""


@dataclass(frozen=True)
class FieldCase:
    """A mechanism, the model under which it shows most, and readings around which its decisions turn."""

    name: str
    build: Alone
    model: PrivacyModel = PAIR
    base: float = 0.0
    lengths: tuple[tuple[int, ...], tuple[int, ...]] = ((2,), (3, 1, 2))

    def cases(self, everything: bool) -> list[Case]:
        """Return one window, windows across borders, and a tree that two roam; all pairs if asked."""
        whole, periods = self.lengths
        name, most = f"{self.name}, window of {self.model.window_length}", None if everything else 1
        shares = ["1/2", "1/4", "1/4"]
        roaming = PrivacyModel("1", 4, 1, unit="roaming", leaves_per_step=2, delta=self.model.delta)

        def alone(n_steps: int) -> Mechanism:
            return self.build(self.model)

        def on_tree(n_steps: int) -> Mechanism:
            return Hierarchical(self.build(roaming), RAGGED, shares)

        return [
            *mechanism_cases(name, alone, SINGLE, whole, base=self.base)[:most],
            *_across(name, alone, SINGLE, periods, base=self.base),
            *mechanism_cases(f"{self.name} on a tree, two roaming", on_tree, RAGGED, [4])[:most],
        ]


def _joint(model: PrivacyModel, kind: Callable[..., SeriesMechanism], **given: Any) -> SeriesMechanism:
    """Return a mechanism with joint noise; with its own for roaming devices."""
    noise = "joint" if model.unit == "customer" else None
    return kind(model, noise=noise, period_lengths=(3, 4), n_nodes=1, **given)


def _history(model: PrivacyModel, **given: Any) -> HistoryInformed:
    """Return HistoryInformed over days of one step, so that a few periods teach it something."""
    return HistoryInformed(model, days=PublicDays(1), relearn_days=1, **given)


OWN: dict[str, tuple[FieldCase, ...]] = {
    "Laplace": (
        FieldCase("Laplace", Laplace),
        FieldCase("Laplace, joint noise", lambda model: _joint(model, Laplace), lengths=((4,), (4, 3))),
    ),
    "Fourier": (
        FieldCase(
            "Fourier, mean", lambda model: Fourier(model, 1, shortest_period=4), PrivacyModel("1", 9, 1),
            lengths=((9,), (8, 8)),
        ),
        FieldCase("Fourier", lambda model: Fourier(model, 2, shortest_period=4), SIX, lengths=((6,), (4, 6))),
    ),
    "Gaussian": (FieldCase("Gaussian", Gaussian, PrivacyModel("1", 2, 1, delta="1/1000")),),
    **{
        name: (FieldCase(name, getattr(mechanisms, name), DECIDING, base=5.0),)
        for name in ("BudgetDistribution", "BudgetAbsorption")
    },
    "Fast": (
        FieldCase(
            "Fast", lambda model: Fast(model, n_samples=2, integration_time=1, set_point=0.5),
            PrivacyModel("1", 4, 1), base=2.0, lengths=((4,), (3, 5)),
        ),
    ),
    "HistoryInformed": (
        FieldCase("HistoryInformed", lambda model: _history(model, n_blocks=1, block_length=2)),
        FieldCase(
            "HistoryInformed, joint noise",
            lambda model: _joint(model, _history, n_blocks=2, block_length=1),
            lengths=((4,), (4, 3)),
        ),
    ),
}  # fmt: skip
"""Those that show more elsewhere than in a pair of steps, or need other parameters than their defaults."""
FIELD = tuple(
    case
    for name in MECHANISMS
    if issubclass(getattr(mechanisms, name), SeriesMechanism)  # others need a tree
    for case in OWN.get(name, (FieldCase(name, getattr(mechanisms, name)),))
)


# The tables.


def control_cases() -> tuple[Case, ...]:
    """Return every mistake that the audit must catch, then the same mechanisms made right."""
    broken: Sequence[Subject | EnumeratedGaussian] = (
        controls.SparseVector("sparse vector with half the query noise", query_factor=2.0),
        controls.SparseVector("sparse vector that reuses the query noise", shared=True),
        controls.counting_query(inverted=True),
        controls.fourier(normalised=False),
        controls.fourier_phase(),
        controls.scaled_noise(by_raw_mean=True),
        controls.points(raw=True),
        controls.redrawn(),
        enumerated_window("Gaussian, sigma a fifth too small", 0.8),
        controls.sum_of_steps(squared=False),
    )
    honest: Sequence[Subject] = (
        controls.SparseVector("sparse vector"),
        controls.counting_query(inverted=False),
        controls.fourier(normalised=True),
        controls.scaled_noise(by_raw_mean=False),
        controls.points(raw=False),
        controls.sum_of_steps(squared=True),
    )
    halves, name = ("1/2", "1/2"), "OptStream, the paper's feature scale taken for epsilon"
    paper = plan(DAY, FLAT, halves, _day_parts, PaperOptStream, **TEN)
    uncharged = _cell_sums(5 * CLAIMED, UNCHARGED)
    ours: tuple[tuple[str, Build, AggregationTree, int, float], ...] = (
        (name, paper, FLAT, 48, 1.0),
        ("Laplace, a margin that is not charged", _cells(5 * CLAIMED, shares=UNCHARGED), CELLS, 1, CLAIMED),
        ("Laplace, a margin whose nodes overlap", _cells(CLAIMED, OVERLAPPING), CELLS, 1, CLAIMED),
        ("OptStream, a margin whose sums are not charged", uncharged, CELLS, 4, CLAIMED),
    )
    mistakes = [
        _first(name, build, tree, [length], claims=claim)[0] for name, build, tree, length, claim in ours
    ]
    return (
        *(replace(case, kind="control") for case in mistakes),
        *(Case("control", subject) for subject in broken),
        *(Case("twin", subject) for subject in honest),
    )


def our_cases(*, days: bool) -> tuple[Case, ...]:
    """Return our mechanisms on their worst neighbours."""
    points, deep = plan(PAIR, SINGLE, ["1"]), plan(PAIR, RAGGED, ["1/20", "1/20", "9/10"])
    roaming = plan(ROAMING, FLAT, ["9/10", "1/10"])
    roaming_six = replace(SIX, unit="roaming", leaves_per_step=2)

    cases = [
        *_first(f"{STRICT} 2, points only", points, SINGLE, [2]),
        *_across(f"{STRICT} 2, points only", points, SINGLE, [3, 1, 2]),
        *_first(f"{STRICT} 2, deepest leaf", deep, RAGGED, [2]),
        *_first(f"{STRICT} 4, one sum", plan(PrivacyModel("1", 4, 1), SINGLE, ["1"], **SUMS), SINGLE, [4]),
        *_first(f"{STRICT} 2, two leaves roaming", roaming, FLAT, [2]),
        *mechanism_cases(f"{STRICT} 6, ragged tree", short, RAGGED, [6]),
        *_across(f"{STRICT} 6, ragged tree", short, RAGGED, [5, 6, 4], 3),
        *mechanism_cases(
            f"{STRICT} 6, two leaves roaming", plan(roaming_six, RAGGED, ["1/4", "1/4", "1/2"], _halves),
            RAGGED, [6],
        ),
        *mechanism_cases(f"{L1} 6", short_l1, SINGLE, [6]),
        *_across(f"{L1} 6", short_l1, SINGLE, [5, 6, 7], 3),
        *(Case("ours", sampler) for sampler in enumerated_samplers()),
        *_first("Laplace with a margin", _cells(CLAIMED), CELLS, [1]),
        *_first("OptStream with a margin", _cell_sums(CLAIMED, SHARES), CELLS, [4]),
        Case("ours", enumerated_window()),
    ]  # fmt: skip
    for field in FIELD:
        cases += field.cases(days)
    for name, given in ((STRICT, TEN), (L1, TEN_L1)) if days else ():
        build = plan(DAY, FLAT, ("1/2", "1/2"), _day_parts, **given)
        cases += mechanism_cases(f"{name} 48", build, FLAT, [48])
        cases += _across(f"{name} 48", build, FLAT, [46, 48, 50], 2)
    return tuple(cases)
