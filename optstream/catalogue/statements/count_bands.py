"""The two columns of whole numbers between which a published count lies, and what they mean, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from optstream.catalogue.statements.standard_errors import Known
from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text


def band_columns(value_column: str) -> tuple[str, str]:
    """Return the names of the two columns of bands beside the standard errors, in the values' unit.

    Args:
        value_column: Name of the published values.

    Returns:
        The names of the lowest and of the highest count.
    """
    return f"{value_column}_low", f"{value_column}_high"


@dataclass(frozen=True)
class CountBands:
    """Bands of a release of counts; its file has the columns.

    Attributes:
        known: Of "all", "some" or "none" of the values; null in the columns where not.
        share: What a band is to hold, in (0, 1).

    Raises:
        ParameterError: A field is anything else.
    """

    known: Known
    share: Fraction = Fraction(19, 20)

    def __post_init__(self) -> None:
        if self.known not in get_args(Known):
            raise ParameterError(f"known of CountBands must be one of {get_args(Known)}; got {self.known!r}")
        if not 0 < self.share < 1:
            raise ParameterError(f"share of CountBands must be between 0 and 1; got {self.share}")

    def in_words(self, value_column: str) -> str:
        """Return what the two columns are.

        Args:
            value_column: Name of the published values.

        Returns:
            Sentences for data users.
        """
        low, high = band_columns(value_column)
        return (
            f"{low} and {high} are the lowest and the highest count of a band that is to hold the true count "
            f"in at least {float(self.share):.0%} of steps, noise, model and the counts' own variation "
            "counted in, as right as the mechanism's model is. Both are whole numbers of at least 0, the "
            "published value between them; where 0 alone is likelier than that, the highest is that value."
        )

    def to_document(self, value_column: str) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            value_column: Name of the published values.

        Returns:
            The two fields, and `in_words`.
        """
        return {"known": self.known, "share": str(self.share), "in_words": self.in_words(value_column)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "CountBands":
        """Read back what `to_document` wrote; its words are not read.

        Args:
            document: With the keys known and share.

        Returns:
            The bands.

        Raises:
            KeyError: A key is missing.
            TypeError: The document is no mapping.
            ParameterError: A value is outside its range.
        """
        return cls(document["known"], exact_from_text(document["share"]))
