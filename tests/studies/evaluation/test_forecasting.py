"""The ARMA(1,1) forecast: right where the process is one, and honest where it cannot be fitted."""

import numpy as np
import pytest

from studies.evaluation.forecasting import LEARNED_DAYS, forecast, forecast_errors


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.full(1344, 7.0), np.r_[np.zeros(1343), np.nan]])
def test_what_cannot_be_fitted_gives_the_mean_and_says_so(bad):
    found = forecast(bad, 3)
    assert not found.converged or np.allclose(found.values, 7.0)
    if np.isfinite(bad).all():
        assert np.allclose(found.values, bad.mean())


def test_errors_are_taken_against_the_truth_and_beside_plain_rules():
    n_days = LEARNED_DAYS + 2
    truth = arma(n_days * 48, 0.8, 0.1, 100.0, seed=2).reshape(n_days, 48)
    stream = truth + 5.0
    found = forecast_errors(stream, truth)
    assert found["yesterday"] == pytest.approx(np.abs(stream[-3:-1] - truth[-2:]).mean())
    assert found["week_before"] == pytest.approx(np.abs(stream[-9:-7] - truth[-2:]).mean())
    assert found["mae"] == pytest.approx(5.0, abs=1.5)  # the stream's mean is 5 too high
    assert found["unconverged"] == 0.0
