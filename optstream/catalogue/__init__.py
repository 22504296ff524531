"""The published folder: immutable files, and a catalogue that is replaced in one step."""

from optstream.catalogue.index import Catalogue, Entry, check_days, find_catalogue, read_catalogue
from optstream.catalogue.layout import PAGE
from optstream.catalogue.metadata import digest_of, replace_page
from optstream.catalogue.publish import Publication, Withdrawal, finish_listing, publish, withdraw
from optstream.catalogue.read import read_published
from optstream.catalogue.rows import band_columns, error_columns, estimate_column
from optstream.catalogue.statement import (
    CountBands,
    LongSpan,
    NoiseScale,
    ReleaseStatement,
    StagedRelease,
    StandardErrors,
    StatedErrors,
    StatedMeasurements,
    noise_scales,
    read_staged,
    stage,
)
from optstream.catalogue.verify import check_files

__all__ = [
    "PAGE",
    "Catalogue",
    "CountBands",
    "Entry",
    "LongSpan",
    "NoiseScale",
    "Publication",
    "ReleaseStatement",
    "StagedRelease",
    "StandardErrors",
    "StatedErrors",
    "StatedMeasurements",
    "Withdrawal",
    "band_columns",
    "check_days",
    "check_files",
    "digest_of",
    "error_columns",
    "estimate_column",
    "find_catalogue",
    "finish_listing",
    "noise_scales",
    "publish",
    "read_catalogue",
    "read_published",
    "read_staged",
    "replace_page",
    "stage",
    "withdraw",
]
