"""Findings are checked in results: one that holds, one that does not, one whose figures are missing."""

import polars as pl

from studies.papers.findings import FINDINGS, Means, ahead, checked


def results(**values: float) -> pl.DataFrame:
    rows = [
        {
            "experiment": 6, "study": "regions", "mechanism": name.replace("_", " "), "calibration": "strict",
            "epsilon": "1", "alpha": alpha, "n_samples": 10, "threshold": None, "span": "2016-02",
            "metric": "mae", "trial": trial, "value": value + trial, "epsilon_plan": 1.0,
        }
        for name, value in values.items()
        for alpha in ("10", "50", "100")
        for trial in (0, 1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"threshold": pl.String})


def holds(**values: float) -> list[bool | None]:
    return checked(Means.of(results(**values)))["holds"].to_list()


def test_findings_hold_do_not_hold_or_lack_figures():
    assert holds(Laplace=9, DFT=8, OptStream_ES=5, HistoryInformed=1) == [True, True]
    assert holds(Laplace=9, DFT=4, OptStream_ES=5, HistoryInformed=3) == [False, False]
    assert holds(Laplace=9, OptStream_ES=5) == [None, None]


def test_means_and_their_table():
    means = Means.of(results(Laplace=9))
    assert means.mean(6, "Laplace", alpha="50") == 9.5
    assert means.table(6)["mae"].to_list() == ["9.5 ± 0.5"] * 3
    assert not ahead(6, "Laplace", "Laplace", by="alpha", at=["10"])(means)


def test_every_finding_names_its_experiment_once():
    assert len({(one.experiment, one.asked) for one in FINDINGS}) == len(FINDINGS)
