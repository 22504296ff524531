"""What the header row and the cells of words may say: columns, regions, natures."""

import re
import unicodedata
from collections.abc import Sequence

from optstream.errors import DumpError
from tasks.sample_data.load_shapes import FRENCH_REGIONS

REQUIRED = {
    "perimetre": "Périmètre",
    "nature": "Nature",
    "date": "Date",
    "heures": "Heures",
    "consommation": "Consommation",
}
# What RTE has put beside them over the years: production, exchanges, and since 2020 batteries and ratios.
BESIDE = {
    "thermique", "nucleaire", "eolien", "solaire", "hydraulique", "pompage", "bioenergies", "ech-physiques",
    "stockage-batterie", "destockage-batterie", "eolien-terrestre", "eolien-offshore",
}  # fmt: skip
BESIDE_PREFIXES = ("tco-", "tch-", "flux-physiques-")
NATIONAL = {"prevision-j", "prevision-j-1", "fioul", "charbon", "gaz", "taux-de-co2"}
NATURES = {"donnees-definitives", "donnees-consolidees"}


def plain(name: str) -> str:
    """A name without accents, case and punctuation: RTE spells "Grand-Est" and "Centre-Val de Loire"."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")


REGION_CODES = {plain(region.name): code for code, region in FRENCH_REGIONS.items()} | {"paca": "93"}
"""INSEE's code of each of the 12 mainland regions, by its plain name."""


def place_columns(names: Sequence[str], line: int) -> tuple[dict[str, int], int]:
    """Where each required column stands, and how many columns have a name.

    Raises DumpError, naming the line, for a column that is unknown, missing, repeated or without a name.
    """
    found = [plain(name) for name in names]
    while found and not found[-1]:
        found.pop()  # RTE ends its rows with a tab
    for name, given in zip(found, names, strict=False):
        if name in NATIONAL or name.startswith("ech-comm-"):
            raise DumpError(
                f"line {line}: {given!r:.80} is a column of the national file; leave it out: the nation is "
                "the sum of the regions' files"
            )
        if name not in REQUIRED and name not in BESIDE and not name.startswith(BESIDE_PREFIXES):
            raise DumpError(
                f"line {line}: {given!r:.80} is not a column of RTE's regional files, whose header row is "
                "Périmètre, Nature, Date, Heures, Consommation, …, with tabs between; import the file as "
                "RTE hands it out"
            )
    missing = [title for name, title in REQUIRED.items() if name not in found]
    if missing:
        raise DumpError(f"line {line}: the header row lacks the column {', '.join(missing)}")
    if len(set(found)) < len(found):
        raise DumpError(f"line {line}: the header row must name each column once")
    return {name: found.index(name) for name in REQUIRED}, len(found)


def region_code(perimeter: str, line: int) -> str:
    """INSEE's code of the region that a file names. Raises DumpError for any other place."""
    name = plain(perimeter)
    if name == "france":
        raise DumpError(
            f"line {line}: this is the national file; leave it out: the nation is the sum of the regions' "
            "files"
        )
    if name not in REGION_CODES:
        raise DumpError(
            f"line {line}: {perimeter!r:.80} is none of the 12 regions: "
            + ", ".join(region.name for region in FRENCH_REGIONS.values())
        )
    return REGION_CODES[name]
