"""The ARMA(1,1) forecast: right where the process is one, and honest where it cannot be fitted."""

import numpy as np
import pytest

from studies.evaluation.metrics import forecast


def arma(n_steps: int, phi: float, theta: float, mean: float, seed: int) -> np.ndarray:
    shocks = np.random.default_rng(seed).normal(size=n_steps + 1)
    series = np.zeros(n_steps + 1)
    for step in range(1, n_steps + 1):
        series[step] = phi * series[step - 1] + shocks[step] + theta * shocks[step - 1]
    return mean + series[1:]


@pytest.mark.slow
def test_the_forecast_is_that_of_the_process_itself():
    """h steps ahead the process expects phi^(h-1) times its next deviation; estimation errs a little."""
    series = arma(5000, 0.9, 0.4, 500.0, seed=1)
    found = forecast(series, 20)
    assert found.converged
    ahead = found.values - series.mean()
    assert ahead[1:] / ahead[:-1] == pytest.approx(np.full(19, 0.9), abs=0.03)
