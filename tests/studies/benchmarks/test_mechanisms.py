"""The comparison of all mechanisms: priced exactly, the same figures for the same seed, helpful refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from studies.benchmarks.harness.measure import command
from studies.benchmarks.inputs.public_data import PublicSeries, load_of_2016
from studies.benchmarks.mechanisms import (
    EPSILONS,
    MECHANISMS,
    Row,
    compare,
    main,
    over_budget,
    run_trial,
    table_of,
)

WAVES = PublicSeries(
    "waves", "MW", np.round(500 + 100 * np.sin(np.arange(72).reshape(3, 2, 12) / 5), 3), (0, 12, 24),
    window=12, alpha="1", resolution="0.001", n_points=4, threshold="50", deviation=20.0,
)  # fmt: skip


def test_every_mechanism_is_run_priced_and_no_dearer_than_asked():
    rows = compare({"waves": WAVES}, trials=2, seed=1, processes=1)
    assert set(rows) == {("waves", mechanism, epsilon) for mechanism in MECHANISMS for epsilon in EPSILONS}
    assert over_budget(rows) == []
    assert all(0 < row.error < 1e6 and row.standard_error > 0 for row in rows.values())
    table = table_of(rows, {"waves": WAVES}, {})
    assert table.row_count == len(rows)


def test_a_row_that_costs_too_much_is_named():
    row = Row(1.0, Fraction(1), Fraction(1), 1.0)
    rows = {
        ("a", "fits", "1"): row,
        ("a", "dear plan", "0.1"): row,
        ("a", "dear history", "1"): replace(row, worst=Fraction(11, 10)),
    }
    assert over_budget(rows) == [("a", "dear plan", "0.1"), ("a", "dear history", "1")]


def test_the_same_seed_gives_the_same_errors_whatever_the_number_of_processes():
    one, two = (compare({"waves": WAVES}, trials=2, seed=7, processes=n) for n in (1, 2))
    assert {key: row.error for key, row in one.items()} == {key: row.error for key, row in two.items()}
    other = compare({"waves": WAVES}, trials=2, seed=8, processes=2)
    assert all(other[key].error != row.error for key, row in one.items())


def test_a_missing_file_is_named_with_the_remedy(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command(lambda: main(["--data", str(tmp_path), "--series", "flu"]))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "flu_ilinet_weekly.parquet cannot be read; name the folder with --data" in said


def test_on_the_load_of_february_laplace_misses_by_48_mw(real_data):
    year = load_of_2016(real_data)
    february = replace(year, values=year.values[31:60], first_steps=year.first_steps[31:60])
    trial = run_trial("Laplace = Uniform", february, "1", (1,))
    assert trial.error == pytest.approx(48, rel=0.03)
    assert trial.worst <= trial.epsilon <= 1
