"""The standard errors of any sum of a release's values, against each drawn number moved alone."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation import noise_factor
from optstream.measurement import EquallySpaced
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    PeGaSus,
    PeGaSusTree,
    Sample,
)
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature
from tests.optstream.mechanisms.test_noise_standard_errors import PUSH, pushed, unbounded

MODEL = PrivacyModel("1", 6, 1)
TREE = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B", "d": "B"}
)
SHARES = ["1/4", "1/4", "1/2"]
READINGS = 50.0 + np.arange(24.0).reshape(4, 6)
QUESTIONS = [(["all"], range(6)), (["A", "c"], range(1, 5)), (["b"], [3]), (["b", "d"], [0, 5])]


def by_pushing(mechanism, measured, names, steps):
    """The standard error of a sum: what every number does to it, squared, times its variance."""
    rows = [TREE.nodes.index(name) for name in names]

    def total(one):
        return mechanism.estimate(one).values[np.ix_(rows, list(steps))].sum()

    rest = total(measured)
    squares = (((total(one) - rest) / PUSH) ** 2 * variance for one, variance in pushed(measured))
    return float(np.sqrt(sum(squares)))


def points_and_sums(**more):
    halves = [Feature((range(0, 3), range(3, 6)), "halves")]
    return OptStream(MODEL, TREE, sampling=EquallySpaced(2), features=halves, level_shares=SHARES, **more)


LINEAR = {
    "Laplace": Hierarchical(Laplace(MODEL), TREE, SHARES),
    "a derived root": Hierarchical(Laplace(MODEL), TREE, ["0", "1/2", "1/2"]),
    "Sample": Hierarchical(Sample(MODEL), TREE, SHARES),
    "OptStream": points_and_sums(),
    "the paper's weights": points_and_sums(weights="paper"),
    "average of groups": Hierarchical(PeGaSus(MODEL, smoother="average"), TREE, SHARES),
}


@pytest.mark.parametrize("name", LINEAR)
def test_it_is_what_each_number_does_to_the_sum(name):
    bounded, mechanism = LINEAR[name], unbounded(LINEAR[name])
    release = bounded.release(READINGS, noise=simulated_noise(4))
    for names, steps in QUESTIONS:
        found = release.sum(names, steps)
        expected = by_pushing(mechanism, release.measured, names, steps)
        assert found.noise_standard_error == pytest.approx(expected, rel=1e-6)
        rows = [TREE.nodes.index(node) for node in names]
        assert found.value == pytest.approx(release.values[np.ix_(rows, list(steps))].sum())


@pytest.mark.parametrize(
    "mechanism", [LINEAR["OptStream"], LINEAR["Sample"], PeGaSusTree(PeGaSus(MODEL), TREE, SHARES)]
)
def test_where_steps_are_guessed_or_smoothed_the_whole_error_is_not_known(mechanism):
    release = mechanism.release(READINGS, noise=simulated_noise(4))
    assert (release.standard_errors is None) == (not isinstance(mechanism, OptStream)), "of single values"
    assert release.sum().standard_error is None
    assert release.sum().band is None


def test_history_informed_knows_the_whole_error_of_sums():
    mechanism = HistoryInformedTree(HistoryInformed(MODEL, n_blocks=2, block_length=2), TREE, SHARES)
    first = mechanism.release(READINGS, noise=simulated_noise(1))
    release = mechanism.release(READINGS, noise=simulated_noise(2), first_step=6, state=first.state)
    for row, node in enumerate(TREE.nodes):
        for step in range(6):
            found = release.sum([node], [6 + step])
            assert found.standard_error == pytest.approx(release.standard_errors[row, step], rel=1e-5)
    assert release.sum().noise_standard_error is None
    # a block of two steps was measured: their sum is known better than each
    alone = [release.sum(["all"], [6 + step]).standard_error for step in range(6)]
    assert release.sum(["all"]).standard_error < 0.9 * np.linalg.norm(alone)


def test_noise_of_earlier_periods_is_not_forgotten():
    """Groups go on: what the last period drew is in this one, so this one's numbers do not tell all."""
    mechanism, state = PeGaSus(MODEL, smoother="average", threshold="100000"), None
    found = []
    for number in range(2):
        release = mechanism.release(READINGS, noise=simulated_noise(3), first_step=6 * number, state=state)
        state = release.state
        found.append(release.sum(["0"], [6 * number]).noise_standard_error)
    assert found[0] is not None
    assert found[1] is None


@pytest.mark.parametrize("name", LINEAR)
def test_of_many_leaves_one_row_and_one_column_of_numbers_tell_all(name, monkeypatch):
    """Exactly, where all nodes were measured at the same steps; groups differ from node to node."""
    release = LINEAR[name].release(READINGS, noise=simulated_noise(4))
    expected = [release.sum(*question).noise_standard_error for question in QUESTIONS]
    monkeypatch.setattr(noise_factor, "MOST_ENTRIES", 100)
    again = LINEAR[name].estimate(release.measured)
    found = [again.sum(*question).noise_standard_error for question in QUESTIONS]
    assert found == ([None] * 4 if name == "average of groups" else pytest.approx(expected, rel=1e-9))


@pytest.mark.parametrize(
    ("nodes", "steps", "words"),
    [
        (["x"], None, "nodes must be names of the release's nodes; got 'x'"),
        ({"A": 2, "B": -1}, None, "must be names, each once; `optstream.read_sum` takes weights"),
        (None, [0.5], "steps of a sum must be integers; got 0.5"),
        ("A", None, r"several names, such as \['A'\]; got the text 'A'"),
        (["A", "a"], None, "none may lie in another"),
        ([], None, "at least one"),
        (None, [6], "of this period: 0 to 5"),
        (None, [], "at least one"),
    ],
)
def test_a_sum_of_nothing_or_of_what_is_not_there_is_refused(nodes, steps, words):
    release = LINEAR["Laplace"].release(READINGS, noise=simulated_noise(4))
    with pytest.raises(ParameterError, match=words):
        release.sum(nodes, steps)
