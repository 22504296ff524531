"""The recommendation for a stream: tried on public days, by keys that the configuration takes."""

import shutil
import tomllib
from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream.errors import DumpError, ParameterError
from studies.papers.advice import advise, public_days, simulated_days
from tasks.config import load_settings
from tasks.planning.advice.candidates import mechanism_choices, share_choices
from tasks.release.build_mechanism import mechanism_for

DAYS = [date(2025, 1, 15), date(2025, 1, 16)]


def as_toml(tables):
    def value(given):
        if isinstance(given, list):
            return f"[{', '.join(map(value, given))}]"
        return str(given) if isinstance(given, int) else f'"{given}"'

    def lines(name, table):
        plain = {key: entry for key, entry in table.items() if not isinstance(entry, dict)}
        yield f"[{name}]"
        yield from (f'"{key}" = {value(entry)}' for key, entry in plain.items())
        for key, entry in table.items():
            if isinstance(entry, dict):
                yield from lines(f'{name}."{key}"', entry)

    return "\n".join(line for name, table in tables.items() for line in lines(name, table))


def configured_with(stream, keys, folder):
    """The stream's configuration with a choice's tables in the place of its own."""
    document = tomllib.loads(stream.settings.file.read_text())
    if keys.get("mechanism", {}).get("name", "OptStream") != "OptStream":
        document = {name: table for name, table in document.items() if name not in ("sampling", "features")}
    for name, table in keys.items():
        document[name] = {**document.get(name, {}), **table} if name == "budget" else table
    file = folder / "chosen.toml"
    file.write_text(as_toml(document))
    return load_settings(file)


@pytest.mark.slow
def test_every_choice_is_what_its_keys_make_of_the_configuration(small, tmp_path):
    stream = small()
    choices = list(mechanism_choices(stream.settings))
    choices += share_choices(choices[1])
    assert len({choice.label for choice in choices}) == len(choices) > 15
    for choice in choices:
        written = configured_with(stream, choice.keys, tmp_path)
        assert mechanism_for(written, DAYS[0]) == mechanism_for(choice.settings, DAYS[0]), choice.label


@pytest.mark.slow
def test_the_best_is_the_one_that_misses_least_and_nothing_private_is_read(small):
    settings = small().settings
    before = sorted(settings.folder.rglob("*"))
    days = simulated_days(settings, DAYS, 50.0)
    advice = advise(settings, days, trials=2, seed=1)
    assert [one.relative for one in advice.mechanisms] == sorted(one.relative for one in advice.mechanisms)
    everything = (*advice.mechanisms, *advice.shares)
    assert advice.best.relative == min(one.relative for one in everything)
    by_name = {one.choice.label: one for one in advice.mechanisms}
    # by hand: the nation's steps in joint noise by eights, of which a window meets 7 groups at most, have
    # scale 10 MW · 7 / (1/2), and a mean error of (8 + 1) / 2 scales
    assert by_name["Laplace"].errors[0] == pytest.approx(630, rel=0.5)
    assert sorted(settings.folder.rglob("*")) == before
    again = advise(settings, days, trials=2, seed=1)
    assert [one.errors for one in again.mechanisms] == [one.errors for one in advice.mechanisms]


def test_public_dumps_are_read_in_the_streams_own_layout(small, tmp_path):
    stream = small()
    for region, level in (("84", 3.0), ("11", 4.0)):
        for day in DAYS:
            stream.write(region, stream.rows(level, day), day)
    folder = tmp_path / "public"

    def published():
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(stream.settings.input_folder, folder)

    days = public_days(stream.settings, published(), DAYS)
    leaves = stream.settings.tree_of(date.min).leaves
    assert np.array_equal(days[DAYS[1]], [[3.0 if leaf == "84" else 4.0] * 48 for leaf in leaves])
    with pytest.raises(DumpError, match=r"date=2025-01-17 holds no dump"):
        public_days(stream.settings, folder, [date(2025, 1, 17)])
    stream.write("11", stream.rows(4.0).head(47))
    with pytest.raises(DumpError, match="a number for each step"):
        public_days(stream.settings, published(), DAYS)
    stream.write("11", stream.rows(4.0).with_columns(load=pl.lit(None, pl.Float64)))
    with pytest.raises(DumpError, match="a number for each step"):
        public_days(stream.settings, published(), DAYS)


def test_the_streams_own_dumps_are_refused_links_followed(small, tmp_path):
    """How far releases miss them, and their mean, would be told without any noise or charge."""
    stream = small()
    settings, dumps = stream.settings, stream.settings.input_folder
    for region in ("84", "11"):
        for day in DAYS:
            stream.write(region, stream.rows(3.0, day), day)
    (tmp_path / "link").symlink_to(dumps)
    (tmp_path / "parts").mkdir()
    for region in dumps.glob("region=*"):
        (tmp_path / "parts" / region.name).symlink_to(region)
    for folder in (dumps, tmp_path / "link", tmp_path / "parts"):
        with pytest.raises(ParameterError, match=r"leads into input.folder, which is private: .* would leak"):
            public_days(settings, folder, DAYS)


def test_dumps_of_other_streams_of_the_population_are_refused_as_covariates_are(small, tmp_path):
    """The medians that `learn-proxy` prints of them would be published with every release of this stream."""
    stream, other = small(), tmp_path / "gas"
    for region in ("84", "11"):
        for day in DAYS:
            stream.write(region, stream.rows(3.0, day), day)
    dumps = shutil.copytree(stream.settings.input_folder, other / "delivered")
    (other / "gas.toml").write_text('[input]\nfolder = "delivered"\n\n[trusted]\nfolder = "kept"\n')
    (tmp_path / "public").symlink_to(dumps)
    budget = stream.settings.budget.model_copy(update={"shared_with": (str(other / "gas.toml"),)})
    settings = stream.settings.model_copy(update={"budget": budget})
    for folder in (dumps, tmp_path / "public", shutil.copytree(dumps, other / "kept" / "days")):
        with pytest.raises(ParameterError, match=r"gas.toml: (input|trusted).folder, which is private"):
            public_days(settings, folder, DAYS)
    (other / "gas.toml").rename(other / "optstream.toml")
    with pytest.raises(ParameterError, match=r"optstream.toml: input.folder, which is private"):
        public_days(stream.settings, dumps, DAYS)
