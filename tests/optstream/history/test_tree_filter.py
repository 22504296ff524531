"""How sure a tree's series is: as its covariance says, and days of one step as single values."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.estimation.error_terms import times_before
from optstream.history.filter import Conditioned, Fitted, TreeFit, series_of, step_blocks
from optstream.history.posterior import TreePosterior
from optstream.stream.public_days import PublicDays
from tests.optstream.history.test_tree_posterior import SLOTS, case

FACTOR = 9.0


def fit_of(steps_per_day, nothing_in=()):
    """A fit of which single values err far more than a day's mean. nothing_in: leaves that are always 0."""
    prior, seen, _ = case("ragged", "all measured")
    sizes = seen.sizes.copy()
    sizes[list(nothing_in)] = 1e-6
    posterior = TreePosterior(replace(prior, steps_per_day=steps_per_day), replace(seen, sizes=sizes))
    known = Conditioned(posterior, FACTOR)
    days = PublicDays.from_date(date(2025, 1, 6), steps_per_day)
    return TreeFit(Fitted(known, False), np.zeros(sizes.size), seen.tree, days, set())


def errors_of(fit, steps):
    earliest = steps.start - 2 * fit.days.steps_per_day
    return fit.errors(times_before(fit.days, steps, earliest, False), len(steps))


@pytest.mark.parametrize("nothing_in", [(), (1,)])
def test_rows_are_as_sure_as_the_file_says(nothing_in):
    fit, steps = fit_of(SLOTS, nothing_in), range(192, 192 + SLOTS)
    errors = errors_of(fit, steps)
    own = np.eye(SLOTS, errors.leaf_errors.targets.clock.size)
    rows, found = fit.series(steps, errors)[1], errors.variances(fit.tree.add_up(np.eye(len(fit.means))), own)
    assert np.allclose(rows, found, rtol=1e-6)
    plain = series_of(fit.found, step_blocks(steps, fit.days))[1]
    assert rows.min() > 0.0
    assert (rows < 0.4 * plain).any()  # or nothing was ever that much surer
