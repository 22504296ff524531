"""Sizes: what noise hides is small, what it does not is kept."""

import numpy as np

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
