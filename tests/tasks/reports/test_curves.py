"""The figures that the page loads are those of the releases, whatever was kept, and damage is a gap."""

import json
import shutil
import struct
from datetime import date, timedelta
from hashlib import sha256

import numpy as np
import polars as pl

from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from tasks.reports.curves import BLOCK, make_curves
from tasks.reports.public import public_facts
from tasks.reports.summaries import Summaries
from tests.tasks.reports.conftest import GONE


def parsed(data):
    """Header and columns of a file of figures, by the words of its format and no code under test."""
    assert data[:4] == b"OSC1"
    (length,) = struct.unpack("<I", data[4:8])
    header, at, columns = json.loads(data[8 : 8 + length]), 8 + length, {}
    places = len(header["steps"]) if header["kind"] == "days" else sum(header["steps"])
    for name in header["columns"]:
        kind = "<f8" if name == "value" else "<f4"
        size = header["count"] * places * np.dtype(kind).itemsize
        columns[name] = np.frombuffer(data[at : at + size], kind).reshape(header["count"], places)
        at += size
    assert at == len(data)
    return header, columns


class Kept:
    """What was put, in its order."""

    def __init__(self):
        self.files = {}

    def __call__(self, several):
        files = {sha256(data).hexdigest(): data for data in several}
        self.files |= files
        return tuple(files)


def made(folder, known=(), put=None):
    place = open_storage(folder)
    facts, summaries = public_facts(place, read_catalogue(place), Summaries.empty())
    put = put or Kept()
    curves, kept = make_curves(place, facts, summaries, dict(known), put)
    return facts, curves, kept, put


def test_every_step_is_the_published_one(forty_days):
    facts, curves, _, put = made(forty_days)
    rows = pl.read_parquet(forty_days / "data", hive_partitioning=True)
    assert list(curves.steps) == ["2016-01", "2016-02"]
    assert curves.days == {}, "the page holds the days of thirteen nodes itself"
    for month, (name,) in curves.steps.items():
        header, columns = parsed(put.files[name.removeprefix("curves/").removesuffix(".bin")])
        first, at = date.fromisoformat(header["first"]), 0
        assert first == date.fromisoformat(f"{month}-01")
        for number, n_steps in enumerate(header["steps"]):
            day = first + timedelta(days=number)
            assert n_steps == (0 if day == GONE else 48)
            for row in (0, 5):
                own = rows.filter((pl.col("date") == day) & (pl.col("node") == facts.nodes[row].name)).sort(
                    "step"
                )
                found = {column: values[row, at : at + n_steps] for column, values in columns.items()}
                assert found["value"].tolist() == own["load_mw"].to_list()
                expected = own["load_mw_noise_se"].to_numpy()
                assert [f"{x:.6g}" for x in found["noise"]] == [f"{x:.6g}" for x in expected]
            at += n_steps


def test_a_damaged_file_is_a_gap(forty_days, tmp_path):
    copy = tmp_path / "published"
    shutil.copytree(forty_days, copy)
    (copy / read_catalogue(copy).entries[3].file).write_bytes(b"spoilt")
    _, curves, _, put = made(copy)
    header, _ = parsed(put.files[curves.steps["2016-01"][0].removeprefix("curves/").removesuffix(".bin")])
    assert [number for number, steps in enumerate(header["steps"]) if not steps] == [3], (
        "the month ends with its last release"
    )
    assert BLOCK == 64
