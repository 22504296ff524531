"""Experiments: what each contender costs, the same draws as ever, results that resume, findings checked."""

import json
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from studies.evaluation.experiments import LEVELS_APART, MECHANISMS, RAW, Cell
from studies.evaluation.series import LOAD, Load, read_load
from studies.evaluation.trials import run_trial
from tests.studies.conftest import invoke

FEBRUARY, SEED = "2016-02", 5


@pytest.fixture(scope="module")
def load() -> Load:
    generator = np.random.default_rng(0)
    shape = 1 + 0.3 * np.sin((np.arange(48) / 2 - 9) * np.pi / 12)
    sizes = np.array([2000.0, 5000.0])[:, None]
    return Load(sizes * shape * generator.normal(1.0, 0.02, (61, 2, 48)), ("a", "b"), date(2016, 1, 1))


OFTEN = ("OptStream ES", LEVELS_APART)
"""Of the contenders those in `make studies`; all others are tried by night."""
BY_NIGHT = [pytest.param(one, marks=pytest.mark.nightly) for one in MECHANISMS if one not in (*OFTEN, RAW)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OFTEN, *BY_NIGHT])
def test_no_contender_costs_more_than_was_asked(load, name):
    study = "hierarchy" if name == LEVELS_APART else "regions"
    result = run_trial(Cell(study, name, "1", "1", FEBRUARY, 0), load, SEED)
    assert result.drawn <= result.plan <= 1


@pytest.mark.slow
def test_only_the_unfitted_tree_is_inconsistent(load):
    def violation(name):
        return run_trial(Cell("hierarchy", name, "1", "10", FEBRUARY, 1), load, SEED).metrics["violation"]

    assert violation(LEVELS_APART) > 100
    assert all(violation(name) < 1e-6 for name in ("Laplace", "DFT", "OptStream ES", "OptStream L1"))


def test_trials_draw_what_version_0_2_0_drew():
    of_regions = Cell("regions", "OptStream L1", "0.1", "1", FEBRUARY, 2)
    assert of_regions.entropy(SEED) == [5, 4018048117, 1414455845, 3840282915, 3780588657, 2]
    of_stream = Cell("stream", "HistoryInformed", "0.1", "1", FEBRUARY, 2)
    assert of_stream.entropy(SEED) == [5, 1526286811, 1790110832, 1697826719, 2793533203, 2]


@pytest.mark.nightly
def test_a_short_run_from_the_command_line(tmp_path):
    words = ["evaluate", "--into", str(tmp_path / "r"), "--only", "4", "--short", "--trials", "1", "--json"]
    assert json.loads(invoke(*words).stdout)["experiments"] == [4]
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "r").iterdir()}
    invoke(*words)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "r").iterdir()} == written


def test_every_reading_lands_at_its_day_leaf_and_step(tmp_path):
    """Two regions, three days of 48 slots, 32-bit, out of order; the second day lacks an hour."""
    first, offsets = datetime(2016, 3, 26), {"84": 0.1, "11": 1000.0}
    rows = [
        {
            "timestamp_local": first + timedelta(minutes=30 * slot),
            "region_code": code,
            "load_mw": slot + offset,
        }
        for slot in reversed(range(3 * 48))
        for code, offset in offsets.items()
    ]
    types = {"load_mw": pl.Float32, "timestamp_local": pl.Datetime("us")}
    pl.DataFrame(rows, schema_overrides=types).write_parquet(tmp_path / LOAD)
    names, values = read_load(tmp_path / LOAD, date(2016, 3, 26), date(2016, 3, 28))
    assert names == ("11", "84")
    steps = [[48 * day + step for step in range(48)] for day in range(3)]
    assert values.tolist() == [
        [[round(step + offset, 1) for step in day] for offset in (1000.0, 0.1)] for day in steps
    ]


@pytest.mark.slow
def test_the_real_series_are_read(real_data):
    names, values = read_load(real_data / LOAD, date(2016, 1, 1), date(2016, 12, 31))
    assert values.shape == (366, 12, 48)
    assert values[:, names.index("84")].mean() == pytest.approx(7717.58, rel=0.01)  # Table 2 of OptStream
