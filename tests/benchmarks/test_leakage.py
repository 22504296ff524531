"""The benchmark of the loss function says what it measured; and what it is held to."""

import time

import numpy as np
from rich.console import Console

from benchmarks import leakage
from optstream.privacy.leakage import LossFunction


def test_it_says_how_many_programs_were_solved(capsys, monkeypatch):
    monkeypatch.setattr(leakage, "YEARS", 100)
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    leakage.show(Console(width=110), matrix, [(0, 1), (1, 0)])
    shown = capsys.readouterr().out
    assert "HiGHS, 2 of 12 pairs" in shown
    assert "Algorithm 1 +0.0e+00" in shown or "e-1" in shown


def test_fifty_states_take_far_less_than_a_millisecond():
    loss = LossFunction(np.random.default_rng(1).dirichlet(np.ones(50), 50))
    fastest = np.inf
    for _ in range(5):
        started = time.process_time()
        for _ in range(100):
            loss(1.0)
        fastest = min(fastest, (time.process_time() - started) / 100)
    assert fastest < 1e-3


def test_units_of_time_are_chosen_to_be_read():
    assert [leakage.seconds(value) for value in (2.5, 0.0025, 2.5e-6)] == ["2.50 s", "2.50 ms", "2.50 µs"]
