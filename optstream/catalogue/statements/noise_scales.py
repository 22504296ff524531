"""The noise of a release, as its statement tells it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeGuard

from optstream.privacy import GaussianSpend, JointSpend
from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import Spend, StepSpend

GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True)
class NoiseScale:
    """The noise of one measurement.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "features/day").
        scale: Of the noise, in units of the model's resolution, exact; None where one scale does not describe
            the measurement.
        joint_over: How many measurements share joint noise at most; None for Laplace noise.
        n_nodes: Of the level, with joint noise; else None.
        is_gaussian: Whether the noise is discrete Gaussian, and `scale` its sigma.
    """

    level: int
    stage: str
    scale: Fraction | None
    joint_over: int | None = None
    n_nodes: int | None = None
    is_gaussian: bool = False

    @property
    def needs_one_leaf(self) -> bool:
        """Whether it is priced for customers whose readings of a period lie in one leaf (Lemma 16)."""
        return self.n_nodes is not None and self.n_nodes > 1

    def to_document(self, resolution: Fraction) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            resolution: Of the model, in the unit of the values.

        Returns:
            `scale` in the unit of the values and `scale_units` in units of the resolution, both exact, and
            the rest; `joint_over` and `n_nodes` for joint noise alone, `law` for Gaussian noise alone.
        """
        scale = None if self.scale is None else str(self.scale * resolution)
        units = None if self.scale is None else str(self.scale)
        document = {"level": self.level, "stage": self.stage, "scale": scale, "scale_units": units}
        if self.is_gaussian:
            return document | {"law": GAUSSIAN}
        return document if self.joint_over is None else document | self._groups

    @property
    def _groups(self) -> dict[str, Any]:
        """The keys of joint noise; its words are for readers, and not read back."""
        words = f"joint over {self.joint_over} {'steps' if self.stage == 'samples' else self.stage}"
        return {"noise": words, "joint_over": self.joint_over, "n_nodes": self.n_nodes}

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
        scale = None if units is None else exact_from_text(units)
        is_gaussian = document.get("law") == GAUSSIAN
        found = cls(int(document["level"]), str(document["stage"]), scale, is_gaussian=is_gaussian)
        if "joint_over" not in document:
            return found
        return replace(found, joint_over=int(document["joint_over"]), n_nodes=int(document["n_nodes"]))


def noise_scales(spends: Iterable[Spend]) -> tuple[NoiseScale, ...]:
    """Return the distinct noise scales of a release's spends.

    Args:
        spends: What the release is charged.

    Returns:
        Scales in the order of the spends.
    """
    return tuple(dict.fromkeys(_noise_of(spend) for spend in spends))


def _noise_of(spend: Spend) -> NoiseScale:
    if isinstance(spend, JointSpend):
        largest = max((len(group) for group in spend.groups), default=0)
        return NoiseScale(spend.level, spend.stage, spend.scale, largest, spend.n_nodes)
    if isinstance(spend, GaussianSpend):
        return NoiseScale(spend.level, spend.stage, spend.scale, is_gaussian=True)
    return NoiseScale(spend.level, spend.stage, spend.scale if _has_one_scale(spend) else None)


def _has_one_scale(spend: Spend) -> TypeGuard[StepSpend]:
    """Return whether every answer has the spend's own scale: a part of a weight stands for a larger one."""
    return isinstance(spend, StepSpend) and all(weight == int(weight) for weight in spend.weights)
