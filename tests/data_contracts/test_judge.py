"""The judge must have looked: what was not loaded, not evaluated or not agreed is never a pass."""

import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import polars as pl
import pytest

from data_contracts.judge import Rule, check_evaluated, judge
from optstream.errors import ContractError

RULES = (Rule("a", "must be a"), Rule("b", "must be b", alarm=True))


def test_every_broken_row_is_found_in_order():
    metrics = pl.DataFrame({"b": [1, 0, 2], "other": [9, 9, 9], "a": [0, 0, 7]})
    broken = judge("test", RULES, metrics, n_rows=3)
    assert [(entry.row, entry.rule.name) for entry in broken] == [(0, "b"), (2, "a"), (2, "b")]


def test_nothing_broken_is_nothing():
    assert judge("test", RULES, pl.DataFrame({"a": [0], "b": [0]}), n_rows=1) == []


@pytest.mark.parametrize(
    ("metrics", "n_rows", "told"),
    [
        ({"a": [0]}, 1, "missing: b"),
        ({"a": [0], "b": [0]}, 2, "judges a frame of 2 rows"),
        ({"a": [], "b": []}, 0, "at least one"),
        ({"a": [0, None], "b": [0, 0]}, 2, "has no metric in some row of a"),
    ],
)
def test_metrics_that_are_not_there_are_not_zero(metrics, n_rows, told):
    with pytest.raises(ContractError, match=told):
        judge("test", RULES, pl.DataFrame(metrics, schema=dict.fromkeys(metrics, pl.Int64)), n_rows=n_rows)


@pytest.mark.parametrize("rules", [(), (RULES[0], RULES[0])])
def test_a_contract_without_rules_or_with_a_rule_twice_is_refused(rules):
    with pytest.raises(ContractError, match="must have rules, each once"):
        judge("test", rules, pl.DataFrame({"a": [0]}), n_rows=1)


def result(kind="in_set", column="a", success=True, raised=False):
    configuration = SimpleNamespace(type=kind, kwargs={"column": column} if column else {})
    return SimpleNamespace(
        expectation_config=configuration, success=success, exception_info={"x": {"raised_exception": raised}}
    )


WANTED = Counter({("in_set", "a"): 1, ("rows", None): 1})


def test_the_guard_passes_what_was_evaluated():
    assert check_evaluated("test", WANTED, [result(), result("rows", None)]) == {"a": True}
    assert check_evaluated("test", WANTED, [result(success=False), result("rows", None)]) == {"a": False}


@pytest.mark.parametrize(
    "results",
    [
        [],
        [result()],
        [result(), result("rows", None), result(column="b")],
        [result(), result(), result("rows", None)],
        [result("in_sett"), result("rows", None)],
        [result(raised=True), result("rows", None)],
        [result(success=None), result("rows", None)],
        [result(), result("rows", None, success=False)],
    ],
)
def test_the_guard_refuses_what_was_not(results):
    with pytest.raises(ContractError, match="'test' was not judged"):
        check_evaluated("test", WANTED, results)


def test_a_library_that_drops_expectations_is_noticed(monkeypatch):
    import great_expectations

    real = great_expectations.ExpectationSuite
    monkeypatch.setattr(
        great_expectations,
        "ExpectationSuite",
        lambda name, expectations: real(name=name, expectations=expectations[1:]),
    )
    with pytest.raises(ContractError, match="not evaluated as loaded: expect_column_values_to_be_in_set"):
        judge("test", RULES, pl.DataFrame({"a": [1], "b": [0]}), n_rows=1)


def test_a_verdict_that_contradicts_its_metric_is_refused(monkeypatch):
    monkeypatch.setattr("data_contracts.judge._validate", lambda *_: {"a": True, "b": True})
    with pytest.raises(ContractError, match="its verdict on a is not its metric's"):
        judge("test", RULES, pl.DataFrame({"a": [1], "b": [0]}), n_rows=1)


def test_judging_is_silent_and_does_not_phone_home():
    program = (
        "import sys, os, socket, polars as pl\n"
        "def refuse(*_): raise SystemExit('a connection was tried')\n"
        "socket.socket.connect = refuse\n"
        "from data_contracts.judge import Rule, judge\n"
        "assert 'great_expectations' not in sys.modules and 'pandas' not in sys.modules\n"
        "assert len(judge('test', [Rule('a', 'x')], pl.DataFrame({'a': [0, 1]}), n_rows=2)) == 1\n"
        "assert os.environ['GX_ANALYTICS_ENABLED'] == 'false'\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GX_ANALYTICS_ENABLED"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


KILLED = """
import os, signal
import polars as pl
from data_contracts.judge import Rule, judge

def judges():
    assert judge("test", [Rule("a", "must be a")], pl.DataFrame({"a": [0]}), n_rows=1) == []

def forked(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def killed_in_a_progress_bar():
    from tqdm.std import tqdm

    tqdm.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)

judges()
assert forked(killed_in_a_progress_bar) == -signal.SIGKILL
assert forked(judges) == 0
"""


def test_a_judge_that_is_killed_stops_no_other():
    """Great Expectations holds a lock of tqdm, which processes forked from one share unless it is ours."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    subprocess.run([sys.executable, "-c", KILLED], check=True, env=environment, timeout=300)
