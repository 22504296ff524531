"""Uniform: the w-event model's name for noise on every step."""

from dataclasses import dataclass
from typing import ClassVar

from optstream.mechanisms.laplace import Laplace


@dataclass(frozen=True)
class Uniform(Laplace):
    """epsilon divided evenly over the steps of a window, every step published.

    The same parameters, measurements, noise and cost as `Laplace`, under the name by which the w-event
    literature compares with it; kept so that a comparison can be read beside its paper.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2.

    Args:
        model: As for `Laplace`.
        noise: As for `Laplace`.
        period_lengths: As for `Laplace`.
        n_nodes: As for `Laplace`.
        declared_leaves: As for `Laplace`.

    Raises:
        ParameterError: As `Laplace`.
    """

    also_called: ClassVar[str | None] = "Laplace"
