"""Plans compared by what one prior expects of them: nothing of the stream is read."""

from datetime import date
from fractions import Fraction

import pytest

from tasks.plan.advise import Judge, compare_plans
from tasks.plan.candidates import Choice
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


def test_level_shares_of_the_model_know_the_noise_that_is_drawn(load_text):
    """A customer in one leaf a day: joint noise at every level errs less than Laplace noise."""
    word = ('time_zone = "Europe/Paris"', 'time_zone = "Europe/Paris"\nleaves_per_period = 1')
    model = ('["1/2", "1/2"]', '"model"')
    joint = load_text(INFORMED, ('alpha = "1"', 'alpha = "5"'), word, model)
    (level, *_) = [one.expected.error for one in dry_run(joint, [DAY]).periods[0].levels]
    said = ("scale = 5000", 'scale = 5000\nnoise = "laplace"')
    laplace = load_text(INFORMED, ('alpha = "1"', 'alpha = "5"'), word, model, said)
    (other, *_) = [one.expected.error for one in dry_run(laplace, [DAY]).periods[0].levels]
    assert level < 0.95 * other
    assert sum(joint.level_shares) == 1 == sum(laplace.level_shares)
    assert all(isinstance(one, Fraction) for one in joint.level_shares)


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


def test_streams_that_share_a_budget_keep_its_currency(load_text):
    text = GAUSSIAN.replace('levels = ["1/2", "1/2"]', 'levels = ["1/2", "1/2"]\nstream_share = "1/2"')
    found = compare_plans(load_text(text, COARSE), 5000.0)
    assert {plan.choice.settings.mechanism.name for plan in found.plans} == {"Gaussian"}
