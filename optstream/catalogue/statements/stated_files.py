"""What a release's statement says of the files beside it: its measurements, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, get_args

from optstream.catalogue.layout import errors_file, is_hash, measurements_file
from optstream.errors import ParameterError
from optstream.stream.period import period_from

ErrorsOf = Literal["whole", "noise"]
"""The whole errors of the values, or what the noise alone did to them."""


@dataclass(frozen=True)
class StatedMeasurements:
    """The file of measurements that belongs to a release.

    Attributes:
        file_hash: SHA-256 of the file.
        later: The days after the release's own whose measurements a new estimate is made of, rising.

    Raises:
        ParameterError: The hash is none, or the days do not rise.
    """

    file_hash: str
    later: tuple[date, ...] = ()

    def __post_init__(self) -> None:
        if not is_hash(self.file_hash):
            raise ParameterError(
                "file_hash of StatedMeasurements must be a SHA-256 in lower-case hexadecimal"
            )
        if list(self.later) != sorted(set(self.later)):
            raise ParameterError("later of StatedMeasurements must be rising days")

    def to_document(self, period: date, revision: int) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            period: The local day of the release.
            revision: Of the release.

        Returns:
            The file relative to the published folder, its hash, and the days after, where there are any.
        """
        file = measurements_file(period, revision, self.file_hash)
        document: dict[str, Any] = {"file": file, "file_hash": self.file_hash}
        return document | ({"later": [day.isoformat() for day in self.later]} if self.later else {})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "StatedMeasurements":
        """Read back what `to_document` wrote; its file follows from the hash and is not read.

        Args:
            document: With the key file_hash.

        Returns:
            What the statement says.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A day is no date.
            ParameterError: The hash is none.
        """
        return cls(document["file_hash"], tuple(period_from(day) for day in document.get("later", ())))


@dataclass(frozen=True)
class StatedErrors:
    """The file of errors that belongs to a release (docs/data/sums.md).

    Attributes:
        file_hash: SHA-256 of the file.
        of: Which errors it tells of.

    Raises:
        ParameterError: The hash is none, or there are no such errors.
    """

    file_hash: str
    of: ErrorsOf

    def __post_init__(self) -> None:
        if not is_hash(self.file_hash):
            raise ParameterError("file_hash of StatedErrors must be a SHA-256 in lower-case hexadecimal")
        if self.of not in get_args(ErrorsOf):
            raise ParameterError('of of StatedErrors must be "whole" or "noise"')

    def to_document(self, period: date, revision: int, vintage: int) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            period: The local day of the release.
            revision: Of the release.
            vintage: Of the release.

        Returns:
            The file relative to the published folder, its hash, and which errors it tells of.
        """
        file = errors_file(period, revision, vintage, self.file_hash)
        return {"file": file, "file_hash": self.file_hash, "of": self.of}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "StatedErrors":
        """Read back what `to_document` wrote; its file follows from the hash and is not read.

        Args:
            document: With the keys file_hash and of.

        Returns:
            What the statement says.

        Raises:
            KeyError: A key is missing.
            ParameterError: As the class.
        """
        return cls(document["file_hash"], document["of"])
