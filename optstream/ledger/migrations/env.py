"""What alembic runs: the migrations, on the connection and in the transaction that `upgrade` hands over."""

from alembic import context

from optstream.ledger.schema import metadata

# SQLite cannot change a column: there a table is copied
context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
context.run_migrations()
