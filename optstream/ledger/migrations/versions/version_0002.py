"""TRUNCATE is refused as well; programs from before the migrations refuse what they would not understand."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add PostgreSQL's triggers for TRUNCATE, which fires none for rows, and raise the number of old."""
    if op.get_bind().dialect.name == "postgresql":
        for table in ("spends", "events"):
            op.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION optstream_append_only()"
            )
    op.execute("UPDATE schema_version SET version = 2")
