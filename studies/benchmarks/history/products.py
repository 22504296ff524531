"""Measures what one product says of another of the same people, and what a known sum of them adds.

    python -m studies.benchmarks.history.products --data FOLDER [--epsilon 0.1] [--regions 4] [--days 14]
        [--trials 5] [--only split "made up" unrelated sum]

Pairs of products of some French regions by half-hours, w = 48, alpha 1 MW, half of epsilon each, after 28
days of own releases: the load split in two by a made-up share that varies by region, hour, weekday and day
("split"); a made-up pair whose days rise and fall together ("made up"); and two that have nothing to do with
each other, the load and another season's ("unrelated"). Mean absolute errors of the second in MW a step:

- "apart": each by HistoryInformed alone;
- "covariate": the first one's published daily means are a public covariate of the second, as with
  [[covariates]] of a published folder;
- "one model": the peer, a coregionalised Gaussian process over the noisy measurements of both, region by
  region, in which both share a part of each component as strong as the measurements say (`HistoryInformed` of
  two series);
- "one model of all": the same over all regions of both.

"sum": the load published beside its two parts, a third of epsilon each: errors of all three as published, and
after `optstream combine`, which uses that one is the sum of the others, and root mean square errors beside
the standard errors that follow if those of the streams are independent.

Means over trials, and of the change beside "apart" the least and the most. Noise is simulated; all series are
public or made up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.known_sum import agreeing, known_sum_weights, variances_of_agreeing
from optstream.mechanisms import HistoryInformed, Laplace
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from studies.benchmarks.harness.measure import command, parser, show, table
from studies.evaluation.build import KNOWN_LOAD_MW
from studies.papers.data import CALENDAR, LOAD, read_load
from tasks.covariates.public_holidays import public_holidays

KINDS = ("sum", "made up", "split", "unrelated")
LEARNED_DAYS = 28
FIRST = date(2016, 2, 1)
SEASON = 182
Values = NDArray[np.float64]
"""(n_days, n_regions, n_steps)."""
HOURS = 2.0 * np.pi * (np.arange(48) + 0.5) / 48.0


def split(load: Values, seed: int = 27) -> tuple[Values, Values]:
    """Return two parts of a load, by a share that differs by region, hour, weekday and wanders by day."""
    generator, (n_days, n_regions, _) = np.random.default_rng(seed), load.shape
    base = generator.uniform(0.3, 0.5, (1, n_regions, 1))
    wanders = generator.normal(0.0, 0.004, (n_days, n_regions)).cumsum(axis=0)[:, :, None]
    workday = np.array([(_begins().weekday() + day) % 7 < 5 for day in range(n_days)])
    share = base + wanders - 0.08 * np.cos(HOURS) + 0.06 * workday[:, None, None]
    share = np.clip(share, 0.05, 0.95)
    return load * share, load * (1.0 - share)


def together(load: Values, seed: int = 27) -> tuple[Values, Values]:
    """Return a made-up pair: regions whose days rise and fall by 10 %, by the same in both products."""
    generator, (n_days, n_regions, _) = np.random.default_rng(seed), load.shape
    moves = np.zeros((n_days, n_regions))
    for day in range(1, n_days):
        moves[day] = 0.6 * moves[day - 1] + generator.normal(0.0, 0.08, n_regions)
    own = 0.9 * moves + generator.normal(0.0, 0.02, moves.shape)
    first = 3000.0 * (1.0 + 0.2 * np.sin(HOURS) + moves[:, :, None])
    return first, 2000.0 * (1.0 + 0.3 * np.cos(HOURS) + own[:, :, None])


def _begins() -> date:
    return FIRST - timedelta(LEARNED_DAYS)


def released(
    mechanism: Any,
    values: Values,
    seed: int,
    first: Values | None = None,
    errors: list[Values] | None = None,
) -> Values:
    """Return what is published of these days. first: published values of the other product, a covariate.
    errors: where the stated standard errors are added.
    """
    state, found = None, []
    for number, day in enumerate(values):
        used = mechanism
        if first is not None:
            means = first[: number + 1].mean(axis=2).T
            used = replace(mechanism, covariates=(Covariate("first", (_begins() - ORIGIN).days, means),))
        step, noise = (
            CALENDAR.first_step(_begins()) + number * CALENDAR.slots,
            simulated_noise([seed, number]),
        )
        release = used.release(day, noise=noise, first_step=step, state=state)
        found.append(np.maximum(release.values, 0.0))
        state = release.state
        if errors is not None:
            stated = release.standard_errors
            errors.append(release.noise_standard_errors if stated is None else stated)
    return np.array(found)


def error(found: Values, values: Values) -> float:
    """Return the mean absolute error of the days after those that are learned from."""
    return float(np.abs(found - values)[LEARNED_DAYS:].mean())


def mechanism_of(epsilon: float, days: PublicDays) -> HistoryInformed:
    """Return HistoryInformed for a product's part of epsilon."""
    return HistoryInformed(PrivacyModel(f"{epsilon:.6f}", 48, 1), scale=KNOWN_LOAD_MW / 2.0, days=days)


def of_pair(
    pair: tuple[Values, Values], mechanism: HistoryInformed, trial: int
) -> Iterator[tuple[str, float]]:
    """Yield the second product's error by each way, "apart" first."""
    (one, other), seed = pair, 100 * trial
    yield "apart", error(released(mechanism, other, seed + 2), other)
    yield "covariate", error(released(mechanism, other, seed + 2, released(mechanism, one, seed + 1)), other)
    both = released(mechanism, np.concatenate(pair, axis=1), seed + 3)
    yield "one model of all", error(both[:, one.shape[1] :], other)
    pairs = [
        released(mechanism, np.stack([one[:, region], other[:, region]], axis=1), seed + 10 + region)
        for region in range(one.shape[1])
    ]
    yield "one model", float(np.mean([error(each[:, 1], other[:, at]) for at, each in enumerate(pairs)]))


def of_sum(load: Values, mechanism: Any, trial: int) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield each product's error as published and combined, and the root mean squares of both beside their
    stated standard errors: the load first, then its two parts.
    """
    products, errors = np.stack([load, *split(load)]), list[Values]()
    published = np.stack(
        [
            released(mechanism, values, 20 * (1 + trial) + at, errors=errors)
            for at, values in enumerate(products)
        ]
    )
    variances = np.array(errors).reshape(published.shape) ** 2
    combined, stated = np.empty_like(published), np.empty_like(published)
    for day in range(len(load)):  # as from a folder of that day alone
        weights = known_sum_weights(variances[:, day])
        combined[:, day] = agreeing(published[:, day], weights)
        stated[:, day] = np.sqrt(variances_of_agreeing(variances[:, day], weights))
    own, beside = (
        np.sqrt((((found - products) / errors)[:, LEARNED_DAYS:] ** 2).mean(axis=(1, 2, 3))).tolist()
        for found, errors in ((published, np.sqrt(variances)), (combined, stated))
    )
    for at, name in enumerate(("load", "first", "second")):
        values = products[at]
        yield name, error(published[at], values), error(combined[at], values), own[at], beside[at]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every pair, and print."""
    options = parser(__doc__, data=True, epsilon=[0.1], regions=4, days=14, trials=1)
    options.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    given = options.parse_args(arguments)
    days = PublicDays.from_calendar(CALENDAR, public_holidays("FR", [2015, 2016]))

    def read(back: int) -> Values:
        last = FIRST + timedelta(given.days - 1)
        _, load = read_load(given.data / LOAD, _begins() - timedelta(back), last - timedelta(back))
        return np.array(load)[:, : given.regions]

    load = read(0)
    pairs: dict[str, Callable[[], tuple[Values, Values]]] = {
        "split": partial(split, load),
        "made up": partial(together, load),
        "unrelated": lambda: (split(load)[0], split(read(SEASON), 5)[1]),
    }
    rows = table(["ε", "series", "way"], ["MW a step", "beside apart", "least", "most", "beside stated"])

    def add(
        epsilon: float,
        series: str,
        way: str,
        missed: Sequence[float],
        apart: Sequence[float],
        stated: str = "",
    ) -> None:
        beside = [one / other - 1 for one, other in zip(missed, apart, strict=True)]
        told = [f"{one:+.1%}" for one in (np.mean(beside), min(beside), max(beside))]
        rows.add_row(f"{epsilon:g}", series, way, f"{np.mean(missed):.1f}", *told, stated)

    for epsilon, name in product(given.epsilon, given.only):
        if name == "sum":
            kinds = {
                "HistoryInformed": mechanism_of(epsilon / 3.0, days),
                "Laplace": Laplace(PrivacyModel(f"{epsilon / 3.0:.6f}", 48, 1)),
            }
            for kind, mechanism in kinds.items():
                runs = [tuple(of_sum(load, mechanism, trial)) for trial in range(given.trials)]
                for same in zip(*runs, strict=True):  # the same product of every trial
                    names, apart, made, own, beside = zip(*same, strict=True)
                    add(epsilon, f"{names[0]}, {kind}", "apart", apart, apart, f"{np.mean(own):.2f}")
                    add(epsilon, f"{names[0]}, {kind}", "combined", made, apart, f"{np.mean(beside):.2f}")
            continue
        tries = [
            dict(of_pair(pairs[name](), mechanism_of(epsilon / 2.0, days), trial))
            for trial in range(given.trials)
        ]
        for way in tries[0]:
            add(epsilon, name, way, [one[way] for one in tries], [one["apart"] for one in tries])
    show(rows)


if __name__ == "__main__":
    command(main)
