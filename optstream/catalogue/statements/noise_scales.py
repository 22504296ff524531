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

    level: depth in the tree, root 0. stage: what was measured ("samples", "features/day").
    scale: of the Laplace noise, in units of the model's resolution; None where one scale does not describe
        the measurement.
    """

    level: int
    stage: str
    scale: Fraction | None

    def to_document(self, resolution: Fraction) -> dict[str, Any]:
        """Return a JSON-ready document: `scale` in the unit of the values, `scale_units` counting the
        resolution, exact.
        """
        scale = None if self.scale is None else str(self.scale * resolution)
        units = None if self.scale is None else str(self.scale)
        return {"level": self.level, "stage": self.stage, "scale": scale, "scale_units": units}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "NoiseScale":
        """Return what `to_document` wrote, read back. Raises ValueError, KeyError or TypeError if it is
        something else.
        """
        units = document["scale_units"]
        return cls(
            int(document["level"]), str(document["stage"]), None if units is None else exact_from_text(units)
        )


def noise_scales(spends: Iterable[Spend]) -> tuple[NoiseScale, ...]:
    """Return the distinct noise scales of a release's spends, in their order."""
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
