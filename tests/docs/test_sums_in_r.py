"""The R of docs/data/sums.md, run by R: on rows as CSV, for R's Parquet readers are in no Debian package."""

import re
import shutil
import subprocess
from datetime import date
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from optstream.catalogue.sums import encode_errors
from optstream.estimation.error_terms import ErrorTerms
from optstream.estimation.groups import GroupedNodes

RSCRIPT = shutil.which("Rscript")
PAGE = Path(__file__).parents[2] / "docs/data/sums.md"
DAY, NODES, N_STEPS = date(2016, 2, 1), ("FR", "11", "32", "84"), 48


def symmetric(random, size):
    half = random.normal(size=(3, size, size))
    return half @ half.transpose(0, 2, 1)


def in_groups(random):
    shares = csr_array(np.where([[0, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 0]], random.normal(size=(3, 4)), 0.0))
    return GroupedNodes(random.uniform(size=(3, len(NODES))), shares, np.array([0, 0, 2]))


@pytest.mark.parametrize("nodes", [lambda random: symmetric(random, len(NODES)), in_groups])
@pytest.mark.skipif(RSCRIPT is None, reason="R is not installed (Debian: r-base-core)")
@pytest.mark.nightly
def test_the_pages_r_gives_the_standard_error_of_a_sum(tmp_path, nodes):
    random = np.random.default_rng(0)
    terms = ErrorTerms(nodes(random), symmetric(random, N_STEPS), random.normal(size=(3, 2)))
    folder = tmp_path / f"published/errors/date={DAY}"
    folder.mkdir(parents=True)
    data = encode_errors(terms, NODES, DAY, "whole", added=random.normal(size=(len(NODES), N_STEPS)))
    pl.read_parquet(BytesIO(data)).write_csv(folder / "errors.csv", null_value="NA")
    (block,) = re.findall(r"```r\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program, n_readers = re.subn(r"arrow::read_parquet", "read.csv", block)
    assert n_readers == 1
    said = subprocess.run(
        [str(RSCRIPT), "-e", f"options(digits = 12); {program}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wanted = terms.variance(
        np.array([node in ("11", "32") for node in NODES], float), np.arange(N_STEPS) >= 36
    )
    assert float(said.split()[-1]) == pytest.approx(wanted**0.5, rel=1e-6)
