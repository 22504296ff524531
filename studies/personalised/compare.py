"""Compares mechanisms for customers with privacy guarantees of their own, on streams of their paper's kind.

    python -m studies.personalised.compare [--data FOLDER] [--trials 5]

Customers in four classes: epsilon 0.2 to 1, windows of 40 to 160 steps. PersonalisedBudgetDistribution and
PersonalisedBudgetAbsorption (Du et al. 2025) beside BudgetDistribution and BudgetAbsorption, which must give
everybody the least epsilon in the longest window, and beside the same two run for each class by itself, whose
counts are then added up. Streams: those of the w-event literature's made-up kind (TLNS, Sin and Log: the
share of 100,000 people who are counted), and with a folder of public data the trips of New York's boroughs by
hour, each trip a customer's. In classes by a public share: which one a customer is in is drawn. Noise is
simulated; the inputs are made up or public, so errors may be printed.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optstream import BudgetAbsorption, BudgetDistribution, NoiseSource, PrivacyModel, simulated_noise
from optstream.mechanisms.w_event import PublishByDistance
from optstream.privacy import worst_window
from studies.benchmarks.harness.measure import command, parser, show, table
from studies.benchmarks.small_counts import read_trips
from studies.personalised.mechanisms import (
    Personalised,
    PersonalisedBudgetAbsorption,
    PersonalisedBudgetDistribution,
)
from studies.personalised.personal_epsilon import CustomerClass

Counts = NDArray[np.int64]
"""Customers by class, series and step."""
PEOPLE, STEPS = 100_000, 800
SHARES = (0.25, 0.25, 0.25, 0.25)
GUARANTEES = {
    "long windows for who gives more": (("0.2", 40), ("0.4", 80), ("0.6", 120), ("1", 160)),
    "one window, 40 steps": (("0.2", 40), ("0.4", 40), ("0.6", 40), ("1", 40)),
    "one epsilon, 0.2": (("0.2", 40), ("0.2", 80), ("0.2", 120), ("0.2", 160)),
}
Classes = tuple[CustomerClass, ...]
Release = Callable[[Counts, Classes, NoiseSource], NDArray[np.float64]]


def shares_counted(generator: np.random.Generator) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Give each made-up stream's name and the share of people who are counted at each step."""
    steps = np.arange(STEPS)
    yield "TLNS", np.clip(0.05 + np.cumsum(generator.normal(0, 0.0025, STEPS)), 0, 1)
    yield "Sin", 0.075 + 0.05 * np.sin(0.01 * steps)
    yield "Log", 0.25 / (1 + np.exp(-0.01 * steps))


def streams(data: Path | None, generator: np.random.Generator) -> Iterator[tuple[str, int, Counts]]:
    """Give each stream's name, how many customers it has, and its counts by class."""
    for name, shares in shares_counted(generator):
        sizes = [round(PEOPLE * share) for share in SHARES]
        yield name, PEOPLE, np.stack([generator.binomial(size, shares) for size in sizes])[:, None, :]
    if data is not None:
        tree, zones = read_trips(data, STEPS // 24)
        trips = tree.add_up(zones.astype(np.int64))[tree.levels[1].start : tree.levels[1].stop]
        classes = np.moveaxis(generator.multinomial(trips, SHARES), -1, 0)
        yield "trips by borough", int(trips.sum(0).max()), classes.astype(np.int64)


def personalised(
    kind: type[Personalised], counts: Counts, classes: Classes, noise: NoiseSource
) -> NDArray[np.float64]:
    """Release by one of the two. Raises RuntimeError where a class was charged more than its epsilon."""
    found = kind(classes).release(counts, noise=noise)
    for spends, own in zip(found.spends, classes, strict=True):
        if worst_window(spends, own.window_length).epsilon > own.epsilon:
            raise RuntimeError(f"a window of class {own.name} was charged more than its epsilon")
    return found.values


def for_all(
    kind: type[PublishByDistance], counts: Counts, classes: Classes, noise: NoiseSource
) -> NDArray[np.float64]:
    """Give everybody the least epsilon in the longest window."""
    least = min(one.epsilon for one in classes)
    model = PrivacyModel(least, max(one.window_length for one in classes), 1, resolution=1)
    return kind(model).release(counts.sum(0), noise=noise).values


def apart(
    kind: type[PublishByDistance], counts: Counts, classes: Classes, noise: NoiseSource
) -> NDArray[np.float64]:
    """Release each class by itself, for no customer is in two, and add up."""
    models = [PrivacyModel(one.epsilon, one.window_length, 1, resolution=1) for one in classes]
    each = [kind(model).release(own, noise=noise).values for model, own in zip(models, counts, strict=True)]
    total: NDArray[np.float64] = np.sum(each, axis=0)
    return total


RELEASES: dict[str, Release] = {
    "BudgetDistribution": partial(for_all, BudgetDistribution),
    "PersonalisedBudgetDistribution": partial(personalised, PersonalisedBudgetDistribution),
    "BudgetDistribution, by class": partial(apart, BudgetDistribution),
    "BudgetAbsorption": partial(for_all, BudgetAbsorption),
    "PersonalisedBudgetAbsorption": partial(personalised, PersonalisedBudgetAbsorption),
    "BudgetAbsorption, by class": partial(apart, BudgetAbsorption),
}


def main() -> None:
    """Print a table of mean absolute errors for each set of guarantees."""
    given = parser(__doc__, data=False, trials=5).parse_args()
    generator = np.random.default_rng(0)
    known = list(streams(given.data, generator))
    for title, guarantees in GUARANTEES.items():
        columns = [f"{name}, mean {counts.sum(0).mean():,.0f}" for name, _, counts in known]
        found = table(["mechanism"], columns, title=f"mean absolute error, {title}")
        for name, release in RELEASES.items():
            cells = []
            for number, (_, people, counts) in enumerate(known):
                classes = tuple(
                    CustomerClass(
                        f"epsilon {epsilon}, {window} steps", round(people * share), epsilon, window
                    )
                    for (epsilon, window), share in zip(guarantees, SHARES, strict=True)
                )
                errors = [
                    np.abs(release(counts, classes, simulated_noise((number, trial))) - counts.sum(0)).mean()
                    for trial in range(given.trials)
                ]
                cells.append(f"{np.mean(errors):,.0f}")
            found.add_row(name, *cells)
        show(found)


if __name__ == "__main__":
    command(main)
