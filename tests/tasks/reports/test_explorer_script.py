"""What the script of the data users' page works out, asked of its sources in a browser without the page."""

import base64
import io
import json
from datetime import date, timedelta
from importlib.resources import files
from math import isfinite

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from tasks.reports.curves import encode
from tasks.reports.explorer import SCRIPTS
from tests.browser import visit

SOURCES = "\n".join(
    (files("tasks.reports") / "templates/explorer" / name).read_text(encoding="utf-8")
    for name in SCRIPTS[:-1]
)
FROM = date(2016, 1, 27)
"""A Wednesday: the first whole week begins on the sixth day, the first whole month on the sixth too."""
N_DAYS = 40
STEPS = [48] * N_DAYS


def store_of(steps=STEPS, noise=None, names=(["FR", "France", -1, 0], ["84", None, 0, 1])):
    """JavaScript that makes `store`: two nodes, whose day n has the mean 100 + n, and 200 + n."""
    means = np.array([100.0 + np.arange(N_DAYS), 200.0 + np.arange(N_DAYS)])
    means[:, [number for number, n in enumerate(steps) if not n]] = np.nan
    noise = np.full_like(means, 2.0) if noise is None else noise
    columns = {"value": means, "noise": noise}
    days = base64.b64encode(encode("days", FROM, steps, 0, columns)).decode()
    of_last = {"value": np.arange(96.0).reshape(2, 48) / 3}
    recent = base64.b64encode(encode("steps", FROM + timedelta(days=N_DAYS - 1), [48], 0, of_last)).decode()
    index = {
        "value": "load_mw", "quantity": "load", "unit": "MW", "sum_unit": "MWh", "sum_factor": 0.5,
        "step_minutes": 30, "first": str(FROM), "steps": steps, "block": 64, "z": 1.96, "nodes": list(names),
    }  # fmt: skip
    return (
        f"const store = makeStore({json.dumps(index)}, {{days: {{}}, steps: {{}}}}, "
        f"parseFigures(bytesOf('{days}')), parseFigures(bytesOf('{recent}')), null);"
    )


@pytest.fixture(scope="module")
def ask(chromium):
    """Run JavaScript after the page's sources; returns what it returns."""
    with visit(chromium, allowed=()) as seen:
        yield lambda code: seen.page.evaluate(f"() => {{ {SOURCES}\n {code} }}")


def test_a_week_s_sum_is_of_its_days_and_its_band_the_widest(ask):
    """Energy: mean times steps times half an hour. The band: all deviations added, as if they agreed."""
    points = ask(store_of() + "return pointsOf(store, 0, 'weekly', 0, store.size)")
    assert [point["day"] for point in points] == [5, 12, 19, 26, 33]
    assert points[0]["value"] == sum((100 + n) * 48 * 0.5 for n in range(5, 12))
    assert points[0]["noise"] == 7 * 48 * 2.0 * 0.5
    rng = np.random.default_rng(1)
    root = rng.normal(size=(7, 7))
    covariance = root @ root.T
    assert np.sqrt(covariance.sum()) <= np.sqrt(np.diag(covariance)).sum() + 1e-12


@pytest.mark.parametrize(("least", "found"), [("-Infinity", [-3, 5]), ("0", [0, 5])])
def test_a_band_of_counts_does_not_lie_below_zero(ask, least, found):
    lines, deviation = "[{points: [{x: 0, value: 1}]}]", "() => 4"
    assert ask(f"return extentOf({lines}, {deviation}, {least})") == found
    (column,) = ask(f"return columnsOf([{{x: 0, value: 1}}], (x) => x, {deviation}, {least})")
    assert [column["lower"], column["upper"]] == found


def test_a_sum_that_lacks_a_day_or_a_deviation_is_not_shown_or_has_no_band(ask):
    steps = [0 if number == 7 else 48 for number in range(N_DAYS)]
    noise = np.full((2, N_DAYS), 2.0)
    noise[0, 13] = np.nan
    points = ask(store_of(steps, noise) + "return pointsOf(store, 0, 'weekly', 0, store.size)")
    assert [[isfinite(point["value"]), isfinite(point["noise"])] for point in points] == [
        [False, False],
        [True, False],
        [True, True],
        [True, True],
        [True, True],
    ]


def test_the_csv_has_the_published_numbers_and_no_formula(ask):
    names = (["FR", '=cmd("x")', -1, 0], ["84", "a, b", 0, 1])
    text = ask(store_of(names=names) + "return csvOf(tableOf(store, [0, 1], 'steps', 39, 40))")
    lines = text.split("\r\n")
    assert lines[0] == "date,step,node,name,load_mw,noise_se,se"
    assert lines[2] == '2016-03-06,1,FR,"\'=cmd(""x"")",0.3333333333333333,,'
    assert lines[49].startswith('2016-03-06,0,84,"a, b",16,')
    assert len(lines) == 1 + 96 + 1
    sums = ask(store_of() + "return csvOf(tableOf(store, [0], 'weekly', 0, 40))").split("\r\n")
    assert sums[0] == "date,node,name,weekly_sum_load_mwh,noise_se_at_most,se_at_most"
    assert sums[1] == "2016-02-01,FR,France,18144,336,"


@pytest.mark.parametrize("measure", ["steps", "means", "monthly"])
def test_the_parquet_file_is_read_by_everybody_and_says_what_the_csv_says(ask, measure, tmp_path):
    names = (["FR", "Île-de-France, 東京", -1, 0], ["84", None, 0, 1])
    noise = np.full((2, N_DAYS), 2.0)
    noise[0, 7] = np.nan
    csv, parquet = ask(
        store_of(noise=noise, names=names)
        + f"const table = tableOf(store, [0, 1], '{measure}', 0, 40); "
        + "return [csvOf(table), [...parquetOfTable(table)]]"
    )
    file = tmp_path / "table.parquet"
    file.write_bytes(bytes(parquet))
    kinds = {"date": pl.Date, "step": pl.Int32, "node": pl.String, "name": pl.String}
    kinds = {name: kinds.get(name, pl.Float64) for name in csv.partition("\r\n")[0].split(",")}
    said = pl.read_csv(io.BytesIO(csv.encode()), schema=kinds).with_columns(pl.col("name").fill_null(""))
    assert said.height == {"steps": 96, "means": 80, "monthly": 2}[measure]
    assert pl.read_parquet(file).equals(said)
    assert pl.from_arrow(pq.read_table(file)).equals(said)


def test_a_view_is_restored_from_its_address(ask):
    view = "clamp(store, {nodes: [1, 0], measure: 'means', band: 'none', days: [3, 20]})"
    text, again = ask(
        store_of()
        + f"const f = fragmentOf(store, {view}); return [f, viewOf(store, f, firstView(store, 'noise'))]"
    )
    assert text == "#n=84&n=FR&m=means&b=none&d=2016-01-30..2016-02-15"
    assert again == {"nodes": [1, 0], "measure": "means", "band": "none", "days": [3, 20]}


@pytest.mark.parametrize(
    "fragment",
    [
        "#n=", "#n=nobody", "#n=FR&m=__proto__&b=constructor", "#n=FR&d=2016-02-30..2016-99-99",
        "#n=FR&d=2016-03-01..2016-02-01", "#n=FR&d=0001-01-01..9999-12-31", "#n=%3Cimg%3E&m=steps",
        "#n=" + "FR&n=" * 5000,
    ],
)  # fmt: skip
def test_an_address_that_somebody_else_wrote_gives_a_view_within_bounds(ask, fragment):
    view = ask(store_of() + f"return viewOf(store, {json.dumps(fragment)}, firstView(store, 'noise'))")
    assert view["nodes"] == [0]
    assert (view["measure"], view["band"]) == ("steps", "noise")
    assert 0 <= view["days"][0] < view["days"][1] <= N_DAYS
