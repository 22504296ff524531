"""The papers' experiments: declared values, one engine, arrays in, results out.

Noise is simulated and seeded. What comes out compares releases with the truth: it is as private as the truth
is, and free to be shown only where that is public already.
"""

from studies.evaluation.data import Counts, Load, StudyData
from studies.evaluation.engine import run_cell, run_cells
from studies.evaluation.experiments import EXPERIMENTS, Cell, CellResult, Experiment, Point, unique_cells

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "CellResult",
    "Counts",
    "Experiment",
    "Load",
    "Point",
    "StudyData",
    "run_cell",
    "run_cells",
    "unique_cells",
]
