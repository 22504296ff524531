"""docs/methods/mechanisms.md names every mechanism and parameter with its default, and its code runs."""

import re
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

from optstream import mechanisms

PAGE = (Path(__file__).parents[2] / "docs/methods/mechanisms.md").read_text(encoding="utf-8")
NAMES = [*mechanisms.MECHANISMS, "HistoryInformedTree", "PeGaSusTree"]
PLAIN = [name for name in mechanisms.MECHANISMS if getattr(mechanisms, name).tree_class]
PARAMETERS = PAGE[PAGE.index("## Parameters") : PAGE.index("## What we changed")]


def test_the_code_runs():
    (code,) = re.findall(r"```python\n(.+?)```", PAGE, re.S)
    names: dict = {}
    exec(compile(code, "docs/methods/mechanisms.md", "exec"), names)
    assert names["on_tree"].epsilon == 1
    assert names["state"].next_step == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_has_its_row(name):
    assert re.search(rf"^\| .*`{name}`", PAGE, re.M)


@pytest.mark.parametrize("name", [*PLAIN, "HistoryInformedTree"])
def test_every_parameter_stands_there_with_its_default(name):
    for field in fields(getattr(mechanisms, name)):
        if field.name == "model":
            continue
        row = next((line for line in PARAMETERS.splitlines() if f"`{field.name}`" in line), "")
        assert row, f"{name}.{field.name}"
        default = field.default
        if isinstance(default, (str, Fraction)) or (isinstance(default, float) and default):
            shown = str(default).removesuffix(".0")
            assert shown in row, f"{name}.{field.name}: {shown} not in {row}"
