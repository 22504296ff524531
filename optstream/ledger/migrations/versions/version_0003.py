"""A privacy guarantee may be amended, a release withdrawn, its noise found to be compromised."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
REFUSAL = "the ledger only appends here"
PROMISE = "epsilon, window_length, alpha, unit, leaves_per_step, windows"


def upgrade() -> None:
    """Keep the guarantee of each privacy budget so far as its amendment 0, and say so of every release."""
    op.create_table(
        "amendments",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("grant_id", KEY, sa.ForeignKey("grants.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("epsilon", sa.Text, nullable=False),
        sa.Column("window_length", sa.BigInteger, nullable=False),
        sa.Column("alpha", sa.Text, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("leaves_per_step", sa.BigInteger, nullable=False),
        sa.Column("windows", sa.Text, nullable=False),
        sa.UniqueConstraint("grant_id", "number", name="one_amendment"),
    )
    op.execute(
        f"INSERT INTO amendments (grant_id, number, {PROMISE}) "
        f"SELECT id, 0, {PROMISE} FROM grants ORDER BY id"
    )
    for table in ("grants", "releases"):
        op.add_column(table, sa.Column("amendment", sa.Integer, nullable=False, server_default="0"))
    for name in ("withdrawn", "compromised"):
        op.add_column("releases", sa.Column(name, sa.Text))
    _refuse_changes()


def _refuse_changes() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for verb in ("UPDATE", "DELETE"):
        action = (
            "FOR EACH ROW EXECUTE FUNCTION optstream_append_only()"
            if postgresql
            else f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )
        op.execute(f"CREATE TRIGGER amendments_no_{verb.lower()} BEFORE {verb} ON amendments {action}")
    if postgresql:
        op.execute(
            "CREATE TRIGGER amendments_no_truncate BEFORE TRUNCATE ON amendments "
            "FOR EACH STATEMENT EXECUTE FUNCTION optstream_append_only()"
        )
