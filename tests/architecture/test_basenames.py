"""A file is found by its name: no basename occurs three times in the product trees."""

from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
TREES = ("optstream", "tasks", "flows", "data_contracts", "benchmarks")
SHARED = {"__init__.py", "conftest.py"}


def too_common(folder):
    """The basenames that occur three times or more below the trees of a folder."""
    counts = Counter(path.name for tree in TREES for path in (folder / tree).rglob("*.py"))
    return {name for name, n in counts.items() if n > 2 and name not in SHARED}


def test_no_basename_occurs_three_times():
    assert all((CHECKOUT / tree).is_dir() for tree in TREES)
    assert too_common(CHECKOUT) == set()


def test_a_third_one_is_seen(tmp_path):
    """Control: a third `rows.py` is named, a second `days.py` and a third `__init__.py` are not."""
    for path in ("flows/rows", "tasks/rows", "tasks/days", "flows/days", "optstream/ledger/rows"):
        for name in (path, f"{Path(path).parent}/__init__"):
            file = tmp_path / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    assert too_common(tmp_path) == {"rows.py"}
