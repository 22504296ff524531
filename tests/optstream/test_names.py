"""What `import optstream` offers: one list, known to dir(), to `import *` and to type checkers."""

import ast
import inspect
from pathlib import Path

import pytest

import optstream
from optstream import errors

STUB = ast.parse(Path(optstream.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))


def test_every_error_is_at_the_top():
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and name != "datetime"}
    assert raised - set(dir(optstream)) == set()


def test_nothing_else_is_at_the_top():
    assert set(dir(optstream)) == set(optstream.__all__)
    assert {"Any", "import_module", "lazy_loader"} & set(dir(optstream)) == set()


def test_type_checkers_and_dir_know_the_same_names():
    declared = [(name.name, name.asname) for node in STUB.body for name in node.names]
    assert sorted(name for name, _ in declared) == sorted(optstream.__all__)
    assert all(name == said for name, said in declared)  # `as` makes it public for type checkers


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="release_it"):
        optstream.release_it  # noqa: B018
