"""A night's dumps read without a cluster and by workers: a row for each number of them."""

import pytest

from studies.benchmarks.million import prepared
from studies.benchmarks.nights import many_workers
from studies.benchmarks.nights.many_workers import main, reading


def test_reading_takes_time_in_one_process(tmp_path):
    settings = prepared(tmp_path, 9, "Laplace", is_metered=False)
    clock, whole, own, _, _ = reading(settings.file, None)
    assert clock > 0
    assert whole == own


@pytest.mark.nightly
def test_a_worker_takes_its_share(tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__SPILL", "False")
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TARGET", "False")
    settings = prepared(tmp_path, 9, "Laplace", is_metered=True)
    _, whole, own, busiest, _ = many_workers.spread(settings.file, 1)
    assert whole == pytest.approx(own + busiest)
    assert busiest > 0


def test_it_prints_a_row_for_each_number_of_workers(capsys, monkeypatch):
    monkeypatch.setattr(many_workers, "prepared", lambda *_, **__: type("", (), {"file": None}))
    monkeypatch.setattr(many_workers, "_in_process", lambda _: [1.0, 2.0, 2.0, 0.0, 0.5])
    monkeypatch.setattr(many_workers, "spread", lambda _, n: [1.0 / n] * 5)
    main(["--leaves", "50", "--workers", "0", "2"])
    first, _, none, two = capsys.readouterr().out.splitlines()
    assert first.startswith("50 leaves, aggregated; ")
    assert none.split() == ["none", "1.00", "2.00", "2.00", "0.00", "0.50"]
    assert two.split() == ["2", *["0.50"] * 5]
