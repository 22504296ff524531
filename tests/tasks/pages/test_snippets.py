"""What the page tells data users to run gives the same figures in every tool that is here. R is not run."""

import json
import subprocess
import sys

import polars as pl
import pytest

from tasks.pages.public import snippets

RUN = """
import json, sys
lines = sys.stdin.read().splitlines()
scope = {}
exec("\\n".join(lines[:-1]), scope)
found = eval(lines[-1], scope)
pairs = found.rows() if hasattr(found, "rows") else list(found.items())
print(json.dumps({str(day)[:10]: mean for day, mean in pairs}))
"""


@pytest.fixture
def expected(without_noise):
    rows = pl.read_parquet(without_noise / "data", hive_partitioning=True).filter(pl.col("node") == "FR")
    return {str(day): mean for day, mean in rows.group_by("date").agg(pl.col("load_mw").mean()).rows()}


def code_of(tool):
    return next(one.code for one in snippets("load_mw", "FR") if one.tool == tool)


@pytest.mark.parametrize("tool", ["polars", "pandas"])
@pytest.mark.slow
def test_python(without_noise, expected, tool):
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=code_of(tool), cwd=without_noise, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout) == pytest.approx(expected)


def test_the_dataset_holds_no_page(without_noise):
    from tasks.pages.public import write_public_page

    before = pl.read_parquet(without_noise / "data").height
    write_public_page(without_noise)
    assert (without_noise / "index.html").is_file()
    assert pl.read_parquet(without_noise / "data").height == before
    assert pl.read_parquet(without_noise / "**/*.parquet").height == before
