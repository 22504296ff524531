"""The declared experiments are those of the papers, and every cell can be made."""

import numpy as np
import pytest

from optstream.stream import AggregationTree
from studies.evaluation import EXPERIMENTS, Counts, unique_cells
from studies.evaluation.build import on_finite_series, on_series, on_tree
from studies.evaluation.contenders import RAW
from studies.evaluation.experiments import COUNTED_STEPS

TREE = AggregationTree.from_parents({"nation": None, "a": "nation", "b": "nation"})


@pytest.mark.slow
def test_equal_work_is_one_cell():
    cells = unique_cells(EXPERIMENTS)
    assert len(cells) == len(set(cells)) == len({cell.key for cell in cells})
    assert len(cells) < sum(len(one.cells()) for one in EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 13))
def test_every_mechanism_can_be_made_and_strict_costs_what_was_asked(number):
    made = {}
    for cell in EXPERIMENTS[number - 1].cells():
        if cell.mechanism != RAW and cell.trials[0] == 0:
            made[cell.study, cell.mechanism, cell.calibration, cell.point, cell.span in COUNTED_STEPS] = cell
    for cell in made.values():
        if cell.study == "counts":
            counts = Counts("", "", np.zeros(COUNTED_STEPS[cell.span]), "0.001", 100.0, 1000.0, 12, 1)
            mechanism = on_finite_series(cell, counts)
        elif cell.study == "hierarchy":
            mechanism = on_tree(cell, TREE)
        else:
            mechanism = on_series(cell, ["a", "b"])
        if cell.calibration == "strict":
            assert mechanism.epsilon <= mechanism.model.epsilon, cell
        else:
            assert float(mechanism.epsilon) > float(cell.point.epsilon), cell
