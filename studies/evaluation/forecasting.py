"""The next day's forecast by ARMA(1,1), from four weeks of a stream, and how far it misses."""

import warnings
from dataclasses import dataclass

import numpy as np

from studies.evaluation.data import STEPS_PER_DAY, Values
from studies.evaluation.metrics import mean_absolute_error

LEARNED_DAYS = 28
MOST_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Forecast:
    """A forecast of a series.

    values: of the steps ahead. converged: whether the estimation said that it had.
    """

    values: Values
    converged: bool


def forecast(history: Values, n_ahead: int) -> Forecast:
    """Fit an ARMA(1,1) with a mean to a history (n_steps,) by maximum likelihood and forecast the next steps.

    The series is standardised first, which leaves the model what it is and keeps the search well scaled. An
    estimation that stops short is used as it stands and says so; one that fails altogether gives the mean.
    Source: OptStream, section 6.1.3; estimation by statsmodels' SARIMAX (state space, exact likelihood).
    """
    from statsmodels.tsa.statespace.sarimax import SARIMAX  # of the extra `evaluation`

    centre, spread = float(history.mean()), float(history.std()) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counted by `converged` instead
        try:
            model = SARIMAX((history - centre) / spread, order=(1, 0, 1), concentrate_scale=True)
            fitted = model.fit(disp=0, cov_type="none", maxiter=MOST_ITERATIONS)
            ahead = np.asarray(fitted.forecast(n_ahead), dtype=np.float64)
            converged = bool(fitted.mle_retvals["converged"])
        except (ValueError, np.linalg.LinAlgError):
            ahead, converged = np.full(n_ahead, np.nan), False
    if not np.isfinite(ahead).all():
        return Forecast(np.full(n_ahead, centre), False)
    return Forecast(ahead * spread + centre, converged)


def forecast_errors(stream: Values, truth: Values) -> dict[str, float]:
    """Forecast each day after the first four weeks from the four weeks of the stream before it.

    stream, truth: (n_days, 48); the forecasts are compared with the truth. Beside them the plain rules: the
    stream's day before, and its day of the week before. `unconverged`: the share of days.
    """
    days = range(LEARNED_DAYS, len(truth))
    forecasts = [forecast(stream[day - LEARNED_DAYS : day].reshape(-1), STEPS_PER_DAY) for day in days]
    real = truth[LEARNED_DAYS:]
    predicted = np.array([one.values for one in forecasts])
    return {
        "mae": mean_absolute_error(predicted, real),
        "yesterday": mean_absolute_error(stream[LEARNED_DAYS - 1 : -1], real),
        "week_before": mean_absolute_error(stream[LEARNED_DAYS - 7 : -7], real),
        "unconverged": float(np.mean([not one.converged for one in forecasts])),
        "mean_load": float(real.mean()),
    }
