"""Prior medians from a public proxy: what it shows is found, sizes and events stay, nothing is spent."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.mechanisms import HistoryInformed
from optstream.mechanisms.history_informed import with_medians
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream.public_days import PublicDays

SLOTS = 24
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


def test_a_stream_starts_from_the_proxy_and_pays_the_same():
    model = PrivacyModel("1/5", SLOTS, 1)
    general = HistoryInformed(model, n_blocks=4, block_length=1, scale=100.0, days=DAYS)
    seeded, values, found = replace(general, components=with_medians(CALM)), np.full((6, SLOTS), 100.0), []
    for mechanism in (general, seeded):
        found.append(mechanism.release(values, noise=simulated_noise(1), first_step=SLOTS))
        prior = np.exp(found[-1].state["prior"])
        assert np.allclose(prior[-3], mechanism.prior_components[-2].shared)
    assert found[0].spends == found[1].spends
    assert not np.allclose(found[0].values, found[1].values)


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
