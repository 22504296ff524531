"""The benchmark of the loss function says what it measured."""

import numpy as np

from benchmarks import leakage


def test_it_says_how_many_programs_were_solved(capsys, monkeypatch):
    monkeypatch.setattr(leakage, "YEARS", 100)
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    leakage.compare(matrix, [(0, 1), (1, 0)])
    shown = capsys.readouterr().out
    assert "HiGHS, 2 of 12 pairs" in shown
    assert "Algorithm 1 +0.0e+00" in shown or "e-1" in shown
