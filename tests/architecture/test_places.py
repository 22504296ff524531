"""A file is found by its name and its folder: no basename three times, at most 15 modules in a folder."""

from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
TREES = ("optstream", "tasks", "flows", "data_contracts", "benchmarks")
SHARED = {"__init__.py", "conftest.py"}
MOST_IN_A_FOLDER = 15


def _modules(folder):
    return [path for tree in TREES for path in (folder / tree).rglob("*.py")]


def too_common(folder):
    """The basenames that occur three times or more below the trees of a folder."""
    counts = Counter(path.name for path in _modules(folder))
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


def crowded(folder):
    """The folders below the trees of a folder that hold more than 15 modules."""
    counts = Counter(path.parent for path in _modules(folder))
    return {path.relative_to(folder).as_posix() for path, n in counts.items() if n > MOST_IN_A_FOLDER}


def test_no_folder_holds_more_than_fifteen_modules():
    assert crowded(CHECKOUT) == set()


def test_a_crowded_folder_is_named(tmp_path):
    """Control: sixteen modules are too many, fifteen are not."""
    for name, n in (("flows/many", 16), ("flows/few", 15)):
        (tmp_path / name).mkdir(parents=True)
        for number in range(n):
            (tmp_path / name / f"of_{name[6:]}_{number}.py").touch()
    assert crowded(tmp_path) == {"flows/many"}
