"""The noise of a release, as its statement tells it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import Spend, StepSpend


@dataclass(frozen=True)
class NoiseScale:
    """The noise of one measurement.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "features/day").
        scale: Of the Laplace noise, in units of the model's resolution, exact; None where one scale does not
            describe the measurement.
    """

    level: int
    stage: str
    scale: Fraction | None

    def to_document(self, resolution: Fraction) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            resolution: Of the model, in the unit of the values.

        Returns:
            `scale` in the unit of the values and `scale_units` in units of the resolution, both exact, and
            the rest.
        """
        scale = None if self.scale is None else str(self.scale * resolution)
        units = None if self.scale is None else str(self.scale)
        return {"level": self.level, "stage": self.stage, "scale": scale, "scale_units": units}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "NoiseScale":
        """Read back what `to_document` wrote.

        Args:
            document: With the keys level, stage and scale_units.

        Returns:
            The scale.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A value is no number.
            ZeroDivisionError: A denominator is 0.
        """
        units = document["scale_units"]
        return cls(
            int(document["level"]), str(document["stage"]), None if units is None else exact_from_text(units)
        )


def noise_scales(spends: Iterable[Spend]) -> tuple[NoiseScale, ...]:
    """Return the distinct noise scales of a release's spends.

    Args:
        spends: What the release is charged.

    Returns:
        Scales in the order of the spends.
    """
    scales = (
        NoiseScale(spend.level, spend.stage, spend.scale if _has_one_scale(spend) else None)
        for spend in spends
    )
    return tuple(dict.fromkeys(scales))


def _has_one_scale(spend: Spend) -> TypeGuard[StepSpend]:
    """Return whether every answer has the spend's own scale: a fraction of a weight stands for a larger
    one.
    """
    return isinstance(spend, StepSpend) and all(weight == int(weight) for weight in spend.weights)
