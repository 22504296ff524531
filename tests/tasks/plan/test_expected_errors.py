"""The expected error beside the typical size: what is as good as nothing is said before anything is spent."""

import re
from datetime import date

import numpy as np
import pytest

from optstream.mechanisms.history_informed_tree import choose_plan_blocks, expected_level_misses, tree_figures
from tasks.config import load_settings
from tasks.plan.dry_run import dry_run
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
    document = result.to_json()
    assert document["warnings"] == list(result.warnings)
    assert document["periods"][0]["levels"][0]["expected"]["size"] == pytest.approx(2)
    assert nation.expected.error > 0


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


def test_the_figures_are_those_that_shares_are_chosen_by(found, tmp_path):
    result = found(INFORMED.format(0.5), WHOLE)
    mechanism = mechanism_for(load_settings(tmp_path / "optstream.toml"), DAY)
    plan = mechanism.tree, tree_figures(mechanism.pattern, mechanism.tree), mechanism.level_shares
    misses = expected_level_misses(*plan, choose_plan_blocks(*plan))
    sizes = np.array([10.0, 0.5])
    assert [level.expected.error for level in result.periods[0].levels] == pytest.approx(misses * sizes)
