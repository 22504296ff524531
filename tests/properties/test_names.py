"""Names of regions and nodes never become a path that leaves its folder."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optstream.errors import ConfigurationError, DumpError
from tasks.config import load_settings
from tasks.config.fields import is_node_name
from tasks.config.templates import EXAMPLE
from tests.properties.configurations import quoted
from tests.properties.damage import NAMES
from tests.properties.dumps import FIRST_DAY

HARMLESS = {"84 ", "FR", "CON", "84\u0301", "date", "é" * 100}


@settings(deadline=None, derandomize=True, database=None, max_examples=200)
@given(st.text(max_size=30))
@example("..")
@example("a/../b")
@example("a%2Fb")
@example("a\\b")
@pytest.mark.slow
def test_a_node_name_is_one_plain_part_of_a_path(name):
    if not is_node_name(name):
        return
    for part in (name, f"region={name}"):
        assert PurePosixPath(part).parts == (part,) == PureWindowsPath(part).parts
        assert part not in ("", ".", "..")
        assert part.isprintable()
    assert "%" not in name


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in HARMLESS and name.isascii()], ids=repr
)
def test_a_node_of_a_path_like_name_is_refused_with_the_rule(name, tmp_path):
    path = tmp_path / "optstream.toml"
    path.write_text(EXAMPLE.replace('84 = "', f'{quoted(name)} = "'))
    with pytest.raises(ConfigurationError, match=r"must name nodes.*starting with a letter or digit"):
        load_settings(path)


@pytest.mark.parametrize("name", ["%38%34", "..%2F84", "84%00", "..", ".", " ", "84\n", "\udcff"])
def test_a_folder_of_another_name_is_not_read_as_a_region(world, name):
    """An escaped name, as Hive writes it, is an unknown region and stops the day; it is not unescaped."""
    world.deliver_whole_day()
    (world.hostile / f"region={name}" / f"date={FIRST_DAY}").mkdir(parents=True)
    found = world.found()
    assert type(found) is DumpError
    assert "is not a leaf of the hierarchy" in str(found)
    assert str(found).isprintable()


@pytest.mark.parametrize("what", ["file", "day", "region"])
def test_a_link_that_leads_outside_the_input_folder_is_refused(world, what):
    world.deliver_whole_day()
    place = {"region": "region=11", "day": f"region=11/date={FIRST_DAY}"}
    linked = world.hostile / place.get(what, f"region=11/date={FIRST_DAY}/part-0.parquet")
    away = world.hostile.parent / f"away-{what}"
    linked.rename(away)
    linked.symlink_to(away)
    found = world.found()
    assert type(found) is DumpError
    assert "leads outside the input folder; deliver the file itself" in str(found)
    assert Path(away).exists()
    # a link inside is the supplier's own business
    inside = world.hostile / f"_kept-{what}"
    linked.unlink()
    away.rename(inside)
    linked.symlink_to(inside)
    assert not isinstance(world.found(), Exception)
