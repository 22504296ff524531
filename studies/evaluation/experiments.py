"""The experiments as tables: which mechanisms, at which epsilon and alpha, on which days, how often."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.base import Mechanism, SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature
from studies.evaluation.series import STEPS, Load

RAW = "no noise"
"""The real values: what last week's figures would be without privacy."""
LEVELS_APART = "Laplace, levels apart"
"""Every level released by itself, not made consistent."""
POINTS_ONLY = "OptStream ES, no optimisation"
EACH_REGION = "OptStream L1, each region"
"""Decided for every region by itself, not once for all."""
INFORMED = "HistoryInformed"
INFORMED_BLOCKS = "HistoryInformed, blocks given"
JOINT, INFORMED_JOINT = "Laplace, joint noise", "HistoryInformed, joint noise"
"""Noise drawn together for groups of steps or blocks, for customers who are in one region all day."""
INFORMED_WEATHER = "HistoryInformed, joint noise, temperature"
N_SAMPLES, THRESHOLD = 10, "1000"
"""k of OptStream, DFT and FAST, blocks where they are given; and theta of L1 sampling, MW times steps."""
KNOWN_MOVE_MW, KNOWN_LOAD_MW = 100.0, 5000.0
"""How far a region's load is taken to move in half an hour, and how large it is: public round numbers."""
LEAD_DAYS, HISTORY_DAYS = 7, 28
"""Days before a month that are released too and not compared: for last week's release, and to learn from."""

Study = Literal["regions", "hierarchy", "stream", "unusual"]
SERIES: dict[str, Callable[[PrivacyModel], SeriesMechanism]] = {
    "Laplace": Laplace,
    "DFT": lambda model: Fourier(model, N_SAMPLES),
    "Sample": Sample,
    "BudgetDistribution": BudgetDistribution,
    "BudgetAbsorption": BudgetAbsorption,
    "PeGaSus": PeGaSus,
    "Fast": lambda model: Fast(model, N_SAMPLES, process_deviation=KNOWN_MOVE_MW),
    "Fast, fixed": lambda model: Fast(model, N_SAMPLES, sampling="fixed", process_deviation=KNOWN_MOVE_MW),
}
ES, L1 = EquallySpaced(N_SAMPLES), L1Sampling(N_SAMPLES, THRESHOLD)
PLAIN: dict[str, Any] = {"features": [], "post_processing": False}
TREES: dict[str, dict[str, Any]] = {
    "OptStream ES": {"sampling": ES},
    "OptStream ES, paper's weights": {"sampling": ES, "weights": "paper"},
    POINTS_ONLY: {"sampling": ES, **PLAIN},
    "OptStream, every step": {"sampling": EquallySpaced(STEPS)},
    "OptStream L1": {"sampling": L1},
    EACH_REGION: {"sampling": L1},
    LEVELS_APART: {"sampling": EquallySpaced(STEPS), **PLAIN},
}
"""OptStream with the paper's day parts unless it is plain: halves of epsilon, and thirds with L1 sampling."""
HISTORIES = (INFORMED, INFORMED_BLOCKS, INFORMED_JOINT, INFORMED_WEATHER)
MECHANISMS = (RAW, *SERIES, *TREES, JOINT, *HISTORIES)


@dataclass(frozen=True)
class Cell:
    """One trial: a mechanism on a span of days. epsilon, alpha: exact decimals, alpha in MW."""

    study: Study
    mechanism: str
    epsilon: str
    alpha: str
    span: str
    trial: int

    @property
    def model(self) -> PrivacyModel:
        """The guarantee: a window of a day of half-hours."""
        return PrivacyModel(self.epsilon, STEPS, self.alpha)

    @property
    def lead_days(self) -> int:
        """Days that are released before the span."""
        return HISTORY_DAYS if self.mechanism in HISTORIES else LEAD_DAYS

    def entropy(self, seed: int) -> list[int]:
        """Return the seed of the noise: a function of the run's parameters, that of version 0.2.0."""
        name = self.mechanism
        counted = name in ("DFT", "Fast", "Fast, fixed", INFORMED_BLOCKS) or (
            name.startswith("OptStream") and name != "OptStream, every step"
        )
        point = {
            "epsilon": self.epsilon,
            "alpha": self.alpha,
            "n_samples": N_SAMPLES if counted else None,
            "threshold": THRESHOLD if "L1" in name else None,
        }
        what = {
            "study": self.study, "mechanism": name, "calibration": "strict", "point": point,
            "span": self.span, "trials": [0, 0],
        }  # fmt: skip
        text = json.dumps(what, sort_keys=True, separators=(",", ":")).encode()
        words = np.frombuffer(hashlib.sha256(text).digest()[:16], dtype="<u4")
        return [seed, *(int(word) for word in words), self.trial]


def on_series(cell: Cell, load: Load, regions: tuple[str, ...]) -> Mechanism:
    """Return the cell's mechanism with all of epsilon for the regions of a load, without bound."""
    model, name = cell.model, cell.mechanism
    together: dict[str, Any] = {"period_lengths": (STEPS,), "n_nodes": len(regions), "declared_leaves": 1}
    if name == JOINT:
        return Laplace(model, **together)
    if name in HISTORIES:
        made = _informed(cell, load)
        if name in (INFORMED, INFORMED_BLOCKS):
            return made
        known = (load.temperature,) if name == INFORMED_WEATHER and load.temperature else ()
        return replace(made, covariates=known, **together)
    if name in SERIES:
        return SERIES[name](model)
    if len(regions) == 1:
        return _optstream(cell, AggregationTree.from_parents({regions[0]: None}), ["1"], None)
    tree = AggregationTree.from_parents({"all": None} | dict.fromkeys(regions, "all"))
    return _optstream(cell, tree, ["0", "1"], None)


def on_tree(cell: Cell, load: Load) -> Mechanism:
    """Return the cell's mechanism on nation and regions, half of epsilon each, every leaf at least 0."""
    halves = ["1/2", "1/2"]
    if cell.mechanism == INFORMED:
        return HistoryInformedTree(_informed(cell, load), load.tree, halves)
    if cell.mechanism in SERIES:
        return Hierarchical(SERIES[cell.mechanism](cell.model), load.tree, halves)
    return _optstream(cell, load.tree, halves, 0.0)


def _informed(cell: Cell, load: Load) -> HistoryInformed:
    blocks = N_SAMPLES if cell.mechanism == INFORMED_BLOCKS else None
    return HistoryInformed(cell.model, blocks, scale=KNOWN_LOAD_MW, days=load.public_days)


def _optstream(cell: Cell, tree: AggregationTree, shares: list[str], bound: float | None) -> OptStream:
    given = {"features": Feature.day_parts(STEPS)} | TREES[cell.mechanism]
    return OptStream(cell.model, tree, level_shares=shares, lower_bound=bound, **given)


MONTHS = {
    "2016-02": (date(2016, 2, 1), date(2016, 2, 29)),
    "2016-06": (date(2016, 6, 1), date(2016, 6, 30)),
    "2016-10": (date(2016, 10, 1), date(2016, 10, 31)),
}
YEARS = {
    "2013-2016": (date(2013, 1, 2), date(2016, 12, 31)),
    "2013, nine weeks": (date(2013, 1, 2), date(2013, 3, 5)),
}
"""A stream from the first whole day of the published load, and its first weeks."""
DAYS = ("2016-04-13", "2016-11-16")
"""Ordinary Wednesdays, of no month that was looked at when something was chosen."""
EPSILONS, ALPHAS = ("1", "0.1", "0.01"), ("10", "50", "100")


@dataclass(frozen=True)
class Block:
    """A part of an experiment: each mechanism at each epsilon and alpha on each span, so often."""

    study: Study
    mechanisms: tuple[str, ...]
    trials: int = 30
    epsilons: tuple[str, ...] = EPSILONS
    alphas: tuple[str, ...] = ("1",)
    spans: tuple[str, ...] = tuple(MONTHS)

    def cells(self) -> Iterable[Cell]:
        """Yield every trial; real values need one."""
        for name in self.mechanisms:
            for epsilon, alpha in ((e, a) for e in self.epsilons for a in self.alphas):
                for span in self.spans:
                    for trial in range(1 if name == RAW else self.trials):
                        yield Cell(self.study, name, epsilon, alpha, span, trial)

    def short(self) -> "Block":
        """Return February, nine weeks or one day; three trials, or one of what learns from its past."""
        spans = ("2013, nine weeks",) if self.study == "stream" else self.spans[:1]
        learns = any(name in HISTORIES for name in self.mechanisms)
        return replace(self, spans=spans, trials=min(self.trials, 1 if learns else 3))


_OWN = ("Laplace", "OptStream ES", INFORMED)
EXPERIMENTS: dict[int, tuple[Block, ...]] = {
    1: (
        Block("regions", (*SERIES, "OptStream ES", "OptStream ES, paper's weights", "OptStream L1", RAW)),
        Block("regions", (INFORMED,)),
        Block("regions", (EACH_REGION,), trials=10),
    ),
    2: (
        Block(
            "hierarchy", ("Laplace", "DFT", "OptStream ES", "OptStream L1", LEVELS_APART, INFORMED),
            epsilons=("1",), alphas=ALPHAS,
        ),
    ),
    4: (
        Block("regions", ("Laplace", "OptStream, every step", POINTS_ONLY, "OptStream ES")),
        Block(
            "hierarchy", ("Laplace", LEVELS_APART, POINTS_ONLY, "OptStream ES"),
            epsilons=("1",), alphas=("10",),
        ),
    ),
    10: (Block("stream", _OWN, trials=1, spans=("2013-2016",)),),
    11: (Block("unusual", _OWN, trials=10, spans=DAYS),),
    12: (
        Block("regions", ("Laplace", JOINT)),
        Block("regions", (INFORMED_BLOCKS, INFORMED, INFORMED_JOINT, INFORMED_WEATHER)),
    ),
}  # fmt: skip
"""By their numbers in docs/research/evaluation.md; the others there were run by version 0.2.0."""
