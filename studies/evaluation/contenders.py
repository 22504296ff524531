"""Who is compared: each contender's name, what it takes from a grid point, and under which scales it runs.

calibration "strict": OptStream's, at most epsilon in any window. "paper": the scales that its paper takes;
the accountant says what they cost.
"""

from dataclasses import dataclass, replace
from typing import Literal

from optstream.errors import ParameterError
from studies.evaluation.cells import Calibration, Cell, Point, Study

RAW = "no noise"
"""The real values as they are: what a forecast or last week's figures would be without privacy."""
JOINT_NOISE = "Laplace, joint noise"
"""Noise drawn together for groups of steps, by customers of whom each is in one region all day."""
LEVELS_APART = "Laplace, levels apart"
"""Every level released by itself, not made consistent."""
POINTS_ONLY = "OptStream ES, no optimisation"
"""Sampled points, perturbed and reconstructed."""
INFORMED = "HistoryInformed"
"""As all others, with noise of its own for each measurement."""
INFORMED_JOINT = "HistoryInformed, joint noise"
INFORMED_WEATHER = "HistoryInformed, joint noise, temperature"
"""It knows each region's mean temperature of the day, too."""
INFORMED_BLOCKS = "HistoryInformed, blocks given"
"""As many in a window as FAST has samples."""
LEAD_DAYS = 7
HISTORY_DAYS = 28
"""Before a month, for what learns from its own past releases; they are paid for like any other."""
Uses = Literal["n_samples", "threshold"]


@dataclass(frozen=True)
class Contender:
    """What is compared, beside its name.

    Args:
        uses: What of a grid point the mechanism depends on.
        each_region: Decided for every region by itself, not once for all.
        calibrations: Those under which its noise differs.
        lead_days: Days before a month that are released too and not compared: at least a week, so that last
            week's release is there on its first day.
    """

    uses: frozenset[Uses] = frozenset()
    each_region: bool = False
    calibrations: tuple[Calibration, ...] = ("strict",)
    lead_days: int = LEAD_DAYS


_BOTH: tuple[Calibration, ...] = ("strict", "paper")
_K, _K_THETA = frozenset[Uses](["n_samples"]), frozenset[Uses](["n_samples", "threshold"])

CONTENDERS: dict[str, Contender] = {
    RAW: Contender(calibrations=("none",)),
    "Laplace": Contender(),
    JOINT_NOISE: Contender(),
    LEVELS_APART: Contender(),
    "DFT": Contender(_K, calibrations=_BOTH),
    "OptStream ES": Contender(_K, calibrations=_BOTH),
    "OptStream ES, paper's weights": Contender(_K),
    POINTS_ONLY: Contender(_K),
    "OptStream, every step": Contender(calibrations=_BOTH),
    "OptStream L1": Contender(_K_THETA, calibrations=_BOTH),
    "OptStream L1, each region": Contender(_K_THETA, each_region=True, calibrations=_BOTH),
    "Sample": Contender(),
    "BudgetDistribution": Contender(),
    "BudgetAbsorption": Contender(),
    "PeGaSus": Contender(calibrations=_BOTH),
    "PeGaSus, average": Contender(calibrations=_BOTH),
    "Fast": Contender(_K),
    "Fast, fixed": Contender(_K),
    "Fast, linear": Contender(_K),
    "Fast, fixed, linear": Contender(_K),
    INFORMED: Contender(lead_days=HISTORY_DAYS),
    INFORMED_JOINT: Contender(lead_days=HISTORY_DAYS),
    INFORMED_WEATHER: Contender(lead_days=HISTORY_DAYS),
    INFORMED_BLOCKS: Contender(_K, lead_days=HISTORY_DAYS),
}


def cell_of(
    study: Study, mechanism: str, calibration: Calibration, point: Point, span: str, trials: tuple[int, int]
) -> Cell:
    """Return a cell that names only what its mechanism depends on, so that equal work is the same cell.

    Raises ParameterError for an unknown mechanism, or a calibration that it does not have.
    """
    contender = CONTENDERS.get(mechanism)
    if contender is None:
        raise ParameterError(f"mechanism must be one of {', '.join(CONTENDERS)}; got {mechanism!r}")
    if calibration not in contender.calibrations:
        raise ParameterError(
            f"{mechanism} has {' and '.join(contender.calibrations)} calibration; got {calibration!r}"
        )
    if "n_samples" not in contender.uses:
        point = replace(point, n_samples=None)
    if "threshold" not in contender.uses:
        point = replace(point, threshold=None)
    if mechanism == RAW:
        point = Point("inf", "0", None, None)
    return Cell(study, mechanism, calibration, point, span, trials)
