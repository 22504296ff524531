"""What a mechanism returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.privacy.spends import Spend
from optstream.stream import Measured


@dataclass(frozen=True, eq=False)
class Release:
    """The estimate of one period for every node, with what it cost.

    values: (n_nodes, n_steps), tree.nodes order, in the unit of the readings. measured: what it was
    computed from. spends: what drawing it cost. epsilon: what the plan, repeated for ever, costs any
    window. epsilon_alone: what these spends alone cost their worst window. state: public, for the next
    period. simulated: drawn with seeded noise, never publishable. standard_errors: of the values, their shape
    and unit, where the mechanism knows how far they may be from the truth and not only how noisy they are.
    """

    values: NDArray[np.float64]
    measured: Measured
    spends: tuple[Spend, ...]
    epsilon: Fraction
    epsilon_alone: Fraction
    state: Mapping[str, Any] | None
    simulated: bool
    standard_errors: NDArray[np.float64] | None = None
