"""The benchmark of sums: every question has its row."""

import pytest

from benchmarks import sum_coverage
from benchmarks.sum_coverage import main


@pytest.mark.parametrize(
    ("of", "kinds"),
    [
        ("load", ["region", "three regions", "nation"]),
        ("visits", ["region", "three regions", "nation"]),
        ("trips", ["zone", "three zones", "borough", "city"]),
    ],
)
def test_every_question_has_its_row(of, kinds, real_data, capsys, monkeypatch):
    monkeypatch.setattr(sum_coverage, "LEARNED_DAYS", 2)
    monkeypatch.setattr(sum_coverage, "SPANS", {"day": 1, "two days": 2})
    given = ["--of", of, "--days", "11", "--epsilon", "1", "--seeds", "1", "--zones", "2"]
    main(["--data", str(real_data), *given])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {" ".join(line[:-4]): int(line[-1]) for line in lines if len(line) > 4 and line[-1].isdigit()}
    assert rows.keys() == {f"{kind} {span}" for kind in kinds for span in ("day", "two days")}
    assert rows[f"{kinds[-1]} two days"] == 1
