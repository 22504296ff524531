"""The polars, DuckDB and pandas of docs/data/sums.md, run on files of many nodes, which are in groups."""

import re
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from optstream.catalogue.sums import encode_errors
from optstream.estimation.error_terms import ErrorTerms
from optstream.estimation.groups import GroupedNodes

PAGE = Path(__file__).parents[2] / "docs/data/sums.md"
FIRST, N_DAYS, N_STEPS = date(2016, 2, 1), 3, 48
NODES = ("FR", "84", "11", "32", "44")


def grouped_terms(random):
    """Two terms: of each node alone, and of three groups, two of them of one term."""
    shares = csr_array(
        np.where([[0, 0, 1, 1, 1], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1]], random.normal(size=(3, 5)), 0)
    )
    steps = random.normal(size=(2, N_STEPS, N_STEPS))
    nodes = GroupedNodes(random.uniform(1, 2, (2, 5)), shares, np.array([0, 1, 0]))
    return ErrorTerms(nodes, steps @ steps.transpose(0, 2, 1), np.zeros((2, 0)))


def test_the_pages_ways_give_the_standard_error_of_a_sum_over_nodes_in_groups(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    chosen = np.isin(NODES, ("11", "32")).astype(float), (np.arange(N_STEPS) >= 36).astype(float)
    variance, added = 0.0, 0.0
    for number in range(-1, N_DAYS + 1):  # published folders hold days that are not asked for
        day = FIRST + timedelta(days=number)
        terms, more = grouped_terms(random), random.normal(size=(len(NODES), N_STEPS))
        folder = tmp_path / f"published/errors/date={day}"
        folder.mkdir(parents=True)
        (folder / "errors.parquet").write_bytes(encode_errors(terms, NODES, day, "whole", more))
        if 0 <= number < N_DAYS:
            variance, added = variance + terms.variance(*chosen), added + chosen[0] @ more @ chosen[1]
    found = SimpleNamespace(standard_error=variance**0.5, value=1e3 + added, estimate=1e3)
    monkeypatch.chdir(tmp_path)
    _, without = PAGE.read_text().split("## Without this package")
    names = {"found": found, "first": FIRST, "last": FIRST + timedelta(days=N_DAYS - 1)}
    blocks = re.findall(r"```python\n(.*?)```", without, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    assert names["standard_error"] == pytest.approx(found.standard_error, rel=1e-6)
