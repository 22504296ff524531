"""Level shares by the model: from public figures alone, by its own measure never worse than equal ones."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.history.blocks import Blocks
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.mechanisms.blocks import (
    LEAST,
    Figures,
    PlannedBlocks,
    PlannedNoise,
    choose_level_shares,
    choose_tree_blocks,
    expected_error_of,
    expected_level_errors,
    level_errors,
)
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree

SLOTS = 24
FLAT = AggregationTree.from_parents({"all": None} | {str(leaf): "all" for leaf in range(5)})
RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B", "B3": "B"})
ALONE = AggregationTree.from_parents({"all": None})


def expected(tree, noise, shares):
    blocks = choose_tree_blocks(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)))
    return expected_error_of(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)), blocks)


@pytest.mark.slow
@pytest.mark.parametrize("tree", [FLAT, RAGGED, ALONE])
@pytest.mark.parametrize(
    "noise",
    [pytest.param(1e-4, marks=pytest.mark.nightly), 1e-3, pytest.param(0.02, marks=pytest.mark.nightly), 0.5],
)
def test_they_add_up_fit_the_tree_and_are_never_worse_than_equal_ones(tree, noise):
    shares = choose_level_shares(tree, Figures(SLOTS, SLOTS, noise))
    assert sum(shares) == 1
    assert all(shares[tree.depths[leaf]] >= LEAST for leaf in tree.leaf_indices)
    equal = [Fraction(1, tree.n_levels)] * tree.n_levels
    assert expected(tree, noise, shares) <= expected(tree, noise, equal)


def test_blocks_of_a_week_are_as_good_as_any_number_of_them():
    """With 12 a week, 14 hours apart, hours of the day are seen less evenly than with 10 or 16."""
    public, shares = Figures(7 * SLOTS, SLOTS, 1e-3, joint=(True,), ordinary=SLOTS), (Fraction(1),)
    chosen = choose_tree_blocks(ALONE, public, shares)
    errors = [expected_error_of(ALONE, public, shares, (count, 1)) for count in (10, 12, 16, 24, 32, 48)]
    assert errors[1] > errors[0] > errors[2]
    assert expected_error_of(ALONE, public, shares, chosen) <= 1.01 * min(errors)


def test_the_expected_error_is_the_posteriors_own_and_falls_with_what_is_measured():
    starts, lengths = np.arange(0, 4 * SLOTS, 5), np.ones(20, dtype=np.int64)
    noise = np.array([0.02, 0.01, 0.01, 0.03, 0.03, 0.03])
    period, prior = range(3 * SLOTS, 4 * SLOTS), TemporalPrior.broad(SLOTS)
    plan = PlannedBlocks(prior, starts, lengths, period)
    found = level_errors(plan, RAGGED, [0.02, 0.01, 0.03])
    blocks, asked = Blocks.at(starts), Blocks.at(np.array(period))
    seen = Seen(RAGGED, blocks, np.ones((6, 20)), noise, np.ones(4))
    relative = TreePosterior(prior, seen).variances(asked).mean(axis=1) / np.array([4, 1, 3, 1, 1, 1]) ** 2
    assert found == pytest.approx([np.sqrt(relative[0]), np.sqrt(relative[1:3].mean()), np.sqrt(relative[3])])
    assert np.all(level_errors(plan, RAGGED, [np.inf, 0.01, 0.03]) >= found)
    # noise is heavy where the rest leaves little open: then it tells more than its variance says
    laplace = PlannedNoise(0.1)
    assert laplace.variance == pytest.approx(0.02)
    predicted = expected_level_errors(plan, RAGGED, [laplace, laplace, laplace])
    assert np.all(predicted < level_errors(plan, RAGGED, [0.02, 0.02, 0.02]))
    assert 0.01 < laplace.noise_variance(1e-3) < laplace.noise_variance(1.0) < 0.0201


def informed(**given):
    return HistoryInformed(PrivacyModel("1/10", SLOTS, 1), **{"scale": 1500.0} | given)


def test_without_a_scale_or_by_another_word_they_are_refused():
    with pytest.raises(ParameterError, match="without a scale"):
        HistoryInformedTree(informed(scale=None), FLAT, "model")
    with pytest.raises(ParameterError, match="got 'best'"):
        HistoryInformedTree(informed(), FLAT, "best")
