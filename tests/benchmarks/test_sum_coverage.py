"""The benchmark of sums: every question has its row."""

from benchmarks import sum_coverage
from benchmarks.sum_coverage import groups_of, main


def test_every_question_has_its_row(real_data, capsys, monkeypatch):
    monkeypatch.setattr(sum_coverage, "LEARNED_DAYS", 2)
    monkeypatch.setattr(sum_coverage, "SPANS", {"day": 1, "two days": 2})
    main(["--data", str(real_data), "--days", "11", "--epsilon", "1", "--seeds", "1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {" ".join(line[:-3]): int(line[-1]) for line in lines if len(line) > 3 and line[-1].isdigit()}
    expected = {(kind, span) for kind in groups_of(["a"] * 12) for span in ("day", "two days")}
    assert rows.keys() == {f"{kind} {span}" for kind, span in expected}
    assert rows["nation two days"] == 1
