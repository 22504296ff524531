"""What `optstream ui` is given: files, folders, and streams of different names."""

import pytest

from flows.cli.options import WordsError, read_streams
from flows.cli.serve import configurations_of
from optstream.errors import ConfigurationError
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION


def test_files_and_folders_each_once(tmp_path):
    for name in ("b.toml", "a.toml", "notes.txt"):
        (tmp_path / name).touch()
    found = configurations_of([tmp_path / "b.toml", tmp_path])
    assert [file.name for file in found] == ["b.toml", "a.toml"]


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="has no configuration"):
        configurations_of([tmp_path])


def test_one_that_cannot_be_read_is_shown_beside_others(tmp_path):
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(CONFIGURATION)
    bad.write_text("[")
    streams, broken = read_streams([bad, good])
    assert ([one.file for one in streams], list(broken)) == ([good], [bad])


def test_what_cannot_be_read_is_refused_where_it_is_alone(tmp_path):
    (tmp_path / "bad.toml").write_text("[")
    with pytest.raises(ConfigurationError, match=r"bad\.toml"):
        invoke("ui", "--config", str(tmp_path))


def test_two_streams_of_one_name_are_refused(tmp_path):
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file in files:
        file.write_text(CONFIGURATION)
    with pytest.raises(WordsError, match="are both of stream two-regions: name one"):
        read_streams(files)
