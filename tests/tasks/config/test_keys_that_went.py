"""A key of an earlier version is refused with what to do without it, before anything is spent."""

import re

import pytest

from tasks.config.load import REMOVED
from tasks.config.templates import EXAMPLE
from tests.tasks.config.refused import refused


@pytest.mark.parametrize("named", sorted(REMOVED))
def test_what_to_do_is_said_once(load_text, named):
    table, _, key = named.removesuffix(' = "model"').partition(".")
    line = "" if not key else f'{key} = "model"' if "=" in named else f"{key} = 7"
    heading = "[[covariates]]" if table == "covariates" else f"[{table}]"
    text = EXAMPLE.replace('levels = ["1/2", "1/2"]', "")
    text, n_found = re.subn(rf"^(# )?\[{table}\].*", f"{heading}\n{line}", text, flags=re.M)
    assert refused(load_text, text if n_found else f"{text}\n{heading}\n{line}").count(REMOVED[named]) == 1
