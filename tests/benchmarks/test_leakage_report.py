"""The leakage paper's figures 7 to 9: what its text says of them, and what it says that does not come out."""

import numpy as np
import pytest

from benchmarks import leakage_report
from benchmarks.leakage_report import growth_of, main, noise_of, smoothed


def test_smoothing_is_equation_28():
    assert smoothed(2, 1.0) == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)
    assert smoothed(3, 0.0) == pytest.approx(np.eye(3))


def test_stronger_correlation_larger_epsilon_and_fewer_states_leak_more():
    for epsilon in (1.0, 0.1):
        ends = [growth_of(50, s, epsilon)[0] for s in (0.005, 0.05, 1.0)]
        assert ends == sorted(ends, reverse=True)
        assert ends[0] > growth_of(100, 0.005, epsilon)[0]
    assert growth_of(50, 0.005, 1.0)[0] > growth_of(50, 0.005, 0.1)[0]


def test_a_small_epsilon_ends_as_high_as_a_large_one_only_at_a_tenth_of_the_papers_s():
    """Of s = 0.005 the paper says that 8 and 80 steps end much alike: by equation 28 they do not."""
    (large, early), (small, late) = growth_of(50, 0.005, 1.0), growth_of(50, 0.005, 0.1)
    assert (early, late) == (8, 16)
    assert large / small == pytest.approx(5.6965 / 0.6334, rel=1e-3)
    (large, early), (small, late) = growth_of(50, 0.0005, 1.0), growth_of(50, 0.0005, 0.1)
    assert (early, late) == (9, 69)
    assert large / small < 1.6


def test_exact_budgets_are_the_less_noisy_the_shorter_the_release():
    constant, *exact = noise_of(50, 0.001, 2.0)
    assert exact == sorted(exact)
    assert exact[0] < constant / 30
    assert exact[-1] == pytest.approx(constant, rel=0.05)
    assert noise_of(50, 0.01, 2.0)[0] > 7 * 0.5 > 1.2 * noise_of(50, 1.0, 2.0)[0]


def test_all_is_printed(capsys, monkeypatch):
    monkeypatch.setattr(leakage_report, "STATES", (5, 9))
    main([])
    printed = capsys.readouterr().out
    assert "Algorithm 7 0.2039 a step; Algorithm 8 0.4998, 0.2039 between, 0.7041" in printed
    assert "31.35" in printed
