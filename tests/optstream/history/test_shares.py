"""Leaves as shares of their parent: what noise hides is small, and a busy leaf has days of its own."""

from datetime import date

import numpy as np

from optstream.history.counts import LeafBlocks, estimate_leaves
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays


def test_shares_add_days_of_their_own_only_where_the_noise_lets_them_show():
    rng, days = np.random.default_rng(4), PublicDays.from_date(date(2024, 1, 1), 24)
    hours = np.arange(56 * 24)
    sizes = np.concatenate([np.full(50, 0.02), [10.0]])
    parents = sizes.sum() * (1 + 0.8 * np.sin(2 * np.pi * hours / 24))[None]
    late = 1 + 0.7 * np.cos(2 * np.pi * hours / 24)
    truth = sizes[:, None] * parents / parents.mean() * np.where(np.arange(51)[:, None] == 50, late, 1.0)
    starts = np.arange(0, 55 * 24, 25)
    sums = np.stack([truth[:, at : at + 4].sum(axis=1) for at in starts], axis=1)
    noisy, above = sums + rng.laplace(size=sums.shape) * 8, AggregationTree(("city",), (-1,))
    lengths, parent = np.full(starts.size, 4), np.zeros(51, dtype=np.int64)
    blocks = LeafBlocks(starts, lengths, noisy, 128.0, parent, above, np.array([1.0]))
    asked = range(54 * 24, 55 * 24)
    found = estimate_leaves(blocks, parents, 0, asked, TemporalPrior.broad(24), days, 1.0)
    here = truth[:, asked.start : asked.stop]
    assert found.means.min() >= 0
    assert np.abs(found.means - here)[:50].mean() < 0.2
    plain = found.sizes[50] * parents[0, asked.start : asked.stop] / parents.mean()
    assert np.abs(found.means - here)[50].mean() < 0.7 * np.abs(plain - here[50]).mean()
    inside = np.abs(found.means - here)[50] <= 2.5 * np.sqrt(found.variances[50])
    assert inside.mean() > 0.8
