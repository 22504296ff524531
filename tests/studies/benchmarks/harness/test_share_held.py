"""Shares and how sure they are."""

import numpy as np

from studies.benchmarks.harness.share_held import share


def test_draws_that_are_all_alike_count_once():
    """100 draws of 0 or 1, each told 10 times: as sure as 100, and not as 1,000."""
    once = np.arange(100) % 4 > 0
    held, draws = np.repeat(once, 10), np.repeat(np.arange(100), 10)[:, None]
    error = np.sqrt(0.75 * 0.25 / 99)
    assert share(held, draws) == f"75.0% ± {error:.1%}"
    assert share(held, np.arange(1000)[:, None]) == f"75.0% ± {np.sqrt(0.75 * 0.25 / 999):.1%}"


def test_a_draw_is_known_by_all_its_numbers():
    held = np.array([1.0, 0.5, 0.0, 0.5])
    together = np.zeros((4, 2))
    apart = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert share(held, together) == "50.0% ± nan%"
    assert share(held, apart) == f"50.0% ± {np.sqrt(0.5 * 4 / 3) / 4:.1%}"
