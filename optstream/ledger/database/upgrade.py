"""Which schema a database has, and the one way to today's: the migrations, from nothing or from any."""

from pathlib import Path
from threading import Lock

from sqlalchemy import Connection, inspect, text

from optstream.errors import LedgerError
from optstream.ledger.database.schema import SCHEMA

MIGRATIONS = Path(__file__).parents[1] / "migrations"
VERSION_TABLE = "alembic_version"
FIRST = "0001"

_one_at_a_time = Lock()


def version_of(connection: Connection) -> str | None:
    """Return the schema's version; None for a database without tables.

    Raises LedgerError for a newer one, and for tables of a ledger that say no version.
    """
    tables = inspect(connection)
    if tables.has_table(VERSION_TABLE):
        said = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
    elif tables.has_table("schema_version"):
        # made before there were migrations: the first of them makes the same
        numbers = connection.execute(text("SELECT version FROM schema_version")).scalars().all()
        said = [FIRST] if numbers == [1] else []
    else:
        return None
    if len(said) != 1 or not said[0].isdecimal():
        raise LedgerError("the ledger's database does not say which schema it has: restore it from a backup")
    if int(said[0]) > int(SCHEMA):
        raise LedgerError(
            f"the ledger's database has schema {said[0]}, newer than the {SCHEMA} that this version of "
            "OptStream knows; use the newer OptStream"
        )
    return str(said[0])


def upgrade(connection: Connection, to: str) -> None:
    """Run the migrations that are missing up to `to`, in the caller's transaction.

    The caller holds whatever keeps others from doing the same. Rows are kept, events and their hashes byte
    for byte: the heads that catalogues carry stay valid. Raises LedgerError as `version_of` does.
    """
    # imported only when there is something to do: opening a ledger of today's schema needs none of it
    from alembic import command
    from alembic.config import Config

    config = Config()
    # a per cent sign in a path would be read as a reference to another option
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    # alembic keeps what it works on in names of its modules, so two threads would mix their databases
    with _one_at_a_time:
        version = version_of(connection)
        if version is not None and not inspect(connection).has_table(VERSION_TABLE):
            command.stamp(config, FIRST)
        if version is None or int(version) < int(to):
            command.upgrade(config, to)
