"""The library decides, and must have looked: what was not loaded or not evaluated is never a pass."""

import os
import subprocess
import sys

import great_expectations as gx
import polars as pl
import pytest
from great_expectations.expectations import ExpectColumnPairValuesToBeEqual

from data_contracts import judge as module
from data_contracts.judge import Contract, judge, page_of
from data_contracts.metrics import KEYS, RAW, RELEASE
from data_contracts.suites import ALARMS, RELEASE_CONTRACT, none_of, raw_contract
from optstream.errors import ContractError

PAIR = ExpectColumnPairValuesToBeEqual(
    column_A="b", column_B="c", severity="critical", meta={"says": "b is c"}
)
SUITE = (none_of("a", "must be a"), PAIR, none_of("z", "must be z", severity=ALARMS))
CONTRACT = Contract("test", SUITE)
SOUND = {"day": ["1", "1", "2"], "region": ["x", "y", "x"], "a": [0, 0, 0], "b": [4, 4, 4], "c": [4, 4, 4]}
SOUND["z"] = [0, 0, 0]


def frame(**changes):
    return pl.DataFrame({**SOUND, **changes})


def test_every_broken_row_is_found_in_the_suites_order():
    result, broken = judge(CONTRACT, frame(z=[1, 0, 0], c=[4, 5, 4], a=[0, 0, 7]))
    assert [(one.day, one.region, one.column, one.alarm) for one in broken] == [
        ("2", "x", "a", False),
        ("1", "y", "b", False),
        ("1", "x", "z", True),
    ]
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


ALL = frozenset(RAW) - {*KEYS, "infinite", "out_of_bounds"}
BUILT_IN = {
    "aggregated": (raw_contract(metered=False), ALL),
    "metered": (raw_contract(metered=True), {"file_fault"}),
    "release": (RELEASE_CONTRACT, RELEASE.keys() - {*KEYS, "highest", "total"}),
}


@pytest.mark.parametrize(("contract", "stopping"), BUILT_IN.values(), ids=BUILT_IN)
def test_a_built_in_suite_stops_a_day_for_each_column_by_one_expectation_alone(contract, stopping):
    """So that none can be missed: of metered input files alone, of all else every metric but alarms."""
    judged = [
        set(module.columns_of(one.configuration)) & contract.structural
        for one in contract.suite
        if module._stops(one.configuration)
    ]
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
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


OFF_GRID = [none_of("off_grid", "must be the start of a step")]


def test_the_page_says_what_was_expected_and_fetches_nothing():
    frame = pl.DataFrame({"day": ["2025-01-15"], "region": ["84"], "off_grid": [7]})
    result = module.validated("raw", OFF_GRID, frame, module.WHOLE)
    page = page_of(result, ["<b>region</b>='84'"]).decode()
    assert "&lt;b&gt;region&lt;/b&gt;=&#39;84&#39;" in page
    assert "off_grid" in page
    assert "Failed" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for fetched in ("<script", "<link", "<img", "src=", "url("):
        assert fetched not in page, fetched
