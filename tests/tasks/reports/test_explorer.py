"""The data users' page as people use it: what it works out, from a file and from a web server.

What is worked out is asked of the page's own sources in a browser without the page; the page is looked at
with all that a reader has: mouse, keyboard, address, downloads.
"""

import base64
import functools
import io
import json
import re
import shutil
import threading
from datetime import date, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from math import isfinite
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from optstream.catalogue.about import About, NodeFacts, put_about
from tasks.reports.curves import encode
from tasks.reports.explorer import SCRIPTS
from tasks.reports.numbers import shown, ticks
from tasks.reports.write import write_public_page
from tests.browser import visit
from tests.tasks.reports.conftest import FIRST, GONE

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
SOURCES = "\n".join(
    (files("tasks.reports") / "templates/explorer" / name).read_text(encoding="utf-8")
    for name in SCRIPTS[:-1]
)
HOSTILE = "<img src=x onerror='window.hit = 1'></script><b>\"&"
NAMES = {
    "FR": NodeFacts("France"), "11": NodeFacts("Île-de-France"), "53": NodeFacts("Bretagne", 48.2, -2.9),
    "24": NodeFacts(HOSTILE), "84": NodeFacts("=1+1", 45.5, 4.5),
}  # fmt: skip
SIZES = [
    (360, "light"),
    (1440, "dark"),
    *(
        pytest.param(width, scheme, marks=pytest.mark.nightly)
        for width, scheme in [(360, "dark"), (768, "light"), (768, "dark"), (1440, "light")]
    ),
]


# What is worked out

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


def test_months_are_whole_and_days_of_another_length_count_by_their_steps(ask):
    steps = [46 if number == 5 else 48 for number in range(N_DAYS)]
    (month,) = ask(store_of(steps) + "return pointsOf(store, 1, 'monthly', 0, store.size)")
    assert (month["day"], month["width"]) == (5, 29)
    assert month["value"] == pytest.approx(
        sum((200 + n) * (46 if n == 5 else 48) * 0.5 for n in range(5, 34))
    )


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


def test_an_anchor_is_no_view(ask):
    assert ask(store_of() + "return viewOf(store, '#noise', firstView(store, 'noise'))") is None


def test_nodes_are_found_by_name_and_code_without_accents(ask):
    nodes = [
        ["FR", "France", -1, 0],
        ["11", "Île-de-France", 0, 1],
        ["53", "Bretagne", 0, 1],
        ["9f", None, 0, 1],
    ]
    search = f"const search = makeSearch({{nodes: {json.dumps(nodes)}}}); return "
    assert ask(search + "['ile', 'FRANCE', 'f', '', 'tag', 'x'].map((text) => search(text))") == [
        [1], [0, 1], [0, 1, 3], [0, 1, 2, 3], [2], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 7), (52_888, 64_402), (0.001, 0.0013), (5, 5), (-1e9, 1e9)]
)
def test_ticks_and_numbers_are_those_of_the_other_pages(ask, low, high):
    assert ask(f"return ticks({low}, {high})") == pytest.approx(list(ticks(low, high)))
    for value in (low, high, high / 7):
        assert ask(f"return shown({value})").replace("−", "-") == shown(value).replace("−", "-")


def test_a_day_between_two_gaps_is_a_dot_not_nothing(ask):
    """Isolated days vanished as lines of no length."""
    drawn = ask(
        """
        const points = [0, 2, 3, 5].map((x) => ({x, width: 1, value: 1, noise: NaN}));
        const runs = runsOf(points).map((run) => columnsOf(run, (x) => x, () => NaN)), dots = [];
        const pen = new Proxy({arc: (x) => dots.push(x)}, {get: (o, k) => o[k] || (() => 0), set: () => 1});
        const many = [...Array(80).keys()].map((x) => ({x: 10 + x, width: 1, value: 1}));
        trace(pen, [...runs, columnsOf(many, (x) => x, () => NaN)], (y) => y, "#000", []);
        return [runs.map((run) => run.length), dots];
        """
    )
    assert drawn == [[1, 2, 1], [0, 5]]


def test_a_day_is_classed_by_the_node_s_own_days_and_places_lie_as_on_the_ground(ask):
    assert ask("return [79, 80, 94, 100, 105, 119, 121, NaN].map((v) => classOf(v, 100))") == [
        0, 1, 1, 2, 3, 3, 4, None,
    ]  # fmt: skip
    index = {
        "nodes": [
            ["N", None, -1, 0, 60.0, 10.0],
            ["S", None, 0, 0, 60.0, 12.0],
            ["E", None, 0, 0, 61.0, 10.0],
        ]
    }
    on = "[[10, 60], [12, 60], [10, 61]].map"
    (n, s, e) = ask(f"return {on}(projection({json.dumps(index)}, [0, 1, 2], 400, 400))")
    assert n[1] == s[1]
    assert e[1] < n[1], "north is up"
    assert abs(s[0] - n[0]) == pytest.approx(abs(e[1] - n[1]), rel=0.02), "two degrees there are one here"


# The page


@pytest.fixture(scope="module")
def published(forty_days, tmp_path_factory):
    """The forty days with names, one of them hostile, and their page."""
    folder = tmp_path_factory.mktemp("explored") / "published"
    shutil.copytree(forty_days, folder)
    put_about(folder, "simulated-load", About("Example Grid", "CC BY 4.0", NAMES))
    write_public_page(folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """A web server's plainest."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def served(published):
    """The folder's address on a web server of this machine."""
    handler = functools.partial(Quiet, directory=published)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def month(page, first, last):
    """Type two days into the fields."""
    page.fill("#from", first)
    page.fill("#to", last)
    page.locator("#to").press("Tab")


def until(page, code, arg=None):
    """Wait until the code is true on the page, whose policy forbids what `wait_for_function` does."""
    for _ in range(500):
        if page.evaluate(code, arg):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never: {code} {arg or ''}")


def label_has(page, text):
    """Wait until the plot is described so."""
    until(page, "text => document.getElementById('plot').getAttribute('aria-label').includes(text)", arg=text)


RATIO = 7.4 * np.cos(np.radians((48.2 + 45.5) / 2)) / (48.2 - 45.5)
"""Width over height of what the two places span."""
INKED = """() => {
  const canvas = document.getElementById("plot"), pen = canvas.getContext("2d");
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
  for (let n = 0; n < pixels.length; n += 4) colours.add(pixels.slice(n, n + 3).join());
  return colours.size;
}"""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_can_be_read_and_used_at_every_size(chromium, served, width, scheme):
    with visit(chromium, allowed=(served,), width=width, scheme=scheme) as seen:
        seen.page.goto(served)
        seen.page.get_by_role("combobox", name="Find a node").fill("24")
        seen.page.keyboard.press("Enter")
        seen.page.click("#table summary")
        seen.page.wait_for_selector("#rows tr")
        looks = seen.page.evaluate(LOOKS)
        assert seen.page.evaluate(INKED) > 5
        assert seen.page.evaluate("window.hit") is None
        assert HOSTILE in seen.page.inner_text("#chosen")
        contrasts = seen.page.evaluate(
            "() => [0, 1, 2, 3, 4, 5, 6, 7].map("
            "(n) => getComputedStyle(document.body).getPropertyValue(`--c${n}`))"
        )
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    ground = (255, 255, 255) if scheme == "light" else (20, 24, 28)
    assert [colour for colour in contrasts if ratio(rgb(colour), ground) < 3] == []
    assert seen.errors == []
    assert seen.refused == []


def rgb(text):
    return tuple(int(text.strip()[start : start + 2], 16) for start in (1, 3, 5))


def ratio(one, other):
    """As WCAG 2.2 says."""

    def luminance(colour):
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_only_what_is_looked_at_is_loaded_and_only_from_its_own_folder(chromium, served, published):
    rows = pl.read_parquet(published / "data", hive_partitioning=True)
    own = rows.filter(
        (pl.col("node") == "FR") & pl.col("date").is_between(date(2016, 1, 4), date(2016, 1, 6))
    )
    with visit(chromium, allowed=(served,)) as seen:
        seen.page.goto(served)
        label_has(seen.page, "France (FR): from")
        assert seen.requests == [served]
        with seen.page.expect_response(re.compile("curves/")):
            month(seen.page, "2016-01-04", "2016-01-06")
        label_has(seen.page, f"to {shown(own['load_mw'].max())} MW")
    assert [request for request in seen.requests if not request.startswith(served)] == []
    (name,) = [request.removeprefix(served) for request in seen.requests[1:]]
    assert (published / name).is_file()
    assert seen.errors == []


def test_from_a_file_the_last_days_and_all_means_are_there_and_the_rest_is_said(chromium, published):
    page = (published / "index.html").as_uri()
    with visit(chromium, allowed=(page,)) as seen:
        seen.page.goto(page)
        assert seen.page.inner_text("#status") == ""
        label_has(seen.page, "Step by step of load. France (FR): from")
        seen.page.select_option("#measure", "means")
        seen.page.click("#all")
        label_has(seen.page, "Daily means of load. France (FR): from")
        assert seen.page.inner_text("#status") == ""
        seen.page.select_option("#measure", "steps")
        month(seen.page, "2016-01-04", "2016-01-06")
        until(seen.page, "document.getElementById('status').textContent.includes('web server')")
    assert seen.requests == [page]
    assert seen.errors == []


def test_figures_that_are_gone_are_said(chromium, served, published, tmp_path):
    """The page is of an earlier publication: what it names is no longer there."""
    with visit(chromium, allowed=(served,)) as seen:
        seen.page.goto(served)
        (published / "curves").rename(tmp_path / "curves")
        try:
            month(seen.page, "2016-01-04", "2016-01-06")
            until(seen.page, "document.getElementById('status').textContent.includes('load it again')")
        finally:
            (tmp_path / "curves").rename(published / "curves")


def test_the_keyboard_alone_is_enough_and_the_address_restores_what_it_did(chromium, served):
    with visit(chromium, allowed=(served,)) as seen:
        page = seen.page
        page.goto(served)
        while page.evaluate("document.activeElement.id") != "find":
            page.keyboard.press("Tab")
        page.keyboard.type("bret")
        page.keyboard.press("ArrowDown")
        assert page.get_attribute("#find", "aria-activedescendant") == "found-0"
        page.keyboard.press("Enter")
        assert page.locator("#chosen li").count() == 2
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")  # the next measure
        assert page.input_value("#measure") == "means"
        while page.evaluate("document.activeElement.id") != "plot":
            page.keyboard.press("Tab")
        for key in ("0", "+", "ArrowRight", ",", "."):
            page.keyboard.press(key)
        until(page, "document.getElementById('reading').textContent.includes('Bretagne (53): ')")
        assert "MW" in page.inner_text("#reading")
        ends = f"d={page.input_value('#from')}..{page.input_value('#to')}"
        until(page, "ends => location.hash.endsWith(ends)", arg=ends)
        before = {name: page.input_value(name) for name in ("#from", "#to", "#measure", "#band")}
        page.reload()
        assert {name: page.input_value(name) for name in before} == before
        assert page.locator("#chosen li").count() == 2
        while not page.evaluate(
            "(document.activeElement.getAttribute('aria-label') || '').startsWith('Remove')"
        ):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator("#chosen li").count() == 1
    assert seen.errors == []


def test_mouse_moves_and_zooms_and_a_lost_day_is_a_gap(chromium, served):
    with visit(chromium, allowed=(served,)) as seen:
        page = seen.page
        page.goto(served)
        page.select_option("#measure", "means")
        page.click("#all")
        assert (page.input_value("#from"), page.input_value("#to")) == ("2016-01-01", "2016-02-09")
        page.click("#nearer")
        page.locator("#plot").scroll_into_view_if_needed()
        box = page.locator("#plot").bounding_box()
        start = page.input_value("#from")
        page.mouse.move(box["x"] + 500, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 800, box["y"] + 100, steps=5)
        page.mouse.up()
        moved = page.input_value("#from")
        assert moved < start
        page.keyboard.down("Control")
        page.mouse.wheel(0, -400)
        page.keyboard.up("Control")
        until(page, "before => document.getElementById('from').value > before", arg=moved)
        page.click("#all")
        page.click("#table summary")
        page.wait_for_selector("#rows tr")
        rows = page.locator("#rows th").all_inner_texts()
    assert len(rows) == 39
    assert f"{GONE.day} Jan 2016" not in rows
    assert seen.errors == []


def test_places_make_a_map_with_a_day_and_a_press_plots_the_node(chromium, served):
    with visit(chromium, allowed=(served,)) as seen:
        page = seen.page
        page.goto(served)
        page.locator("#day").scroll_into_view_if_needed()
        until(page, "document.getElementById('map-told').textContent.startsWith('9 Feb 2016: the most')")
        page.focus("#day")
        page.keyboard.press("ArrowLeft")
        until(page, "document.getElementById('map-told').textContent.startsWith('8 Feb 2016: the most')")
        assert page.get_attribute("#day", "aria-valuetext") == "8 Feb 2016"
        page.locator("#map").scroll_into_view_if_needed()
        box = page.locator("#map").bounding_box()
        # Bretagne lies in the north-west of the two
        page.mouse.click(box["x"] + box["width"] / 2 - (box["height"] - 80) / 2 * RATIO, box["y"] + 40)
        until(page, "document.getElementById('chosen').textContent.includes('Bretagne')")
    assert seen.errors == []


def test_the_csv_is_what_was_published(chromium, served, published):
    with visit(chromium, allowed=(served, "blob:")) as seen:
        seen.page.goto(served + "#n=84&m=steps&b=noise&d=2016-01-04..2016-01-05")
        until(seen.page, "document.getElementById('status').textContent === ''")
        with seen.page.expect_download() as caught:
            seen.page.click("#csv")
        found = pl.read_csv(caught.value.path(), schema_overrides={"node": pl.String, "se": pl.Float64})
    rows = pl.read_parquet(published / "data", hive_partitioning=True)
    days = pl.col("date").is_between(date(2016, 1, 4), date(2016, 1, 5))
    own = rows.filter((pl.col("node") == "84") & days).sort("date", "step")
    assert found["load_mw"].to_list() == own["load_mw"].to_list()
    assert found["noise_se"].to_list() == own["load_mw_noise_se"].to_list()
    assert found["name"].unique().to_list() == ["'=1+1"]
    assert date(2016, 1, 4) > FIRST


def test_control_a_page_that_sets_names_as_markup_is_seen(chromium, published, tmp_path):
    """The same page with one word changed, its policy gone: the hostile name runs."""
    text = (published / "index.html").read_text(encoding="utf-8")
    assert text.count("element.textContent = text;") == 1
    wrong = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    planted = tmp_path / "wrong.html"
    planted.write_text(
        wrong.replace("element.textContent = text;", "element.innerHTML = text;"), encoding="utf-8"
    )
    with visit(chromium, allowed=(tmp_path.as_uri(),)) as seen:
        seen.page.goto(planted.as_uri() + "#n=24")
        until(seen.page, "window.hit === 1")


def test_control_a_changed_script_does_not_run(chromium, published, tmp_path):
    """The policy names the script by its hash: what somebody plants is refused."""
    text = (published / "index.html").read_text(encoding="utf-8")
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"), encoding="utf-8")
    with visit(chromium, allowed=(planted.as_uri(),)) as seen:
        seen.page.goto(planted.as_uri())
        assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in error for error in seen.errors)
