"""What import-linter cannot see: who opens raw values or builds measurements, circles, code made of data."""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest

CHECKOUT = Path(__file__).parents[1]
SOURCES = sorted(
    path.relative_to(CHECKOUT)
    for package in ("flows", "tasks", "data_contracts", "optstream")
    for path in (CHECKOUT / package).rglob("*.py")
)


@cache
def text_of(path):
    return (CHECKOUT / path).read_text()


@cache
def tree_of(path):
    return ast.parse(text_of(path))


def mentioning(*names, found=None):
    """The files that have any of these names, or call them; only those with one in their text are parsed."""
    within = [path for path in SOURCES if any(name in text_of(path) for name in names)]
    return {path for path in within if not set(names).isdisjoint((found or names_in)(path))}


@cache
def names_in(path):
    """Every name and attribute that a file mentions."""
    names = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


@cache
def calls_in(path):
    calls = (ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return {call.rpartition(".")[2] for call in calls}


MEASUREMENT, PERIOD = Path("optstream/measurement"), Path("optstream/stream/private_period.py")


def packages(*names, defined=PERIOD, found=None):
    """The packages that have any of these names, or call them, but for the file that defines them."""
    return {path.parent for path in mentioning(*names, found=found) - {defined}}


@pytest.mark.slow
def test_only_measurement_opens_a_private_period():
    for opens, hidden in (("open_private_period", "units"), ("open_customers", "customers")):
        assert packages(opens, f"_PrivatePeriod__{hidden}", f"__{hidden}") == {MEASUREMENT}


def test_only_measurement_opens_a_raw_state_and_only_the_trusted_store_writes_one():
    assert packages("open_raw_state", "_RawState__content") == {MEASUREMENT}
    assert mentioning("raw_bytes", "with_raw") - {PERIOD} == {Path("tasks/release/draw.py")}


@pytest.mark.slow
def test_only_measurement_builds_measurements():
    defined = Path("optstream/stream/measured.py")
    assert packages("Measured", defined=defined, found=calls_in) == {MEASUREMENT}


def test_only_the_grouper_and_joint_noise_hand_raw_state_to_the_next_period():
    """`tasks.operate.declare` looks at groups, orders need no look, and it would miss another kind."""
    makers = {PERIOD, MEASUREMENT / "grouping.py", MEASUREMENT / "ordered.py"}
    assert mentioning("RawState", found=calls_in) == makers


@pytest.mark.parametrize("path", [path for path in SOURCES if path.parent == MEASUREMENT], ids=str)
def test_every_function_of_measurement_states_its_privacy(path):
    """Under "Privacy:" a lemma of docs/privacy.md where raw values are touched, else "none"."""
    proofs = (CHECKOUT / "docs/privacy.md").read_text()
    for function in (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef)):
        if function.name.startswith("__"):
            continue
        stated = re.search(r"Privacy: (none\b|Lemma (\d+))", ast.get_docstring(function) or "")
        assert stated, f"{path}: {function.name}"
        assert not stated[2] or f"**Lemma {stated[2]} " in proofs, f"{path}: {function.name}"
        touched = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
        opened = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if "exact" in touched or opened & {"open_private_period", "open_customers"}:
            assert stated[2], f"{path}: {function.name} touches raw values and names no lemma"


def test_every_public_function_of_the_science_is_documented():
    for path in (path for path in SOURCES if path.parts[0] == "optstream"):
        module = tree_of(path)
        members = [node for owner in module.body if isinstance(owner, ast.ClassDef) for node in owner.body]
        for node in [*module.body, *members]:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                short = isinstance(node, ast.FunctionDef) and len(node.body) == 1
                assert short or ast.get_docstring(node), f"{path}: {node.name}"


def test_no_source_of_randomness_but_the_noise_package():
    """In the science and in the flow that releases; the simulation of dumps makes up its own truth."""
    sources = {"random", "default_rng", "secrets", "urandom"}
    for path in mentioning(*sources):
        if path.parts[0] != "optstream" or path.parts[1] == "noise":
            continue
        drawing = names_in(path) & sources
        assert not drawing, f"{path} draws with {drawing}"


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
    """Also in functions, for types alone, and by the literal of `import_module`."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for module in graph.modules:
        for named in graph.modules.intersection(imported_by_literal(module)):
            graph.add_import(importer=module, imported=named)
    for module in graph.modules:
        around = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
        assert not around, f"{module} and {sorted(around)} import each other"


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
