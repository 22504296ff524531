"""What lineage says of an estimate."""

from datetime import date

import pytest

from optstream.estimation.optimality import Optimality
from tasks.release.records.lineage import _estimate_words
from tests.optstream.catalogue.conftest import make_statement


@pytest.mark.parametrize("vintage", [0, 1])
@pytest.mark.parametrize("converged", [True, False, None])
def test_it_says_where_the_bounded_program_was_not_solved_to_the_end(vintage, converged):
    certificate = None if converged is None else Optimality(0.02, 0.1, 50, converged)
    words = _estimate_words(make_statement(date(2016, 2, 1), vintage=vintage, optimality=certificate))
    assert words.startswith("revised estimate" if vintage else "first estimate")
    assert ("not solved to the end" in words) == (converged is False)
