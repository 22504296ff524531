"""Folders that no covariate may lie in: what is learned from readings would leak, and no ledger would see it.

The stream's own are known. Of other streams only what files on this machine tell: it is a guard against
mistakes, and no proof that a file is public.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from optstream.errors import OptStreamError
from tasks.config import Settings
from tasks.config.paths import absolute, located
from tasks.config.tables.population import stream_files
from tasks.config.toml_file import read_toml

CONFIGURATION = "optstream.toml"
ZONES = ("input", "trusted")
MOST_ABOVE = 64
"""Folders above a place: what was delivered may be a link into thousands, each with a long file to read."""
UNUSABLE = (OptStreamError, OSError, RuntimeError, ValueError, LookupError, TypeError)
"""What is raised over a file that is none or names no folder, and over a link to itself."""


def private_zones(settings: Settings, place: Path) -> dict[str, Path]:
    """Return folders that a covariate's place must not lead into, by configuration key: those of the stream,
    of the streams that its population file and `budget.shared_with` name, and of each configuration that has
    its usual name and lies in the place or in a folder above it.
    """
    own = {"input": settings.input_folder, "trusted": settings.trusted_folder}
    zones = {key: zone for key, zone in own.items() if isinstance(zone, Path)}
    for file in _configurations(settings, place):
        for key in ZONES:
            with suppress(*UNUSABLE):
                zone = located(read_toml(file)[key]["folder"], file.parent)
                if isinstance(zone, Path):
                    zones[f"{file}: {key}"] = zone
    return zones


def _configurations(settings: Settings, place: Path) -> Iterator[Path]:
    for named in (settings.privacy.population_file, *settings.budget.shared_with):
        with suppress(*UNUSABLE):
            yield from stream_files([absolute(named, settings.folder)] if named else [])
    for start in dict.fromkeys((place, _resolved(place))):
        for folder in (start, *start.parents)[:MOST_ABOVE]:
            with suppress(*UNUSABLE):
                if (found := folder / CONFIGURATION).is_file():
                    yield found


def _resolved(place: Path) -> Path:
    """Return the place, links followed; as it is where they lead nowhere."""
    with suppress(*UNUSABLE):
        return place.resolve()
    return place
