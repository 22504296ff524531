"""A campaign that was stopped goes on where it was, and only of the same code."""

from pathlib import Path

from tests.faults.kept import Kept
from tests.faults.points.attacks import Tally


def test_a_row_is_kept_for_the_same_code_and_seed_only(tmp_path: Path) -> None:
    first = Kept(tmp_path / "rows.json", code="one")
    seed = first.begin(200, 20, None)
    first.keep("sqlite", "full", Tally(3, 4, 1, ["LOST: a day"]))

    again = Kept(tmp_path / "rows.json", code="one")
    assert again.begin(200, 20, None) == seed
    assert again.row("sqlite", "full") == Tally(3, 4, 1, ["LOST: a day"])
    assert again.row("postgresql", "full") is None

    for kept, kills, asked in [
        (Kept(tmp_path / "rows.json", code="two"), 200, seed),
        (Kept(tmp_path / "rows.json", code="one"), 100, seed),
        (Kept(tmp_path / "rows.json", code="one"), 200, seed + 1),
    ]:
        kept.begin(kills, 20, asked)
        assert kept.row("sqlite", "full") is None
