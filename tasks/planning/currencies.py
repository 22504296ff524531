"""Which currency errs less for a plan that measures every step: epsilon, or rho at the same epsilon."""

import math
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from optstream.measurement.linear import SAMPLES
from optstream.measurement.priced import LinearSpend, answer_variances
from optstream.privacy import Spend
from tasks.config import Settings
from tasks.config.tables.mechanisms import MECHANISMS
from tasks.planning.advice.candidates import changed
from tasks.release.build_mechanism import mechanism_for

USUAL_DELTA = Fraction(1, 10**6)
"""That Gaussian noise is compared at where the configuration has none."""
MADE_OF = {"epsilon": "Laplace", "rho": "Gaussian"}
"""What measures every step, by the currency of its price."""


@dataclass(frozen=True)
class LevelNoise:
    """A level's own noise on a step, before levels are made consistent: standard deviations, root mean square
    over a period, in the unit of the readings. epsilon: of Laplace or joint noise. rho: of Gaussian noise.
    """

    level: int
    epsilon: float
    rho: float


@dataclass(frozen=True)
class Currencies:
    """The same plan in either currency, under the configured epsilon. delta: of Gaussian noise."""

    delta: Fraction
    levels: tuple[LevelNoise, ...]

    @property
    def better(self) -> str | None:
        """The currency with less noise at every level; None where they differ in that."""
        less = {"rho" if one.rho < one.epsilon else "epsilon" for one in self.levels}
        return less.pop() if len(less) == 1 else None


def compare_currencies(settings: Settings, day: date) -> Currencies | None:
    """Return the noise of a day in either currency; free, from scales alone.

    None for a plan that does not measure every step: there is none of Gaussian noise to compare with.
    """
    own = mechanism_for(settings, day)
    steps = settings.calendar.n_steps(day), settings.calendar.first_step(day)
    if not all(_is_of_each_step(spend) for spend in own.plan(*steps)):
        return None
    delta = settings.privacy.delta or USUAL_DELTA
    noises: dict[str, dict[int, float]] = {}
    for currency, name in MADE_OF.items():
        privacy = settings.privacy.model_copy(update={"delta": delta if currency == "rho" else None})
        # the configured kind of Laplace noise, where it says one
        is_own = settings.mechanism.kind.currency == currency
        section: Any = settings.mechanism if is_own else MECHANISMS[name](name=name)
        mechanism = mechanism_for(changed(settings, mechanism=section, privacy=privacy), day)
        noises[currency] = {
            spend.level: _deviation(spend, settings.model.resolution) for spend in mechanism.plan(*steps)
        }
    found = [LevelNoise(level, noises["epsilon"][level], noises["rho"][level]) for level in noises["rho"]]
    return Currencies(delta, tuple(found))


def _is_of_each_step(spend: Spend) -> bool:
    return isinstance(spend, LinearSpend) and spend.stage == SAMPLES and set(spend.weights) == {1}


def _deviation(spend: Spend, resolution: Fraction) -> float:
    assert isinstance(spend, LinearSpend)
    return math.sqrt(float(answer_variances(spend, spend.n_steps).mean())) * float(resolution)
