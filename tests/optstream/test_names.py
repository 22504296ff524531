"""What `import optstream` offers, and the examples of its docstrings."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import optstream
from optstream import errors


def test_every_error_is_at_the_top_and_type_checkers_know_every_name():
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and name != "datetime"}
    assert raised - set(dir(optstream)) == set()
    stub = Path(optstream.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\b(\w+) as \1\b", stub)) == sorted(optstream.__all__)


def test_the_examples_of_docstrings_print_what_they_say():
    found = [import_module(one.name) for one in walk_packages(optstream.__path__, "optstream.")]
    loose = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = [doctest.testmod(one, optionflags=loose) for one in found]
    assert sum(one.failed for one in results) == 0
    assert sum(one.attempted for one in results) >= 35


def test_import_is_light_and_the_version_is_known():
    heavy = "{'polars', 'pyarrow', 'numpy'}"
    code = f"import sys, optstream; print(sorted({heavy} & set(sys.modules)), optstream.__version__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("[] ")
    assert len(shown.split()) == 2
