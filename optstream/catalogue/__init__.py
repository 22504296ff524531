"""The published folder: immutable files, and a catalogue that is replaced in one step."""

from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import PAGE
from optstream.catalogue.page import digest_of, replace_page
from optstream.catalogue.publish import Publication, publish
from optstream.catalogue.reading.catalogue import check_days, find_catalogue, read_catalogue
from optstream.catalogue.reading.check import check_files
from optstream.catalogue.reading.read import read_published
from optstream.catalogue.stage import StagedRelease, read_staged, stage
from optstream.catalogue.statements.count_bands import CountBands, band_columns
from optstream.catalogue.statements.long_spans import LongSpan
from optstream.catalogue.statements.noise_scales import NoiseScale, noise_scales
from optstream.catalogue.statements.standard_errors import StandardErrors, error_columns
from optstream.catalogue.statements.stated_files import StatedErrors, StatedMeasurements
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.catalogue.sweep import finish_listing
from optstream.catalogue.withdraw import Withdrawal, withdraw

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
