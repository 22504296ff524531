"""Prior medians from a public proxy: what it shows is found, sizes and events stay, nothing is spent."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.history.blocks import Blocks
from optstream.history.prior import COMPONENTS, TemporalPrior
from optstream.mechanisms import HistoryInformed
from optstream.mechanisms.history_informed import STRETCH_DAYS, learn_from_public, medians_of, with_medians
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays

SLOTS, SERIES = 24, 6
DAYS = PublicDays.from_date(date(2024, 1, 1), SLOTS)
CALM = {
    "drift": [0.05, 0.01, 6.0],
    "day to day": [0.004, 0.004, 1.5],
    "daily shape": [0.5, 0.004, 0.8, 300.0],
    "edges of the day": [0.003, 0.003, 0.12, 150.0],
    "kind of day": [0.004, 0.004, 0.9, 100.0],
    "shape of these days": [0.003, 0.003, 1.0, 3.0],
    "short memory": [0.003, 0.003, 0.08],
}
"""A series whose shape of the day says nearly all, and is the same everywhere."""


def drawn(medians, n_days, seed):
    """Series of mean 100 of the model itself, (SERIES, n_days * SLOTS)."""
    generator = np.random.default_rng(seed)
    clock = np.arange(n_days * SLOTS)
    size, *others = with_medians(medians)
    prior = TemporalPrior.broad(SLOTS, (replace(size, shared=0.001, own=0.001), *others))
    steps = Blocks.at(clock, kinds=DAYS.kinds(clock))
    shared, own = prior.covariances(steps, steps)
    rooted = [np.linalg.cholesky(part + 1e-8 * np.eye(clock.size)) for part in (shared, own)]
    normal = generator.standard_normal((1 + SERIES, clock.size))
    return 100.0 * (1.0 + rooted[0] @ normal[0] + (rooted[1] @ normal[1:].T).T)


def learn(values):
    return learn_from_public(Measured.from_public(values, []), DAYS)


@pytest.mark.slow
@pytest.mark.nightly
def test_what_a_public_series_shows_is_found():
    found = medians_of(learn(drawn(CALM, 2 * STRETCH_DAYS, seed=3)))
    before = medians_of(COMPONENTS)
    for name, of_all in (("daily shape", 0.5), ("short memory", 0.003), ("kind of day", 0.004)):
        assert abs(np.log(found[name][0] / of_all)) < abs(np.log(before[name][0] / of_all)), name
    assert found["daily shape"][1] < before["daily shape"][1] / 2
    assert found["short memory"][1] < before["short memory"][1] / 2


def test_medians_are_written_and_read_again():
    assert with_medians(medians_of(COMPONENTS)) == COMPONENTS
    assert medians_of(with_medians(CALM)) == CALM


def test_a_stream_starts_from_the_proxy_and_pays_the_same():
    model = PrivacyModel("1/5", SLOTS, 1)
    general = HistoryInformed(model, n_blocks=4, block_length=1, scale=100.0, days=DAYS)
    seeded = replace(general, components=with_medians(CALM))
    values = drawn(CALM, 2, seed=5)[:, SLOTS:]
    missed, spent = {}, []
    for mechanism in (general, seeded):
        runs = [
            mechanism.release(values, noise=simulated_noise(seed), first_step=SLOTS) for seed in range(15)
        ]
        missed[mechanism] = np.mean([np.abs(run.values - values) for run in runs])
        spent.append(runs[0].spends)
        state = runs[0].state
        assert np.allclose(np.exp(state["prior"])[-3], mechanism.prior_components[-2].shared)
    assert spent[0] == spent[1]
    assert missed[seeded] < missed[general]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"drift": [0.1, 0.1]}, r"component 'drift' of a prior must have 3 numbers in \[1e-09, 1e\+06\]"),
        ({"drift": [0.1, 0.0, 6.0]}, "component 'drift'"),
        ({"drift": [0.1, float("nan"), 6.0]}, "component 'drift'"),
        ({"drift": [0.1, 0.1, 1e-200]}, "component 'drift'"),
        ({"drift": [1e100, 0.1, 6.0]}, "component 'drift'"),
        ({"event": [0.3, 1.0]}, "a proxy shows the components drift, day to day"),
        ({"size": [0.3, 1.0]}, "got 'size'"),
    ],
)
def test_medians_that_are_none_are_refused(broken, said):
    with pytest.raises(ParameterError, match=said):
        with_medians({**CALM, **broken})
    with pytest.raises(ParameterError, match="component 'short memory'"):
        with_medians({name: values for name, values in CALM.items() if name != "short memory"})


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda values: values[:, : (STRETCH_DAYS - 1) * SLOTS], "at least 28 days; this has 27"),
        (
            lambda values: np.where(np.arange(values.size).reshape(values.shape) == 7, np.nan, values),
            "finite",
        ),
        (lambda values: values * np.array([[0.0], *[[1.0]] * (SERIES - 1)]), "no series of zeros"),
        (lambda values: values * 1e150, r"must be of sizes in \[1e-100, 1e\+100\]"),
        (lambda values: values * 1e-170, r"must be of sizes in \[1e-100, 1e\+100\]"),
    ],
)
def test_a_proxy_that_shows_nothing_is_refused(spoilt, said):
    with pytest.raises(ParameterError, match=said):
        learn(spoilt(np.ones((SERIES, STRETCH_DAYS * SLOTS))))
