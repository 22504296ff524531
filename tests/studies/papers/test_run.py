"""Results: tidy, repeatable, resumed after an interruption, private unless declared public."""

import stat

import pytest

from studies.papers.data import read_study_data
from studies.papers.run import Store, Terms, evaluate
from tests.studies.papers.conftest import TINY


def terms(data, *, seed: int = 1, public: bool = True) -> Terms:
    return Terms.of(data, name="simulated", seed=seed, public=public)


def test_private_results_are_their_owners_alone(tiny_data, tmp_path):
    folder = tmp_path / "trusted" / "results"
    evaluate(TINY[1:], tiny_data, Store(folder, terms(tiny_data, public=False)), processes=1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes.pop("results") == modes.pop("cells") == 0o700
    assert modes.keys() == {"run.json", "results.parquet"}
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
