"""In which order several streams are released: what one reads of another is published first."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tasks.config import Settings
from tasks.config.fields import absolute


def in_order(streams: Sequence[Settings]) -> list[Settings]:
    """Return the streams, no two of one name, by name, but those first whose published folder is a covariate
    of another; always in the same order. Where streams read each other, all are by name: of the later ones
    the earlier know the day before.
    """
    by_name = {one.stream.name: one for one in streams}
    folders = {
        place.resolve(): name
        for name, one in by_name.items()
        if isinstance(place := one.published_folder, Path)
    }
    reads = {name: _read_by(one, folders) - {name} for name, one in sorted(by_name.items())}
    sorter = TopologicalSorter(reads)
    try:
        sorter.prepare()
    except CycleError:
        return [by_name[name] for name in reads]
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += ready
        sorter.done(*ready)
    return [by_name[name] for name in found]


def _read_by(settings: Settings, folders: dict[Path, str]) -> set[str]:
    places = (absolute(one.path, settings.folder).resolve() for one in settings.covariates.given)
    return {folders[place] for place in places if place in folders}
