"""Where things are in the published folder (docs/data/published.md).

    data/date=2016-02-01/release-<hash>.parquet               the releases, one hive-partitioned dataset
    data/date=2016-02-01/hour=13/release-<hash>.parquet       of streams by the hour; 02B is one that repeats
    data/date=2016-02-01/hour=all/day-<hash>.parquet          of a closed day, whose hours are in superseded/
    measurements/date=2016-02-01/revision-0-<hash>.parquet    the noisy integers of a release
    errors/date=2016-02-01/revision-0-vintage-0-<hash>.parquet  replicates of a release
    manifests/release-<hash>.json, signatures/<SHA-256>-<key>.sig

<hash> is the SHA-256 of the Parquet file. Names are built of dates and hashes alone: the name of a stream or
a node never becomes part of a path. `data/` holds nothing but Parquet files, for polars refuses a folder that
also holds JSON.
"""

import hashlib
import re
from datetime import date

from optstream.stream.period import partition_of

CATALOGUE = "catalogue.json"
PAGE = "index.html"
ABOUT = "about.json"
HIERARCHY = "hierarchy.parquet"
DATA_PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
DCAT = "dcat.jsonld"
CARD = "deployment-card.json"
CARD_PAGE = "deployment-card.html"
DESCRIPTIONS = (DATA_PACKAGE, CROISSANT, DCAT, CARD, CARD_PAGE)
"""What describes the folder to others: made of its catalogue, signed where that is."""
CURVES = "curves"
DATA = "data"
MANIFESTS = "manifests"
SUPERSEDED = "superseded"
MEASUREMENTS = "measurements"
ERRORS = "errors"
SUPERSEDED_ERRORS = "superseded_errors"
ANSWERS = "questions"
ANSWERS_INDEX = "questions.json"  # answers to questions, which versions before 0.3 published
SIGNATURES = "signatures"
INCOMING = ".incoming"
LOCK = ".lock"

LARGEST = {MANIFESTS: 2**21, SIGNATURES: 64, ABOUT: 2**28, HIERARCHY: 2**28}
LARGEST |= dict.fromkeys((CATALOGUE, PAGE, *DESCRIPTIONS), 2**26)
LARGEST |= dict.fromkeys((DATA, SUPERSEDED, MEASUREMENTS), 2**32)
LARGEST |= dict.fromkeys((ERRORS, SUPERSEDED_ERRORS), 2**31)
"""Bytes of a file, by its name or that of its folder: anyone may have written it."""

PARTS = (DATA, SUPERSEDED, MEASUREMENTS, ERRORS, SUPERSEDED_ERRORS)
"""Kinds of files that have a folder for each day."""
HIDDEN = (INCOMING, LOCK)  # what copies of the folder carry along too, though no reader needs it

_NUMBER, _HASH = "(0|[1-9][0-9]{0,9})", r"([0-9a-f]{64})\.parquet"
_NAMES = dict.fromkeys((DATA, SUPERSEDED), re.compile(f"release-{_HASH}"))
_NAMES |= {MEASUREMENTS: re.compile(f"revision-{_NUMBER}-{_HASH}")}
_NAMES |= dict.fromkeys(
    (ERRORS, SUPERSEDED_ERRORS), re.compile(f"revision-{_NUMBER}-vintage-{_NUMBER}-{_HASH}")
)

# Names, and places relative to the published folder.


def largest(name: str) -> int:
    """Return the most bytes that a file of the published folder may have."""
    return LARGEST[name.partition("/")[0]]


def numbers_and_hash(part: str, name: str) -> tuple[tuple[int, ...], str] | None:
    """Return what names a file of a part: a revision of measurements, revision and vintage of errors, no
    number of a release, and the hash; None for other names."""
    if (found := _NAMES[part].fullmatch(name)) is None:
        return None
    *numbers, digest = found.groups()
    return tuple(map(int, numbers)), digest


def release_name(file_hash: str) -> str:
    return f"release-{file_hash}.parquet"


def folder_of(part: str, period: date) -> str:
    """Return a day's folder in a part, such as `DATA`, relative to the published folder."""
    return f"{part}/{partition_of(period)}"


def data_file(period: date, file_hash: str) -> str:
    return f"{folder_of(DATA, period)}/{release_name(file_hash)}"


def closed_file(day: date, file_hash: str) -> str:
    """Return where the file of a closed day is, relative to the published folder."""
    return f"{folder_of(DATA, day)}/hour=all/day-{file_hash}.parquet"


def superseded_file(period: date, file_hash: str) -> str:
    return f"{folder_of(SUPERSEDED, period)}/{release_name(file_hash)}"


def measurements_file(period: date, revision: int, file_hash: str) -> str:
    return f"{folder_of(MEASUREMENTS, period)}/revision-{revision}-{file_hash}.parquet"


def errors_file(period: date, revision: int, vintage: int, file_hash: str) -> str:
    return f"{folder_of(ERRORS, period)}/revision-{revision}-vintage-{vintage}-{file_hash}.parquet"


def manifest_file(file_hash: str) -> str:
    return f"{MANIFESTS}/release-{file_hash}.json"


def signature_file(data: bytes, key: str) -> str:
    return f"{SIGNATURES}/{hashlib.sha256(data).hexdigest()}-{key}.sig"
