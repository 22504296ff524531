"""`python -m studies learn-proxy`: from public dumps of other regions to a configuration that loads."""

import json
import shutil
import tomllib
from datetime import date

import pytest

from optstream.errors import DumpError, ParameterError
from optstream.mechanisms.history_informed import medians_of, with_medians
from optstream.stream import days_from
from tasks.config import load_settings
from tasks.operate.simulate import simulate
from tests.faults.world import CONFIGURATION
from tests.studies.command import invoke

DAYS = days_from(date(2015, 3, 2), date(2015, 3, 29))
"""28, the last of 23 hours where clocks change."""


@pytest.fixture
def config(tmp_path):
    """A stream of HistoryInformed, and public dumps of two regions that it does not have."""
    place = tmp_path / "optstream.toml"
    own = {"mechanism": "HistoryInformed", "sampling": "", "dumps": "dumps"}
    place.write_text(CONFIGURATION.format(**own, ledger="sqlite:///trusted/ledger.sqlite"))
    made = {"leaves": ("24", "27"), "calendar": load_settings(place).calendar, "days": DAYS, "seed": 1}
    simulate(tmp_path / "public", **made)
    return place


def learn(config, *changes, data="public", last=DAYS[-1]):
    words = ["--config", str(config), "--data", str(config.parent / data), "--name", 'données "ouvertes"']
    return invoke("learn-proxy", *words, "--from", str(DAYS[0]), "--to", str(last), *changes)


@pytest.mark.nightly
def test_what_it_prints_are_medians_of_a_prior(config):
    said = learn(config, "--country", "FR")
    assert said.exit_code == 0, said.output
    settings = load_settings(config)
    learned = json.loads(learn(config, "--country", "FR", "--json").stdout)
    assert learned["learned_from"] == 'données "ouvertes", 2015-03-02 to 2015-03-29'
    table = tomllib.loads(said.output[said.output.index("outweighs them:") :].partition("\n")[2])
    assert table == learned["medians"] == medians_of(with_medians(learned["medians"]))
    assert not settings.input_folder.exists()
    assert not (config.parent / "trusted").exists()


@pytest.mark.nightly
def test_days_that_clocks_make_short_are_days(config):
    config.write_text(config.read_text().replace('"UTC"', '"Europe/Paris"'))
    assert load_settings(config).calendar.n_steps(DAYS[-1]) == 23
    shutil.rmtree(config.parent / "public")
    made = {"leaves": ("24", "27"), "calendar": load_settings(config).calendar, "days": DAYS, "seed": 1}
    simulate(config.parent / "public", **made)
    assert learn(config).exit_code == 0


@pytest.mark.slow
def test_no_dump_of_the_stream_slips_in_by_a_link_or_a_folder_below(config):
    folder = config.parent
    (folder / "public").rename(folder / "dumps")
    mixed, below = folder / "mixed", folder / "dumps/old"
    for place in (mixed, below):
        place.mkdir()
    (mixed / "region=24").symlink_to(folder / "dumps/region=24")
    (below / "region=24").mkdir()
    by_file = folder / "files/region=24"
    for day in DAYS:
        (by_file / f"date={day}").mkdir(parents=True)
        for file in (folder / f"dumps/region=24/date={day}").glob("*.parquet"):
            (by_file / f"date={day}" / file.name).symlink_to(file)
    for data in ("mixed", "dumps/old", "files"):
        with pytest.raises(ParameterError, match="would leak"):
            learn(config, data=data)


@pytest.mark.slow
def test_a_region_is_read_by_its_name_and_a_broken_dump_is_said(config):
    """What a pattern would take for its own is part of a name; polars may panic over bytes, not raise."""
    public = config.parent / "public"
    (public / "region=24").rename(public / "region=[2]?*")
    assert learn(config).exit_code == 0
    dump = public / f"region=[2]?*/date={DAYS[3]}"
    (file,) = dump.glob("*.parquet")
    for broken in (b"", b"PAR1" + bytes(100) + b"PAR1", file.read_bytes()[:-20]):
        file.write_bytes(broken)
        with pytest.raises(DumpError, match="holds no dump with the configured columns"):
            learn(config)
    file.unlink()
    with pytest.raises(DumpError, match="holds no dump"):
        learn(config)
