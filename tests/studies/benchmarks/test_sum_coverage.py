"""The benchmark of sums: every question has its row."""

import re

import pytest

from studies.benchmarks import sum_coverage
from studies.benchmarks.sum_coverage import main


@pytest.mark.parametrize(
    ("of", "kinds"),
    [
        ("load", ["region", "three regions", "nation"]),
        ("visits", ["region", "three regions", "nation"]),
        ("trips", ["zone", "three zones", "borough", "city"]),
    ],
)
def test_every_question_has_its_row(of, kinds, real_data, capsys, monkeypatch):
    for name, value in {"LEARNED_DAYS": 2, "LATER_DAYS": 7, "SPANS": {"day": 1, "two days": 2}}.items():
        monkeypatch.setattr(sum_coverage, name, value)
    given = ["--of", of, "--days", "11", "--epsilon", "1", "--seeds", "1", "--zones", "2"]
    main(["--data", str(real_data), *given])
    row = re.compile(r"(\S.*?) {2,}(step|day|two days) .*% .* (\d+)")
    found = [row.fullmatch(line.strip()) for line in capsys.readouterr().out.splitlines()]
    rows = {one.group(1, 2): int(one[3]) for one in found if one}
    alone = [kind for kind in kinds if "three" not in kind]
    assert rows.keys() == {(kind, span) for kind in kinds for span in ("day", "two days")} | {
        (kind, "step") for kind in alone
    }
    assert rows[kinds[-1], "two days"] == 1
    assert rows[kinds[-1], "step"] == 2
