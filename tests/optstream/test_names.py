"""What `import optstream` offers."""

import inspect
import re
from pathlib import Path

import optstream
from optstream import errors


def test_every_error_is_at_the_top():
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and name != "datetime"}
    assert raised - set(dir(optstream)) == set()


def test_type_checkers_know_every_name():
    stub = Path(optstream.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\b(\w+) as \1\b", stub)) == sorted(optstream.__all__)
