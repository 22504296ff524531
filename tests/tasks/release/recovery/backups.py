"""Backups of ledger and folders, and bringing them back as an operator would."""

import shutil
from contextlib import contextmanager

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from optstream.ledger.schema import metadata


def back_up(installation, *folders):
    """Copy the ledger and these folders; what is returned brings them back."""
    bring_ledger = _back_up_ledger(installation)
    kept = installation.folder / "backup"
    shutil.rmtree(kept, ignore_errors=True)
    for folder in folders:
        if (installation.folder / folder).exists():
            shutil.copytree(installation.folder / folder, kept / folder)

    def restore():
        bring_ledger()
        for folder in folders:
            shutil.rmtree(installation.folder / folder, ignore_errors=True)
            if (kept / folder).exists():
                shutil.copytree(kept / folder, installation.folder / folder)

    return restore


def _back_up_ledger(installation):
    url = installation.settings.ledger_url
    if url.get_backend_name() == "sqlite":
        copy = installation.copy_ledger()
        # several may be made, and brought back in any order
        copy = copy.rename(copy.with_name(f"older-{len([*copy.parent.glob('older-*.sqlite')])}.sqlite"))
        return lambda: installation.bring_back(copy)
    with _connected(url) as connection:
        rows = {
            table: [dict(row) for row in connection.execute(table.select()).mappings()]
            for table in metadata.sorted_tables
        }

    def restore():
        with _connected(url) as connection:
            # as a restored dump is: no trigger and no foreign key is looked at
            connection.execute(text("SET session_replication_role = replica"))
            for table, known in rows.items():
                connection.execute(table.delete())
                if known:
                    connection.execute(table.insert(), known)

    return restore


@contextmanager
def _connected(url):
    engine = create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        yield connection
