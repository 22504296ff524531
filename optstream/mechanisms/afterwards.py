"""What a mechanism may say of a period once later ones are measured, or of several together; free."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from optstream.mechanisms.period_release import Release
from optstream.stream import Measured


class Afterwards(ABC):
    """The part of `Mechanism` that looks beyond one period. Here it has nothing to say.

    Attributes:
        revises: Whether it learns more of a period from what is measured after it (`revise`).
        has_self_check: Whether it tells days that were unlike all others (`events`).
        days_independent: Whether the errors of one period's estimate are independent of another's.
    """

    revises: ClassVar[bool] = False
    has_self_check: ClassVar[bool] = False
    days_independent: ClassVar[bool] = True

    @abstractmethod
    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements; free.

        Args:
            measured: Of one period.

        Returns:
            As `Mechanism.estimate`.
        """

    def events(self, measured: Measured) -> tuple[int, ...]:
        """Return the days that were found unlike all others; free.

        Args:
            measured: Of one period.

        Returns:
            The days' numbers on the public clock, rising; () for a mechanism without a self-check.

        Raises:
            ParameterError: As `estimate`.
        """
        return ()

    def measured(self, measured: Measured) -> bool:
        """Return whether these are measurements of which `revise` makes a new estimate.

        Args:
            measured: Of one period.

        Returns:
            False for a mechanism that does not revise.
        """
        return False

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return a period estimated again, from what was measured after it too; free.

        Args:
            measured: Of the period; must be `measured` by this mechanism where it revises.
            later: The following periods' measurements, in order, likewise.

        Returns:
            The new estimate, with the spends of `measured`; the first one where nothing is learned from
            later periods.

        Raises:
            ParameterError: As `estimate`.
        """
        return self.estimate(measured)
