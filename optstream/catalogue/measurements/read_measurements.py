"""The measurements of a published day, read back with all that its release rests on."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.catalogue.backends import Location, Storage, open_storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import (
    LARGEST_MEASUREMENTS,
    MEASUREMENTS,
    measurements_file,
    measurements_name,
)
from optstream.catalogue.measurements.measurements_file import (
    Found,
    as_written,
    completed,
    decode_measurements,
)
from optstream.catalogue.measurements.mechanism_document import mechanism_from
from optstream.catalogue.measurements.shared_history import Block, blocks_of, remembered
from optstream.catalogue.reading.columns import read_statement
from optstream.catalogue.reading.read import catalogue_reader, read_beside
from optstream.catalogue.signing import GivenKeys
from optstream.errors import PublicationError
from optstream.estimation.hierarchy.rounding import rounded_units
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.period_release import Release
from optstream.stream import Measured
from optstream.stream.period import period_from, period_from_partition


@dataclass(frozen=True)
class DayMeasurements:
    """The measurements of a published day, and what makes its release of them.

    Attributes:
        period: The local day.
        measured: What was drawn, with what the mechanism remembered: for `mechanism.estimate`.
        mechanism: That of the release; None where its parameters cannot be written down.
        later: Measurements of later days that a new estimate is made of, rising; () for a first estimate.
        rounding: How the release's values are rounded, "nearest" or "unbiased".
        least_units: Units of the resolution that every leaf has at least; None for no bound.
    """

    period: date
    measured: Measured
    mechanism: Mechanism | None
    later: tuple[Measured, ...]
    rounding: Any
    least_units: int | None

    def release(self) -> Release:
        """Estimate the day again, as its publisher did; draws and costs nothing.

        Returns:
            The release before it was rounded.

        Raises:
            PublicationError: The mechanism cannot be made from the file, or is not of these measurements.
        """
        if self.mechanism is None:
            raise PublicationError("the mechanism's parameters are not in the file: make it, and estimate")
        with as_written():
            if self.later:
                return self.mechanism.revise(self.measured, self.later)
            return self.mechanism.estimate(self.measured)

    def values(self) -> NDArray[np.float64]:
        """Return the values of the release as they are published; draws and costs nothing.

        Returns:
            (n_nodes, n_steps), in the unit of the readings: nodes and steps in the tree's order.

        Raises:
            PublicationError: As `release`.
        """
        found = self.release()
        unit = self.measured.resolution
        with as_written():
            if found.tree is None:
                raise ValueError  # what is published is of a tree
            units = rounded_units(
                found.values,
                found.tree,
                unit,
                self.rounding,
                first_step=self.measured.first_step,
                least=self.least_units,
            )
            return units.astype(np.float64) * unit.numerator / unit.denominator


def read_measurements(
    folder: Location | str, day: date, public_key: GivenKeys | None = None
) -> DayMeasurements:
    """Return the noisy measurements of a published day, where they are published (docs/data/measurements.md).

    Hashes are compared: the catalogue's with the release, the release's with its measurements, and what the
    day remembers of earlier ones with the hash that its publisher's ledger has.

    Args:
        folder: A path, or the URL of a folder in an object store.
        day: The local day.
        public_key: The publisher's, as for `read_published`.

    Returns:
        Of the release that the catalogue lists.

    Raises:
        ParameterError: The URL or a public key cannot be one.
        PublicationError: The day, or a day that its release rests on, is not published with measurements; or
            a file is missing, or is not what its hash says.
    """
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    found, later_days = _listed(storage, catalogue, day)
    return DayMeasurements(
        period=day,
        measured=_whole(storage, found),
        mechanism=None if found.mechanism is None else mechanism_from(found.mechanism),
        later=tuple(_whole(storage, _first(storage, catalogue, day, one)) for one in later_days),
        rounding=found.rounding,
        least_units=found.least_units,
    )


def read_found(storage: Storage, period: date, revision: int, file_hash: str) -> Found:
    """Return what the file of measurements with this hash says.

    Raises PublicationError where it is missing, has other bytes, or is of another day.
    """
    name = measurements_file(period, revision, file_hash)
    found = decode_measurements(read_beside(storage, period, name, file_hash, LARGEST_MEASUREMENTS))
    if (found.period, found.revision) != (period, revision):
        raise PublicationError(f"the measurements of {period} are of another day or revision; restore them")
    return found


def _listed(storage: Storage, catalogue: Catalogue, day: date) -> tuple[Found, tuple[date, ...]]:
    """Return the measurements of the listed release of a day, and which later days its estimate is of."""
    entry = catalogue.entry(day)
    if entry is None or entry.withdrawn:
        raise PublicationError(f"{day} is not published, or was withdrawn; see the catalogue")
    stated = read_statement(storage, entry).measurements
    if stated is None:
        raise PublicationError(
            f"{day} is published without measurements: its publisher had [published] measurements off"
        )
    return read_found(storage, day, entry.revision, stated.file_hash), stated.later


def _first(storage: Storage, catalogue: Catalogue, day: date, later: date) -> Found:
    """Return the measurements of a later day: new estimates are made of first ones alone."""
    found, _ = _listed(storage, catalogue, later)
    if found.revision:
        raise PublicationError(
            f"the estimate of {day} rests on the first measurements of {later}, which has others by now"
        )
    return found


def _whole(storage: Storage, found: Found) -> Measured:
    """Return the measurements with the sums that they remember, from the files of the days before.

    Files that no catalogue lists are read too: the hash of the whole says whether they are right.
    """
    with as_written():
        own = blocks_of(found.measured, found.levels)
        missing = remembered(found.document, found.levels) - own.keys()
        earliest = min((first_step for _, first_step, _, _ in missing), default=0)
    known: dict[Block, tuple[int, ...]] = {}
    names = storage.names_below(MEASUREMENTS) if missing else []
    # newest day first, and of a day the newest revision
    for name in sorted(names, key=_place, reverse=True):
        period, told = _place(name)[0], measurements_name(name.rpartition("/")[2])
        if told is None or not "" < period < found.period.isoformat():
            continue
        one = read_found(storage, period_from(period), *told)
        with as_written():
            measured = one.measured
            known = blocks_of(measured, one.levels) | known
        if not missing - known.keys() or measured.first_step + measured.n_steps <= earliest:
            break
    return completed(found, known)


def _place(name: str) -> tuple[str, int]:
    """Return period and revision of a file of measurements by its name; ("", -1) for what is none."""
    folder, _, last = name.rpartition("/")
    told, partition = measurements_name(last), folder.removeprefix(f"{MEASUREMENTS}/")
    try:
        return (period_from_partition(partition).isoformat(), told[0]) if told else ("", -1)
    except ValueError:
        return ("", -1)
