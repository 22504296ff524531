"""What `optstream ui` is given: files, folders, and streams of different names."""

import pytest

from flows.cli.serve import configurations_of, readable
from optstream.errors import ConfigurationError, OptStreamError
from tests.tasks.two_regions import CONFIGURATION


def test_files_and_folders_each_once(tmp_path):
    for name in ("b.toml", "a.toml", "notes.txt"):
        (tmp_path / name).touch()
    found = configurations_of([tmp_path / "b.toml", tmp_path])
    assert [file.name for file in found] == ["b.toml", "a.toml"]


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="has no configuration"):
        configurations_of([tmp_path])


def test_two_streams_of_one_name_are_refused(tmp_path):
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file in files:
        file.write_text(CONFIGURATION)
    with pytest.raises(ConfigurationError, match="stream 'two-regions': show each stream once"):
        readable(files)
    assert [one.file for one in readable(files[:1])] == files[:1]


def test_one_that_cannot_be_read_is_shown_beside_others_and_refused_alone(tmp_path):
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(CONFIGURATION)
    bad.write_text("[")
    assert [one.file for one in readable([bad, good])] == [good]
    with pytest.raises(OptStreamError, match=r"bad\.toml"):
        readable([bad])
    with pytest.raises(ConfigurationError, match="no configuration can be read"):
        readable([bad, tmp_path / "absent.toml"])
