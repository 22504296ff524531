"""No file imports, by way of others, itself: each can be read after what it stands on."""

import ast
from importlib.util import find_spec
from pathlib import Path

import grimp

PACKAGES = ("studies", "flows", "tasks", "data_contracts", "optstream")


def circles(*packages):
    """Every set of files that import each other, also inside functions, for types alone, and by the literal
    that `import_module` is given.
    """
    graph = grimp.build_graph(*packages, cache_dir=None)
    for module in graph.modules:
        for named in _by_literal(module):
            if named in graph.modules:
                graph.add_import(importer=module, imported=named)
    return {
        frozenset({module, *around})
        for module in graph.modules
        if (around := graph.find_upstream_modules(module) & graph.find_downstream_modules(module))
    }


def _by_literal(module):
    """The names in `import_module("…")` of a file."""
    source = Path(find_spec(module).origin).read_text(encoding="utf-8")
    return [
        call.args[0].value
        for call in (ast.walk(ast.parse(source)) if "import_module(" in source else ())
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) == "import_module"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]


def test_no_files_import_each_other():
    assert not [sorted(circle) for circle in circles(*PACKAGES)]


def test_a_circle_through_a_function_and_a_type_is_seen(tmp_path, monkeypatch):
    """Control: three files, one import in a function, one for types alone; and two by a literal."""
    package = tmp_path / "round_about"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "first": "import round_about.second",
        "second": "def late():\n    import round_about.third",
        "third": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import round_about.first",
        "fourth": "import round_about.fifth",
        "fifth": "from importlib import import_module\nfound = lambda: import_module('round_about.fourth')",
    }.items():
        Path(package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert circles("round_about") == {
        frozenset(f"round_about.{at}" for at in names)
        for names in (("first", "second", "third"), ("fourth", "fifth"))
    }
