"""Results: tidy, repeatable, resumed after an interruption, private unless declared public."""

import stat

import polars as pl
import pytest

from optstream.errors import ParameterError
from studies.evaluation import unique_cells
from studies.papers import run
from studies.papers.data import read_study_data
from studies.papers.run import evaluate
from studies.papers.store import Store, Terms
from tests.studies.papers.conftest import TINY


def terms(data, *, seed: int = 1, public: bool = True) -> Terms:
    return Terms.of(data, name="simulated", seed=seed, public=public)


def figures(folder) -> pl.DataFrame:
    return pl.read_parquet(folder / "results.parquet")


@pytest.mark.slow
def test_a_row_for_each_trial_and_metric(tiny_results):
    frame = figures(tiny_results)
    assert frame.columns == list(run.SCHEMA)
    laplace = frame.filter(experiment=1, mechanism="Laplace", epsilon="0.1", metric="mae")
    assert laplace["trial"].to_list() == [0, 1, 2, 3]
    assert laplace["n_samples"].is_null().all()
    assert laplace["value"].mean() == pytest.approx(480, rel=0.05)
    paper = frame.filter(experiment=1, mechanism="OptStream ES", calibration="paper", epsilon="0.1")
    assert paper["epsilon_plan"].unique().to_list() == [2.45]


@pytest.mark.nightly
def test_an_interrupted_run_goes_on_and_gives_the_same_numbers(
    tiny_data, tiny_results, tmp_path, monkeypatch
):
    store = Store(tmp_path / "new", terms(tiny_data))
    told = []

    def stop(done: int, total: int) -> None:
        told.append(done)
        if len(told) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(TINY, tiny_data, store, processes=1, progress=stop)
    finished = store.finished(unique_cells(TINY))
    assert len(finished) == 4
    ran = []
    monkeypatch.setattr(
        run, "run_cells", lambda cells, *a, **k: ran.append(list(cells)) or real(cells, *a, **k)
    )
    evaluate(TINY, tiny_data, Store(tmp_path / "new", terms(tiny_data)), processes=1)
    assert len(ran[0]) == len(unique_cells(TINY)) - 4
    assert not set(ran[0]) & set(finished)
    assert figures(tmp_path / "new").equals(figures(tiny_results))


real = run.run_cells


@pytest.mark.slow
def test_other_terms_start_afresh(tiny_data, tiny_results, tmp_path):
    cells = unique_cells(TINY)
    assert len(Store(tiny_results, terms(tiny_data)).finished(cells)) == len(cells)
    assert not Store(tiny_results, terms(tiny_data, seed=2)).finished(cells)
    with pytest.raises(ParameterError, match="holds results of public data"):
        Store(tiny_results, terms(tiny_data, public=False))


@pytest.mark.slow
def test_a_cell_that_was_cut_off_is_run_again(tiny_data, tmp_path):
    store, cells = Store(tmp_path, terms(tiny_data)), TINY[1].cells()
    evaluate(TINY[1:], tiny_data, store, processes=1)
    (tmp_path / "cells" / f"{cells[0].key}.json").write_text('{"terms": ')
    assert set(store.finished(cells)) == set(cells[1:])


def test_private_results_are_their_owners_alone(tiny_data, tmp_path):
    folder = tmp_path / "trusted" / "results"
    evaluate(TINY[1:], tiny_data, Store(folder, terms(tiny_data, public=False)), processes=1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes.pop("results") == modes.pop("cells") == 0o700
    assert modes.keys() == {"run.json", "results.json", "results.parquet"}
    assert set(modes.values()) == {0o600}


@pytest.mark.slow
def test_the_real_series_are_read(real_data):
    data = read_study_data(real_data, TINY[0].cells())
    assert data.load.values.shape[1:] == (12, 48)
    assert data.load.of_region("84").mean() == pytest.approx(9200, rel=0.1)
    assert {name: one.values.size for name, one in data.counts.items()} == {
        "flu": 209, "unemployment": 478, "load": 1392,
    }  # fmt: skip
    assert 100 < data.usual_move_mw < 110 < data.largest_move_mw
