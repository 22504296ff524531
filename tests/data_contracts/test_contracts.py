"""The library decides, and must have looked: releases by a suite, and suites of users that never raise."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from fractions import Fraction

import great_expectations as gx
import numpy as np
import polars as pl
import pytest
from great_expectations.expectations import ExpectColumnMeanToBeBetween, ExpectColumnPairValuesToBeEqual

from data_contracts import judge as module
from data_contracts import suites
from data_contracts.judge import Contract, judge, page_of
from data_contracts.metrics import KEYS, LINEAGE, RAW, RELEASE, release_metrics
from data_contracts.suites import ALARMS, RELEASE_CONTRACT, none_of, raw_contract
from optstream.errors import ContractError
from optstream.stream import AggregationTree, Feature
from optstream.stream.lattice import Margin

SAYS = {"severity": "critical", "meta": {"says": "b is c"}}
PAIR = ExpectColumnPairValuesToBeEqual(column_A="b", column_B="c", **SAYS)
SUITE = (none_of("a", "must be a"), PAIR, none_of("z", "must be z", severity=ALARMS))
CONTRACT = Contract("test", SUITE)
SOUND = {"day": ["1", "1", "2"], "region": ["x", "y", "x"], "a": [0, 0, 0], "b": [4, 4, 4], "c": [4, 4, 4]}
SOUND["z"] = [0, 0, 0]
BUILT_IN = {
    "aggregated": (raw_contract(metered=False), RAW.keys() - {*KEYS, "infinite", "out_of_bounds"}),
    "metered": (raw_contract(metered=True), {"file_fault"}),
    "release": (RELEASE_CONTRACT, RELEASE.keys() - {*KEYS, "highest", "total"}),
}
DAY = date(2025, 3, 23)
TREE = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR", "a": "N", "b": "N"})
STATEMENT = {**dict.fromkeys(LINEAGE, "stated"), "period": "2025-01-15", "revision": 0, "vintage": 0}
VALUES = TREE.add_up(np.arange(12.0).reshape(3, 4))
LOW = TREE.add_up(np.full((3, 4), -0.1))
FRAME = pl.DataFrame({"day": ["2025-01-15"] * 2, "region": ["84", "11"], "rows": [48, 96], "absent": [0, 3]})
MEAN = "does not hold: expect_column_mean_to_be_between"
ODD, NOWHERE = ({"column": name, "max_value": 71} for name in ("rows", "nowhere"))


def frame(**changes):
    return pl.DataFrame({**SOUND, **changes})


def test_every_broken_row_is_found_in_the_suites_order():
    result, broken = judge(CONTRACT, frame(z=[1, 0, 0], c=[4, 5, 4], a=[0, 0, 7]))
    assert [one.day + one.region + one.column for one in broken] == ["2xa", "1yb", "1xz"]
    assert [one.alarm for one in broken] == [False, False, True]
    assert [one.says for one in broken] == ["must be a", "b is c", "must be z"]
    assert result.statistics["unsuccessful_expectations"] == 3


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (frame().drop("b"), "no metric in some row of b"),
        (frame(a=[0, None, 0]), "no metric in some row of a"),
        (frame(a=[0.0, float("nan"), 0.0]), "no metric in some row of a"),
        (frame().clear(), "there is no row of metrics"),
    ],
)
def test_metrics_that_are_not_there_are_no_pass(metrics, message):
    with pytest.raises(ContractError, match=message):
        judge(CONTRACT, metrics)


@pytest.mark.parametrize(("contract", "stopping"), BUILT_IN.values(), ids=BUILT_IN)
def test_a_built_in_suite_stops_a_day_for_each_column_by_one_expectation_alone(contract, stopping):
    """So that none can be missed: of metered input files alone, of all else every metric but alarms."""
    stops = [one.configuration for one in contract.suite if module._stops(one.configuration)]
    judged = [set(module.columns_of(one)) & contract.structural for one in stops]
    assert set().union(*judged) == contract.structural == stopping
    for number, columns in enumerate(judged):
        assert columns - set().union(*judged[:number], *judged[number + 1 :])


@pytest.mark.parametrize(
    ("key", "value"), [("success", None), ("exception_info", {"x": {"raised_exception": True}})]
)
def test_what_could_not_be_evaluated_is_no_pass(monkeypatch, key, value):
    real = module.validated

    def validated(*given):
        result = real(*given)
        setattr(result.results[0], key, value)
        return result

    monkeypatch.setattr(module, "validated", validated)
    with pytest.raises(ContractError, match="could not be evaluated"):
        judge(CONTRACT, frame())


@pytest.mark.parametrize("number", range(3))
def test_a_library_that_drops_expectations_is_noticed(monkeypatch, number):
    real = gx.ExpectationSuite

    def drops(name, expectations):
        return real(name=name, expectations=[one for one in expectations if one is not SUITE[number]])

    monkeypatch.setattr(gx, "ExpectationSuite", drops)
    with pytest.raises(ContractError, match="its expectations were not all evaluated"):
        judge(CONTRACT, frame(a=[0, 0, 7]))


@pytest.mark.slow
def test_judging_is_silent_and_does_not_phone_home():
    program = (
        "import sys, os, socket, polars as pl\n"
        "def refuse(*_): raise SystemExit('a connection was tried')\n"
        "socket.socket.connect = refuse\n"
        "import data_contracts.metrics\n"
        "assert 'great_expectations' not in sys.modules and 'pandas' not in sys.modules\n"
        "from data_contracts.judge import Contract, judge\n"
        "from data_contracts.suites import none_of\n"
        "frame = pl.DataFrame({'day': ['1', '2'], 'region': ['x', 'x'], 'a': [0, 1]})\n"
        "assert len(judge(Contract('test', (none_of('a', 'x'),)), frame)[1]) == 1\n"
        "assert os.environ['GX_ANALYTICS_ENABLED'] == 'false'\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GX_ANALYTICS_ENABLED"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_page_says_what_was_expected_and_fetches_nothing():
    frame = pl.DataFrame({"day": ["2025-01-15"], "region": ["84"], "off_grid": [7]})
    off_grid = [none_of("off_grid", "must be the start of a step")]
    result = module.validated("raw", off_grid, frame, module.WHOLE)
    page = page_of(result, ["<b>region</b>='84'"]).decode()
    assert "&lt;b&gt;region&lt;/b&gt;=&#39;84&#39;" in page
    assert "off_grid" in page
    assert "Failed" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for fetched in ("<script", "<link", "<img", "src=", "url("):
        assert fetched not in page, fetched


def rows(values, tree=TREE):
    steps = pl.Series(np.tile(np.arange(values.shape[1]), len(values)), dtype=pl.Int32)
    nodes = np.repeat(tree.nodes, values.shape[1])
    return pl.DataFrame({"step": steps, "node": nodes, "load": values.ravel()})


def metrics_of(frame, day=DAY, tree=TREE, lower_bound="0", statement=STATEMENT, resolution="1/1000"):
    features = [Feature((range(0, 2), range(2, 4)), "halves")]
    return release_metrics(
        day, frame, tree, features, value_column="load", resolution=Fraction(resolution),
        lower_bound=Fraction(lower_bound), n_steps=4, statement=statement,
    )  # fmt: skip


def altered(node, step, value):
    values = VALUES.copy()
    values[TREE.nodes.index(node), step] = value
    return rows(values)


def more(**columns):
    return pl.concat([rows(VALUES), rows(VALUES)[:1].with_columns(**columns)])


def with_errors(name, first, others):
    is_first = pl.int_range(pl.len()) == 0
    return rows(VALUES).with_columns(pl.when(is_first).then(first).otherwise(others).alias(name))


ERRORS = ("load_noise_se", "load_se")
SUMS = "must have each node equal the sum of its children"
RELEASES = [
    (rows(VALUES), {}, ""),
    (rows(VALUES).reverse(), {}, ""),
    (rows(VALUES)[1:], {}, "must have a row for each node and step"),
    (more(), {}, "must have each node and step once"),
    (more(node=pl.lit("IT")), {}, "the hierarchy's nodes"),
    (more(step=pl.lit(4, pl.Int32)), {}, "the day's steps only"),
    *((altered("a", 1, value), {}, "must hold finite numbers") for value in (np.nan, np.inf, None)),
    (altered("FR", 1, VALUES[0, 1] + 0.00051), {}, SUMS),
    (altered("a", 1, VALUES[3, 1] - 0.00051), {}, SUMS),
    (rows(VALUES - TREE.add_up(np.full((3, 4), 1e-9))), {}, "must be at or above the lower bound"),
    # which counts for each leaf below
    (rows(LOW), {"lower_bound": "-0.1"}, ""),
    (rows(LOW), {"lower_bound": "-0.09"}, "must be at or above the lower bound"),
    *((with_errors(name, one, one), {}, "") for name in ERRORS for one in (pl.lit(None, pl.Float64), 2.5)),
    *((with_errors(name, one, None), {}, "must have standard errors that are finite")
      for name in ERRORS for one in (0.0, -1.0, np.nan, np.inf)),
    *((rows(VALUES), {"statement": {**STATEMENT, key: empty}}, "must state its whole lineage")
      for key in LINEAGE for empty in (None, "", [])),
]  # fmt: skip


@pytest.mark.slow
def test_what_must_not_be_published_is_refused_by_its_rule():
    days = [DAY + timedelta(days=number) for number, _ in enumerate(RELEASES)]
    metrics = [metrics_of(frame, day, **keys) for day, (frame, keys, _) in zip(days, RELEASES, strict=True)]
    errors = suites.refusals(judge(RELEASE_CONTRACT, pl.concat(metrics, how="vertical_relaxed"))[1])
    for day, (frame, keys, message) in zip(days, RELEASES, strict=True):
        said = str(errors.get(str(day), ""))
        assert message in said, (frame, keys)
        assert said.startswith(f"the release of {day} is not published" if message else ""), (frame, keys)
        assert bool(said) == bool(message), (frame, keys, said)


@pytest.mark.parametrize("resolution", ["1/1000", "1/7", "3"])
def test_multiples_that_add_up_are_no_further_off_than_their_floats(resolution):
    units, unit = np.random.default_rng(1).integers(0, 10**12, (3, 4)), Fraction(resolution)
    found = metrics_of(rows(TREE.add_up(units) * unit.numerator / unit.denominator), resolution=resolution)
    assert found["not_whole"].sum() == found["children_minus_parent"].sum() == 0


@pytest.mark.parametrize("off", ["FR", "N", "x", "N-x"])
def test_nodes_of_a_margin_must_add_up_both_ways(off):
    """The root, a region, a sector and a cell: a wrong sum is found in each way of summing."""
    tree = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR"})
    lattice = Margin("sector", ("x", "y")).on(tree)
    values = lattice.add_up(np.arange(16.0).reshape(4, 4))
    assert metrics_of(rows(values, lattice), tree=lattice)["children_minus_parent"].sum() == 0
    values[lattice.nodes.index(off), 2] += 1.0
    found = metrics_of(rows(values, lattice), tree=lattice)
    hit = set(found.filter(pl.col("children_minus_parent") > 0)["region"])
    assert hit == {"FR": {"FR"}, "N": {"FR", "N"}, "x": {"FR", "x"}, "N-x": {"N", "x"}}[off]


PYTHON = """
import great_expectations as gx
import great_expectations.expectations as gxe

most = gxe.ExpectColumnMaxToBeBetween(column="rows", max_value=50)
suite = gx.ExpectationSuite(name="any", expectations=[most])
"""


def written(**changes):
    mean = ExpectColumnMeanToBeBetween(column="rows", min_value=50, max_value=80)
    document = gx.ExpectationSuite(name="night", expectations=[mean]).to_json_dict()
    document["expectations"][0].update(changes)
    return json.dumps(document)


def verdicts(folder):
    return [(one.name, suites.judge_user_suite(one, FRAME)[1]) for one in suites.user_suites(folder)]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("night.json", written(), None),
        ("night.json", written(kwargs=ODD), f"{MEAN}(rows)"),
        ("night.json", written(kwargs=NOWHERE), f"{MEAN}(nowhere) could not be evaluated"),
        ("loads.py", PYTHON, "does not hold: expect_column_max_to_be_between(rows)"),
    ],
)
def test_a_suite_of_the_librarys_own_json_or_of_python_holds_or_does_not(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    assert verdicts(tmp_path) == [(name.partition(".")[0], said)]


@pytest.mark.parametrize("open_one", ["file", "folder"])
def test_a_python_file_that_others_may_write_is_not_run(tmp_path, open_one):
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "loads.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (folder if open_one == "folder" else folder / "loads.py").chmod(0o777)
    ((name, words),) = verdicts(folder)
    assert (name, words.split(":")[0]) == ("loads", "was not run")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "cannot be loaded: JSONDecodeError"),
        ("a.json", "[]", "cannot be loaded: TypeError"),
        ("a.json", '{"expectations": []}', "must have 1 to 500 expectations"),
        ("a.json", " " * (2**20 + 1), "it is larger than 1 MiB"),
        ("a.json", written(type="betwen"), "has an expectation that the library does not know"),
        ("a.py", "suite = 1", "must assign a great_expectations.ExpectationSuite"),
        ("a.py", "raise ValueError('no')", "cannot be loaded: ValueError: no"),
        ("a b.json", "{}", "must have a name of letters"),
    ],
)
def test_a_file_that_is_no_suite_is_a_problem_and_raises_nothing(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    ((_, said),) = verdicts(tmp_path)
    assert words in said
