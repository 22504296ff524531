"""The declared experiments are those of the papers, and every cell can be made."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from optstream.stream import AggregationTree
from studies.evaluation import EXPERIMENTS, Counts, unique_cells
from studies.evaluation.build import on_finite_series, on_series, on_tree
from studies.evaluation.contenders import RAW
from studies.evaluation.data import BEGINNING
from studies.evaluation.experiments import COUNTED_STEPS, UNUSUAL_DAYS

TREE = AggregationTree.from_parents({"nation": None, "a": "nation", "b": "nation"})


def test_there_are_twelve():
    assert [one.number for one in EXPERIMENTS] == list(range(1, 13))


def test_trials_are_those_of_the_issue():
    """30 for 1, 2, 4, 6 and 7, 5 for the forecasts, 3 for the whole-year grid; each trial once."""
    wanted = {1: 30, 2: 30, 3: 5, 4: 30, 5: 3, 6: 30, 7: 30, 10: 1, 11: 10, 12: 30}
    for experiment in EXPERIMENTS:
        trials: Counter = Counter()
        for cell in experiment.cells():
            for trial in range(*cell.trials):
                trials[cell.study, cell.mechanism, cell.calibration, cell.point, cell.span, trial] += 1
        assert set(trials.values()) == {1}
        most = Counter(key[:-1] for key in trials if key[1] not in (RAW, "OptStream L1, each region"))
        if experiment.number in wanted:
            assert set(most.values()) == {wanted[experiment.number]}


@pytest.mark.slow
def test_the_grids_are_those_of_the_issue():
    by_number = {one.number: one.cells() for one in EXPERIMENTS}
    assert {cell.point.epsilon for cell in by_number[1]} == {"1", "0.1", "0.01", "inf"}
    assert {cell.span for cell in by_number[1]} == {"2016-02", "2016-06", "2016-10"}
    assert {cell.point.alpha for cell in by_number[2]} == {"10", "50", "100"}
    grid = {(c.point.n_samples, c.point.threshold) for c in by_number[5] if c.mechanism == "OptStream L1"}
    assert grid == {(k, str(theta)) for k in (5, 10, 20) for theta in (500, 1000, 2000, 5000, 10000)}
    assert {cell.span for cell in by_number[5]} == {"2016"}
    pairs = {(c.point.alpha, c.point.n_samples) for c in by_number[6] if c.mechanism == "DFT"}
    assert pairs == {("10", 10), ("50", 10), ("100", 5)}


def test_the_short_form_is_a_part_of_the_long_one_in_february():
    for experiment in EXPERIMENTS:
        short = set(experiment.short().cells())
        if experiment.number not in (
            3,
            5,
            8,
            10,
        ):  # their blocks of trials end elsewhere, or they have another span
            whole = {
                (replace(cell, trials=(0, 0)), n) for cell in experiment.cells() for n in range(*cell.trials)
            }
            assert {(replace(cell, trials=(0, 0)), n) for cell in short for n in range(*cell.trials)} <= whole
        assert {cell.span for cell in short} <= {"2016-02", BEGINNING.name, UNUSUAL_DAYS[0], *COUNTED_STEPS}
        assert max(cell.trials[1] for cell in short) <= 3


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
