"""Folders that a covariate's place must not lead into, as files on the machine tell of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.trusted.covariates import private_zones


def settings_of(folder, population_file=None):
    return SimpleNamespace(
        folder=folder,
        input_folder=folder / "dumps",
        trusted_folder=folder / "trusted",
        privacy=SimpleNamespace(population_file=population_file),
    )


def stream(folder, zone="dumps"):
    """A configuration that says this input folder."""
    folder.mkdir(parents=True)
    (folder / "optstream.toml").write_text(f'[input]\nfolder = "{zone}"\n')
    return folder / "optstream.toml"


def zones(settings, place):
    return {zone.resolve() for zone in private_zones(settings, Path(place)).values()}


def test_a_folder_that_is_a_streams_own_is_known_by_the_configuration_in_it(tmp_path):
    """Its dumps lie beside its configuration, and the covariate is the folder itself."""
    stream(tmp_path / "gas", ".")
    assert tmp_path / "gas" in zones(settings_of(tmp_path / "load"), tmp_path / "gas")


@pytest.mark.parametrize("damaged", ["no population", "link to itself"])
def test_one_file_that_is_not_usable_hides_no_other(tmp_path, damaged):
    bad, gas = tmp_path / "bad.toml", stream(tmp_path / "gas")
    if damaged == "no population":
        bad.write_text("streams = 1\n")
    else:
        bad.symlink_to(bad)
    found = zones(settings_of(tmp_path / "load", str(bad)), gas.parent / "weather.csv")
    assert tmp_path / "gas/dumps" in found
