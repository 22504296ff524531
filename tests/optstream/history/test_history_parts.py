"""The parts around the posterior: blocks that are kept, Laplace noise, bands, events."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.history.blocks import BlockHistory, Blocks, n_series_of, packed, unpacked
from optstream.history.filter import fit, latest, star
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.robust import information, score, with_known_noise
from optstream.history.self_check import is_unlike
from optstream.measurement.blocks import BLOCKS, measure_blocks
from optstream.noise import joint_variance, simulated_noise
from optstream.privacy import JointSpend, StepSpend
from optstream.stream import PrivatePeriod

SLOTS = 12


def history_of(n, seed=0, n_series=2, scale=3.0):
    generator = np.random.default_rng(seed)
    sums = np.rint(generator.normal(600, 50, (n_series, n)))
    return BlockHistory(3 * np.arange(n), np.full(n, 2), np.full(n, scale), sums)


@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 2**52])
def test_packed_sums_are_the_same_whole_numbers(most):
    sums = np.array([[most, -most, 0.0], [1.0, -(2.0**31), 7.0]])
    document = json.loads(json.dumps(packed(sums)))
    assert document["kind"] == ("<i4" if most < 2**31 else "<i8")
    assert np.array_equal(unpacked(document), sums)
    assert unpacked(packed(np.zeros((3, 0)))).shape == (3, 0)


def test_a_state_of_a_version_that_wrote_lists_is_read():
    history = history_of(5, n_series=3)
    written = {**history.to_document(), "sums": history.sums.astype(int).tolist()}
    again = BlockHistory.from_document(written, 3)
    assert again.to_document() == history.to_document()
    assert n_series_of(written) == n_series_of(history.to_document()) == 3
    with pytest.raises(ParameterError, match="<i4 or <i8"):
        unpacked({"rows": 1, "kind": "object", "base64": ""})


def test_a_history_survives_its_document():
    history = history_of(5)
    again = BlockHistory.from_document(history.to_document(), 2)
    assert again.to_document() == history.to_document()
    assert BlockHistory.from_document(None, 3).sums.shape == (3, 0)
    with pytest.raises(ParameterError, match="the state is of 2 series; the period has 3"):
        BlockHistory.from_document(history.to_document(), 3)


def test_each_block_of_joint_noise_keeps_its_own_variance():
    """Groups of two blocks and of three; independent noise has one scale, and a day without blocks none."""
    parts = [range(2 * at, 2 * at + 2) for at in range(5)]
    period = PrivatePeriod.from_values(np.zeros((2, 10)), resolution=Fraction(1), first_step=20)
    groups = (tuple(parts[:2]), tuple(parts[2:]))
    joint = JointSpend(0, BLOCKS, 20, 10, groups, Fraction(6), 1, 2)
    history = BlockHistory.of(measure_blocks(period, parts, joint, simulated_noise(1)))
    variances = [joint_variance(6.0, size) for size in (2, 2, 3, 3, 3)]
    assert np.allclose(2 * history.scales**2, variances)
    assert history.starts.tolist() == [20, 22, 24, 26, 28]
    plain = StepSpend(0, BLOCKS, 20, (1,) * 10, Fraction(6), 1)
    assert (
        BlockHistory.of(measure_blocks(period, parts, plain, simulated_noise(1))).scales.tolist() == [6] * 5
    )
    nothing = replace(joint, groups=())
    assert BlockHistory.of(measure_blocks(period, [], nothing, simulated_noise(1))).n_blocks == 0


def test_blocks_are_joined_in_time_and_the_latest_are_kept():
    first, second = history_of(10).between(0, 12), history_of(10).between(12, 30)
    assert second.joined(first).to_document() == history_of(10).to_document()
    assert latest(history_of(10), 3).starts.tolist() == [21, 24, 27]


@pytest.mark.parametrize("doubt", [1e-3, 0.5, 4.0, 100.0])
def test_the_score_is_the_derivative_of_the_log_density(doubt):
    z = np.linspace(-9, 9, 20001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])

    def density(surprise):
        return float((weight * np.exp(-np.abs(surprise - z * np.sqrt(doubt)) / 2.0) / 4.0).sum())

    variance, scale = np.array([[doubt]]), np.array([[2.0]])
    for surprise in (-7.0, -0.4, 1.3, 20.0):
        step = 1e-3
        numeric = -(np.log(density(surprise + step)) - np.log(density(surprise - step))) / (2 * step)
        assert np.isclose(score(np.array([[surprise]]), variance, scale)[0, 0], numeric, rtol=1e-2, atol=1e-4)
    weight = 1.0 / information(variance, scale)[0, 0] - doubt
    assert weight * (1 + 1e-3) >= 4.0
    assert weight <= 8.0 * (1 + 1e-2) + 0.05 * doubt


def posterior_of(values, noise, events=None):
    n = values.shape[1]
    blocks = Blocks.at(np.arange(n) * 3, events=events)
    residuals = np.vstack([np.zeros(n), values])
    noises = np.concatenate([[np.inf], np.full(len(values), noise)])
    seen = Seen(star(len(values)), blocks, residuals, noises, np.ones(len(values)))
    return TreePosterior(TemporalPrior.broad(SLOTS), seen)


@pytest.mark.slow
def test_laplace_noise_is_estimated_better_than_by_its_variance_alone():
    """60 histories of a constant in Laplace noise that is large beside it: less mean square error."""
    asked, plain, robust = Blocks.at(np.arange(120, 132)), [], []
    for seed in range(60):
        values = np.random.default_rng(seed).laplace(0, 1.0, (2, 44))
        posterior = posterior_of(values, 2.0)
        plain.append((posterior.means(asked)[1:] ** 2).mean())
        robust.append((with_known_noise(posterior).means(asked)[1:] ** 2).mean())
    assert np.mean(robust) < 0.9 * np.mean(plain)


@pytest.mark.slow
def test_a_shifted_day_alarms_and_noise_does_not():
    """Noise: 100 histories, none alarms (false alarms of 1 in 10^6 blocks by design)."""
    today = np.arange(60) >= 56
    for seed in range(100):
        values = np.random.default_rng(seed).laplace(0, 0.1, (3, 60))
        assert not is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)
    values[1, 56:] += 3.0
    assert is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)


def test_a_prior_that_cannot_be_computed_with_is_not_used():
    """Lengths that learning ran away with: the broad prior answers in their place."""
    broken = TemporalPrior.broad(SLOTS)
    posterior = posterior_of(np.zeros((2, 20)), 0.1)
    wild = replace(broken, logs=broken.logs + 400.0)
    with np.errstate(all="ignore"):
        found = fit(wild, posterior.seen, (), (4,))
    assert np.isfinite(found.posterior.means(Blocks.at(np.arange(60, 72)))).all()
