"""The benchmark of a release times what is drawn, once, and prints the peer beside it."""

import numpy as np
import pytest

from optstream import simulated_noise
from optstream.stream import AggregationTree
from studies.benchmarks.release_time import TimedNoise, a_year, main

TREE = AggregationTree.from_parents({"FR": None, "11": "FR", "84": "FR"})


@pytest.mark.parametrize("l1", [False, True])
def test_a_timed_year_draws_each_sample_once(l1):
    # high enough that the bound never matters at epsilon 1
    load = np.round(90_000 + 500 * np.random.default_rng(5).standard_normal((3, 2, 48)), 3)
    measured = a_year(l1, TREE, load)
    threshold_and_queries = 2 * (1 + 48) if l1 else 0
    assert measured.samples == 3 * (3 * (10 + 5) + threshold_and_queries)
    assert measured.to_solver == 0
    assert measured.besides_noise == measured.measure + measured.estimate
    assert a_year(l1, TREE, np.zeros((3, 2, 48))).to_solver == 3


def test_the_timed_noise_draws_what_its_source_draws():
    noise = TimedNoise(simulated_noise(3))
    drawn = [noise.discrete_laplace(10.0, size) for size in ((4,), (2, 3))]
    source = simulated_noise(3)
    assert all((one == source.discrete_laplace(10.0, one.shape)).all() for one in drawn)
    assert noise.samples == 10
    assert noise.simulated


def test_the_closed_form_stands_beside_the_program_and_agrees_with_it(capsys, monkeypatch):
    monkeypatch.delenv("OPTSTREAM_DATA", raising=False)
    main(["--periods", "4", "--programs", "2"])
    printed = capsys.readouterr().out
    assert float(printed.partition("largest relative difference ")[2].split()[0]) < 1e-4
    for name in ("closed form, batch", "program as in the paper (cvxpy)", "numpy's laplace (floats)"):
        assert name in printed
