"""How far a release misses the truth: plain functions of two arrays, as private as both."""

import warnings
from dataclasses import dataclass

import numpy as np

from optstream.estimation.error_terms import BAND
from optstream.stream import AggregationTree
from studies.evaluation.data import STEPS_PER_DAY, Values


def step_errors(released: Values, truth: Values) -> dict[str, float]:
    """Return mean, median and 95th percentile of the absolute error a step, in the unit of the readings.

    released, truth: of one shape; every entry counts alike.
    """
    missed = np.abs(released - truth)
    middle, high = np.percentile(missed, [50, 95])
    return {"mae": float(missed.mean()), "median": float(middle), "p95": float(high)}


def mean_absolute_error(released: Values, truth: Values) -> float:
    """Return the mean absolute error a step, in the unit of the readings."""
    return float(np.abs(released - truth).mean())


def covered(released: Values, truth: Values, errors: Values) -> float:
    """Return the share of values that lie inside their bands of 95 %: 1.96 standard errors to both sides."""
    return float((np.abs(released - truth) <= BAND * errors).mean())


def relative_error(released: Values, truth: Values, floor: float) -> float:
    """Return the mean over steps of |released - truth| / max(|truth|, floor).

    floor: delta, the sanity bound of FAST's Definition 2, whose value its report does not state.
    """
    return float((np.abs(released - truth) / np.maximum(np.abs(truth), floor)).mean())


def violation(series: Values, tree: AggregationTree) -> float:
    """Return the most by which a node differs from the sum of its children, over periods and steps.

    series: (…, n_nodes, n_steps), tree.nodes order.
    """
    parents = np.array(tree.parents)
    gaps = [
        np.abs(series[..., node, :] - series[..., np.flatnonzero(parents == node), :].sum(axis=-2)).max()
        for node in sorted(set(tree.parents) - {-1})
    ]
    return float(max(gaps, default=0.0))


# The next day's forecast by ARMA(1,1), from four weeks of a stream, and how far it misses.

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
