"""A night of many leaves: released and verified within its memory; the benchmark prints each step."""

import pytest

from optstream.catalogue.reading.read import read_published
from studies.benchmarks import million
from studies.benchmarks.harness.measure import in_process
from studies.benchmarks.million import DAY, LIMITS, main, prepared

STEPS = {"ingest", "validate", "draw", "estimate", "publish"}


@pytest.mark.slow
def test_ten_thousand_leaves_are_released_and_verified(tmp_path):
    _, gib = LIMITS[10_000]
    settings = prepared(tmp_path, 10_000, "OptStream", is_metered=False)
    found, _ = in_process("-m", "studies.benchmarks.million", "--night", str(settings.file))
    assert set(found["seconds"]) >= STEPS
    assert 0 < max(found["gib"].values()) < gib
    rows = read_published(settings.published_folder)
    assert len(rows) == len(settings.tree_of(DAY).nodes) * settings.calendar.n_steps(DAY)
    assert rows["visits"].min() >= 0
    words = ("-m", "flows.cli.main", "ledger", "verify", "--json", "--config", str(settings.file))
    assert in_process(*words)[0]


def test_it_prints_a_table_for_each_size_beside_its_limits(capsys, monkeypatch):
    def in_process(*_, **__):
        seconds = {"ingest": 1.0, "draw": 2.5, "ledger verify": 0.5}
        gib = {"ingest": 0.25, "draw": 0.5, "readers": 0.125}
        return {"seconds": seconds, "gib": gib, "rest": {"whole": 4.0, "polars alone": 0.1}}, 0.0

    monkeypatch.setattr(million, "in_process", in_process)
    main(["--leaves", "50", "10000", "--metered"])
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "OptStream, metered:"
    assert [line.split() for line in lines if line.startswith("draw")] == [["draw", "2.50", "0.50"]] * 2
    whole = [line.split()[1:] for line in lines if line.startswith("whole")]
    assert whole == [["4.00", "0.50", "(readers", "0.12)", *limits] for limits in ((), ("10", "2"))]


def test_metered_dumps_have_a_row_for_each_customer(tmp_path):
    settings = prepared(tmp_path, 9, "Laplace", is_metered=True)
    assert million.peer(settings) >= 0
    assert len(settings.tree_of(DAY).leaves) == 9
    assert settings.tree_of(DAY).n_levels == 3
