"""Yearly texts in ZIPs as RTE hands them out: read where they lie, day by day, and bounded when unpacked."""

import io
import zipfile
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import discover, ingest, text
from tasks.operate.first_configuration import write_configuration
from tasks.operate.survey import survey

COLUMNS = ["Périmètre", "Nature", "Date", "Heures", "Consommation", "Thermique", ""]
REGIONS = ("Auvergne-Rhône-Alpes", "Ile-de-France", "PACA")
FIRST = date(2016, 3, 23)
WEEK = [FIRST + timedelta(days=number) for number in range(7)]  # 27 March has 46 half-hours by the clock
ANSWERS = {"zone": "Europe/Paris", "alpha": "1", "size": "5000"}


def load_of(region, day, slot):
    return f"{1000 + 700 * REGIONS.index(region) + 50 * day.timetuple().tm_yday + slot}.{slot % 3}"


def lines_of(region):
    """Header, four rows an hour of which two carry a reading, and the legal line with what follows it."""
    lines = ["\t".join(COLUMNS)]
    for day in WEEK:
        for quarter in range(96):
            load = "" if quarter % 2 else load_of(region, day, quarter // 2)
            cells = region, "Données définitives", f"{day}", f"{quarter // 4:02}:{15 * (quarter % 4):02}"
            lines.append("\t".join([*cells, load, "-", ""]))
    return [*lines, "RTE ne pourra être tenu responsable de rien.", "", ""]


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


def write(folder, region, lines, ending="zip"):
    folder.mkdir(exist_ok=True)
    content = "\n".join(lines).encode("latin-1")
    content = zipped(("folder/", b""), ("../../année.xls", content)) if ending == "zip" else content
    (folder / f"eCO2mix_RTE_{region}_Annuel-Definitif_2016.{ending}").write_bytes(content)
    (folder / "_SUCCESS").touch()


def begun(folder):
    """The settings that `init` writes for a folder."""
    config = folder.parent / "optstream.toml"
    write_configuration(survey(folder, "UTC"), lambda key, _, usual: ANSWERS.get(key, usual), config)
    return load_settings(config)


def sums(settings, days):
    return [open_private_period(one.period) for one in ingest(settings, [*discover(settings, days).values()])]


@pytest.mark.slow
def test_a_folder_of_yearly_files_is_begun_and_read_where_it_lies(tmp_path):
    for region in REGIONS:
        write(tmp_path / "rte", region, lines_of(region))
    found = begun(tmp_path / "rte")
    assert found.input.path == "eCO2mix_RTE_{region}_Annuel-Definitif_{date:%Y}.zip"
    assert (found.stream.step, found.calendar.day) == ("30min", "fixed")
    assert found.tree_of(FIRST).leaves == REGIONS
    expected = [[[load_of(region, day, slot) for slot in range(48)] for region in REGIONS] for day in WEEK]
    units = np.round(np.array(expected, dtype=float) * 1000).astype(int)
    assert np.array_equal(sums(found, WEEK), units)


@pytest.mark.parametrize(
    ("line", "cells", "message"),
    [
        (11, {4: "1300"}, "must be the start of a step"),
        (10, {2: "23/03/2016"}, "must not be null"),
        (10, {4: "1x3"}, "must not be null or NaN"),
        (10, {4: "1 300"}, None),
        (10, {3: "01:30"}, "every step of the day must have a row"),
        (11, {3: "02:00", 4: "1300"}, "must be there once"),
        (11, {4: "ND"}, None),
        (11, {4: "-"}, None),
    ],
)  # fmt: skip
def test_a_line_that_is_not_as_the_others_is_refused_with_its_file(small, load_text, line, cells, message):
    path = 'path = "eCO2mix_RTE_{region}_Annuel-Definitif_{date:%Y}.xls"'
    stream = small(day="fixed", marker=path, value="Consommation")
    changes = ('"100"', '"100000"'), ('timestamp = "timestamp"', 'timestamp = ["Date", "Heures"]')
    stream.settings = load_text(stream.settings.file.read_text(), *changes)
    lines = lines_of("PACA")
    write(stream.settings.input_folder, "11", lines, "xls")
    row = lines[line - 1].split("\t")
    for place, cell in cells.items():
        row[place] = cell
    lines[line - 1] = "\t".join(row)
    write(stream.settings.input_folder, "84", lines, "xls")
    judged = stream.verdict(FIRST)
    if message is None:
        assert judged.error is None
    else:
        assert message in str(judged.error)
        assert "RTE_84_Annuel-Definitif_2016.xls" in str(judged.error)


TEXT = b"a text"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
ARCHIVES = [zipped(("year.xls", TEXT * 50), method=method) for method in METHODS]


@given(st.sampled_from(ARCHIVES), st.floats(0, 1), st.binary(min_size=1, max_size=4), st.sampled_from([0, 7]))
@example(ARCHIVES[1], 96 / len(ARCHIVES[1]), b"\x00", 0)  # a name that is empty
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_a_spoilt_archive_gives_its_text_or_an_error_of_reading(tmp_path_factory, archive, place, spoil, cut):
    start, file = int(place * len(archive)), tmp_path_factory.getbasetemp() / "spoilt.zip"
    content = archive[:start] + spoil + archive[start + len(spoil) : len(archive) - cut]
    file.write_bytes(content)
    try:
        found = text._content(file)
    except OSError:
        return
    # what comes through unharmed (a directory's name is not), or is no archive any more
    assert found in (TEXT * 50, content)


def test_no_more_is_unpacked_than_the_bound_whatever_the_archive_says(monkeypatch, tmp_path):
    monkeypatch.setattr(text, "LARGEST_TEXT", 2**20)
    asked, size = [], 8 * 2**20

    class Watched(zipfile.ZipExtFile):
        def read(self, n=-1):
            asked.append(n)
            return super().read(n)

    monkeypatch.setattr(zipfile, "ZipExtFile", Watched)
    bomb = zipped(("bomb.xls", b"a,b\n" * (size // 4)))
    file = tmp_path / "bomb.zip"
    for content in (bomb, bomb.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))):
        file.write_bytes(content)
        with pytest.raises(OSError, match=r"too large|unpacked"):
            text._content(file)
    file.write_bytes(bomb)
    assert text.header_of(file).names == ("a", "b")  # by its beginning alone
    assert max(asked) == 2**20 + 1


@pytest.mark.nightly
def test_2016_as_rte_hands_it_out_is_the_series_of_the_open_data_portal(real_data, tmp_path):
    (tmp_path / "rte").mkdir()
    for file in (real_data / "rte_2016_zips").iterdir():
        (tmp_path / "rte" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "rte/_SUCCESS").touch()
    found = begun(tmp_path / "rte")
    days = [date(2016, 1, 1) + timedelta(days=number) for number in range(366)]
    read = np.concatenate(sums(found, days), axis=1)
    series = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    series = series.filter(pl.col("timestamp_local").dt.year() == 2016).sort("region_code", "timestamp_local")
    # both name the 12 regions; by their sums each is one of the other's
    known = series["load_mw"].cast(pl.Float64).to_numpy().reshape(12, 366 * 48)
    ours, theirs = read[np.argsort(read.sum(axis=1))], known[np.argsort(known.sum(axis=1))]
    assert np.array_equal(ours, np.round(1000 * theirs).astype(int))
    assert known.sum() / (366 * 48) == pytest.approx(54_680.7, abs=0.05)
