"""Plans compared by what one prior expects of them: nothing of the stream is read."""

from datetime import date

import numpy as np
import pytest

from optstream.history.prior import TemporalPrior
from optstream.mechanisms.blocks import Figures
from optstream.mechanisms.history_informed_tree import choose_level_shares
from tasks.plan.advise import (
    Choice,
    Judge,
    compare_plans,
    drawn_series,
    model_level_shares,
    with_level_shares,
)
from tasks.plan.dry_run import dry_run
from tests.tasks.two_regions import CONFIGURATION, released_by

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
INFORMED = released_by("HistoryInformed", keys="scale = 5000")
COARSE = ('alpha = "1"', 'alpha = "100"')
HOURLY = ('step = "30min"', 'step = "1h"'), ("window = 48", "window = 24")


def test_plans_are_sorted_and_the_best_is_marked(load_text):
    found = compare_plans(load_text(CONFIGURATION, COARSE, *HOURLY), 5000.0)
    relative = [plan.relative for plan in found.plans]
    assert relative == sorted(relative)
    assert found.best is found.plans[0]
    assert found.best.choice.settings.mechanism.name == "HistoryInformed"
    assert found.configured in found.plans
    assert found.best.relative < 0.5 * found.configured.relative
    assert {plan.choice.settings.mechanism.name for plan in found.plans} >= {
        "OptStream", "Laplace", "Sample", "Fourier", "PeGaSus", "Fast", "BudgetAbsorption",
    }  # fmt: skip
    assert [one.size for one in found.best.expected] == [10_000, 5_000]
    # no delta is proposed where nobody gave one
    assert all(plan.choice.settings.privacy.delta is None for plan in found.plans)


def test_the_figures_are_those_of_the_dry_run(load_text):
    settings = load_text(INFORMED, COARSE)
    judged = Judge.of(settings, None).judged(Choice("as configured", {}, settings))
    levels = dry_run(settings, [DAY]).periods[0].levels
    assert judged.expected == tuple(level.expected for level in levels)


def test_what_is_gained_within_the_priors_reach_changes_nothing(load_text):
    """The plan that was proposed, configured: other plans may be a little better, and none is proposed."""
    settings = load_text(INFORMED, COARSE, ('["1/2", "1/2"]', '["0", "1"]'))
    found = compare_plans(settings)
    assert found.plans[0].relative > 0.97 * found.configured.relative
    assert found.best is found.configured


def test_other_mechanisms_are_judged_by_their_whole_error(load_text):
    """Of five samples a day noise is not all that is missed: what lies between them is."""
    fine = load_text(CONFIGURATION, ('alpha = "1"', 'alpha = "0.001"'), ("n_samples = 10", "n_samples = 5"))
    judged = Judge.of(fine, 5000.0).judged(Choice("as configured", {}, fine))
    noise = dry_run(fine, [DAY]).periods[0].levels[1].expected.error
    assert judged.expected[1].error > 100 * noise


def test_drawn_series_vary_as_the_prior_says():
    """The deviation of 20,000 leaves' own part at one step: within six of its standard errors, 1 in 10^8."""
    prior = TemporalPrior.broad(48)
    values = drawn_series(prior, 100.0, 20_000, 2, counts=False, seed=1)
    own = sum(one.own**2 for one in prior.components if one.gate != "event")
    spread = values.std(axis=0) / 100.0
    clipped = 0.02  # what lies below 0 counts as 0: a leaf in a hundred
    assert np.all(np.abs(spread / np.sqrt(own) - 1) < 6 / np.sqrt(2 * 20_000) + clipped)
    counts = drawn_series(prior, 3.0, 100, 48, counts=True, seed=1)
    assert np.array_equal(counts, np.round(counts))
    assert np.array_equal(values, drawn_series(prior, 100.0, 20_000, 2, counts=False, seed=1))


def test_level_shares_of_the_model_know_the_noise_that_is_drawn(load_text):
    """A customer in one leaf a day: joint noise at every level errs less than Laplace noise."""
    word = ('time_zone = "Europe/Paris"', 'time_zone = "Europe/Paris"\nleaves_per_period = 1')
    said = ("scale = 5000", 'scale = 5000\nnoise = "laplace"')
    streams = [load_text(INFORMED, ('alpha = "1"', 'alpha = "5"'), word, *more) for more in ((), (said,))]
    shares = [model_level_shares(one) for one in streams]
    joint, laplace = (
        with_level_shares(Choice("", {}, one), own).settings for one, own in zip(streams, shares, strict=True)
    )
    errors = [dry_run(one, [DAY]).periods[0].levels[0].expected.error for one in (joint, laplace)]
    assert errors[0] < 0.95 * errors[1]
    assert [sum(own) for own in shares] == [1, 1]
    noise = float(laplace.model_of(0).alpha / laplace.model_of(0).epsilon) / 5000.0
    assert shares[1] == choose_level_shares(laplace.tree_of(date.min), Figures(48, 48, noise))


GAUSSIAN = released_by("Gaussian")


def test_beside_a_delta_both_currencies_are_compared(load_text):
    found = compare_plans(load_text(GAUSSIAN, COARSE), 5000.0)
    assert found.configured.choice.settings.mechanism.name == "Gaussian"
    for plan in found.plans:
        settings = plan.choice.settings
        assert settings.model.currency == settings.mechanism.kind.currency
    laplace = [plan for plan in found.plans if plan.choice.label.startswith("Laplace")]
    assert laplace
    assert all(plan.choice.keys["privacy"] == {"delta": None} for plan in laplace)
    # at 48 steps and two levels Gaussian noise has less than either noise of Laplace
    assert found.configured.relative < min(plan.relative for plan in laplace)
