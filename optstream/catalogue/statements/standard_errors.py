"""The two columns that say how sure the published values are, and what they leave out, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from optstream.errors import ParameterError

Known = Literal["all", "some", "none"]


def error_columns(value_column: str) -> tuple[str, str]:
    """Return the names of the two columns of standard errors beside the values, in the same unit.

    Args:
        value_column: Name of the published values.

    Returns:
        The names of the noise's and of the posterior's standard errors.
    """
    return f"{value_column}_noise_se", f"{value_column}_se"


@dataclass(frozen=True)
class StandardErrors:
    """Of which values a release knows its standard errors; a value without one has null there.

    Attributes:
        noise: What the noise did to the estimate: known of "all", "some" or "none".
        posterior: How far the estimate is taken to be from the truth, noise and all, by a mechanism's own
            model or because every step was measured: known of "all", "some" or "none".

    Raises:
        ParameterError: A field is anything else.
    """

    noise: Known
    posterior: Known

    def __post_init__(self) -> None:
        for name in ("noise", "posterior"):
            if (known := getattr(self, name)) not in get_args(Known):
                raise ParameterError(
                    f"{name} of StandardErrors must be one of {get_args(Known)}; got {known!r}"
                )

    def in_words(self, value_column: str) -> str:
        """Return what the two columns are, and what they are not.

        Args:
            value_column: Name of the published values.

        Returns:
            Sentences for data users.
        """
        of_noise, of_model = error_columns(value_column)
        if self.noise == "none":
            told = (
                f"{of_noise} is null: the estimate is not a linear function of what was measured, so what "
                "the noise did to it is not known in closed form."
            )
        else:
            told = (
                f"{of_noise} is the standard deviation of what the noise did to a node's estimate, from the "
                "noise scales alone, given which points, blocks or groups were chosen. Noise only: it "
                "leaves out what interpolation gets wrong, so it makes no error band."
            )
            told += " It is null where it is not known." if self.noise == "some" else ""
        if self.posterior == "none":
            told += f" {of_model} is null."
        else:
            told += (
                f" {of_model} is the standard error of the whole error: what the noise did and, where steps "
                "were not measured, what the mechanism's own model leaves in doubt, as right as the model is."
            )
        return f"{told} Both are of the estimate before its lower bound and before rounding."

    def to_document(self, value_column: str) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            value_column: Name of the published values.

        Returns:
            The two fields, and `in_words`.
        """
        return {"noise": self.noise, "posterior": self.posterior, "in_words": self.in_words(value_column)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "StandardErrors":
        """Read back what `to_document` wrote; its words are not read.

        Args:
            document: With the keys noise and posterior.

        Returns:
            The standard errors.

        Raises:
            KeyError: A key is missing.
            TypeError: The document is no mapping.
            ParameterError: A value is none of "all", "some" and "none".
        """
        return cls(document["noise"], document["posterior"])
