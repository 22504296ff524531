"""Linear algebra of flows has one thread, unless the operator says otherwise."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import flows, os, sys
assert "numpy" not in sys.modules, "it reads the variable when it is imported"
print(os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_the_environment_has_the_last_word(given, used):
    without = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=without | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == used
