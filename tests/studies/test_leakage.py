"""Temporal leakage: the loss function, leakage over time, budgets, and a stream's ledger."""

import itertools
import json
import math
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import Key, open_ledger
from optstream.privacy import CappedSpend, JointSpend, PeriodSpend, StepSpend, worst_window
from optstream.stream import Hour
from studies.leakage import (
    LossFunction,
    backward_leakage,
    backward_transition,
    constant_budget,
    exact_budgets,
    forward_leakage,
    repeated_leakage,
    sequence_leakage,
    stationary_distribution,
    supremum,
    total_leakage,
)
from studies.leakage_of_stream import history_of, period_charge, read_transition, step_charges
from tasks.config import load_settings
from tasks.release.run import Run, enrol
from tests.studies.conftest import invoke
from tests.tasks.two_regions import released_by


def random_matrix(seed, n_states, concentration=1.0, zeros=0.0):
    """Rows from a Dirichlet distribution, each entry 0 with probability `zeros` (never a whole row)."""
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.full(n_states, concentration), n_states)
    cut = np.where(generator.random(rows.shape) < zeros, 0, rows)
    cut[cut.sum(axis=1) == 0, 0] = 1
    return cut / cut.sum(axis=1, keepdims=True)


ISSUE = np.array([[0.8, 0.2], [0, 1]])
DEGENERATE = {
    "one state": np.ones((1, 1)),
    "the issue's": ISSUE,
    "identity": np.eye(4),
    "permutation": np.eye(4)[[2, 0, 3, 1]],
    "uniform": np.full((5, 5), 0.2),
    "equal rows with zeros": np.tile([0.5, 0, 0.5], (3, 1)),
    "reducible": np.array([[0.5, 0.5, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 0.9, 0.1], [0, 0, 0.2, 0.8]]),
    "transient": np.array([[0.2, 0.3, 0.5], [0, 0.6, 0.4], [0, 0.1, 0.9]]),
    "two equal rows": np.array([[0.1, 0.9, 0], [0.1, 0.9, 0], [0.3, 0.3, 0.4]]),
    "equal ratios": np.array([[0.4, 0.4, 0.2], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]),
    "nearly equal rows": np.array([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]]),
    "tiny entries": np.array([[1e-300, 0.4, 0.6], [0.5, 1e-12, 0.5], [0.3, 0.7, 0]]),
    "subnormal entries": np.array([[5e-324, 1.0], [0.25, 0.75]]),
    "sparse": random_matrix(7, 9, 0.5, zeros=0.7),
    "peaked": random_matrix(8, 6, 0.05),
}
matrices = st.builds(
    random_matrix,
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.sampled_from([0.05, 0.3, 1.0, 10.0]),
    st.sampled_from([0.0, 0.0, 0.3, 0.8]),
)


def by_all_corners(matrix, a):
    """L by its definition: a best x has only its least and its largest value, so all subsets are tried."""
    subsets = np.array(list(product([0.0, 1.0], repeat=len(matrix)))).T
    with np.errstate(divide="ignore"):
        large = np.minimum(matrix @ subsets, 1.0)
        weights = np.logaddexp(np.log(large) + a, np.log(1 - large))
    return float((weights[:, None] - weights[None]).max())


@pytest.mark.parametrize("matrix", [*DEGENERATE.values()], ids=[*DEGENERATE])
@pytest.mark.parametrize("a", [1e-3, 0.7, 8.0, 300.0])
def test_degenerate_matrices_against_the_definition(matrix, a):
    assert LossFunction(matrix)(a) == pytest.approx(by_all_corners(matrix, a), rel=1e-10, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.floats(1e-3, 1000))
def test_random_matrices_against_the_definition(data, a):
    matrix = data.draw(matrices)
    assert LossFunction(matrix)(a) == pytest.approx(by_all_corners(matrix, a), rel=1e-10, abs=1e-12)


def test_large_leakage_is_not_lost():
    """A public implementation returns 0 beyond a = 36, where its ratio meets q/d in floating point."""
    loss, last = LossFunction([[0.6, 0.4], [0.3, 0.7]]), 0.0
    for a in (30.0, 36.0, 37.0, 40.0, 100.0, 699.0, 701.0, 745.0, 1000.0, 1e6):
        assert loss(a) >= last
        last = loss(a)
    assert last == pytest.approx(math.log(2), rel=1e-12)
    assert LossFunction(ISSUE)(1000.0) == pytest.approx(1000 + math.log(0.8), rel=1e-15)


def test_a_large_matrix_has_few_pieces():
    assert 2 <= LossFunction(random_matrix(1, 50)).pieces.q.size <= 100


series = st.lists(st.floats(0, 5), min_size=1, max_size=12).map(np.array)


@settings(max_examples=60, deadline=None)
@given(st.data(), series)
def test_the_recursions_as_the_paper_writes_them(data, epsilons):
    matrix = data.draw(matrices)
    loss = LossFunction(matrix)
    backward, forward = backward_leakage(epsilons, loss), forward_leakage(epsilons, matrix)
    assert backward[0] == epsilons[0]
    assert forward[-1] == epsilons[-1]
    np.testing.assert_allclose(backward[1:], loss(backward[:-1]) + epsilons[1:], rtol=1e-12)
    np.testing.assert_allclose(forward[:-1], loss(forward[1:]) + epsilons[:-1], rtol=1e-12)
    total = total_leakage(epsilons, backward=loss, forward=loss)
    np.testing.assert_allclose(total, backward + forward - epsilons, rtol=1e-12)
    assert (epsilons <= total + 1e-12).all()
    assert (total <= epsilons.sum() + 1e-9).all()


def test_one_who_knows_nothing_learns_epsilon_and_one_who_knows_all_the_sum():
    epsilons = np.array([0.1, 0.4, 0, 0.2])
    np.testing.assert_array_equal(backward_leakage(epsilons, None), epsilons)
    np.testing.assert_allclose(total_leakage(epsilons, backward=None, forward=None), epsilons, rtol=1e-15)
    for forward, expected in ((np.eye(2), [0.7] * 4), (None, [0.1, 0.5, 0.5, 0.7])):
        total = total_leakage(epsilons, backward=np.eye(2), forward=forward)
        np.testing.assert_allclose(total, expected, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.data(), series)
def test_several_steps_together(data, epsilons):
    """Theorem 3: one step is the total leakage, all of them the sum of the epsilons."""
    backward, forward = data.draw(matrices), data.draw(matrices)
    known = {"backward": backward, "forward": forward}
    n_steps = epsilons.size
    np.testing.assert_allclose(
        sequence_leakage(epsilons, 1, **known), total_leakage(epsilons, **known), rtol=1e-12
    )
    np.testing.assert_allclose(sequence_leakage(epsilons, n_steps, **known), [epsilons.sum()], rtol=1e-9)
    before, after = backward_leakage(epsilons, backward), forward_leakage(epsilons, forward)
    for length in range(2, n_steps + 1):
        together = sequence_leakage(epsilons, length, **known)
        expected = [
            before[t] + epsilons[t + 1 : t + length - 1].sum() + after[t + length - 1]
            for t in range(n_steps - length + 1)
        ]
        np.testing.assert_allclose(together, expected, rtol=1e-9, atol=1e-12)


def learned(table, start, forward, steps):
    """The true loss about the values at `steps` of {path: distribution of the output}."""
    joint, mass = {}, {}
    for path, outputs in table.items():
        weight = start[path[0]] * math.prod(forward[i, j] for i, j in itertools.pairwise(path))
        key = tuple(path[t] for t in steps)
        joint[key] = joint.get(key, 0) + weight * outputs
        mass[key] = mass.get(key, 0) + weight
    likelihoods = np.array([joint[key] / mass[key] for key in joint])
    return float(np.log(likelihoods.max(axis=0) / likelihoods.min(axis=0)).max())


def loss_of_step(table, step, n_states):
    """The loss when only that step changes: what a spend charges it."""
    return max(
        float(np.abs(np.log(table[path] / table[(*path[:step], value, *path[step + 1 :])])).max())
        for path in table
        for value in range(n_states)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 3))
def test_a_joint_measurement_tells_no_more_than_the_total_leakage(seed, spread):
    """Any table of likelihoods over whole paths, not only a release a step (docs/research/leakage.md, 3)."""
    n_states, n_steps, generator = 2 + seed % 2, 4, np.random.default_rng(seed)
    forward = random_matrix(seed, n_states)
    start = stationary_distribution(forward)
    table = {
        path: generator.uniform(1, 1 + spread, 3)
        for path in itertools.product(range(n_states), repeat=n_steps)
    }
    for output in range(3):  # each output's likelihood alone is a mechanism of one output
        one = {path: values[output : output + 1] for path, values in table.items()}
        epsilons = np.array([loss_of_step(one, step, n_states) for step in range(n_steps)])
        known = {"backward": backward_transition(forward), "forward": forward}
        total = total_leakage(epsilons, **known)
        for step in range(n_steps):
            assert learned(one, start, forward, [step]) <= total[step] + 1e-12
        for step, bound in enumerate(sequence_leakage(epsilons, 2, **known)):
            assert learned(one, start, forward, [step, step + 1]) <= bound + 1e-12


def test_the_total_leakage_is_attained_and_a_forgetful_bound_is_not_enough():
    """Releases of each step that tell the two states apart by exactly epsilon; all say the same state."""
    forward, epsilon, n_steps = np.array([[0.9, 0.1], [0.1, 0.9]]), 0.5, 5
    table = {
        path: np.array([math.exp(epsilon * sum(path))]) for path in itertools.product((0, 1), repeat=n_steps)
    }
    found = learned(table, np.array([0.5, 0.5]), forward, [2])
    total = total_leakage(np.full(n_steps, epsilon), backward=forward, forward=forward)[2]
    assert found == pytest.approx(total, rel=1e-9)
    assert found > 2 * epsilon


@settings(max_examples=100, deadline=None)
@given(st.data(), st.floats(1e-4, 4))
def test_it_is_where_iteration_ends(data, epsilon):
    loss = LossFunction(data.draw(matrices))
    found = supremum(loss, epsilon)
    assert (backward_leakage(np.full(3000, epsilon), loss) <= found * (1 + 1e-9)).all()
    if math.isinf(found):
        assert loss(1e6) + epsilon >= 1e6 - 1e-9  # so that no a is large enough
    else:
        assert loss(found) + epsilon == pytest.approx(found, rel=1e-9)


def test_infinite_where_a_state_is_never_left_and_epsilon_large_enough():
    """Theorem 11 with d = 0: finite below log(1/q), here log(1/0.8)."""
    border = math.log(1.25)
    assert supremum(ISSUE, 0.15) == pytest.approx(1.19224, abs=1e-5)  # example 5
    assert math.isfinite(supremum(ISSUE, border - 1e-6))
    assert supremum(ISSUE, border) == supremum(ISSUE, border + 1e-6) == math.inf
    assert supremum(np.eye(2), 1e-300) == math.inf
    assert supremum(np.eye(2), 0.0) == 0
    assert supremum(np.kron(np.eye(2), np.full((2, 2), 0.5)), 0.01) == math.inf
    assert supremum(np.full((3, 3), 1 / 3), 0.4) == supremum(None, 0.4) == 0.4


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_repeated_period_ends_where_iteration_does(data, epsilons):
    loss = LossFunction(data.draw(matrices))
    before, after = repeated_leakage(epsilons, backward=loss, forward=loss)
    many = np.tile(epsilons, 400)
    reached = backward_leakage(many, loss)[-len(epsilons) :]
    ahead = forward_leakage(many, loss)[: len(epsilons)]
    # numbers below the least normal one have no digits left to be right in
    assert (reached <= before * (1 + 1e-9) + 1e-300).all()
    assert (ahead <= after * (1 + 1e-9) + 1e-300).all()
    if np.isfinite(before).all():
        again = backward_leakage(np.array([before[-1], *epsilons]), loss)[1:]
        np.testing.assert_allclose(again, before, rtol=1e-9, atol=1e-50)
        assert np.isfinite(after).all()
    elif max(epsilons) > 0:
        n = len(epsilons)
        assert loss(1e6) * n + sum(epsilons) >= n * 1e6 - 1e-6


alphas = st.floats(0.01, 60)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.data(), alphas)
def test_a_constant_budget_never_exceeds_alpha_and_none_larger_would_do(data, alpha):
    known = {"backward": data.draw(matrices), "forward": data.draw(matrices)}
    epsilon = constant_budget(alpha, **known)
    assert 0 <= epsilon <= alpha
    assert (total_leakage(np.full(400, epsilon), **known) <= alpha * (1 + 1e-12)).all()
    more = epsilon * (1 + 1e-6) + 1e-9
    ends = supremum(known["backward"], more) + supremum(known["forward"], more) - more
    assert ends > alpha or epsilon == alpha


@settings(max_examples=80, deadline=None)
@given(st.data(), alphas, st.integers(2, 60))
def test_exact_budgets_attain_alpha_at_every_step(data, alpha, n_steps):
    known = {"backward": data.draw(matrices), "forward": data.draw(matrices)}
    budgets = exact_budgets(alpha, **known)
    epsilons = [budgets.first, *[budgets.middle] * (n_steps - 2), budgets.last]
    np.testing.assert_allclose(total_leakage(epsilons, **known), alpha, rtol=1e-10)
    assert 0 <= budgets.middle <= min(budgets.first, budgets.last) * (1 + 1e-12) + 1e-15


def test_who_knows_nothing_is_kept_at_alpha_each_step():
    """And what is never forgotten leaves no constant budget."""
    for known in (np.eye(3), np.eye(2)[::-1]):
        assert constant_budget(2, backward=known, forward=known) == 0
        budgets = exact_budgets(2, backward=known, forward=known)
        assert (budgets.first, budgets.middle, budgets.last) == pytest.approx((1, 0, 1), abs=1e-9)
    assert constant_budget(0.7, backward=None, forward=None) == 0.7
    budgets = exact_budgets(0.7, backward=None, forward=None)
    assert (budgets.first, budgets.middle, budgets.last) == pytest.approx((0.7, 0.7, 0.7), rel=1e-12)
    one_way = exact_budgets(1, backward=ISSUE, forward=None)
    assert one_way.first == pytest.approx(1)
    left = 1 - math.log(0.8 * math.expm1(1) + 1)
    assert (one_way.middle, one_way.last) == pytest.approx((left, left))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5]], r"square with at least one state; got \(1, 2\)"),
        (np.zeros((0, 0)), r"at least one state; got \(0, 0\)"),
        ([[1.1, -0.1], [0, 1]], "at least 0; got -0.1 at row 0, column 1"),
        ([[1, 0], [math.nan, 1]], "got nan at row 1, column 0"),
        ([[1, 0], [0.5, 0.5 + 2e-9]], r"row 1 \(counted from 0\) adds up to 1.000000002"),
        ([["x", 1], [0, 1]], "must be a matrix of numbers"),
        ([[1, 0], [1]], "must be a matrix of numbers"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(matrix, message):
    with pytest.raises(ParameterError, match=message):
        LossFunction(matrix)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_it_stays_and_reversing_twice_is_the_chain_itself(seed, n_states):
    forward = random_matrix(seed, n_states, 0.5)
    stationary = stationary_distribution(forward)
    np.testing.assert_allclose(stationary @ forward, stationary, rtol=1e-9)
    backward = backward_transition(forward)
    assert backward[0, -1] == pytest.approx(stationary[-1] * forward[-1, 0] / stationary[0], rel=1e-9)
    np.testing.assert_allclose(backward.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(backward_transition(backward), forward, rtol=1e-6, atol=1e-300)


SPENDS = [
    StepSpend(0, "samples", 3, (1, 0, Fraction(2, 3), 1), Fraction(7, 3), 2, 2),
    PeriodSpend(1, "sampling", -5, (Fraction(0), Fraction(1, 3), Fraction(1, 2))),
    CappedSpend(1, "samples", 0, 9, 3, (-4,), Fraction(7, 2), 3, 2),
    CappedSpend(1, "samples", 0, 2, 3, (), Fraction(7, 2), 3),
    JointSpend(
        0, "blocks", 7, 9, ((range(0, 2), range(3, 6)), (range(6, 7), range(8, 9))), Fraction(7), 2, 1, 3
    ),
]


@pytest.mark.parametrize("spend", SPENDS)
def test_charges_are_the_accountants(spend):
    """A window of one step is one changed step; one as long as the period is all of it."""
    charges = step_charges(spend)
    assert charges.shape == (spend.n_steps,)
    assert charges.max() == pytest.approx(float(worst_window([spend], 1).epsilon), rel=1e-15)
    whole = worst_window([spend], spend.n_steps).epsilon
    assert period_charge(spend, spend.n_steps) == pytest.approx(float(whole), rel=1e-15)


# A stream's ledger: what is counted, how time runs, and what is shown.

NOW = datetime(2025, 6, 1, tzinfo=UTC)
DAY = date(2025, 3, 29)  # the next day has 46 steps


@pytest.fixture
def charging():
    """`charging(settings)`: returns a ledger, and a function that charges each step of a period."""
    with ExitStack() as open_ledgers:

        def make(settings):
            ledger = open_ledgers.enter_context(closing(open_ledger(settings.ledger_url)))
            enrol(Run(settings, ledger, None, "test", lambda: NOW))

            def charge(day, amount, state="drawn", revision=0):
                first, n_steps = settings.calendar.first_step(day), settings.calendar.n_steps(day)
                spends = (StepSpend(0, "samples", first, (1,) * n_steps, 10_000 / Fraction(amount), 10_000),)
                key = Key(settings.stream.name, day.isoformat(), revision)
                held = ledger.reserve(key, spends, "test", NOW, timedelta(hours=1))
                if state != "reserved":
                    ledger.begin_draw(held, NOW)
                if state == "void":
                    ledger.void(key, "the test says so", NOW, held)
                elif state == "drawn":
                    ledger.record_drawn(held, "0" * 64, spends, NOW)

            return ledger, charge

        yield make


@pytest.mark.slow
def test_steps_of_days_with_gaps_and_clock_changes(small, charging):
    stream = small().settings
    ledger, charge = charging(stream)
    assert history_of(stream, ledger, "step")[0] == []
    charge(DAY, "1/100", state="void")
    charge(DAY, "1/200", revision=1)
    charge(DAY + timedelta(days=3), "1/200")
    charge(DAY + timedelta(days=4), "1/100", state="reserved")
    days, epsilons = history_of(stream, ledger, "step")
    assert epsilons.tolist() == [0.015] * 48 + [0.0] * (46 + 48) + [0.005] * 48
    assert (days[0], days[-1]) == (DAY, DAY + timedelta(days=3))


@pytest.mark.slow
def test_hours_are_steps_of_their_days_and_add_up_to_them(load_text, charging):
    stream = load_text(released_by("PeGaSus"), ("[mechanism]", 'period = "hour"\n[mechanism]'))
    ledger, charge = charging(stream)
    charge(Hour(DAY, 13), "1/100")
    charge(Hour(DAY, 14), "1/200")
    charge(Hour(DAY + timedelta(1), 0), "1/50")
    expected = [0.0] * 26 + [0.01] * 2 + [0.005] * 2 + [0.0] * 18 + [0.02] * 2 + [0.0] * 44
    assert history_of(stream, ledger, "step")[1].tolist() == expected
    np.testing.assert_allclose(history_of(stream, ledger, "period")[1], [0.03, 0.04], rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write a line of numbers"),
        ("a,b\n0.8,0.2\n0.5,0.4\n", "must add up to 1"),
        ('0.8,"0.2\n0,1\n', "name a CSV file"),
        ("0.8,\udcff", "name a CSV file"),
        (None, "name a CSV file"),
    ],
)
def test_a_file_that_holds_no_chain_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "M.csv"
    if text is not None:
        path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_transition(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.slow
def test_the_command_shows_the_leakage_of_a_ledger_and_its_budgets(here, charging):
    (here / "M.csv").write_text("low,high\n0.9,0.1\n0.3,0.7\n")
    assert "nothing released yet" in invoke("leakage", "--transition", "M.csv").output
    stream = load_settings(here / "optstream.toml")
    ledger, charge = charging(stream)
    for number in range(3):
        charge(date(2016, 6, 1 + number), "1/1000")
    _, epsilons = history_of(stream, ledger, "step")
    shown = " ".join(invoke("leakage", "--transition", "M.csv").output.split())
    assert "144 steps, 2016-06-01 to 2016-06-03" in shown
    assert "the first" in shown
    found = json.loads(invoke("leakage", "--transition", "M.csv", "--bound", "2", "--json").stdout)
    forward = [[0.9, 0.1], [0.3, 0.7]]
    known = {"backward": backward_transition(forward), "forward": forward}
    total = total_leakage(epsilons, **known)
    row = found["summary"]["total"]
    assert row["worst"] == pytest.approx(total.max(), rel=1e-12)
    at, place = datetime.fromisoformat(row["at"]), int(total.argmax())
    assert at == datetime(2016, 6, 1) + place * timedelta(minutes=30)
    assert row["supremum"] >= row["worst"] * (1 - 1e-12)
    assert found["bound"]["constant"] == pytest.approx(constant_budget(2, **known))
    assert found["bound"]["exact"]["first"] == pytest.approx(exact_budgets(2, **known).first)
