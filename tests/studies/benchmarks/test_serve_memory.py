"""Memory of `serve`: growth by look, and every process of a real one is seen."""

import pytest

from studies.benchmarks.serve_memory import PARTS, growth, measure


def test_growth_is_of_the_looks_after_the_first():
    samples = [(0, {"server": 1.0}), (25, {"server": 900.0})]
    samples += [(n_looks, {"server": 300 + n_looks / 10}) for n_looks in (50, 75, 100)]
    assert growth(samples) == {"server": pytest.approx(100)}


@pytest.mark.nightly
def test_each_process_of_a_real_serve_is_measured(tmp_path):
    samples = measure(tmp_path / "measured", 25)
    assert [n_looks for n_looks, _ in samples] == [0, 25]
    assert all(set(found) == {"serve", *PARTS} for _, found in samples)
