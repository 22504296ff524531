"""Shows what a public proxy is worth when a stream of HistoryInformed begins, beside general prior medians.

    python -m studies.benchmarks.history_proxy --data FOLDER [--proxy FIRST LAST]
        [--begins DATE ...] [--trials 3]

The load of the 12 French regions, half-hours by day, w = 48, alpha 1 MW, all of epsilon for the regions. The
medians are learned from the days of --proxy; then a stream of 28 days begins, with them and without. Mean
absolute errors in MW a step. The load is public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.mechanisms import HistoryInformed
from optstream.mechanisms.history_informed import learn_from_public
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays
from studies.benchmarks.harness.measure import a_day, command, parser, show, table, tracked
from studies.benchmarks.inputs.public_data import load_of_days
from studies.evaluation.build import KNOWN_LOAD_MW
from studies.papers.data import CALENDAR, LOAD, read_load
from tasks.config.holidays import public_holidays

N_DAYS, WEEK = 28, 7
Values = NDArray[np.float64]


def errors_of(mechanism: HistoryInformed, load: Values, first_step: int, trials: int) -> Values:
    """Return the mean absolute error of each day of the load, (n_days,), over so many trials."""
    missed = np.zeros((trials, len(load)))
    for trial in range(trials):
        state = None
        for number, values in enumerate(load):
            noise, step = simulated_noise([trial, number]), first_step + number * CALENDAR.slots
            released = mechanism.release(values, noise=noise, first_step=step, state=state)
            missed[trial, number] = np.abs(np.maximum(released.values, 0.0) - values).mean()
            state = released.state
    return np.asarray(missed.mean(axis=0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every epsilon and beginning, with the proxy and without, and print."""
    options = parser(__doc__, data=True, epsilon=["1", "0.1", "0.01"], trials=3)
    options.add_argument("--proxy", nargs=2, type=a_day, default=[date(2013, 1, 2), date(2013, 12, 31)])
    options.add_argument("--begins", nargs="+", type=a_day, default=[date(2016, 2, 1), date(2016, 6, 1)])
    given = options.parse_args(arguments)
    _, proxy = read_load(given.data / LOAD, *given.proxy)
    years = range(given.proxy[0].year, max(given.begins).year + 1)
    days = PublicDays.from_calendar(CALENDAR, public_holidays("FR", years))
    public = Measured.from_public(np.concatenate(list(proxy), axis=1), [])
    learned = learn_from_public(replace(public, first_step=CALENDAR.first_step(given.proxy[0])), days)
    rows = table(["ε", "begins", "prior", "m x L"], ["first day", "first week", "days 8 to 28"])
    cases = [(epsilon, begins) for epsilon in given.epsilon for begins in given.begins]
    for epsilon, begins in tracked(cases):
        _, load = load_of_days(given.data, begins, N_DAYS)
        general = HistoryInformed(PrivacyModel(epsilon, 48, 1), scale=KNOWN_LOAD_MW, days=days)
        for name, mechanism in (("general", general), ("proxy", replace(general, components=learned))):
            missed = errors_of(mechanism, load, CALENDAR.first_step(begins), given.trials)
            means = (missed[0], missed[:WEEK].mean(), missed[WEEK:].mean())
            blocks = f"{mechanism.blocks.n_blocks} x {mechanism.blocks.length}"
            rows.add_row(epsilon, str(begins), name, blocks, *(f"{mean:.1f}" for mean in means))
    show(rows)


if __name__ == "__main__":
    command(main)
