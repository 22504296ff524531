"""What lineage says of an estimate, and what a torn event costs."""

from datetime import date

import pytest

from optstream.catalogue.statement import Consistency
from optstream.estimation.estimate import Optimality
from tasks.release.lineage import EVENTS, _estimate_words, told_releases
from tasks.release.stages import Status
from tests.optstream.catalogue.conftest import make_statement


@pytest.mark.parametrize("vintage", [0, 1])
@pytest.mark.parametrize("converged", [True, False, None])
def test_it_says_where_the_bounded_program_was_not_solved_to_the_end(vintage, converged):
    found = Optimality(0.02, 0.1, 50, bool(converged))
    certificate = None if converged is None else Consistency.rounded(found)
    words = _estimate_words(make_statement(date(2016, 2, 1), vintage=vintage, consistency=certificate))
    assert words.startswith("revised estimate" if vintage else "first estimate")
    assert ("not solved to the end" in words) == (converged is False)


def test_an_event_that_a_full_disk_tore_takes_the_next_one_not_with_it(installation):
    first, second = date(2016, 6, 1), date(2016, 6, 2)
    installation.released(first)
    events = installation.settings.lineage_folder / EVENTS
    events.write_bytes(events.read_bytes() + events.read_bytes()[:100])
    assert installation.release(second)[second].outcome.status is Status.PUBLISHED
    assert told_releases(installation.settings) == {("2016-06-01", 0), ("2016-06-02", 0)}
    assert installation.problems() == []
