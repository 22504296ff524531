"""No file imports, by way of others, itself: each can be read after what it stands on."""

import ast
from importlib.util import find_spec
from pathlib import Path

import grimp

PACKAGES = ("studies", "flows", "tasks", "data_contracts", "optstream")


def imported_by_literal(module):
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
    """Also in functions, for types alone, and by the literal that `import_module` is given."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for module in graph.modules:
        for named in graph.modules.intersection(imported_by_literal(module)):
            graph.add_import(importer=module, imported=named)
    for module in graph.modules:
        around = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
        assert not around, f"{module} and {sorted(around)} import each other"
