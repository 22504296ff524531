"""Folders that no covariate may lie in: what is learned from readings would leak, and no ledger would see it.

The stream's own are known. Of other streams only what files on this machine tell: it is a guard against
mistakes, and no proof that a file is public.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings
from tasks.config.paths import absolute, located
from tasks.config.tables.population import stream_files
from tasks.config.toml_file import read_toml

CONFIGURATION = "optstream.toml"
ZONES = ("input", "trusted")


def private_zones(settings: Settings, place: Path) -> dict[str, Path]:
    """Return folders that a covariate's place must not lead into, by configuration key: those of the stream,
    of the streams that its population file and `budget.shared_with` name, and of each configuration that has
    its usual name and lies in a folder above the place.
    """
    own = {"input": settings.input_folder, "trusted": settings.trusted_folder}
    zones = {key: zone for key, zone in own.items() if isinstance(zone, Path)}
    for file in _configurations(settings, place):
        for key in ZONES:
            # a file that is none, or is not usable, names no folder
            with suppress(OptStreamError, OSError, RuntimeError, ValueError, LookupError, TypeError):
                zone = located(read_toml(file)[key]["folder"], file.parent)
                if isinstance(zone, Path):
                    zones[f"{file}: {key}"] = zone
    return zones


def _configurations(settings: Settings, place: Path) -> Iterator[Path]:
    named = [settings.privacy.population_file, *settings.budget.shared_with]
    with suppress(ConfigurationError):
        yield from stream_files([absolute(path, settings.folder) for path in named if path])
    with suppress(OSError, RuntimeError, ValueError):  # a link to itself
        above = {*place.parents, *place.resolve().parents}
        yield from (found for folder in above if (found := folder / CONFIGURATION).is_file())
