"""Which files of errors are of listed releases."""

from collections.abc import Iterable

from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import (
    ERRORS,
    errors_name,
    folder_of,
)


def listed_errors(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """Return which of these files of the published folder are of errors of a listed release, rising."""
    listed = {(folder_of(ERRORS, one.period), one.revision, one.vintage) for one in catalogue.listed}
    found = []
    for name in names:
        folder, _, last = name.rpartition("/")
        told = errors_name(last)
        if told is not None and (folder, *told[:2]) in listed:
            found.append(name)
    return tuple(sorted(found))
