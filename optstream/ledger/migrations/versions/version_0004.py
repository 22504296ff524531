"""A published release may be estimated anew from measurements that were charged already: its vintages."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# SQLite gives a row number of its own only to a column of exactly this type
KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the table; a release without a row in it has its first estimate alone."""
    op.create_table(
        "vintages",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("release_id", KEY, sa.ForeignKey("releases.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("basis", sa.Text, nullable=False),
        sa.Column("staged_hash", sa.Text, nullable=False),
        sa.Column("published_name", sa.Text, nullable=False),
        sa.Column("published", sa.Boolean, nullable=False),
        sa.UniqueConstraint("release_id", "number", name="one_vintage"),
    )
