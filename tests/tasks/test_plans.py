"""Plans: what a dry run says of one, and several compared by what one prior expects of them."""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from flows.cli.setup import as_toml
from optstream import mechanisms
from optstream.errors import ConfigurationError
from optstream.noise import simulated_noise
from optstream.privacy import worst_window
from tasks.config import load_settings
from tasks.config.schema import MECHANISMS
from tasks.plan import advise
from tasks.plan.advise import choose_stream_shares, compare_plans, total_of, useful_levels, write_proposal
from tasks.plan.dry_run import Expected, dry_run
from tasks.release import mechanism
from tasks.release.mechanism import long_spans_of, mechanism_for, plan_horizons
from tasks.release.run import Status
from tests.tasks.two_regions import CONFIGURATION, released_by

DAY = date(2025, 1, 15)
INFORMED = released_by("HistoryInformed", keys="scale = 5000")


@pytest.mark.slow
def test_each_stage_has_its_scale_and_its_price(small, load_text):
    """Quarters of epsilon for a level's samples and its features: alpha k / (1/4), alpha w F / (1/4)."""
    plain = small().settings.file.read_text()
    found = priced(load_text(plain))
    period = found.periods[0]
    assert (found.epsilon, found.grant, found.fits, found.points_known) == (1, 1, True, True)
    assert (period.n_steps, period.epsilon) == (48, 1)
    for number, level in enumerate(period.levels):
        assert (level.level, level.n_nodes, level.epsilon) == (number, 1 + number, Fraction(1, 2))
        assert [(stage.name, stage.epsilon, stage.noise[0].scale) for stage in level.stages] == [
            ("samples", Fraction(1, 4), 400.0),
            ("feature day parts", Fraction(1, 8), 3840.0),
            ("feature day", Fraction(1, 8), 3840.0),
        ]
        assert level.stages[0].noise[0].deviation == pytest.approx(400 * 2**0.5)
    # points that the draw chooses have the accountant's prices, too
    assert priced(load_text(plain, ('method = "equally_spaced"', 'method = "l1"\nthreshold = "5"'))).fits


def priced(settings):
    """A dry run of days of each length, once its prices were found to be the accountant's."""
    days = [DAY, date(2025, 3, 30), date(2025, 10, 26)]
    found = dry_run(settings, days)
    assert [period.n_steps for period in found.periods] == [48, 46, 50]
    for day, period in zip(days, found.periods, strict=True):
        mechanism = mechanism_for(settings, day)
        spends = mechanism.plan(settings.calendar.n_steps(day), settings.calendar.first_step(day))
        assert period.epsilon == worst_window(spends, 48).epsilon
        stages = [stage for level in period.levels for stage in level.stages]
        assert [stage.epsilon for stage in stages] == [worst_window([s], 48).epsilon for s in spends]
        assert all(stage.noise for stage in stages)
        assert sum(level.epsilon for level in period.levels) == mechanism.epsilon == found.epsilon
    return found


@pytest.mark.slow
def test_bands_are_those_of_the_releases(small, load_text):
    """200 releases with seeded noise, far from the bound: their spread is the band, within 8 percent."""
    wide = ('bounds = ["0", "100"]', 'bounds = ["0", "1000000"]')
    settings = load_text(small().settings.file.read_text(), wide)
    (period,) = dry_run(settings, [DAY]).periods
    mechanism = replace(mechanism_for(settings, DAY), lower_bound=None)
    noise, first_step = simulated_noise(5), settings.calendar.first_step(DAY)
    values = np.full((2, 48), 1000.0)
    drawn = [mechanism.release(values, noise=noise, first_step=first_step).values for _ in range(200)]
    spread = np.std(drawn, axis=0)
    for level, nodes in zip(period.levels, mechanism.tree.levels, strict=True):
        seen = spread[nodes.start : nodes.stop]
        assert np.sqrt((seen**2).mean()) == pytest.approx(level.band.typical, rel=0.08)
        assert level.band.least < level.band.typical < level.band.most
        assert seen.max() < 1.2 * level.band.most


OTHERS = [name for name, section in MECHANISMS.items() if "sampling" not in section.tables]
KNOWN = {"Laplace": 480.0, "Uniform": 480.0, "Sample": 10.0}
"""Scales at the whole epsilon: 48 * 10 and 10; a level has half of it, and so twice the scale."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_mechanism_has_its_prices_and_a_band_unless_the_draw_decides_it(small, load_text, name):
    found = priced(load_text(released_by(name, small().settings.file.read_text())))
    levels = found.periods[0].levels
    assert found.fits
    assert found.to_json()["plan"]["rho" if name == "Gaussian" else "epsilon"] == str(found.epsilon)
    assert all((level.band is not None) == getattr(mechanisms, name).noise_is_known for level in levels)
    if name in KNOWN:
        assert levels[1].stages[0].noise[0].scale == pytest.approx(2 * KNOWN[name], rel=1e-9)


LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(20))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OptStream", "Laplace", "BudgetAbsorption", "PeGaSus"])
def test_every_mechanism_says_its_error_and_warns_where_bounds_are_narrower(load_text, name):
    text = CONFIGURATION.replace('84 = "FR"\n11 = "FR"\n', LEAVES)
    text = text if name == "OptStream" else released_by(name, text)
    bounds = [f'bounds = ["0", "{high}"]' for high in (2, 20_000, 1_000_000)]
    narrow, wide = (dry_run(load_text(text, (bounds[1], one)), [DAY]) for one in bounds[::2])
    expected = [level.expected for level in narrow.periods[0].levels]
    assert all(one.size is None and 0 < one.error < np.inf for one in expected)
    if expected[1].error > 2:
        assert any("a reading lies between 0 and 2 anyway" in one for one in narrow.warnings)
    assert name not in ("OptStream", "Laplace") or narrow.warnings
    assert wide.warnings == ()


def test_it_reads_the_ledger_and_says_a_full_window_that_a_run_is_refused_for(installation):
    first, second, third = (date(2016, 2, day) for day in (1, 2, 4))
    assert dry_run(installation.settings, [first]).ledger.says.startswith("there is no ledger yet")
    installation.simulate(first, second, third)
    installation.released(first)
    installation.configure("n_samples = 10", "n_samples = 3")
    found = dry_run(installation.settings, [first, second, third])
    assert found.epsilon <= found.grant
    assert (found.ledger.refused, found.fits) == ((second,), False)
    assert found.ledger.says == (
        "the ledger has 2016-02-01 in it already: a run charges none again; 2016-02-02 without room in a "
        "window, and will be refused: see `optstream ledger show`"
    )
    assert [installation.status(day) for day in (second, third)] == [Status.REFUSED, Status.PUBLISHED]
    installation.configure('alpha = "1"', 'alpha = "2"')
    said = dry_run(installation.settings, [second]).ledger.says
    assert said.startswith("the ledger was not read, so a full window would not be seen: ")


@pytest.mark.slow
def test_planned_revisions_are_part_of_the_plan(small):
    settings = small().settings
    changed = {"restatement_share": Fraction(2, 3), "revisions": 2}
    planned = settings.model_copy(update={"budget": settings.budget.model_copy(update=changed)})
    for (_, alone), (_, all_three) in zip(*map(plan_horizons, (settings, planned), (DAY, DAY)), strict=True):
        assert all_three.plain == pytest.approx(alone.plain)
        assert all_three.epsilon <= alone.epsilon * 1.001


FIRST, N_DAYS = date(2025, 1, 6), 9


def store_jumping_days(settings):
    random, state = np.random.default_rng(3), None
    for number in range(N_DAYS):
        day = FIRST + timedelta(number)
        values = np.minimum(5000 * np.exp(random.normal(0, 0.2, (2, 48))), 20_000).round(3)
        at = settings.calendar.first_step(day)
        mechanism = mechanism_for(settings, day)
        measured = mechanism.measure(values, noise=simulated_noise(number), first_step=at, state=state)
        state = measured.state
    folder = settings.measurements_of(day, 0)
    folder.mkdir(parents=True)
    (folder / "measured").write_bytes(measured.to_bytes())


@pytest.mark.slow
def test_dry_run_and_advice_expect_what_was_learned_and_propose_its_blocks(load_text, monkeypatch):
    settings = load_text(INFORMED, ('alpha = "1"', 'alpha = "20"'))
    own = [one for one in advise.mechanism_choices(settings) if one.label.startswith("HistoryInformed")]
    assert own
    monkeypatch.setattr(advise, "mechanism_choices", lambda _: own)
    day = FIRST + timedelta(N_DAYS)
    general, general_plan = dry_run(settings, [day]).periods[0].levels, compare_plans(settings).configured
    assert general_plan.expected == tuple(level.expected for level in general)
    store_jumping_days(settings)
    learned, found = dry_run(settings, [day]).periods[0].levels, compare_plans(settings)
    assert found.configured.expected == tuple(level.expected for level in learned)
    # the blocks that run stay as they are, and are known to miss more
    assert [level.stages for level in learned] == [level.stages for level in general]
    assert all(a.expected.error < b.expected.error for a, b in zip(general, learned, strict=True))
    proposed = min(found.plans, key=lambda one: one.relative)
    blocks = mechanism_for(settings, day).common_blocks
    assert proposed.choice.keys["mechanism"]["n_blocks"] > blocks["n_blocks"]
    assert proposed.relative < found.configured.relative
    assert mechanism_for(proposed.choice.settings, day).common_blocks["n_blocks"] > blocks["n_blocks"]


# The month and the year of a statement: of the plan alone, composed once, and kept for the nights after.

FIRST_OF_JUNE, LATER = date(2016, 6, 1), date(2016, 10, 30)


@pytest.fixture
def composed(whole_spans, monkeypatch):
    """The days for which it was composed, rather than looked up."""
    days = []

    def count(settings, day, revision):
        days.append(day)
        return plan_horizons(settings, day, revision)

    monkeypatch.setattr(mechanism, "plan_horizons", count)
    monkeypatch.setattr(mechanism, "_made", {})  # as in a new process
    return days


@pytest.mark.slow
def test_it_is_the_dry_runs_figure_rounded_up_and_the_same_all_year(small, composed):
    settings = small().settings
    month, year = long_spans_of(settings, FIRST_OF_JUNE, 0)
    for span, (n_days, loss) in zip((month, year), dry_run(settings, [FIRST_OF_JUNE]).horizons, strict=True):
        assert (span.n_days, span.delta, span.composed) == (n_days, loss.delta, loss.composed)
        assert n_days <= loss.plain < n_days + 0.1  # of epsilon 1 a day
        assert loss.epsilon <= span.epsilon <= 1.001 * loss.epsilon
        assert loss.plain <= span.plain_sum <= loss.plain * 1001 / 1000
    assert long_spans_of(settings, LATER, 0) == (month, year)
    assert composed == [FIRST_OF_JUNE]


@pytest.mark.slow
@pytest.mark.nightly
def test_another_process_takes_it_from_the_file_unless_that_is_damaged(small, composed, monkeypatch):
    settings = small().settings
    found = long_spans_of(settings, FIRST_OF_JUNE, 0)
    monkeypatch.setattr(mechanism, "_made", {})
    assert long_spans_of(settings, LATER, 0) == found
    assert composed == [FIRST_OF_JUNE]
    for damage in (b"", b"[1]", b"\xff"):
        settings.long_spans_file.write_bytes(damage)
        monkeypatch.setattr(mechanism, "_made", {})
        assert long_spans_of(settings, FIRST_OF_JUNE, 0) == found
    assert composed == [FIRST_OF_JUNE] * 4
    monkeypatch.setattr(mechanism, "_made", {})
    settings.long_spans_file.unlink()
    settings.long_spans_file.mkdir()  # cannot be written either
    assert long_spans_of(settings, FIRST_OF_JUNE, 0) == found


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
    found = compare_plans(load_text(INFORMED, COARSE, ('["1/2", "1/2"]', '["19/24", "5/24"]')))
    assert found.plans[0].relative > 0.97 * found.configured.relative
    assert found.best is found.configured


@pytest.mark.slow
def test_other_mechanisms_are_judged_by_their_whole_error(load_text):
    """Of five samples a day noise is not all that is missed: what lies between them is."""
    fine = load_text(CONFIGURATION, ('alpha = "1"', 'alpha = "0.001"'), ("n_samples = 10", "n_samples = 5"))
    judged = advise.Judge(fine, 5000.0).judged(advise.Choice("as configured", {}, fine))
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

    parts = [(a, b, 32 - a - b) for a in range(1, 31) for b in range(1, 32 - a)]
    grid = [[Fraction(part, 32) for part in shares] for shares in parts]
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
