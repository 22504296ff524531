"""Keyed random numbers: the same keys, the same numbers; different keys, independent ones."""

import numpy as np
import pytest
from scipy.stats import kstest

from optstream.estimation.replicates import keys_of, normals, uniforms

N = 20_000
Z = 6.5
"""Standard errors: a chance below 1e-10 for each of a few hundred means."""
COLUMNS = {
    "the last key": (3, np.arange(N)[:, None], np.arange(6)),
    "the first key": (np.arange(6), np.arange(N)[:, None], 3),
    "both exchanged": (np.arange(6), np.arange(N)[:, None]),
    "names": (np.arange(N)[:, None], keys_of(["a", "b", "ab", "ba", "", "a "])),
    "days": (np.arange(N)[:, None], 24 * np.arange(-3, 3)),
    "large": (np.arange(N)[:, None], 2**62 + 2 ** np.arange(6)),
}


def off(numbers):
    """How far moments and correlations are from those of independent uniform numbers, in standard errors."""
    even = (numbers - 0.5) * np.sqrt(12.0)
    pairs, (above, right) = even.T @ even / len(even), np.triu_indices(even.shape[1], 1)
    shifted = (even[1:] * even[:-1]).mean(axis=0)
    of_means, of_squares = even.mean(axis=0), ((even**2 - 1.0) / np.sqrt(0.8)).mean(axis=0)
    every = np.concatenate([pairs[above, right], shifted, of_means, of_squares])
    return np.abs(every).max() * np.sqrt(len(even))


@pytest.mark.parametrize("keys", COLUMNS)
def test_different_keys_give_independent_numbers(keys):
    numbers = uniforms(*COLUMNS[keys])
    assert numbers.shape == (N, 6)
    assert ((numbers > 0) & (numbers < 1)).all()
    assert len(np.unique(numbers)) == numbers.size
    assert off(numbers) < Z
    assert kstest(numbers.ravel(), "uniform").pvalue > 1e-7
    assert kstest(normals(*COLUMNS[keys]).ravel(), "norm").pvalue > 1e-7


def test_the_same_keys_give_the_same_numbers_whatever_is_asked_for_with_them():
    whole = normals(1, np.arange(5)[:, None], np.arange(7))
    assert np.array_equal(whole, normals(1, np.arange(5)[:, None], np.arange(7)))
    assert np.array_equal(whole[2:4, 3:], normals(1, np.arange(2, 4)[:, None], np.arange(3, 7)))
    assert normals(1, 4, 6) == whole[4, 6]
    assert normals(6, 4, 1) != whole[4, 6]
    assert uniforms(1, 2) != uniforms(1, 2, 0)
    assert uniforms(-1) == uniforms(np.uint64(2**64 - 1))
    assert np.array_equal(keys_of(["b", "a"]), keys_of(["a", "b"])[::-1])
