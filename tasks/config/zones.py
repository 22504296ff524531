"""Whether folders and ledger are places that can be, and none that is private lies where readers look."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from optstream.catalogue.backends import Location, StoreUrl
from optstream.errors import ConfigurationError, ParameterError, PublicationError
from optstream.storage.open import open_store
from tasks.config.paths import absolute, ledger_database, lies_within, located, resolve_ledger_url
from tasks.config.tables.covariates import COVARIATES


def zone_checks(sections: Mapping[str, Any], folder: Path, ledger_folder: Path) -> list[str]:
    """The problems with the places that these sections name; only valid ones are compared."""
    ledger, database = list[str](), None
    if "ledger" in sections:
        try:
            url = resolve_ledger_url(sections["ledger"].url.get_secret_value(), ledger_folder)
            database = ledger_database(url)
        except ConfigurationError as error:
            ledger = [str(error)]
    places = list(_places(sections, folder))
    if places:
        return [*ledger, *places]
    return [
        *ledger,
        *_zones(sections, folder, database),
        *_signing_key(sections, folder),
        *_covariates(sections, folder),
    ]


def _named(sections: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The places that these sections and `trusted.witness` name, by key."""
    named = {f"{name}.folder": sections[name].folder for name in names if name in sections}
    if "trusted" in sections and sections["trusted"].witness is not None:
        named["trusted.witness"] = sections["trusted"].witness
    return named


def _signing_key(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Who has it signs in the stream's name: it lies where nobody else may enter."""
    key = sections["published"].signing_key if "published" in sections else None
    if key is None or "trusted" not in sections:
        return
    try:
        within = lies_within(absolute(key, folder), located(sections["trusted"].folder, folder))
    except (OSError, ValueError, RuntimeError):
        within = False
    if not within:
        yield "published.signing_key must be the path of a file in trusted.folder, and of nobody else"


def _covariates(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What a covariate tells is not charged to the ledger: it must be public.

    A link in the place of the path itself is looked at when it is read, and not here: whoever may deliver the
    file may make one, and no delivery stops a night.
    """
    zones = {
        name: located(sections[name].folder, folder) for name in ("input", "trusted") if name in sections
    }
    private = {name: zone for name, zone in zones.items() if isinstance(zone, Path)}
    for number, one in enumerate(sections["covariates"].given if "covariates" in sections else (), 1):
        place = f"{COVARIATES} {number}: path"
        for key, zone in private.items():
            try:
                place_named = _named_in(absolute(one.path, folder))
                within = any(place_named.is_relative_to(known) for known in (zone.resolve(), _named_in(zone)))
            except (OSError, ValueError, RuntimeError):
                yield f"{place} is no path: it holds a NUL, is too long, or links to itself"
                break
            if within:
                yield (
                    f"{place} must not lie in {key}.folder, which is private: what is learned from it would "
                    "leak, and no ledger would see it; name a file that is public"
                )


def _named_in(place: Path) -> Path:
    """Return a path in the folder that it lies in, whose links are followed. Raises as `Path.resolve`."""
    return place.parent.resolve() / place.name


def _places(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """URLs are what they can be, and the trusted zone is on this machine."""
    for key, text in _named(sections, "input", "published", "trusted").items():
        try:
            place = located(text, folder)
        except ParameterError as error:
            yield f"{key} {error}"
            continue
        if isinstance(place, StoreUrl) and key == "trusted.folder":
            yield "trusted.folder must be a path of this machine: what is drawn must be durable and private"
        elif isinstance(place, StoreUrl):
            try:
                open_store(place)
            except PublicationError as error:
                yield f"{key}: {error}"


def _zones(sections: Mapping[str, Any], folder: Path, database: Path | None) -> Iterator[str]:
    """Nothing private may lie where readers look."""
    if "published" not in sections:
        return
    public = located(sections["published"].folder, folder)
    named = _named(sections, "input", "trusted")
    private: dict[str, Location] = {key: located(text, folder) for key, text in named.items()}
    if (log := getattr(sections.get("watch"), "log", None)) is not None:
        private["watch.log"] = absolute(log, folder)
    if database is not None:
        private["the file of ledger.url"] = database
    for key, place in private.items():
        try:
            within = lies_within(place, public)
        except (OSError, ValueError, RuntimeError):
            yield f"{key} or published.folder is no path: it holds a NUL, is too long, or links to itself"
            continue
        if within:
            yield f"{key} must not lie in published.folder, which is the public zone"
