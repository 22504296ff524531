"""The dry run of every other mechanism: prices are the plan's own; bands only where they are known."""

from datetime import date

import pytest

from optstream import mechanisms
from tasks.config import load_settings
from tasks.config.schema import MECHANISMS
from tasks.plan.dry_run import dry_run
from tests.tasks.plan.test_dry_run import priced
from tests.tasks.two_regions import released_by

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
OTHERS = [name for name, section in MECHANISMS.items() if "sampling" not in section.tables]
KNOWN = {"Laplace": 480.0, "Uniform": 480.0, "Sample": 10.0}
"""Scales at the whole epsilon: 48 * 10 and 10; a level has half of it, and so twice the scale."""


@pytest.fixture
def settings_of(small):
    def make(name):
        file = small().settings.file
        file.write_text(released_by(name, file.read_text()))
        return load_settings(file)

    return make


@pytest.mark.parametrize("name", OTHERS)
def test_prices_are_the_accountants(settings_of, name):
    found = priced(settings_of(name))
    assert found.fits
    assert found.to_json()["plan"]["rho" if name == "Gaussian" else "epsilon"] == str(found.epsilon)


@pytest.mark.parametrize("name", OTHERS)
def test_bands_are_shown_only_where_the_draw_does_not_decide_them(settings_of, name):
    levels, known = (
        dry_run(settings_of(name), [DAY]).periods[0].levels,
        getattr(mechanisms, name).noise_is_known,
    )
    assert all((level.band is not None) == known for level in levels)
    if name in KNOWN:
        assert levels[1].stages[0].noise[0].scale == pytest.approx(2 * KNOWN[name], rel=1e-9)
