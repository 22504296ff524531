"""Replicates of published values: their file, figures and their errors, and files of version 0.2."""

import io
import json
import tarfile
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optstream import read_figure, read_sum
from optstream.catalogue import standard_errors
from optstream.catalogue.standard_errors import Replicates, decode_replicates, encode_replicates, sum_of_days
from optstream.errors import ParameterError, PublicationError
from optstream.storage.parquet import decode_table, encode_table

SUNDAY = date(2016, 1, 31)
DAYS = [SUNDAY + timedelta(days=number) for number in range(3)]
"""The first ends a week and a month."""
NODES = ("FR", "84", "11")
PARENTS = {"FR": None, "84": "FR", "11": "FR"}
KEPT = Path(__file__).parents[2] / "fixtures" / "version-0.2.tar.xz"


def drawn(day, n=5):
    """An estimate and its replicates, of which the nation is the sum of its regions."""
    leaves = 100.0 + np.random.default_rng(day.toordinal()).normal(size=(n + 1, 2, 2))
    every = np.concatenate([leaves.sum(axis=1, keepdims=True), leaves], axis=1)
    return every[0], every[1:]


def file_of(day, of="whole", n=5):
    return Replicates.labelled(day, of, NODES, *drawn(day, n))


def day_of(day, of="whole", n=5, noise_is_all=False):
    """A published day: values are estimates rounded up to whole numbers."""
    rows = file_of(day, of, n).rows.with_columns(
        pl.lit(day).alias("date"),
        pl.col("node").replace_strict(PARENTS, return_dtype=pl.String).alias("parent"),
        (pl.col("node") != "FR").cast(pl.Int32).alias("level"),
        pl.col("estimate").ceil().alias("value"),
    )
    return standard_errors.Day(day, rows, of == "whole", of == "noise" or noise_is_all)


def test_what_is_written_is_read_back_to_float32():
    data = encode_replicates(file_of(SUNDAY))
    assert data == encode_replicates(file_of(SUNDAY))
    found = decode_replicates(data)
    assert (found.period, found.of, found.rows.columns[:3]) == (SUNDAY, "whole", ["step", "node", "estimate"])
    estimate, replicates = drawn(SUNDAY)
    one = found.rows.filter(step=1, node="84")
    assert one["estimate"].item() == estimate[1, 1]
    assert one["replicate_2"].item() == pytest.approx(replicates[1, 1, 1], rel=1e-7)
    assert found.rows.equals(found.rows.sort("step", "node"))


@pytest.mark.parametrize(("size", "spread"), [(1e8, 1.0), (1e39, 1e30)])
def test_errors_that_float32_would_lose_are_kept(size, spread):
    random = np.random.default_rng(0)
    estimate = np.full((3, 2), size)
    drawn = estimate + spread * random.normal(size=(50, 3, 2))
    found = decode_replicates(encode_replicates(Replicates.labelled(SUNDAY, "whole", NODES, estimate, drawn)))
    values = found.rows.drop("step", "node", "estimate").to_numpy()
    assert np.std(values - size, axis=1).mean() == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows, footer: (rows, footer | {"format": "optstream.replicates/2"}),
        lambda rows, footer: (rows, footer | {"of": "half"}),
        lambda rows, footer: (rows, footer | {"period": "yesterday"}),
        lambda rows, footer: (rows, []),
        lambda rows, footer: (rows.drop("estimate"), footer),
        lambda rows, footer: (rows.select("step", "node", "estimate"), footer),
        lambda rows, footer: (rows.rename({"replicate_5": "replicate_6"}), footer),
        lambda rows, footer: (rows.with_columns(pl.col("replicate_1").cast(pl.Float64)), footer),
        lambda rows, footer: (rows.with_columns(replicate_1=pl.lit(np.inf, pl.Float32)), footer),
        lambda rows, footer: (rows.with_columns(estimate=pl.lit(None, pl.Float64)), footer),
    ],
)
def test_another_file_is_refused(change):
    rows, metadata = decode_table(encode_replicates(file_of(SUNDAY)), standard_errors.LIMITS, "a file")
    rows, footer = change(rows, json.loads(metadata[standard_errors.KEY]))
    with pytest.raises(PublicationError, match="no file of replicates"):
        decode_replicates(encode_table(rows, {standard_errors.KEY: json.dumps(footer).encode()}))


def test_the_error_of_a_sum_is_its_spread_over_the_replicates_that_all_days_have():
    found = sum_of_days([day_of(day) for day in DAYS], {"FR": 1, "84": -2}, steps=[1])
    by_hand = sum(
        np.concatenate([drawn(day)[0][None], drawn(day)[1]])[:, [0, 1], 1] @ [1.0, -2.0] for day in DAYS
    )
    assert found.estimate == pytest.approx(by_hand[0])
    assert found.standard_error == pytest.approx(np.std(by_hand[1:], ddof=1), rel=1e-5)
    assert found.noise_standard_error is None
    assert found.value == sum(np.ceil(drawn(day)[0])[[0, 1], 1] @ [1.0, -2.0] for day in DAYS)
    found = sum_of_days([day_of(DAYS[0], n=3), day_of(DAYS[1])], ["84"])
    sums = sum(drawn(day, n)[1][:3, 1].sum(axis=1) for day, n in zip(DAYS, (3, 5), strict=False))
    assert found.standard_error == pytest.approx(np.std(sums, ddof=1), rel=1e-5)


@pytest.mark.parametrize(
    ("kinds", "whole", "noise"),
    [
        ([("whole", False), ("whole", False)], True, False),
        ([("noise", False), ("noise", False)], False, True),
        ([("whole", True), ("noise", False)], False, True),
        ([("whole", True), ("whole", True)], True, True),
        ([("whole", False), ("noise", False)], False, False),
    ],
)
def test_errors_are_known_as_far_as_every_day_knows_them(kinds, whole, noise):
    days = [day_of(day, of, noise_is_all=every) for day, (of, every) in zip(DAYS, kinds, strict=False)]
    found = sum_of_days(days, ["84"])
    assert (found.standard_error is not None, found.noise_standard_error is not None) == (whole, noise)


@pytest.mark.parametrize(("period", "firsts"), [("day", DAYS), ("week", DAYS[:2]), ("month", DAYS[:2])])
def test_a_period_has_the_sum_of_its_days_and_its_spread(period, firsts):
    days = [day_of(day).rows.rename({"value": "load_mw"}) for day in DAYS]
    rows = pl.concat(days).with_columns(
        load_mw_noise_se=pl.lit(None, pl.Float64), revision=pl.lit(0), vintage=pl.lit(0)
    )
    sums = [
        (day, "whole", one.group_by("node").agg(pl.len().cast(pl.Int64).alias("n"), pl.exclude("step").sum()))
        for day in DAYS
        for one in [file_of(day).rows]
    ]
    found = standard_errors.period_sums(rows, "load_mw", period, sums)
    parts = [[day] for day in DAYS] if period == "day" else [DAYS[:1], DAYS[1:]]
    for place, node in enumerate(NODES):
        one = found.filter(node=node)
        assert one["date"].to_list() == firsts
        spread = [np.std(sum(drawn(day)[1][:, place].sum(axis=1) for day in part), ddof=1) for part in parts]
        assert one["load_mw_sum_se"].to_list() == pytest.approx(spread, rel=1e-4)
        estimates = [sum(drawn(day)[0][place].sum() for day in part) for part in parts]
        assert one["load_mw_sum_estimate"].to_list() == pytest.approx(estimates)
        assert one["load_mw_sum_noise_se"].null_count() == one.height
    missing = standard_errors.period_sums(rows, "load_mw", period, sums[:1])
    assert missing["load_mw_sum_se"].null_count() == 3 * (len(parts) - 1), "of days without a file"


@pytest.fixture(scope="module")
def version_02(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(KEPT) as kept:
        kept.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    ("stream", "nodes", "n_days", "steps", "of", "error"),
    [
        ("load", ["FR"], 1, None, "noise", 4916.371483387433),
        ("load", ["FR"], 5, range(4, 9), "noise", 4533.460239730261),
        ("load", ["11", "53", "84"], 5, None, "noise", 10993.341401231359),
        ("visits", ["FR"], 5, None, "whole", 655.0981656308338),
        ("visits", ["11", "53", "84"], 1, range(4, 9), "whole", 168.59836446138203),
        ("visits", ["11", "53", "84"], 5, None, "whole", 818.0078756439636),
    ],
)
def test_files_of_version_02_say_what_that_version_read(version_02, stream, nodes, n_days, steps, of, error):
    first = date(2016, 3, 14)
    found = read_sum(version_02 / stream / "published", nodes, first, first + timedelta(n_days - 1), steps)
    own, other = found.standard_error, found.noise_standard_error
    assert (own if of == "whole" else other) == pytest.approx(error, rel=1e-12)
    assert (other if of == "whole" else own) is None


def test_a_figure_over_days_of_version_02_has_no_error(version_02):
    folder, first = version_02 / "load" / "published", date(2016, 3, 14)
    found = read_figure(folder, lambda value: value.max(), first, first, by=["node"])
    assert found["standard_error"].null_count() == found["noise_standard_error"].null_count() == found.height


def test_a_figure_of_days_of_which_one_has_no_estimate_has_none(monkeypatch):
    without = replace(
        day_of(DAYS[1]), rows=day_of(DAYS[1]).rows.select(pl.exclude("^replicate_.*$", "estimate"))
    )
    monkeypatch.setattr(standard_errors, "_read_days", lambda *_: [day_of(DAYS[0]), without])
    found = read_figure("", lambda value: value.sum(), *DAYS[:2], by=["date", "node"])
    assert found.filter(date=DAYS[0])["estimate"].null_count() == 0
    assert found.filter(date=DAYS[1])["estimate"].null_count() == len(NODES)
    assert read_figure("", lambda value: value.sum(), *DAYS[:2])["estimate"].null_count() == len(NODES)


def test_a_figure_of_large_values_has_its_error_in_float64(monkeypatch):
    n_steps = 24 * 365
    random = np.random.default_rng(0)
    estimate = 5e4 + random.normal(size=(1, n_steps))
    drawn_rows = Replicates.labelled(
        SUNDAY, "whole", ["FR"], estimate, estimate + random.normal(size=(100, 1, n_steps))
    ).rows
    rows = drawn_rows.with_columns(
        pl.col("estimate").alias("value"),
        pl.lit(None, pl.String).alias("parent"),
        pl.lit(0, pl.Int32).alias("level"),
    )
    day = standard_errors.Day(SUNDAY, rows, has_whole=True, has_noise=False)
    monkeypatch.setattr(standard_errors, "_read_days", lambda *_: [day])
    found = read_figure("", lambda value: value.sum(), SUNDAY, SUNDAY)
    assert found["standard_error"].item() == pytest.approx(sum_of_days([day], ["FR"]).standard_error)
    above = read_figure("", lambda value: value.mean() > 5e4, SUNDAY, SUNDAY)
    assert 0.0 < above["standard_error"].item() < 1.0
    with pytest.raises(ParameterError, match="one number"):
        read_figure("", lambda value: value, SUNDAY, SUNDAY)


def test_an_old_file_with_a_pair_of_no_value_is_refused():
    rows = [(0, None, None, 0, 0, None, 1.0), (0, "FR", "FR", None, None, None, None)]
    footer = {"format": "optstream.errors/2", "period": "2016-01-31", "of": "whole"}
    footer |= {"nodes": ["FR"], "shape": [1, 1, 0]}
    table, sink = pl.DataFrame(rows, schema=standard_errors.OLD_SCHEMA, orient="row"), io.BytesIO()
    table.write_parquet(sink, metadata={standard_errors.OLD_KEY.decode(): json.dumps(footer)})
    with pytest.raises(PublicationError, match="no file of errors"):
        standard_errors.decode_old_errors(sink.getvalue())
