"""Shows what public temperature is worth to HistoryInformed, and what a wrong covariate costs it.

    python -m studies.benchmarks.history.covariates --data FOLDER [--epsilon 0.1 0.01] [--month 2 6 10]
        [--trials 3] [--kind temperature ...] [--joint]

The load of the 12 French regions of 2016, half-hours by day, w = 48, alpha 1 MW, all of epsilon for the
regions, with Laplace or joint noise: a month after 28 days of own releases. Mean absolute errors in MW a
step, beside those without. The load is public, so errors may be printed. Noise is simulated, the same with
and without.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream import PrivacyModel
from optstream.mechanisms import HistoryInformed
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from studies.benchmarks.harness.measure import command, parser, show, table, tracked
from studies.benchmarks.history_proxy import errors_of
from studies.evaluation.build import KNOWN_LOAD_MW
from studies.papers.data import CALENDAR, LOAD, TEMPERATURE, read_load, read_temperature
from tasks.config.holidays import public_holidays

LEARNED_DAYS = 28
Values = NDArray[np.float64]


def _hostile(values: Values) -> Values:
    """Temperature of which each third week says the opposite, with a few values beyond all measure."""
    days = np.arange(values.shape[1])
    turned = np.where((days // 7) % 3 == 1, 2.0 * values.mean(axis=1, keepdims=True) - values, values)
    return np.asarray(np.where(days % 23 == 5, 1e12, turned))


KINDS: dict[str, Callable[[Values], Values]] = {
    "temperature": lambda values: values,
    "one for all": lambda values: values.mean(axis=0, keepdims=True),
    "of 120 days before": lambda values: np.roll(values, 120, axis=1),
    "coin": lambda values: np.random.default_rng(0).normal(size=values.shape),
    "walk": lambda values: np.random.default_rng(0).normal(size=(1, values.shape[1])).cumsum(axis=1),
    "constant": lambda values: np.full_like(values, 7.0),
    "hostile": _hostile,
    "late each third day": lambda values: np.where(np.arange(values.shape[1]) % 3 == 0, np.nan, values),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every epsilon, month and covariate, and print."""
    options = parser(__doc__, data=True, epsilon=["0.1", "0.01"], month=[2, 6, 10], trials=3)
    options.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    options.add_argument("--joint", action="store_true", help="with joint noise, each customer in one region")
    given = options.parse_args(arguments)
    days = PublicDays.from_calendar(CALENDAR, public_holidays("FR", [2015, 2016]))
    rows = table(["ε", "month", "covariate"], ["MW a step", "beside none"])
    cases = [(epsilon, month) for epsilon in given.epsilon for month in given.month]
    for epsilon, month in tracked(cases):
        first = date(2016, month, 1)
        begins, last = first - timedelta(LEARNED_DAYS), (first + timedelta(31)).replace(day=1) - timedelta(1)
        names, load = read_load(given.data / LOAD, begins, last)
        since, values = read_temperature(given.data / TEMPERATURE, names)
        none = HistoryInformed(PrivacyModel(epsilon, 48, 1), scale=KNOWN_LOAD_MW, days=days)
        if given.joint:
            one_region: dict[str, Any] = {
                "period_lengths": (48,),
                "n_nodes": len(names),
                "declared_leaves": 1,
            }
            none = replace(none, noise="joint", **one_region)
        run = partial(errors_of, load=load, first_step=CALENDAR.first_step(begins), trials=given.trials)
        plain = run(none)[LEARNED_DAYS:].mean()
        rows.add_row(epsilon, str(month), "none", f"{plain:.1f}", "")
        for kind in given.kind:
            one = Covariate(kind, (since - ORIGIN).days, KINDS[kind](values))
            found = run(replace(none, covariates=(one,)))[LEARNED_DAYS:].mean()
            rows.add_row(epsilon, str(month), kind, f"{found:.1f}", f"{found / plain - 1:+.1%}")
    show(rows)


if __name__ == "__main__":
    command(main)
