"""The lay-out scripts: each reading lands in its region's and day's dump, as it was delivered."""

from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from benchmarks.lay_out import command_line
from benchmarks.lay_out_meters import lay_out_meters, meters_configuration, zones
from benchmarks.lay_out_rte import lay_out_rte, rte_configuration
from optstream.errors import DumpError, ParameterError
from tasks.settings import load_settings

FIRST, LAST = date(2016, 3, 26), date(2016, 3, 28)
STAMPS = [datetime(2016, 3, 26) + timedelta(minutes=30) * slot for slot in range(3 * 48)]


@pytest.fixture
def load_file(tmp_path: Path) -> Path:
    """Two regions, three days of 48 slots, in an order that is not the dumps'; 32-bit, one null."""
    rows = [
        {"timestamp_local": stamp, "region_code": code, "region": "x", "load_mw": slot + offset}
        for slot, stamp in reversed(list(enumerate(STAMPS)))
        for code, offset in (("84", 0.1), ("11", 1000.0))
    ]
    rows[0]["load_mw"] = None
    frame = pl.DataFrame(rows, schema_overrides={"load_mw": pl.Float32, "timestamp_local": pl.Datetime("us")})
    frame.write_parquet(tmp_path / "load.parquet")
    return tmp_path / "load.parquet"


@pytest.fixture
def meter_file(tmp_path: Path) -> Path:
    rows = [
        {"customer_id": f"1000{customer}", "timestamp_local": stamp, "energy_kwh": 0.099}
        for customer in range(12)
        for stamp in STAMPS[:48]
    ]
    pl.DataFrame(rows, schema_overrides={"energy_kwh": pl.Float32}).write_parquet(tmp_path / "meters.parquet")
    return tmp_path / "meters.parquet"


def test_every_region_and_day_gets_its_rows(load_file: Path, tmp_path: Path) -> None:
    assert lay_out_rte(load_file, FIRST, LAST - timedelta(days=1), tmp_path / "dumps") == 4
    for code, offset in (("84", 0.1), ("11", 1000.0)):
        for number, day in enumerate((FIRST, LAST - timedelta(days=1))):
            folder = tmp_path / "dumps" / f"region={code}" / f"date={day}"
            assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]
            rows = pl.read_parquet(folder / "part-0.parquet", hive_partitioning=False)
            assert rows.schema == {"timestamp": pl.Datetime("us"), "load_mw": pl.Float64}
            slots = range(48 * number, 48 * number + 48)
            assert rows["timestamp"].to_list() == [STAMPS[slot] for slot in slots]
            assert rows["load_mw"].to_list() == [round(slot + offset, 1) for slot in slots]
    assert not list((tmp_path / "dumps").glob(f"*/date={LAST}"))


def test_a_null_is_the_contracts_to_judge(load_file: Path, tmp_path: Path) -> None:
    lay_out_rte(load_file, LAST, LAST, tmp_path / "dumps")
    rows = pl.read_parquet(tmp_path / "dumps" / "region=84" / f"date={LAST}" / "*.parquet")
    assert (rows.height, rows["load_mw"].null_count()) == (48, 1)


def test_laying_out_again_writes_nothing(load_file: Path, tmp_path: Path) -> None:
    assert [lay_out_rte(load_file, FIRST, FIRST, tmp_path / "dumps") for _ in range(2)] == [2, 0]


def test_households_keep_their_zone_and_their_readings(meter_file: Path, tmp_path: Path) -> None:
    lay_out_meters(meter_file, FIRST, FIRST, tmp_path / "dumps")
    parts = {
        path.parts[-3].removeprefix("region="): pl.read_parquet(path, hive_partitioning=False)
        for path in (tmp_path / "dumps").glob("*/*/*.parquet")
    }
    assert sum(rows.height for rows in parts.values()) == 12 * 48
    for zone, rows in parts.items():
        assert rows.columns == ["customer_id", "timestamp", "energy_kwh"]
        assert set(zones(rows["customer_id"]).values()) == {zone}
        assert set(rows["energy_kwh"]) == {0.099}
    assert len(parts) > 1


def test_what_cannot_be_laid_out_is_said(load_file: Path, meter_file: Path, tmp_path: Path) -> None:
    into = tmp_path / "dumps"
    with pytest.raises(DumpError, match="no rows on 2016-03-29 \\(1 of 2 days\\)"):
        lay_out_rte(load_file, LAST, LAST + timedelta(days=1), into)
    with pytest.raises(DumpError, match="lacks the column region_code, load_mw"):
        lay_out_rte(meter_file, FIRST, FIRST, into)
    with pytest.raises(DumpError, match="is not a file"):
        lay_out_rte(tmp_path / "nowhere.parquet", FIRST, FIRST, into)
    with pytest.raises(ParameterError, match="before the first"):
        lay_out_rte(load_file, LAST, FIRST, into)
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(DumpError, match="cannot be read"):
        lay_out_rte(tmp_path / "text.parquet", FIRST, FIRST, into)
    assert not into.exists()


def test_the_command_line_reads_the_environment_and_reports(
    load_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPTSTREAM_DATA", str(load_file))
    arguments = ["--from", str(FIRST), "--to", str(FIRST), "--into", str(tmp_path / "dumps")]
    assert command_line("lay out", lay_out_rte, rte_configuration, arguments) == 0
    assert capsys.readouterr().out.startswith("2 dumps written")
    elsewhere = [*arguments, "--data", str(tmp_path / "no")]
    assert command_line("lay out", lay_out_rte, rte_configuration, elsewhere) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_configuration_reads_the_dumps_of_rte(load_file: Path, tmp_path: Path) -> None:
    config, dumps = tmp_path / "rte.toml", tmp_path / "du mps"
    arguments = ["--data", str(load_file), "--from", str(FIRST), "--to", str(FIRST), "--into", str(dumps)]
    assert command_line("", lay_out_rte, rte_configuration, [*arguments, "--configuration", str(config)]) == 0
    settings = load_settings(config)
    assert settings.input_folder == dumps
    assert [settings.calendar.n_steps(day) for day in (FIRST, date(2016, 3, 27))] == [48, 48]
    assert {"84", "11"} < set(settings.tree.leaves)
    assert command_line("", lay_out_rte, rte_configuration, [*arguments, "--configuration", str(config)]) == 2


def test_the_configuration_reads_the_dumps_of_the_meters(meter_file: Path, tmp_path: Path) -> None:
    lay_out_meters(meter_file, FIRST, FIRST, tmp_path / "dumps")
    (tmp_path / "meters.toml").write_text(meters_configuration(tmp_path / "dumps"), encoding="utf-8")
    settings = load_settings(tmp_path / "meters.toml")
    assert settings.metered
    found = {path.name.removeprefix("region=") for path in settings.input_folder.iterdir()}
    assert found <= set(settings.tree.leaves)
    rows = pl.read_parquet(settings.input_folder / "*" / "*" / "*.parquet", hive_partitioning=False)
    assert {settings.input.timestamp, settings.input.value, settings.input.customer} == set(rows.columns)
