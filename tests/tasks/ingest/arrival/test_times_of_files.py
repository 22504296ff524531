"""Sizes and times of a dump's files, as a folder or one of several stores tells them."""

import os
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from optstream.catalogue.backends import StoreUrl
from tasks.ingest.formats import FileFacts, facts_of

AT = datetime(2016, 6, 2, 3, 4, 5, tzinfo=UTC)


def test_a_file_in_a_folder(tmp_path):
    file = tmp_path / "a.parquet"
    file.write_bytes(b"twelve bytes")
    os.utime(file, times=(AT.timestamp(), AT.timestamp()))
    assert facts_of(file) == FileFacts(12, AT)
    with pytest.raises(OSError, match="absent"):
        facts_of(tmp_path / "absent")


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ({"LastModified": AT}, AT),
        ({"last_modified": AT.astimezone(timezone(timedelta(hours=2)))}, AT),
        ({"created": AT.replace(tzinfo=None)}, AT),
        ({"updated": "2016-06-02T03:04:05Z", "created": "2016-06-01T00:00:00Z"}, AT),
        ({"LastModified": "yesterday"}, None),
        ({"mtime": 1}, None),
        ({}, None),
    ],
)
def test_an_object_in_the_words_of_several_stores(told, written, monkeypatch):
    store = SimpleNamespace(facts=lambda name: {"size": 7, **told})
    monkeypatch.setattr("tasks.ingest.formats.open_store", lambda _: store)
    assert facts_of(StoreUrl("memory://dumps/a.parquet")) == FileFacts(7, written)
