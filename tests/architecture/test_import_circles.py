"""No file imports, by way of others, itself: each can be read after what it stands on."""

from pathlib import Path

import grimp

PACKAGES = ("studies", "flows", "tasks", "data_contracts", "optstream")


def circles(*packages):
    """Every set of files that import each other, also inside functions and for types alone."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {
        frozenset({module, *around})
        for module in graph.modules
        if (around := graph.find_upstream_modules(module) & graph.find_downstream_modules(module))
    }


def test_no_files_import_each_other():
    assert not [sorted(circle) for circle in circles(*PACKAGES)]


def test_a_circle_through_a_function_and_a_type_is_seen(tmp_path, monkeypatch):
    """Control: three files, one import in a function, one for types alone."""
    package = tmp_path / "round_about"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "first": "import round_about.second",
        "second": "def late():\n    import round_about.third",
        "third": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import round_about.first",
    }.items():
        Path(package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert circles("round_about") == {frozenset(f"round_about.{at}" for at in ("first", "second", "third"))}
