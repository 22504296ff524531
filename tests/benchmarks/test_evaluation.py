"""The benchmark of the evaluation counts every cell once and compares with noise on every step."""

from fractions import Fraction

from rich.console import Console

from benchmarks.evaluation import by_experiment, by_mechanism, main
from optstream.evaluation import EXPERIMENTS, CellResult, unique_cells
from optstream.evaluation.cells import TrialResult

PAIR = [EXPERIMENTS[number].short() for number in (0, 6)]
TRIAL = TrialResult(0, {"mae": 1.0}, Fraction(1), Fraction(1))
RESULTS = [
    CellResult(cell, Fraction(1), (TRIAL, TRIAL), 4.0 if cell.mechanism == "PeGaSus" else 2.0)
    for cell in unique_cells(PAIR)
]


def printed(table) -> list[list[str]]:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table)
    return [line.split() for line in captured.get().splitlines()]


def test_shared_cells_count_once():
    rows = {line[0]: line for line in printed(by_experiment(PAIR, RESULTS))}
    cells = [int(rows[name][-4]) for name in ("1.", "7.", "all")]
    assert cells[0] == len(PAIR[0].cells())
    assert cells[0] + cells[1] == cells[2] == len(unique_cells(PAIR))
    assert 0 < cells[1] < len(PAIR[1].cells())


def test_a_trial_beside_the_peers():
    rows = {tuple(line[:2]): line for line in printed(by_mechanism(RESULTS))}
    assert rows["regions", "PeGaSus"][-2:] == ["2.000", "2.0"]
    assert rows["regions", "Laplace"][-2:] == ["1.000", "1.0"]


def test_a_folder_without_results_is_said(tmp_path, capsys):
    assert main(["--results", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err
