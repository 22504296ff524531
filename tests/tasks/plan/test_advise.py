"""Plans compared by what one prior expects of them, shares of streams, and the proposal that is written."""

from datetime import date
from fractions import Fraction

import pytest

from flows.cli.setup import as_toml
from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tasks.plan.advise import (
    Choice,
    Judge,
    choose_stream_shares,
    compare_plans,
    total_of,
    useful_levels,
    write_proposal,
)
from tasks.plan.dry_run import Expected, dry_run
from tests.tasks.two_regions import CONFIGURATION, released_by

DAY = date(2025, 1, 15)
INFORMED = released_by("HistoryInformed", keys="scale = 5000")
COARSE = ('alpha = "1"', 'alpha = "100"')
HOURLY = ('step = "30min"', 'step = "1h"'), ("window = 48", "window = 24")


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_gained_within_the_priors_reach_changes_nothing(load_text):
    """The plan that was proposed, configured: other plans may be a little better, and none is proposed."""
    settings = load_text(INFORMED, COARSE, ('["1/2", "1/2"]', '["19/24", "5/24"]'))
    found = compare_plans(settings)
    assert found.plans[0].relative > 0.97 * found.configured.relative
    assert found.best is found.configured


@pytest.mark.slow
def test_other_mechanisms_are_judged_by_their_whole_error(load_text):
    """Of five samples a day noise is not all that is missed: what lies between them is."""
    fine = load_text(CONFIGURATION, ('alpha = "1"', 'alpha = "0.001"'), ("n_samples = 10", "n_samples = 5"))
    judged = Judge(fine, 5000.0).judged(Choice("as configured", {}, fine))
    noise = dry_run(fine, [DAY]).periods[0].levels[1].expected.error
    assert judged.expected[1].error > 100 * noise


@pytest.mark.slow
def test_with_a_delta_both_currencies_are_compared(load_text):
    found = compare_plans(load_text(released_by("Gaussian"), COARSE), 5000.0)
    assert found.configured.choice.settings.mechanism.name == "Gaussian"
    for plan in found.plans:
        settings = plan.choice.settings
        assert settings.model.currency == settings.mechanism.kind.currency
    laplace = [plan for plan in found.plans if plan.choice.label.startswith("Laplace")]
    assert laplace
    assert all(plan.choice.keys["privacy"] == {"delta": None} for plan in laplace)
    # at 48 steps and two levels Gaussian noise has less than either noise of Laplace
    assert found.configured.relative < min(plan.relative for plan in laplace)


def test_the_deepest_levels_that_are_as_good_as_nothing_are_proposed_to_be_left_out(load_text):
    settings = load_text(released_by("HistoryInformed"))
    good, bad = Expected(1.0, 9.0, 5.0), Expected(4.6, 9.0, 5.0)
    assert useful_levels(settings, [good, bad]) == [0]
    assert useful_levels(settings, [bad, bad]) == [0]
    assert useful_levels(settings, [bad, good]) == useful_levels(settings, [good, good]) == []
    some = load_text(released_by("HistoryInformed"), ("[published]\n", "[published]\nlevels = [0]\n"))
    assert useful_levels(some, [good, bad]) == []


def test_a_floor_moves_shares_to_the_one_that_needs_it_more():
    """Root mean squares of noise over a share and of a floor: brute force over 1/32 finds nothing better."""

    def error(floor):
        return lambda share: (floor**2 + float(1 / share) ** 2) ** 0.5

    errors = [error(1.0), error(20.0), error(0.0)]
    found = choose_stream_shares(errors, Fraction(1))

    def mean(shares):
        return (errors[0](shares[0]) * errors[1](shares[1]) * errors[2](shares[2])) ** (1 / 3)

    grid = [
        (Fraction(a, 32), Fraction(b, 32), Fraction(32 - a - b, 32))
        for a in range(1, 31)
        for b in range(1, 32 - a)
    ]
    assert mean(found) <= 1.01 * min(map(mean, grid))
    assert found[1] < found[0] <= found[2]


def test_only_streams_of_one_population_share(load_text):
    def load(name, *changes):
        return load_text(CONFIGURATION, ('name = "two-regions"', f'name = "{name}"'), *changes)

    share = ("[budget]", '[budget]\nstream_share = "1/4"')
    assert total_of([load("a"), load("b")]) == 1
    assert total_of([load("a", share), load("b", share)]) == Fraction(1, 2)
    with pytest.raises(ConfigurationError, match="must have the same population: only streams of one"):
        total_of([load("a"), load("b", ('population = "people"', 'population = "others"'))])
    with pytest.raises(ConfigurationError, match="must be of different streams; got a, a"):
        total_of([load("a"), load("a")])


def test_other_keys_stay_in_a_proposal(load_text, tmp_path):
    proposed, again = tmp_path / "proposed.toml", tmp_path / "again.toml"
    settings = load_text(released_by("Laplace"), ("[budget]", '[budget]\nstream_share = "1/2"  # gas'))
    write_proposal(settings, {"budget": {"levels": ["1/4", "3/4"]}}, proposed)
    assert 'stream_share = "1/2"  # gas' in proposed.read_text()
    write_proposal(load_settings(proposed), {"budget": {"stream_share": "5/8"}}, again)
    assert load_settings(again).budget.stream_share == Fraction(5, 8)


SECTORS = '[hierarchy.margins]\nsector = ["industry", "homes"]\n[budget]\nmargins = { sector = "1/4" }\n'


@pytest.mark.nightly
def test_plans_with_a_margin_have_shares_and_errors_of_it_and_are_written(load_text):
    text = released_by("Laplace").replace('levels = ["1/2", "1/2"]', 'levels = ["1/4", "1/4", "1/4"]')
    settings = load_text(text, ("[budget]\n", SECTORS), *HOURLY)
    found = compare_plans(settings, 1000.0)
    assert found.levels == ("level 0", "level 1", "level 2", "sector")
    assert [one.size for one in found.configured.expected] == [4_000, 2_000, 1_000, 2_000]
    for plan in found.plans:
        budget = plan.choice.keys.get("budget")
        if budget is not None:
            shares = [*budget["levels"], budget["margins"]["sector"]]
            assert tuple(map(Fraction, shares)) == plan.level_shares
            assert sum(plan.level_shares) == 1
    keys = {"budget": {"levels": ["1/8", "1/8", "1/4"], "margins": {"sector": "1/2"}}}
    write_proposal(settings, keys, settings.folder / "proposed.toml")
    proposed = load_settings(settings.folder / "proposed.toml")
    assert proposed.level_shares == tuple(map(Fraction, ("1/8", "1/8", "1/4", "1/2")))
    assert 'margins = { sector = "1/2" }' in as_toml(keys)
