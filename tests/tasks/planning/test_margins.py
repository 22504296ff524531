"""What a dry run and the advice say of a hierarchy with a margin."""

from datetime import date

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tasks.config.example_kinds import Kind, example_of
from tasks.planning.advice.compare_plans import compare_plans
from tasks.planning.dry_run import dry_run
from tasks.planning.preview import dry_run_document

DAY = date(2016, 2, 1)
SECTORS = '[hierarchy.margins]\nsector = ["industry", "homes"]\n[budget]\nmargins = { sector = "1/4" }\n'


@pytest.fixture
def settings(tmp_path):
    text = example_of(Kind("Laplace", False, False, 2)).replace("[budget]\n", SECTORS)
    path = tmp_path / "optstream.toml"
    path.write_text(text.replace('levels = ["1/2", "1/2"] ', 'levels = ["1/4", "1/4", "1/4"] '))
    return load_settings(path)


def test_a_dry_run_names_the_margin_and_prices_it_as_a_level(settings):
    found = dry_run(settings, [DAY])
    (period,) = found.periods
    assert [level.name for level in period.levels] == ["level 0", "level 1", "level 2", "sector"]
    assert [level.n_nodes for level in period.levels] == [1, 12, 24, 2]
    margin = period.levels[-1]
    assert margin.epsilon == pytest.approx(0.25)
    assert 0 < margin.band.typical < period.levels[2].band.typical * 12**0.5, "less than adding up its cells"
    assert found.fits
    (document,) = dry_run_document(found)["periods"]
    assert [level["name"] for level in document["levels"]][-1] == "sector"


def test_plans_with_a_margin_are_not_compared(settings):
    with pytest.raises(ConfigurationError, match=r"plans with hierarchy\.margins are not compared"):
        compare_plans(settings, scale=1000.0)
