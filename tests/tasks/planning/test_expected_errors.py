"""The expected error beside the typical size: what is as good as nothing is said before anything is spent."""

import re
from datetime import date

import numpy as np
import pytest

from optstream.mechanisms.history_informed_tree import choose_plan_blocks, expected_level_misses, tree_figures
from tasks.config import load_settings
from tasks.plan.dry_run import dry_run
from tasks.plan.expected import dry_run_document
from tasks.release.mechanism import mechanism_for
from tests.tasks.two_regions import CONFIGURATION

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(20))
SAMPLING = re.search(r"\[sampling\]\n(?:[a-z].*\n)+", CONFIGURATION).group()


@pytest.fixture
def found(load_text):
    """Dry-run a stream of twenty leaves under a mechanism's table, with other texts replaced."""

    def look(mechanism, *changes):
        text = CONFIGURATION.replace('84 = "FR"\n11 = "FR"\n', LEAVES)
        if '"OptStream"' not in mechanism:
            text = text.replace(SAMPLING, "")
        text = text.replace('name = "OptStream"\n', mechanism + "\n")
        return dry_run(load_text(text, *changes), [DAY])

    return look


INFORMED = 'name = "HistoryInformed"\nscale = {}'
WHOLE = ('bounds = ["0", "20000"]', 'bounds = ["0", "20000"]\nresolution = "1"\ncounts = true')


def test_a_level_below_its_noise_is_as_good_as_nothing(found):
    """Leaves of 0.1 an hour: small counts; the nation above them is not."""
    result = found(INFORMED.format(0.1), WHOLE)
    nation, leaves = result.periods[0].levels
    assert leaves.expected.size == pytest.approx(0.1)
    assert leaves.expected.error > 0.09
    assert any(one.startswith("level 1: error") and "as good as nothing" in one for one in result.warnings)
    document = dry_run_document(result)
    assert document["warnings"] == list(result.warnings)
    assert document["periods"][0]["levels"][0]["expected"]["size"] == pytest.approx(2)
    assert nation.expected.error > 0


def test_noise_far_above_the_public_scale_is_said_though_the_prior_bounds_the_error(found):
    """Leaves of 0.01 with an alpha of 1: what is published is the public scale, whatever was measured."""
    result = found(INFORMED.format(0.01))
    leaves = result.periods[0].levels[1].expected
    assert leaves.error < leaves.size
    assert leaves.error >= 0.9 * leaves.unmeasured
    assert any(one.startswith("level 1: error") and "as good as nothing" in one for one in result.warnings)


def test_a_level_far_above_its_noise_is_not_warned_of(found):
    result = found(INFORMED.format(5000.0))
    assert result.warnings == ()
    assert all(level.expected.error < 0.1 * level.expected.size for level in result.periods[0].levels)


@pytest.mark.parametrize(
    "name", ["OptStream", "Laplace", "Uniform", "Fourier", "BudgetAbsorption", "PeGaSus", "Fast"]
)
def test_every_mechanism_says_its_error_and_warns_where_bounds_are_narrower(found, name):
    """Bounds of 2 under noise of hundreds: what the issue's publisher was not told."""
    result = found(f'name = "{name}"', ('bounds = ["0", "20000"]', 'bounds = ["0", "2"]'))
    levels = result.periods[0].levels
    assert all(level.expected.size is None and np.isfinite(level.expected.error) for level in levels)
    assert all(level.expected.error > 0 for level in levels)
    if levels[1].expected.error > 2:
        assert any("a reading lies between 0 and 2 anyway" in one for one in result.warnings)
    assert name not in ("OptStream", "Laplace") or result.warnings
    wide = found(f'name = "{name}"', ('bounds = ["0", "20000"]', 'bounds = ["0", "1000000"]'))
    assert wide.warnings == ()


def test_bounds_of_a_customers_reading_say_nothing_of_a_leaf_that_adds_them_up(found):
    narrow = ('bounds = ["0", "20000"]', 'bounds = ["0", "2"]')
    metered = ('schema = "aggregated"', 'schema = "metered"')
    assert found('name = "Laplace"', narrow).warnings
    assert found('name = "Laplace"', narrow, metered).warnings == ()


def test_a_lower_bound_that_nobody_wrote_is_told_of_where_readings_may_be_negative(found):
    negative = '["-20000", "20000"]'
    (told,) = found('name = "Laplace"', ('["0", "20000"]', negative)).warnings
    assert told.startswith("privacy.lower_bound is left out, so nothing below 0 is published")
    assert 'write "-20000" to keep what is negative' in told
    metered = ('schema = "aggregated"', 'schema = "metered"')
    (told,) = found('name = "Laplace"', ('["0", "20000"]', negative), metered).warnings
    assert "write the least sum of a leaf to keep what is negative" in told
    counts = negative + '\nresolution = "1"\ncounts = true'
    assert found('name = "Laplace"', ('["0", "20000"]', counts)).warnings == ()
    assert found('name = "Laplace"', ('["0", "20000"]', negative + '\nlower_bound = "0"')).warnings == ()
    assert found('name = "Laplace"').warnings == ()


def test_without_a_public_scale_nothing_is_expected_of_what_is_relative_to_it(found):
    result = found('name = "HistoryInformed"')
    assert [level.expected for level in result.periods[0].levels] == [None, None]
    assert result.warnings == ()
    assert dry_run_document(result)["periods"][0]["levels"][0]["expected"] is None


def test_the_figures_are_those_that_shares_are_chosen_by(found, tmp_path):
    result = found(INFORMED.format(0.5), WHOLE)
    mechanism = mechanism_for(load_settings(tmp_path / "optstream.toml"), DAY)
    plan = mechanism.tree, tree_figures(mechanism.pattern, mechanism.tree), mechanism.level_shares
    misses = expected_level_misses(*plan, choose_plan_blocks(*plan))
    sizes = np.array([10.0, 0.5])
    assert [level.expected.error for level in result.periods[0].levels] == pytest.approx(misses * sizes)
