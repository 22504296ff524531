"""docs/data/input.md: its configuration is read, and means what the page says."""

import re
from datetime import date
from fractions import Fraction
from pathlib import Path

from tasks.config import Layout, load_settings
from tasks.config.example import EXAMPLE
from tasks.config.schema import Change, Input

PAGE = (Path(__file__).parents[2] / "docs/data/input.md").read_text(encoding="utf-8")


def test_the_pages_archive_has_the_layouts_that_it_says(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    start, stop = EXAMPLE.index("[input]"), EXAMPLE.index("[published]")
    file = tmp_path / "optstream.toml"
    file.write_text(EXAMPLE[:start] + block + EXAMPLE[stop:], encoding="utf-8")
    settings = load_settings(file)
    megawatts = Layout("load_mw", valid_from=date(2015, 7, 1))
    assert settings.input_of(date(2015, 6, 30)) == Layout("load_kw", factor=Fraction(1, 1000))
    assert settings.input_of(date(2015, 7, 1)) == megawatts
    assert settings.input_of(date(2016, 1, 1)) == Layout(
        "load_mw", "measured_at", marker=None, file_list="_FILES", valid_from=date(2016, 1, 1)
    )


def test_every_key_is_on_the_page():
    keys = {field.alias or key for section in (Input, Change) for key, field in section.model_fields.items()}
    forms = {key: (f"`{key}`", f"{key} = ", f"[[input.{key}]]") for key in keys}
    assert [key for key, named in forms.items() if not any(form in PAGE for form in named)] == []


def test_the_commented_lines_of_the_example_are_a_change(tmp_path):
    start, stop = EXAMPLE.index("# factor"), EXAMPLE.index("[published]")
    file = tmp_path / "optstream.toml"
    text = EXAMPLE[:start] + EXAMPLE[start:stop].replace("# factor", "factor").replace("\n# ", "\n")
    file.write_text(text + EXAMPLE[stop:], encoding="utf-8")
    settings = load_settings(file)
    assert [layout.value for layout in settings.layouts] == ["load_mw", "load"]
    assert settings.input_of(date(2015, 7, 1)).factor == Fraction(1, 1000)
