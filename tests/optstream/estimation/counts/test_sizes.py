"""Sizes: what noise hides is small, what it does not is kept."""

import numpy as np
import pytest

from optstream.history.counts import Mixture


def many_sizes(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """200 empty nodes, 50 middling, 10 busy; noise of 0.8."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([np.full(200, 0.01), rng.gamma(2, 0.25, 50), rng.gamma(4, 3.0, 10)])
    return sizes, sizes + 0.8 * rng.normal(size=260), np.full(260, sizes.mean())


def test_empty_and_busy_nodes_are_told_apart():
    """Mean absolute errors over 20 draws; clipping at 0 is the control."""
    rows = []
    for seed in range(20):
        sizes, seen, typical = many_sizes(seed)
        variances = np.full(260, 0.64)
        found, spread = Mixture.learned(seen, variances, typical).posterior(seen, variances, typical)
        assert found.min() >= 0
        off, plain = np.abs(found - sizes), np.abs(seen - sizes)
        clipped = np.maximum(seen, 0)
        rows.append([
            off[:200].mean() / plain[:200].mean(), off[250:].mean() / plain[250:].mean(), found.sum() /
            sizes.sum(), np.mean(off**2) / spread.mean(), off.mean() / np.abs(clipped - sizes).mean(),
            clipped.sum() / sizes.sum(),
        ])  # fmt: skip
    empty, busy, total, honest, against_clipped, clipped_total = np.mean(rows, axis=0)
    assert empty < 0.25
    assert busy < 1.2
    assert abs(total - 1) < 0.05
    assert 0.6 < honest < 1.7
    assert against_clipped < 0.6
    assert clipped_total > 1.3


def test_where_the_noise_is_small_a_size_is_what_was_observed():
    _, seen, typical = many_sizes()
    seen, variances = np.abs(seen), np.full(260, 1e-8)
    assert Mixture.learned(seen, variances, typical).posterior(seen, variances, typical)[0] == pytest.approx(
        seen, abs=1e-3
    )


def test_a_level_of_one_node_does_not_believe_its_noise_nor_deny_a_clear_size():
    for seen, least, most, doubt in ((5.0, 4.0, 6.0, 0.3), (0.0, 0.0, 1.0, 0.05), (-3.0, 0.0, 1.0, 0.005)):
        given = np.array([seen]), np.array([1.0]), np.array([3.0])
        found, spread = Mixture.learned(*given).posterior(*given)
        assert least <= found[0] <= most
        assert doubt < spread[0] <= 1.0
