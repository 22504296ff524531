"""A privacy budget may be one of zero-concentrated privacy: its delta, and what any window may be charged."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns; a guarantee from before has an epsilon alone, and neither of them."""
    for table in ("grants", "amendments"):
        op.add_column(table, sa.Column("delta", sa.Text))
        op.add_column(table, sa.Column("rho", sa.Text))
