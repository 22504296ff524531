"""What ledger and folders take: sizes and times of files, by part, and not at every look."""

import os
from datetime import timedelta
from types import SimpleNamespace

from sqlalchemy import make_url

from tasks.ui.growth import EVERY, NEW, Part, growth_of
from tasks.ui.words import size_in_words
from tests.tasks.ui.conftest import AT


def put(path, size, age):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, times=((AT - age).timestamp(),) * 2)


def settings_of(folder, url="sqlite:///{}/trusted/ledger.sqlite"):
    published, trusted = folder / "published", folder / "trusted"
    return SimpleNamespace(
        published_folder=published, trusted_folder=trusted, ledger_url=make_url(url.format(folder))
    )


def test_parts_by_size_with_what_is_new(tmp_path):
    put(tmp_path / "published/data/date=2016-06-01/a.parquet", 500, 2 * NEW)
    put(tmp_path / "published/catalogue.json", 30, timedelta())
    put(tmp_path / "trusted/ledger.sqlite", 100, timedelta())
    put(tmp_path / "trusted/ledger.sqlite-wal", 20, 2 * NEW)
    put(tmp_path / "trusted/measurements/small/2016-06-01-r0/x", 7, 2 * NEW)
    (tmp_path / "trusted/measurements/endless").symlink_to(tmp_path)
    found = growth_of(settings_of(tmp_path), AT)
    published, ledger, measurements = found.parts
    assert (published, ledger) == (Part("published folder", 530, 30), Part("ledger", 120, 100))
    assert measurements.name == "trusted folder, measurements"
    assert 7 < measurements.size < 200, "the link itself, and nothing behind it"


def test_files_are_looked_at_every_hour_and_only_those_of_this_machine(tmp_path):
    put(tmp_path / "trusted/serve/log", 7, timedelta())
    settings = settings_of(tmp_path, "postgresql+psycopg://host/ledger")
    settings.published_folder = "s3://bucket/published"
    first = growth_of(settings, AT)
    assert first.parts == (Part("trusted folder, serve", 7, 7),)
    put(tmp_path / "trusted/serve/log", 9, timedelta())
    assert growth_of(settings, AT + EVERY / 2, first) is first
    assert growth_of(settings, AT + EVERY, first).parts[0].size == 9
    settings.trusted_folder = tmp_path / "absent"
    assert growth_of(settings, AT).parts == ()


def test_sizes_are_told_in_words():
    words = [size_in_words(size) for size in (0, 999, 1000, 12_345, 1_234_567, 5 * 10**9, 2 * 10**12)]
    assert words == ["0 B", "999 B", "1.0 kB", "12 kB", "1.2 MB", "5.0 GB", "2000 GB"]
