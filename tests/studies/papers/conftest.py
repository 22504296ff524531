"""A tiny experiment on made-up series, and its results."""

from pathlib import Path

import pytest

from studies.evaluation import Experiment, StudyData
from studies.evaluation.experiments import Block, both, grid
from studies.papers.data import simulated_study_data
from studies.papers.run import Store, Terms, evaluate

TINY = (
    Experiment(
        1, "Tiny", "Figure 0",
        (
            Block(
                "regions", both("Laplace", "DFT", "OptStream ES", "no noise"),
                grid(["1", "0.1"]), ("2016-02",), 4,
            ),
        ),
    ),
    Experiment(
        9, "Counted", "none",
        (Block("counts", both("Fast, fixed", "Laplace"), grid(["1", "0.1"], counts=(20,)), ("flu",), 2),),
    ),
)  # fmt: skip


@pytest.fixture(scope="session")
def tiny_data() -> StudyData:
    return simulated_study_data(cell for one in TINY for cell in one.cells())


@pytest.fixture(scope="session")
def tiny_results(tiny_data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    terms = Terms.of(tiny_data, name="simulated", seed=1, public=True)
    evaluate(TINY, tiny_data, Store(folder, terms), processes=1)
    return folder
