"""What the benchmark of products compares, on made-up load, seeded: nothing is left to chance."""

import numpy as np

from optstream import PrivacyModel
from optstream.mechanisms import Laplace
from studies.benchmarks.history.products import LEARNED_DAYS, error, of_sum, split, together

LOAD = 5000.0 + 1000.0 * np.sin(np.linspace(0.0, 60.0 * np.pi, (LEARNED_DAYS + 2) * 48)).reshape(-1, 1, 48)


def test_a_split_load_is_the_sum_of_its_parts():
    first, second = split(LOAD)
    assert np.allclose(first + second, LOAD)
    share = first / LOAD
    assert 0.04 < share.min() < share.max() < 0.96
    assert share.std() > 0.02


def test_the_made_up_pair_moves_together_and_its_shapes_do_not():
    first, second = together(LOAD)
    means = [product.mean(axis=2)[:, 0] for product in (first, second)]
    assert np.corrcoef(*means)[0, 1] > 0.9
    shapes = [(product - product.mean(axis=2, keepdims=True))[0, 0] for product in (first, second)]
    assert abs(np.corrcoef(*shapes)[0, 1]) < 0.1


def test_the_known_sum_takes_a_part_of_laplace_noise():
    """A third of the variance goes; of the mean absolute error, of another law then, an eighth."""
    found = list(of_sum(LOAD, Laplace(PrivacyModel("100", 48, 1)), 0))
    assert [name for name, *_ in found] == ["load", "first", "second"]
    for _, apart, combined, own, beside_stated in found:
        assert 0.75 < combined / apart < 0.97
        assert 0.8 < own < 1.2
        assert 0.8 < beside_stated < 1.2


def test_errors_are_of_the_days_after_those_that_are_learned_from():
    missed = np.zeros_like(LOAD)
    missed[:LEARNED_DAYS] = 1e6
    assert error(LOAD + missed, LOAD) == 0.0
