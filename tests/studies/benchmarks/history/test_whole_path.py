"""The benchmark of the whole path releases its days, new estimates included, and prints every step."""

from datetime import date

import pytest

from studies.benchmarks.history import whole_path
from studies.benchmarks.history.whole_path import main, prepared


@pytest.mark.slow
def test_every_step_has_a_row(capsys, monkeypatch):
    monkeypatch.setattr(whole_path, "connect", lambda _: None)
    main(["--nodes", "3", "--days", "2", "--fills", "1", "--nights", "1"])
    lines = capsys.readouterr().out.splitlines()
    rows = {line[:20].strip(): line.split()[-2:] for line in lines if line}
    assert {"ingest", "draw", "estimate", "publish", "revise", "publish revisions", "whole"} <= set(rows)
    assert all(float(one) > 0 for one in rows["whole"])


def test_the_tree_and_its_dumps_are_laid_out(tmp_path):
    settings = prepared(tmp_path, 40, "0.1", [whole_path.FIRST])
    assert len(settings.tree_of(date.min).nodes) == 40
    assert len(list(settings.input_folder.rglob("*.parquet"))) == 1
