"""What streams of one population say once, in a file that each of them names."""

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings, stream_files
from tests.tasks.config.conftest import refused
from tests.tasks.two_regions import POPULATION, two_products


@pytest.fixture
def products(tmp_path):
    return two_products(tmp_path)


def test_the_file_changes_no_hash(products):
    gas = products["gas"]
    before = gas.settings.configuration_hash
    gas.configure('population_file = "../population.toml"', "")
    gas.configure(
        "[privacy]", '[privacy]\nepsilon = "1"\nwindow = 48\npopulation = "people"\nbudget_alpha = "1"'
    )
    gas.configure("[stream]", '[stream]\nstep = "30min"\ntime_zone = "Europe/Paris"')
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "sqlite:///../ledger/ledger.sqlite"\n')
    assert gas.settings.configuration_hash == before


def test_what_is_said_twice_must_be_the_same(products):
    gas = products["gas"]
    gas.configure('alpha = "3"', 'alpha = "3"\nepsilon = "1"')
    assert gas.settings.model.epsilon == 1
    gas.configure('epsilon = "1"', 'epsilon = "2"')
    message = refused(load_settings, gas.folder / "optstream.toml")
    assert "privacy.epsilon is another in" in message
    assert "got '2' and '1': say it once, there" in message


def test_another_ledger_is_refused_and_not_shown(products):
    gas = products["gas"]
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "postgresql://u:secret@there/ledger"\n')
    message = refused(load_settings, gas.folder / "optstream.toml")
    assert "ledger.url is another in" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("window = 48", "window = 0", "privacy.window must be an integer in [1, 1000000]; got 0 (in "),
        ("window = 48", 'window = 48\nalpha = "1"', "privacy.alpha is each stream's own"),
        ("[stream]", "[streams_]", "streams_ is none of its tables; did you mean streams?"),
        ('"gas/optstream.toml"', '"heat.toml"', "whose streams do not list it: add it there"),
        ("streams = [", "streams = [1, ", "streams must be a list of at most 33 paths"),
        (
            'streams = ["electricity/optstream.toml", "gas/optstream.toml"]\n[privacy]',
            "[privacy",
            "is not TOML",
        ),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_its_place(products, tmp_path, before, after, message):
    assert before in POPULATION
    (tmp_path / "population.toml").write_text(POPULATION.replace(before, after))
    found = refused(load_settings, tmp_path / "gas/optstream.toml")
    assert message in found
    assert "population.toml" in found


def test_a_population_file_is_no_configuration_and_names_those_of_its_streams(products, tmp_path):
    file = tmp_path / "population.toml"
    assert "is the file of a population" in refused(load_settings, file)
    own = [tmp_path / name / "optstream.toml" for name in products]
    assert stream_files([file]) == own
    assert stream_files([own[1], file]) == own[::-1]
    assert stream_files([tmp_path / "absent.toml"]) == [tmp_path / "absent.toml"]
    file.write_text("streams = []\n")
    with pytest.raises(ConfigurationError, match="streams must list"):
        stream_files([file])
