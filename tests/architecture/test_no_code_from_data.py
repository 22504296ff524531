"""No data becomes code: nothing unpickles, evaluates or lets a library do so."""

import ast

import pytest

from tests.architecture.test_borders import CHECKOUT, SOURCES

MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "jsonpickle", "code"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {
    "read_pickle", "to_pickle", "scan_pyarrow_dataset", "register_extension_type", "unsafe_load", "full_load",
    "eval", "deserialize", "literal_eval", "recv", "ForkingPickler", "SimpleQueue", "Manager", "managers",
    "ProcessPoolExecutor", "ProcessPoolTaskRunner",
}  # fmt: skip
"""`recv` of a connection unpickles, `recv_bytes` does not; so do queues, managers and pools of processes."""
KEYWORDS = {"allow_pickle"}
OWN_PROCESSES = {"flows/orchestration/backfill.py": {"ProcessPoolExecutor", "ProcessPoolTaskRunner"}}
"""What unpickles the words of processes of the same program that decode no file of others themselves."""


def findings(text: str) -> list[str]:
    """What in a module could turn data into code."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=str(module), names=names):
                found += [module] if module.split(".")[0] in MODULES else []
                found += [name.name for name in names if name.name in ATTRIBUTES | BUILTINS]
            case ast.Name(id=name) if name in BUILTINS:
                found.append(name)
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                found.append(name)
            case ast.Attribute(value=ast.Name(id="yaml"), attr="load"):
                found.append("yaml.load")
            case ast.Constant(value=str(name)) if name in MODULES - {"code"}:
                found.append(name)  # importlib.import_module("pickle")
            case ast.keyword(arg=name) if name in KEYWORDS:
                found.append(str(name))
    return found


@pytest.mark.slow
def test_no_module_makes_code_of_data():
    found = {str(path): set(findings((CHECKOUT / path).read_text())) for path in SOURCES}
    assert {path: names for path, names in found.items() if names} == OWN_PROCESSES


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "def f():\n    import cloudpickle as c",
        "from marshal import loads",
        "from multiprocessing.reduction import ForkingPickler",
        "f = exec",
        "frame.eval('a + b')",
        "answer = end.recv()",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import yaml\nyaml.load(text)",
        "importlib.import_module('pickle')",
    ],
)
def test_control_each_way_is_seen(text):
    assert findings(text)
