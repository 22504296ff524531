"""The measurements of one day as the bytes of a Parquet file (docs/data/measurements.md). Pure."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from optstream.catalogue.measurements.mechanism_document import WRITTEN_OTHERWISE, describe
from optstream.catalogue.measurements.queries import SCHEMA, levels_of, rows_of, with_numbers, without_numbers
from optstream.catalogue.measurements.shared_history import blocks_of, remembered, with_sums, without_sums
from optstream.errors import PublicationError
from optstream.mechanisms.base import Mechanism
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import decode_table, encode_table
from optstream.stream import Measured
from optstream.stream.period import period_from

FORMAT = "optstream.measurements/1"
KEY = b"optstream.measurements"
LIMITS = Limits(rows=2**28, columns=len(SCHEMA), group_rows=2**28, group_bytes=2**34)
LONGEST_PERIOD, FARTHEST_STEP = 2**12, 2**40
"""Steps of a day, of a minute at least; running index of its first, which anyone may have written."""
_KEYS = {"period", "revision", "levels", "measured", "measured_hash", "mechanism", "rounding", "least_units"}


@dataclass(frozen=True)
class Found:
    """What a file of measurements says, read back; sums of earlier days that it rests on are not in it.

    Attributes:
        period: The local day.
        revision: As the ledger counts it.
        levels: Of the parts of the measurements.
        document: The measurements, histories without sums (`shared_history`).
        measured_hash: SHA-256 of the measurements with them (`Measured.to_bytes`), which the ledger has.
        mechanism: Its document; None where it has none.
        rounding: How values are rounded, "nearest" or "unbiased".
        least_units: Units of the resolution that every leaf has at least; None for no bound.
    """

    period: date
    revision: int
    levels: tuple[int, ...]
    document: dict[str, Any]
    measured_hash: str
    mechanism: dict[str, Any] | None
    rounding: str
    least_units: int | None

    @property
    def measured(self) -> Measured:
        """The measurements themselves, all that earlier days left taken out."""
        bare = [{**one, "state": None, "before": None} for one in self.document["parts"]]
        alone = {**self.document, "state": None, "before": None, "parts": bare}
        return Measured.from_bytes(json.dumps(alone).encode())


@contextmanager
def as_written() -> Iterator[None]:
    """Raise PublicationError where what is read in the block, and anyone may have written, is not as
    OptStream writes it, whatever a library raises over it.
    """
    try:
        yield
    except WRITTEN_OTHERWISE as error:
        raise PublicationError(f"these bytes are no file of measurements of format {FORMAT}") from error


def encode_measurements(
    measured: Measured,
    mechanism: Mechanism,
    *,
    period: date,
    revision: int,
    rounding: str,
    least_units: int | None,
) -> bytes:
    """Return the Parquet file of a day's measurements. Costs no privacy: they are noisy, and paid for.

    The same arguments give the same bytes, and another pyarrow may encode differently. mechanism: what
    measured it, on a tree. Others: as in `Found`. Raises PublicationError where the measurements are not what
    the mechanism draws, or could not be read back.
    """
    data, levels = measured.to_bytes(), levels_of(mechanism)
    document = json.loads(data)
    rows = rows_of(document, mechanism)
    shared = without_sums(document, levels)
    footer = {
        "format": FORMAT,
        "period": period.isoformat(),
        "revision": revision,
        "levels": list(levels),
        "measured": without_numbers(shared),
        "measured_hash": hashlib.sha256(data).hexdigest(),
        "mechanism": describe(mechanism),
        "rounding": rounding,
        "least_units": least_units,
    }
    text = json.dumps(footer, separators=(",", ":"), sort_keys=True, allow_nan=False)
    encoded = encode_table(rows, {KEY: text.encode()})
    if decode_measurements(encoded).document != shared:
        raise PublicationError("the measurements cannot be read back from their file: nothing is published")
    return encoded


def decode_measurements(data: bytes) -> Found:
    """Return what a file of measurements says, which anyone may have written.

    Raises PublicationError for what is no such file, or claims more than `LIMITS`.
    """
    rows, metadata = decode_table(data, LIMITS, "a file of measurements")
    with as_written():
        footer = json.loads(metadata[KEY])
        if footer["format"] != FORMAT or dict(rows.schema) != SCHEMA:
            raise ValueError
        given = {key: footer[key] for key in _KEYS}
        _check_steps(given["measured"])
        return Found(
            period=period_from(given.pop("period")),
            levels=tuple(given.pop("levels")),
            document=with_numbers(given.pop("measured"), rows),
            **given,
        )


def _check_steps(document: dict[str, Any]) -> None:
    """Raise ValueError unless the steps of a document are those of one day: estimates hold all of them."""
    n_steps, first_step = document["n_steps"], document["first_step"]
    if type(n_steps) is not int or not 1 <= n_steps <= LONGEST_PERIOD or abs(first_step) > FARTHEST_STEP:
        raise ValueError
    for part in document["parts"]:
        if (part["n_steps"], part["first_step"]) != (n_steps, first_step) or part["parts"]:
            raise ValueError


@as_written()
def completed(found: Found, earlier: dict[tuple[int, int, int, float], tuple[int, ...]]) -> Measured:
    """Return the whole measurements, of which the ledger has the hash, with what they rest on put back.

    earlier: sums of blocks of earlier days (`blocks_of`). Raises PublicationError where a block is missing,
    or one is of another measurement of its day, and for a document of another form.
    """
    known = earlier | blocks_of(found.measured, found.levels)
    missing = remembered(found.document, found.levels) - known.keys()
    if missing:
        raise PublicationError(
            f"the estimate of {found.period} rests on measurements of earlier days; {len(missing)} of them "
            "are not in the folder: those days were published without measurements, or withdrawn"
        )
    whole = with_sums(found.document, found.levels, known)
    data = json.dumps(whole, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    if hashlib.sha256(data).hexdigest() != found.measured_hash:
        raise PublicationError(
            f"the estimate of {found.period} rests on other measurements than the folder has: a day that it "
            "remembers was measured again since, or a file was altered (`optstream verify-published`)"
        )
    return Measured.from_bytes(data)
