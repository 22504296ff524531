"""The same seeds give the same numbers: in any order, on any number of processes, in any blocks."""

from datetime import date

import numpy as np
import pytest

from studies.evaluation import Cell, CellResult, Counts, Load, Point, StudyData, run_cell, run_cells
from studies.evaluation.experiments import CONTENDERS, LEVELS_APART, cell_of

FEBRUARY, SEED = "2016-02", 5


@pytest.fixture(scope="module")
def data() -> StudyData:
    generator = np.random.default_rng(0)
    hours = np.arange(48) / 2
    shape = 1 + 0.3 * np.sin((hours - 9) * np.pi / 12)
    sizes = np.array([2000.0, 5000.0])
    load = sizes[:, None] * shape * generator.normal(1.0, 0.02, (57, 2, 48))
    flu = Counts("flu", "visits", np.round(500 * generator.lognormal(0, 0.5, 40)), "1", 50.0)
    return StudyData(Load(load, ("a", "b"), date(2016, 1, 4)), {"flu": flu}, "b", 900.0, 150.0)


def some_cells(trials: tuple[int, int] = (0, 2)) -> list[Cell]:
    point = Point("0.1")
    return [
        cell_of("regions", "OptStream ES", "strict", point, FEBRUARY, trials),
        cell_of("regions", "OptStream L1", "paper", point, FEBRUARY, trials),
        cell_of("regions", "BudgetAbsorption", "strict", point, FEBRUARY, trials),
        cell_of("counts", "Fast", "strict", point, "flu", trials),
    ]


def numbers(results: list[CellResult]) -> dict:
    """Everything but the seconds."""
    return {one.cell: (one.epsilon_plan, one.trials) for one in results}


@pytest.mark.slow
@pytest.mark.nightly
def test_processes_and_order_change_nothing(data):
    alone = numbers(list(run_cells(some_cells(), data, seed=SEED)))
    together = numbers(list(run_cells(some_cells()[::-1], data, seed=SEED, processes=2)))
    assert alone == together
    assert numbers([run_cell(some_cells()[0], data, SEED + 1)]) != numbers(
        [run_cell(some_cells()[0], data, SEED)]
    )


def strict_contenders():
    """Two of them in `make test`, all others in the nightly checks."""
    for name, contender in CONTENDERS.items():
        if "strict" in contender.calibrations:
            often = name in ("OptStream ES", LEVELS_APART)
            yield pytest.param(name, marks=pytest.mark.slow if often else pytest.mark.nightly)


@pytest.mark.parametrize("name", [*strict_contenders()])
def test_no_strict_contender_costs_more_than_was_asked(data, name):
    study = "hierarchy" if name == LEVELS_APART else "regions"
    result = run_cell(cell_of(study, name, "strict", Point("1"), FEBRUARY, (0, 1)), data, SEED)
    assert result.trials[0].drawn <= result.epsilon_plan <= 1


@pytest.mark.slow
def test_only_the_unfitted_tree_is_inconsistent(data):
    point = Point("1", "10")
    found = {
        name: run_cell(cell_of("hierarchy", name, "strict", point, FEBRUARY, (0, 1)), data, SEED)
        .trials[0]
        .metrics
        for name in ("Laplace", "DFT", "OptStream ES", "OptStream L1", LEVELS_APART)
    }
    assert found.pop(LEVELS_APART)["violation"] > 100
    assert all(metrics["violation"] < 1e-6 for metrics in found.values())
