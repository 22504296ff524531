"""What a delta gains: a step's error by Laplace, joint and Gaussian noise of one epsilon.

    python -m studies.benchmarks.noise.currencies [--data FOLDER] [--periods 60]

The load of the 12 French regions in 2016, or, without a folder, series of random steps: the noise is the same
on every series. A day of half-hours is period and window, alpha is 1 MW. All of the budget goes to the series
themselves; then to four products of one budget, each with a quarter. Beside them two mechanisms that measure
few steps, whose errors are no noise alone, and OpenDP's Gaussian noise of the same sigma, with its time.
Noise is simulated in the first table, and that of publication in the second.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream import AggregationTree, EquallySpaced, OptStream, PrivacyModel, secure_noise, simulated_noise
from optstream.mechanisms import Gaussian, Laplace, Sample
from optstream.mechanisms.base import Mechanism
from optstream.noise import discrete_gaussian
from optstream.privacy import Spend, worst_window
from studies.benchmarks.harness.measure import command, parser, show, table, timed
from studies.benchmarks.inputs.public_data import load_of_2016

EPSILONS = ("1", "0.1", "0.01")
DELTA = "1e-6"
WINDOW, ALPHA, RESOLUTION = 48, "1", "0.001"
PRODUCTS = 4
DRAWS = 50_000

Values = NDArray[np.float64]
Make = Callable[[PrivacyModel, PrivacyModel], Mechanism]
"""Of a model in epsilon, and the same in rho."""


def _points(model: PrivacyModel) -> Mechanism:
    """Return OptStream with ten points of a window, all of epsilon for the series themselves."""
    names = [str(number) for number in range(12)]
    tree = AggregationTree.from_parents({"all": None, **dict.fromkeys(names, "all")})
    return OptStream(
        model, tree, sampling=EquallySpaced(10), features=[], level_shares=["0", "1"], lower_bound=None
    )


EVERY_STEP: dict[str, Make] = {
    "Laplace noise": lambda pure, _: Laplace(pure, noise="laplace"),
    "joint noise": lambda pure, _: Laplace(pure, "joint", (WINDOW,), 12, 1),
    "Gaussian noise": lambda _, told: Gaussian(told),
}
FEW_STEPS: dict[str, Make] = {
    "OptStream, 10 points": lambda pure, _: _points(pure),
    "Sample": lambda pure, _: Sample(pure),
}


def models(epsilon: str, share: Fraction = Fraction(1)) -> tuple[PrivacyModel, PrivacyModel]:
    """Return the part of a guarantee that one of several products has, in epsilon and in rho."""
    wholes = [PrivacyModel(epsilon, WINDOW, ALPHA, RESOLUTION, delta=delta) for delta in (0, DELTA)]
    pure, told = (whole.with_budget(share * whole.budget) for whole in wholes)
    return pure, told


def error_of(mechanism: Mechanism, periods: Values, seed: int) -> float:
    """Return the mean absolute error of a step; periods (n_periods, n_series, n_steps).

    Raises AssertionError for a history that costs more than its plan, or a plan more than the budget.
    """
    noise, state, missed = simulated_noise(seed), None, []
    spends = list[Spend]()
    for number, values in enumerate(periods):
        release = mechanism.release(values, noise=noise, first_step=number * WINDOW, state=state)
        state = release.state
        spends += release.spends
        missed.append(np.abs(release.values[-len(values) :] - values).mean())
    assert worst_window(spends, WINDOW).epsilon <= mechanism.epsilon <= mechanism.model.budget
    return float(np.mean(missed))


def random_steps(n_periods: int) -> Values:
    """Return 12 series of random steps."""
    steps = np.random.default_rng(0).normal(0, 50, (12, n_periods * WINDOW))
    return np.stack(np.split(5000 + steps.cumsum(axis=1), n_periods, axis=1))


def opendps(sigma: float, size: int) -> Values:
    """Return OpenDP's draws, in units."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="float")
    drawn = dp.m.make_gaussian(*space, scale=sigma)([0] * size)
    return np.array(drawn, dtype=np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the errors."""
    options = parser(__doc__, data=False)
    options.add_argument("--periods", type=int, default=60, help="days (default: 60)")
    options.add_argument("--seed", type=int, default=2016, help="of the simulated noise (default: 2016)")
    given = options.parse_args(arguments)
    periods = load_of_2016(given.data).values[: given.periods] if given.data else random_steps(given.periods)
    show(f"{len(periods)} days of {'the load' if given.data else 'random steps'}, delta {DELTA}")
    errors = table(["what is measured"], [f"error at epsilon {epsilon}, MW" for epsilon in EPSILONS])
    quarter = Fraction(1, PRODUCTS)
    for name, make in {**EVERY_STEP, **FEW_STEPS}.items():
        found = [error_of(make(*models(epsilon)), periods, given.seed) for epsilon in EPSILONS]
        errors.add_row(f"one product: {name}", *(f"{error:,.4g}" for error in found))
    for name, make in EVERY_STEP.items():
        found = [error_of(make(*models(epsilon, quarter)), periods, given.seed) for epsilon in EPSILONS]
        errors.add_row(f"each of {PRODUCTS} products: {name}", *(f"{error:,.4g}" for error in found))
    show(errors)
    samplers = table(["noise of the same sigma, epsilon 1"], ["mean absolute, MW", "µs a sample"])
    sigma = float(Gaussian(models("1")[1]).sigma)
    for name, draw in {
        "ours": lambda: discrete_gaussian(secure_noise(), sigma, (DRAWS,)),
        "OpenDP": lambda: opendps(sigma, DRAWS),
    }.items():
        taken, drawn = timed(draw)
        mean = float(np.abs(drawn).mean()) * float(RESOLUTION)
        samplers.add_row(name, f"{mean:.4g}", f"{1e6 * taken.processor / DRAWS:.2f}")
    show(samplers)


if __name__ == "__main__":
    command(main)
