"""A time zone whose data change while a stream lives."""

import struct
import zoneinfo

import pytest

from optstream.stream import calendar

SUMMER_TIME, NONE = "CET-1CEST,M3.5.0,M10.5.0/3", "CET-1"


@pytest.fixture
def zone(tmp_path_factory, installation):
    """Put the stream into a new zone, and replace that zone's rule: zone(rule)."""
    folder = tmp_path_factory.mktemp("zones")
    name = f"Test/{folder.name}"
    (folder / "Test").mkdir()
    installation.configure("Europe/Paris", name)

    def forget():
        zoneinfo.ZoneInfo.clear_cache()
        calendar._midnight.cache_clear()
        calendar._hours.cache_clear()

    def change(rule):
        one = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 3600, 0, 0)
        (folder / name).write_bytes(2 * (one + b"CET\0") + f"\n{rule}\n".encode())
        zoneinfo.reset_tzpath([str(folder)])
        forget()

    yield change
    zoneinfo.reset_tzpath()
    forget()
