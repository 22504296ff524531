"""RTE's files: the archive, the text and its lines, the dumps, and the flow's first half on them."""

import io
import zipfile
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optstream.errors import DumpError, OptStreamError, ParameterError
from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import discover, ingest
from tasks.ingest.validate import validate
from tasks.operate import rte as files
from tasks.operate.rte import parse, read_load, rte_configuration, text_of, write_loads
from tasks.operate.simulate import FRENCH_REGIONS

COLUMNS = [
    "Périmètre", "Nature", "Date", "Heures", "Consommation", "Thermique", "Nucléaire", "Eolien", "Solaire",
    "Hydraulique", "Pompage", "Bioénergies", "Ech. physiques",
]  # fmt: skip
FOOTER = "RTE ne pourra être tenu responsable de rien."


def load_of(region, day, slot):
    """A whole number that tells region, day and slot apart."""
    return 1000 + 7 * sorted(FRENCH_REGIONS).index(region) + 100 * day.timetuple().tm_yday % 9000 + slot


def row_of(perimeter, day, time, load, nature="Données définitives"):
    return "\t".join([perimeter, nature, str(day), time, str(load), *["0"] * 8, ""])


def rte_lines(region="84", first=date(2016, 3, 25), n_days=4, perimeter=None):
    """Header, four rows an hour of which two carry a reading, and the legal line with what follows it."""
    perimeter = perimeter or FRENCH_REGIONS[region].name
    lines = ["\t".join([*COLUMNS, ""])]
    for day in (first + timedelta(days=number) for number in range(n_days)):
        for quarter in range(96):
            time = f"{quarter // 4:02}:{15 * (quarter % 4):02}"
            load = "" if quarter % 2 else load_of(region, day, quarter // 2)
            lines.append(row_of(perimeter, day, time, load))
    return [*lines, FOOTER, "", ""]


def encoded(lines):
    return "\n".join(lines).encode("latin-1")


TEXT = b"a text"


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


ARCHIVE = zipped(("year.xls", TEXT * 50))


def test_a_text_is_taken_and_a_zipped_one_unpacked(tmp_path):
    content = encoded(rte_lines("53"))
    (tmp_path / "text.xls").write_bytes(content)
    (tmp_path / "packed.zip").write_bytes(zipped(("folder/", b""), ("folder/../../év.xls", content)))
    plain, unpacked = read_load(tmp_path / "text.xls"), read_load(tmp_path / "packed.zip")
    assert (plain.region, plain.file, unpacked.file) == ("53", "text.xls", "packed.zip")
    assert unpacked.rows.equals(plain.rows)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["packed.zip", "text.xls"]


def test_no_more_is_unpacked_than_the_bound_whatever_the_archive_says(monkeypatch):
    monkeypatch.setattr(files, "LARGEST_BYTES", 2**20)
    bomb = zipped(("bomb.xls", bytes(8 * 2**20)))
    assert len(bomb) < 2**20
    asked = []

    class Watched(zipfile.ZipExtFile):
        def read(self, n=-1):
            asked.append(n)
            return super().read(n)

    monkeypatch.setattr(zipfile, "ZipExtFile", Watched)
    liar = bomb.replace((8 * 2**20).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    with pytest.raises(DumpError, match="more than 1 MiB"):
        text_of(bomb)
    assert asked == [2**20 + 1]
    with pytest.raises(DumpError, match="damaged"):
        text_of(liar)
    with pytest.raises(DumpError, match="more than 1 MiB"):
        text_of(bytes(2**20 + 1))


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
ARCHIVES = [zipped(("year.xls", TEXT * 50), method=method) for method in METHODS]


@given(
    st.sampled_from(ARCHIVES),
    st.floats(0, 1),
    st.binary(min_size=1, max_size=4),
    st.sampled_from([0, 0, 0, 7]),
)
@example(ARCHIVE, 96 / len(ARCHIVE), b"\x00", 0)  # a name that is empty
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_a_spoilt_archive_gives_bytes_or_a_refusal(archive, place, spoil, cut):
    start = int(place * len(archive))
    content = archive[:start] + spoil + archive[start + len(spoil) : len(archive) - cut]
    try:
        text = text_of(content)
    except DumpError:
        return
    # what comes through unharmed (a directory's name is not), or is no archive any more
    assert text in (TEXT * 50, content)


def refused(lines, message):
    with pytest.raises(DumpError, match=message):
        parse(encoded(lines))


def test_every_half_hour_is_read_also_where_the_clock_changes():
    region, rows = parse(encoded(rte_lines()))
    assert region == "84"
    assert rows.schema == {"timestamp": pl.Datetime("us"), "load_mw": pl.Float64, "line": pl.UInt32}
    expected = [datetime(2016, 3, 25) + timedelta(minutes=30) * slot for slot in range(4 * 48)]
    assert rows["timestamp"].to_list() == expected  # 27 March has its 02:00 and 02:30
    loads = [load_of("84", stamp.date(), 2 * stamp.hour + stamp.minute // 30) for stamp in expected]
    assert rows["load_mw"].to_list() == loads
    assert rows["line"].to_list() == [2 + 2 * slot for slot in range(4 * 48)]


@pytest.mark.parametrize(
    ("line", "cells", "message"),
    [
        (1, {4: "Conso"}, "line 1: .* the column Consommation once.* here 0 times"),
        (1, {5: "Date"}, "line 1: .* the column Date once.* here 2 times"),
        (9, {0: "France"}, "line 9: Périmètre must name one region"),
        (9, {0: "Bretagne"}, "line 9: Périmètre must name one region"),
        (9, {1: "Données temps réel"}, "line 9: Nature must be"),
        (9, {2: "25/03/2016"}, "line 9: Date must be a day"),
        (9, {2: "2016-02-30"}, "line 9: Date must be a day"),
        (9, {3: "24:00"}, "line 9: Heures must be a time"),
        (9, {3: "02:10"}, "line 9: Heures must be a time"),
        (10, {4: "1x3"}, "line 10: Consommation must be a number"),
        (10, {4: "1 300"}, "line 10: Consommation must be a number"),
        (10, {4: "NaN"}, "line 10: Consommation must be a number"),
        (11, {4: "1300"}, "line 11: Consommation has a reading between two half-hours"),
        (10, {3: "01:30"}, "line 10: another reading of a half-hour that stands above; .* 48"),
    ],
)  # fmt: skip
def test_what_is_not_as_rte_writes_it_is_refused_with_its_line(line, cells, message):
    lines = rte_lines()
    row = lines[line - 1].split("\t")
    for place, text in cells.items():
        row[place] = text
    lines[line - 1] = "\t".join(row)
    refused(lines, message)


@pytest.mark.parametrize("perimeter", ["France", "Alsace"])
def test_a_file_of_no_region_is_refused(perimeter):
    refused(rte_lines(perimeter=perimeter), f"line 2: '{perimeter}' is none of the 12 regions")


FIRST = date(2016, 3, 23)
WEEK = [FIRST + timedelta(days=number) for number in range(7)]  # 27 March has 46 half-hours by the clock
NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def load(tmp_path):
    """Write lines as a file, and read it."""

    def read(lines, name="year.xls"):
        (tmp_path / name).write_bytes(encoded(lines))
        return read_load(tmp_path / name)

    return read


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_week_of_twelve_regions_is_read_by_the_documented_configuration(load, tmp_path):
    loads = [load(rte_lines(region, FIRST, 7), f"{region}.xls") for region in FRENCH_REGIONS]
    done = write_loads(loads, tmp_path / "dumps")
    assert (done.n_written, done.n_kept, done.n_incomplete, done.n_empty) == (84, 0, 0, 0)
    assert done.regions == tuple(sorted(FRENCH_REGIONS))
    (tmp_path / "optstream.toml").write_text(rte_configuration(tmp_path / "dumps"), encoding="utf-8")
    settings = load_settings(tmp_path / "optstream.toml")
    found = discover(settings, WEEK)
    ingested = ingest(settings, list(found.values()))
    assert [verdict.error for verdict in validate(settings, ingested, now=NOW)] == [None] * 7
    for day in ingested:
        expected = [
            [1000 * load_of(leaf, day.day, slot) for slot in range(48)]
            for leaf in settings.tree_of(date.min).leaves
        ]
        assert (open_private_period(day.period) == np.array(expected)).all()  # in kW


def test_another_dump_is_never_overwritten(load, tmp_path):
    into = tmp_path / "dumps"
    write_loads([load(rte_lines("84", FIRST, 2))], into)
    before = contents(into)
    lines = rte_lines("84", FIRST, 2)
    lines[1] = row_of(FRENCH_REGIONS["84"].name, FIRST, "00:00", "1")
    with pytest.raises(DumpError, match=r"holds another dump.*another folder, or remove"):
        write_loads([load(lines)], into)
    assert contents(into) == before


def test_two_files_may_repeat_each_other_but_not_disagree(load, tmp_path):
    lines = rte_lines("84", FIRST, 2)
    same = load(rte_lines("84", FIRST + timedelta(days=1), 2), "later.xls")
    assert write_loads([load(lines), same], tmp_path / "dumps").n_written == 3
    lines[99] = row_of(FRENCH_REGIONS["84"].name, WEEK[1], "00:30", "4711")
    with pytest.raises(OptStreamError) as caught:
        write_loads([same, load(lines)], tmp_path / "others")
    assert str(caught.value).startswith("year.xls: line 100: another reading of region 84, 2016-03-24 00:30")
    assert "later.xls, line 4;" in str(caught.value)
    assert "4711" not in str(caught.value)
    assert not (tmp_path / "others").exists()
    with pytest.raises(ParameterError, match="at least one"):
        write_loads([], tmp_path / "others")


@pytest.mark.nightly
def test_2016_as_rte_hands_it_out_is_the_series_of_the_open_data_portal(real_data, tmp_path):
    zips = sorted((real_data / "rte_2016_zips").iterdir())
    done = write_loads([read_load(path) for path in zips], tmp_path / "dumps")
    assert (done.n_written, done.n_incomplete, done.n_empty) == (12 * 366, 0, 0)
    imported = pl.concat(
        pl.read_parquet(folder / "date=*" / "*.parquet", hive_partitioning=False).with_columns(
            region_code=pl.lit(folder.name.removeprefix("region="))
        )
        for folder in (tmp_path / "dumps").iterdir()
    ).sort("region_code", "timestamp")
    series = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    series = series.filter(pl.col("timestamp_local").dt.year() == 2016).sort("region_code", "timestamp_local")
    assert imported.height == series.height == 12 * 366 * 48
    assert imported["region_code"].equals(series["region_code"])
    assert imported["timestamp"].equals(series["timestamp_local"])
    assert imported["load_mw"].equals(series["load_mw"].cast(pl.Float64))
    assert imported["load_mw"].sum() / (366 * 48) == pytest.approx(54_680.7, abs=0.05)
