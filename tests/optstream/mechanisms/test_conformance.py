"""What every mechanism keeps, whatever it is: one suite over all of them."""

import json
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.ledger.accounting import covers
from optstream.mechanisms.base import Mechanism
from optstream.noise import secure_noise, simulated_noise
from optstream.noise.gaussian import DIGIT_BYTES
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import Measured, PrivatePeriod, RawState
from optstream.stream.private_period import public_part, raw_bytes, with_raw
from tests.optstream.mechanisms.conftest import ADAPTIVE, ALL, MODEL, ONLINE
from tests.optstream.mechanisms.planned_days import released, spends_of


class Tape:
    """Noise of the k-th sample is the k-th number of a tape, whatever the calls that ask for it."""

    simulated = True

    def __init__(self, seed):
        self._draws = np.random.default_rng(seed)

    def discrete_laplace(self, scale, size):
        uniform = self._draws.random(int(np.prod(size))) - 0.5
        return (
            np.rint(-scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))).astype(np.int64).reshape(size)
        )

    def uniform_below(self, bounds):
        if (bounds == 256**DIGIT_BYTES).all():
            # every proposal of Gaussian noise is kept, so that none is drawn again
            return np.zeros(bounds.shape, dtype=np.int64)
        return (self._draws.random(bounds.shape) * bounds).astype(np.int64)


def raw_entries(state):
    if isinstance(state, RawState):
        return [state]
    return [raw for value in state.values() for raw in raw_entries(value)] if isinstance(state, dict) else []


def test_a_release_has_its_nodes_and_steps_and_comes_back_from_its_measurements_bytes(make, wavy):
    """Of values that cannot be written to; the raw part of what a period began with is not kept."""
    mechanism, values = make(MODEL, 6), wavy(18)
    values.setflags(write=False)
    n_nodes = len(mechanism.tree.nodes) if hasattr(mechanism, "tree") else 2
    for release in released(mechanism, values, [6, 12], noise=simulated_noise(7)):
        assert release.values.shape == (n_nodes, 6)
        assert release.values.dtype == np.float64
        assert np.isfinite(release.values).all()
        if n_nodes == 3:
            assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
            assert release.values.min() >= 0
        data = release.measured.to_bytes()
        reread = Measured.from_bytes(data)
        assert reread.to_bytes() == data
        assert reread.spends == release.spends
        assert reread.simulated
        assert np.array_equal(mechanism.estimate(reread).values, release.values)
        assert not any(raw_entries(part.before) for part in (release.measured, *release.measured.parts))


def test_the_same_seed_gives_the_same_release_and_another_seed_another(make, wavy):
    first, again, other = (
        released(make(MODEL, 6), wavy(18), [6, 12], noise=simulated_noise(seed)) for seed in (5, 5, 6)
    )
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one.values, two.values)
        assert one.measured.to_bytes() == two.measured.to_bytes()
    assert first[0].measured.to_bytes() != other[0].measured.to_bytes()


def test_a_state_goes_through_the_ledgers_stores_and_changes_nothing(make, wavy):
    """Public part through the measurements' bytes, spends through `recall`, raw part through its own file."""
    mechanism, stream, cuts = make(MODEL, 2), wavy(24), [6, 8, 10, 12, 14]  # three periods in a window, too
    kept = released(mechanism, stream, cuts, noise=Tape(3))
    noise, spends, before, raw = Tape(3), [], None, None
    for one, (first, end) in zip(kept, pairwise([0, *cuts, 24]), strict=True):
        state = mechanism.recall(spends, before)
        state = with_raw(state, raw) if raw else state
        release = mechanism.release(stream[:, first:end], noise=noise, first_step=first, state=state)
        assert np.array_equal(release.values, one.values)
        assert release.spends == one.spends
        before = Measured.from_bytes(release.measured.to_bytes()).state
        raw = raw_bytes(release.state)
        spends += release.spends
        json.dumps(public_part(release.state), allow_nan=False)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_window_ever_costs_more_than_the_grant(make, data):
    """Random streams, windows and periods, released in any order, each knowing the spends of all others."""
    window = data.draw(st.integers(2, 8))
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    roaming = data.draw(st.sampled_from([1, 2, 3]))
    unit = "customer" if roaming == 1 else "roaming"
    model = PrivacyModel(data.draw(st.sampled_from(["1", "1/3", "20"])), window, "1.5", "0.5", unit, roaming)
    mechanism = make(model, min(lengths))
    assert mechanism.epsilon <= model.epsilon
    starts = np.cumsum([0, *lengths])
    size = data.draw(st.sampled_from([0, 10, 10_000]))
    seed = data.draw(st.integers(0, 2**32))
    stream = np.round(np.random.default_rng(seed).normal(0, 1, (2, starts[-1])) * size)
    spends, noise, left = [], simulated_noise(seed), None
    for number in data.draw(st.permutations(range(len(lengths)))):
        at, length = int(starts[number]), lengths[number]
        state = mechanism.recall(spends, left)
        plan = mechanism.plan(length, at, state)
        release = mechanism.release(stream[:, at : at + length], noise=noise, first_step=at, state=state)
        assert covers(plan, release.spends, window)
        assert np.isfinite(release.values).all()
        assert release.epsilon_alone == worst_window(release.spends, window).epsilon
        assert worst_window([*spends, *plan], window).epsilon <= mechanism.epsilon
        spends += release.spends
        left = public_part(release.state)
    assert worst_window(spends, window).epsilon <= mechanism.epsilon <= model.epsilon


@pytest.mark.parametrize(
    "model", [MODEL, PrivacyModel("7/3", 48, "1.5", "0.5", "roaming", 2)], ids=["plain", "roaming"]
)
def test_a_plan_may_spend_its_grant_but_for_rounding(make, model):
    """More noise than is needed would be no breach, and nobody would see it."""
    mechanism = make(model, model.window_length)
    assert 1 - Fraction(1, 2**40) < mechanism.epsilon / mechanism.model.budget <= 1


@pytest.mark.parametrize("level", [0.0, 250.0, -250.0, np.nan, 7123.0e30])
def test_no_number_decides_whether_there_is_a_release(make, level):
    for release in released(make(MODEL, 6), np.full((2, 12), level), [6]):
        assert np.isfinite(release.values).all()


def test_huge_values_stay_finite_and_near_the_truth(make):
    """2^45 units of the resolution, a customer of 1: the noise is negligible."""
    for release in released(make(PrivacyModel("10000", 6, 1, "1"), 6), np.full((2, 12), 2.0**45), [6]):
        assert np.allclose(release.values[-2:], 2.0**45, rtol=0.05)


def test_a_private_period_is_taken_as_it_is(make, wavy):
    mechanism = make(MODEL, 6)
    period = PrivatePeriod.from_values(wavy(6), resolution=MODEL.resolution, first_step=6)
    wrapped = mechanism.release(period, noise=simulated_noise(3))
    plain = mechanism.release(wavy(6), noise=simulated_noise(3), first_step=6)
    assert np.array_equal(wrapped.values, plain.values)
    assert wrapped.spends == plain.spends
    coarse = PrivatePeriod.from_values(wavy(6), resolution=Fraction(1), first_step=6)
    with pytest.raises(ParameterError, match="resolution"):
        mechanism.release(coarse, noise=simulated_noise(3))


def test_values_that_are_no_numbers_by_their_type_are_refused_without_showing_them(make):
    with pytest.raises(ParameterError) as refusal:
        make(MODEL, 6).release([["7123"] * 6] * 2, noise=simulated_noise(1))
    assert "7123" not in str(refusal.value)


def test_noise_is_a_required_argument_and_secure_noise_is_not_simulated(make, wavy):
    mechanism = make(MODEL, 6)
    for call in (mechanism.release, mechanism.measure):
        with pytest.raises(ParameterError, match=r"noise must be secure_noise.*simulated_noise\(seed\)"):
            call(wavy(6))
    assert not mechanism.release(wavy(6), noise=secure_noise()).simulated
    assert mechanism.release(wavy(6), noise=simulated_noise(1)).simulated


def test_what_a_class_says_of_itself_is_so(make, wavy):
    """adaptive: a state goes on; noise_is_known: every value's noise, whatever the readings are."""
    mechanism = make(MODEL, 6)
    with pytest.raises(FrozenInstanceError):
        mechanism.windows_length = 12  # a slip
    both = [mechanism.release(values, noise=simulated_noise(8)) for values in (wavy(6), 1000 - wavy(6))]
    assert all((release.state is not None) == mechanism.adaptive for release in both)
    assert (mechanism.recall([]) is not None) == mechanism.adaptive
    assert mechanism.revises == (type(mechanism).revise is not Mechanism.revise)
    assert mechanism.has_self_check == (type(mechanism).self_check is not Mechanism.self_check)
    assert mechanism.takes_covariates == hasattr(mechanism, "covariates")
    assert mechanism.one_leaf_a_period == hasattr(mechanism, "leaves_per_period")
    assert (mechanism.tree_class is None) == hasattr(mechanism, "tree")
    if mechanism.noise_is_known:
        one, other = (release.noise_standard_errors for release in both)
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_foreign_state_is_refused(name, wavy):
    """Read as "nothing was spent", it would void the guarantee in silence."""
    mechanism = ALL[name](MODEL, 6)
    for state in ({"mechanism": "another"}, {}, [1], "x"):
        with pytest.raises(ParameterError, match="state of"):
            mechanism.release(wavy(6), noise=simulated_noise(1), first_step=6, state=state)


def test_too_small_an_epsilon_is_refused_with_the_remedy(make):
    with pytest.raises(ParameterError, match="larger epsilon or a coarser resolution"):
        make(replace(MODEL, epsilon="1e-18"), 6)


@pytest.mark.parametrize("name", ONLINE)
def test_online_and_batch_agree_with_the_same_noise(name, wavy):
    mechanism, stream = ALL[name](MODEL, 1), wavy(40)[:1]
    batch = released(mechanism, stream, [17, 20], noise=Tape(9))
    online = released(mechanism, stream, range(1, 40), noise=Tape(9))
    values = [np.concatenate([release.values[0] for release in some]) for some in (batch, online)]
    assert np.allclose(*values)
    assert worst_window(spends_of(batch), 6).epsilon == worst_window(spends_of(online), 6).epsilon
    other = released(mechanism, stream, [17, 20], noise=Tape(10))
    assert not np.allclose(values[0][:17], other[0].values[0]), "the control: another tape"
