"""The benchmark on real load: each reading in its place, and errors and costs that are not flattered."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.real_load import cases, remarks
from benchmarks.real_release import EITHER, Case, Outcome, inconsistency, run_case, together
from benchmarks.real_year import FILE, RealYear, read_year
from benchmarks.release_year import TimedNoise, a_year
from optstream import simulated_noise
from optstream.errors import DumpError
from optstream.stream import AggregationTree

FIRST, LAST = date(2016, 3, 26), date(2016, 3, 27)  # the second day has two slots that do not exist
TREE = AggregationTree.from_parents({"FR": None, "11": "FR", "84": "FR"})
OUTCOME = Outcome(Fraction(1), Fraction(1), Fraction(1), 10.0, 5.0, 0.0, 0.0, 2.0)


def load_rows() -> pl.DataFrame:
    rows = [
        {"timestamp_local": datetime(2016, 3, 26) + timedelta(minutes=30) * slot, "region_code": code,
         "load_mw": slot + offset}
        for slot in reversed(range(96)) for code, offset in (("84", 0.1), ("11", 1000.0))
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"load_mw": pl.Float32, "timestamp_local": pl.Datetime("us")})


@pytest.fixture
def year() -> RealYear:
    """Ten days, high enough that the bound never matters at epsilon 1."""
    generator = np.random.default_rng(5)
    load = np.round(90_000 + 500 * generator.standard_normal((10, 2, 48)), 3)
    return RealYear(TREE, load, tuple(48 * number for number in range(10)))


def test_every_reading_lands_at_its_day_leaf_and_step(tmp_path: Path) -> None:
    load_rows().write_parquet(tmp_path / FILE)
    read = read_year(tmp_path, FIRST, LAST)
    assert read.tree == TREE
    assert read.first_steps[1] - read.first_steps[0] == 48
    expected = [
        [[round(48 * day + step + offset, 1) for step in range(48)] for offset in (1000.0, 0.1)]
        for day in (0, 1)
    ]
    assert read.load_mw.tolist() == expected
    assert read_year(tmp_path / FILE, FIRST, LAST).load_mw.tolist() == expected


@pytest.mark.parametrize("spoil", ["null", "row missing"])
def test_gaps_are_refused(tmp_path: Path, spoil: str) -> None:
    rows = load_rows()
    if spoil == "null":
        rows = rows.with_columns(
            pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("load_mw").alias("load_mw")
        )
    else:
        rows = rows[1:]
    rows.write_parquet(tmp_path / FILE)
    with pytest.raises(DumpError, match="one value for each region and each of 48 slots"):
        read_year(tmp_path, FIRST, LAST)


@pytest.mark.parametrize("sampler", ["equally spaced", "L1"])
@pytest.mark.parametrize("features", [True, False])
def test_a_strict_year_costs_what_was_asked(year: RealYear, sampler: str, features: bool) -> None:
    outcome = run_case(Case(sampler, features, True, "strict", "1"), year, seed=1)
    assert float(outcome.epsilon_plan) == pytest.approx(1, rel=1e-9)
    assert outcome.epsilon_year <= outcome.epsilon_plan <= 1
    assert outcome.inconsistency < 1e-9
    assert 0 < outcome.error_regions < 3000


def test_the_papers_calibration_costs_what_it_costs(year: RealYear) -> None:
    equal = run_case(Case("equally spaced", True, True, "paper", "0.1"), year, seed=1)
    assert float(equal.epsilon_year) == pytest.approx(2.45)
    chosen = run_case(Case("L1", True, True, "paper", "0.1"), year, seed=1)
    assert float(chosen.epsilon_year_aligned) == pytest.approx(50 / 30, rel=1e-3)  # 16.67 times what is asked
    assert chosen.epsilon_year_aligned < chosen.epsilon_year <= chosen.epsilon_plan  # points of two days


def test_without_features_equal_spacing_knows_one_calibration() -> None:
    either = [case for case in cases() if case.calibration == EITHER]
    assert {(case.sampler, case.features) for case in either} == {
        ("equally spaced", False),
        ("every step", False),
    }
    for case in either:
        strict, paper = (
            replace(case, calibration=name).mechanism(TREE).plan(48) for name in ("strict", "paper")
        )
        assert strict == paper


def test_the_peer_measures_every_step_and_its_error_is_that_of_its_noise(year: RealYear) -> None:
    outcome = run_case(Case("every step", False, False, EITHER, "1"), year, seed=1)
    # a Laplace variable's mean size is its scale: 48 points of 10 MW on half of epsilon
    assert outcome.error_regions == pytest.approx(960, rel=0.15)
    assert outcome.inconsistency > 100


def test_inconsistency_is_the_largest_gap_between_a_node_and_its_children() -> None:
    series = np.array([[[3.0, 5.0], [1.0, 2.0], [2.0, 3.0]]])
    assert inconsistency(series, TREE) == 0
    series[0, 2, 1] += 0.25
    assert inconsistency(series, TREE) == 0.25


def test_trials_give_mean_errors_and_worst_costs() -> None:
    other = replace(OUTCOME, epsilon_year=Fraction(2), error_nation=20.0, inconsistency=1.0)
    both = together([OUTCOME, other, other])
    assert (both.epsilon_year, both.inconsistency) == (2, 1.0)
    assert both.error_nation == pytest.approx(50 / 3)


@pytest.mark.parametrize(
    ("calibration", "plan", "spent", "named"),
    [
        ("strict", "1", "1", False),
        ("strict", "1", "1.0000000001", True),
        ("strict", "1.01", "1", True),
        ("paper", "24.5", "24.5", False),
        ("paper", "24.5", "25", True),
    ],
)
def test_costs_above_the_plan_are_named(
    year: RealYear, calibration: str, plan: str, spent: str, named: bool
) -> None:
    case = Case("equally spaced", True, True, calibration, "1")
    outcome = replace(OUTCOME, epsilon_plan=Fraction(plan), epsilon_year=Fraction(spent))
    said = remarks([(case, outcome)], year)[-1]
    assert ("Case(" in said) is named
    assert said.endswith("none") is not named


@pytest.mark.parametrize("sampling", ["equally spaced", "L1"])
def test_a_timed_year_draws_each_sample_once(year: RealYear, sampling: str) -> None:
    measured = a_year(sampling, TREE, year.load_mw[:3])
    threshold_and_queries = 2 * (1 + 48) if sampling == "L1" else 0
    assert measured.samples == 3 * (3 * (10 + 5) + threshold_and_queries)
    assert measured.to_solver == 0
    assert measured.besides_noise == measured.measure + measured.estimate
    assert a_year(sampling, TREE, np.zeros((3, 2, 48))).to_solver == 3


def test_the_timed_noise_draws_what_its_source_draws() -> None:
    noise = TimedNoise(simulated_noise(3))
    drawn = [noise.discrete_laplace(10.0, size) for size in ((4,), (2, 3))]
    source = simulated_noise(3)
    assert all((one == source.discrete_laplace(10.0, one.shape)).all() for one in drawn)
    assert noise.samples == 10
    assert noise.simulated
