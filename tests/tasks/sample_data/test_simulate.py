"""Simulated dumps: the same whatever is asked beside them, whole or absent, and near the public means."""

from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar
from tasks.config import Layout
from tasks.operate import simulate as write_dumps
from tasks.operate.simulate import FRENCH_REGIONS, daily_load, simulate

pytestmark = pytest.mark.slow

PARIS = Calendar(30, "Europe/Paris")
MONDAY = date(2016, 2, 1)
LISTED = Layout("load_mw", marker=None, file_list="_FILES")


def days(first: date, count: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(count)]


def read(folder: Path, region: str, day: date) -> pl.DataFrame:
    return pl.read_parquet(
        folder / f"region={region}" / f"date={day}" / "part-0.parquet", hive_partitioning=False
    )


def test_any_range_and_any_leaves_give_the_same_day(tmp_path: Path) -> None:
    simulate(tmp_path / "long", leaves=["84", "11", "53"], calendar=PARIS, days=days(MONDAY, 5), seed=7)
    simulate(tmp_path / "short", leaves=["53"], calendar=PARIS, days=[MONDAY + timedelta(days=3)], seed=7)
    day = MONDAY + timedelta(days=3)
    assert read(tmp_path / "short", "53", day).equals(read(tmp_path / "long", "53", day))


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_seeds_days_and_leaves_differ(tmp_path: Path, schema: str) -> None:
    for seed in (0, 1):
        simulate(
            tmp_path / str(seed),
            leaves=["a", "b"],
            calendar=PARIS,
            days=days(MONDAY, 2),
            seed=seed,
            schema=schema,
        )
    series = [
        tuple(read(tmp_path / seed, leaf, day)["load_mw"])
        for seed in "01"
        for leaf in "ab"
        for day in days(MONDAY, 2)
    ]
    assert len(set(series)) == len(series) == 8


def test_the_marker_comes_last_and_a_killed_dump_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "region=84" / f"date={MONDAY}"
    seen: list[list[str]] = []

    def killed(target: Path, text: str) -> None:
        seen.append(sorted(path.name for path in folder.iterdir()))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(write_dumps, "_write_text", killed)
        with pytest.raises(KeyboardInterrupt):
            simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY])
    assert seen == [["part-0.parquet"]]
    assert not (folder / "_SUCCESS").exists()
    assert simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY]).n_written == 1
    assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]


def test_a_write_that_fails_leaves_no_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(frame: pl.DataFrame, file: Path) -> None:
        file.write_bytes(b"half a")
        raise OSError("no space left")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full_disk)
    with pytest.raises(OSError, match="no space"):
        simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY])
    assert list((tmp_path / "region=84").iterdir()) == []


def test_a_file_list_names_the_file(tmp_path: Path) -> None:
    simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY], layout_of=lambda day: LISTED)
    folder = tmp_path / "region=84" / f"date={MONDAY}"
    assert (folder / "_FILES").read_text() == "part-0.parquet\n"
    assert not (folder / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("day", "n_steps"), [(date(2016, 3, 27), 46), (date(2016, 10, 30), 50), (MONDAY, 48)]
)
def test_an_elapsed_day_has_its_own_length_in_utc(tmp_path: Path, day: date, n_steps: int) -> None:
    simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[day])
    stamps = read(tmp_path, "84", day)["timestamp"]
    assert stamps.dtype == pl.Datetime("us", "UTC")
    assert stamps.to_list() == list(PARIS.utc_times(day))
    assert len(stamps) == n_steps


@pytest.mark.parametrize("day", [date(2016, 3, 27), date(2016, 10, 30)])
def test_a_fixed_day_has_every_slot_of_the_wall_clock(tmp_path: Path, day: date) -> None:
    fixed = Calendar(30, "Europe/Paris", "fixed")
    simulate(tmp_path, leaves=["84"], calendar=fixed, days=[day], layout_of=lambda day: Layout("mw", "when"))
    rows = read(tmp_path, "84", day)
    assert rows.schema == {"when": pl.Datetime("us"), "mw": pl.Float64}
    assert rows["when"].to_list() == [
        datetime(day.year, day.month, day.day) + k * timedelta(minutes=30) for k in range(48)
    ]


@pytest.mark.parametrize("code", ["84", "93"])
def test_a_year_has_the_public_mean(code: str) -> None:
    region = FRENCH_REGIONS[code]
    hourly = Calendar(60, "Europe/Paris")
    year = [daily_load(region, code, day, hourly, seed=3) for day in days(date(2016, 1, 1), 366)]
    assert np.concatenate(year).mean() == pytest.approx(region.mean_mw, rel=0.02)
    winter = np.concatenate(year[:60])
    assert winter.mean() == pytest.approx(region.winter * region.mean_mw, rel=0.06)


def test_the_regions_add_up_to_the_public_mean_of_the_nation() -> None:
    assert sum(region.mean_mw for region in FRENCH_REGIONS.values()) == pytest.approx(54680.7, rel=0.002)
    assert FRENCH_REGIONS["84"].mean_mw == pytest.approx(7689.7, rel=0.002)


def test_a_winter_day_has_two_peaks_and_a_night() -> None:
    loads = np.mean(
        [daily_load(FRENCH_REGIONS["84"], "84", day, PARIS, seed=0) for day in days(MONDAY, 26)], axis=0
    )
    assert 17 <= np.argmax(loads[24:44]) / 2 + 12 <= 20
    assert loads[16:22].mean() > loads[32:34].mean() > loads[6:10].mean()


def test_midnight_is_no_jump() -> None:
    loads = [daily_load(FRENCH_REGIONS["84"], "84", day, PARIS, seed=0) for day in days(MONDAY, 28)]
    jumps = [abs(after[0] - before[-1]) for before, after in pairwise(loads)]
    assert max(jumps) < 0.04 * FRENCH_REGIONS["84"].mean_mw


def test_every_day_has_its_own_weather_and_regions_share_some() -> None:
    """Between two seeds all but the randomness cancels."""
    ratios = {
        code: [
            np.mean(daily_load(FRENCH_REGIONS[code], code, day, PARIS, seed=0))
            / np.mean(daily_load(FRENCH_REGIONS[code], code, day, PARIS, seed=1))
            for day in days(MONDAY, 60)
        ]
        for code in ("84", "11")
    }
    assert np.std(ratios["84"]) > 0.02
    assert 0.6 < np.corrcoef(ratios["84"], ratios["11"])[0, 1] < 0.99


def test_other_hierarchies_spread_around_the_mean(tmp_path: Path) -> None:
    leaves = [f"zone {number}" for number in range(12)]
    simulate(tmp_path, leaves=leaves, calendar=PARIS, days=days(date(2016, 4, 11), 1), mean=40.0)
    means = [float(read(tmp_path, leaf, date(2016, 4, 11))["load_mw"].to_numpy().mean()) for leaf in leaves]
    assert 15 < min(means) < max(means) < 70
    assert len(set(means)) == 12


def test_metered_dumps_have_a_row_a_customer_and_step(tmp_path: Path) -> None:
    simulate(
        tmp_path,
        leaves=["a", "b"],
        calendar=PARIS,
        days=[MONDAY],
        schema="metered",
        customers_per_leaf=20,
        layout_of=lambda day: Layout("kwh", customer="meter"),
    )
    rows = pl.concat([read(tmp_path, leaf, MONDAY) for leaf in "ab"])
    assert rows.columns == ["meter", "timestamp", "kwh"]
    assert rows.select("meter", "timestamp").is_unique().all()
    assert rows["meter"].n_unique() == 40
    assert rows.height == 40 * 48
    assert rows["kwh"].min() >= 0
    assert 0.3 < rows["kwh"].mean() < 1.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"leaves": ["../x"]}, "region's name"),
        ({"leaves": ["84", "a=b"]}, "region's name"),
        ({"mean": 0.0}, "mean"),
    ],
)
def test_bad_arguments_are_named_and_write_nothing(tmp_path: Path, wrong: dict, named: str) -> None:
    arguments = {"leaves": ["84"], "calendar": PARIS, "days": [MONDAY], **wrong}
    with pytest.raises(ParameterError, match=named):
        simulate(tmp_path / "dumps", **arguments)
    assert not (tmp_path / "dumps").exists()
