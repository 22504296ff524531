"""Sums over nodes and days of a published folder, with their standard errors."""

from datetime import timedelta

import numpy as np
import pytest
from optstream.catalogue.sums import DayErrors, SummedDay, sum_of_days
from scipy.sparse import csr_array

from optstream import read_measurements, read_published, read_sum
from optstream.errors import ParameterError, PublicationError
from optstream.estimation.error_terms import ErrorTerms
from optstream.estimation.groups import GroupedNodes
from tests.tasks.conftest import TWO_REGIONS, Installation
from tests.tasks.release.records.test_published_measurements import DAY, DAYS, LAST, wanted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["OptStream", "Laplace", "HistoryInformed"])
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums")
    (folder / "optstream.toml").write_text(TWO_REGIONS)
    installation = wanted(Installation(folder), request.param)
    installation.release(*DAYS)
    return request.param, installation.settings.published_folder


def test_a_sum_is_that_of_the_rows(published):
    _, folder = published
    rows = read_published(folder).filter(node="11")
    assert read_sum(folder, ["11"], DAY, LAST).value == pytest.approx(rows["load_mw"].sum())
    evening = rows.filter((rows["step"] >= 36) & (rows["date"] > DAY))["load_mw"].sum()
    found = read_sum(folder, ["11"], DAY + timedelta(days=1), LAST, steps=range(36, 48))
    assert found.value == pytest.approx(evening)


def test_of_one_day_it_is_as_the_days_own_release_says(published):
    name, folder = published
    own = read_measurements(folder, LAST).release()
    steps = [own.measured.first_step + step for step in range(10, 20)]
    found, expected = read_sum(folder, ["84", "11"], LAST, LAST, range(10, 20)), own.sum(["84", "11"], steps)
    for one, other in (
        (found.standard_error, expected.standard_error),
        (found.noise_standard_error, expected.noise_standard_error),
    ):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-6)
    assert (found.standard_error is None) == (name == "OptStream")
    assert (found.noise_standard_error is None) == (name == "HistoryInformed")


def test_noise_of_days_is_independent_and_doubts_of_a_model_are_not(published):
    name, folder = published
    alone = [read_sum(folder, ["11"], day, day) for day in DAYS]
    found = read_sum(folder, ["11"], DAY, LAST)
    if name == "HistoryInformed":
        # what is not known of the region's size is not known of any of its days
        apart = np.linalg.norm([one.standard_error for one in alone])
        assert 1.02 * apart < found.standard_error < sum(one.standard_error for one in alone)
    else:
        apart = np.linalg.norm([one.noise_standard_error for one in alone])
        assert found.noise_standard_error == pytest.approx(apart)


@pytest.mark.parametrize(
    ("nodes", "last", "steps", "words"),
    [
        (["11"], LAST + timedelta(days=1), None, "needs every day from 2016-06-01 to 2016-06-04; 3 of them"),
        (["12"], LAST, None, "has no node '12'"),
        ("11", LAST, None, r"several names, such as \['11'\]; got the text '11'"),
        (
            ["11"],
            "2016-06-03",
            None,
            r"last of a sum must be a day such as date\(2016, 2, 1\); got '2016-06-03'",
        ),
        (["11"], DAY - timedelta(days=1), None, "2016-05-31, is before the first, 2016-06-01"),
        (["FR", "11"], LAST, None, "none may lie in another"),
        (["11"], LAST, [48], "steps of a sum|of this period"),
        (["11"], LAST, [], "steps of a sum"),
        (["11"], LAST, [1.5], "steps of a sum must be integers, counted from 0; got 1.5"),
        ({"11": np.nan}, LAST, None, "the weight of '11' in a sum must be a finite number"),
        ({"11": "x"}, LAST, None, "the weight of '11' in a sum must be a finite number"),
    ],
)
def test_what_cannot_be_summed_is_named(published, nodes, last, steps, words):
    _, folder = published
    with pytest.raises((ParameterError, PublicationError), match=words):
        read_sum(folder, nodes, DAY, last, steps)


def test_a_node_less_one_in_it_is_asked_of_those_beside_that_one():
    """Of counts nodes err otherwise than their leaves' sums: b2, of which nothing was asked, stays b2."""
    parents = {"all": None, "b1": "all", "b2": "all", "l1": "b1", "l2": "b1", "l3": "b2", "l4": "b2"}
    names, variances = tuple(parents), np.array([64.0, 16.0, 9.0, 4.0, 1.0, 5.0, 5.0])
    nodes = GroupedNodes(variances[None], csr_array((0, 7)), np.zeros(0, dtype=np.int64))
    errors = DayErrors(
        DAY, "whole", names, ErrorTerms(nodes, np.ones((1, 1, 1)), np.zeros((1, 0))), np.zeros((7, 1))
    )
    day = SummedDay(DAY, names, parents, np.zeros((7, 1)), errors, False)
    for asked, variance in (
        ({"all": 1, "b1": -1}, 9.0),
        ({"all": 1, "l1": -1}, 1.0 + 9.0),
        ({"all": 2, "b1": -1, "l1": 1}, 4 * 4.0 + 1.0 + 4 * 9.0),
        ({"b1": 1, "b2": -1}, 16.0 + 9.0),
    ):
        assert sum_of_days([day], asked).standard_error == pytest.approx(variance**0.5)
