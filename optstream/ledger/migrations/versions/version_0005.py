"""A stream's hierarchy may change from a day on: the list of its trees, by first step and hash."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; a stream from before has one tree, which its hash identifies."""
    op.add_column("streams", sa.Column("hierarchy", sa.Text, nullable=False, server_default="[]"))
