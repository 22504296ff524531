"""Places: folders and the ledger's database, relative to the configuration file."""

from pathlib import Path
from typing import TYPE_CHECKING

from optstream.catalogue.backends import Location, locate
from optstream.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import URL

LEGAL = (
    "ledger.url (or OPTSTREAM_LEDGER_URL) must be an SQLAlchemy URL of an SQLite file or a PostgreSQL "
    'database, such as "sqlite:///trusted/ledger.sqlite"'
)


def absolute(path: str, folder: Path) -> Path:
    """The path, taken from `folder` where it is relative."""
    return folder / path


def located(place: str, folder: Path) -> Location:
    """A path, from `folder` on if it is relative, or a store's URL; raises ParameterError, not echoing it."""
    found = locate(place)
    return absolute(str(found), folder) if isinstance(found, Path) else found


def lies_within(place: Location, other: Location) -> bool:
    """Whether a place is another one or lies below it, links followed. Raises OSError and its like."""
    if isinstance(place, Path) and isinstance(other, Path):
        return place.resolve().is_relative_to(other.resolve())
    if isinstance(place, Path) or isinstance(other, Path):
        return False
    return place.is_relative_to(other)


def resolve_ledger_url(text: str, folder: Path) -> "URL":
    """The URL with a relative SQLite path taken from `folder`. Raises ConfigurationError, not echoing it.

    It is never text again: a folder whose name has a `?` would be cut off there.
    """
    url = _parsed(text)
    if url is None:
        raise ConfigurationError(f"{LEGAL}; what it got is not a URL (not shown: it may hold a password)")
    backend = url.get_backend_name()
    if backend == "sqlite":
        database = url.database
        if not database or database == ":memory:" or database.startswith("file:"):
            raise ConfigurationError(f"{LEGAL}; a ledger in memory would forget what was spent")
        if database.startswith("~"):
            raise ConfigurationError(f"{LEGAL}; ~ stands for no folder here: write the path out")
        if url != url.create(url.drivername, database=database):
            raise ConfigurationError(
                f"{LEGAL}; one of SQLite is sqlite:/// and a path, without a host (three slashes, not two) "
                "and without a query: a path with a ? in it can be given relative to the configuration"
            )
        url = url.set(drivername=backend, database=str(absolute(database, folder)))
    elif backend != "postgresql":
        raise ConfigurationError(f"{LEGAL}; got another kind of database (not shown: it may hold a password)")
    return url


def ledger_database(url: "URL") -> Path | None:
    """The SQLite file of a resolved URL; None for a server."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _parsed(text: str) -> "URL | None":
    # a process that reads dumps has settings and no ledger, and starts a fifth sooner without this import
    from sqlalchemy import exc, make_url

    try:
        return make_url(text)
    except (exc.ArgumentError, ValueError):
        return None
