"""The first schema, as it was before there were migrations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# SQLite gives a row number of its own only to a column of exactly this type
KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
APPEND_ONLY = ("spends", "events")
REFUSAL = "the ledger only appends here"


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _whole(*names: str, kind: type[sa.Integer] = sa.BigInteger) -> list[sa.Column[int]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def upgrade() -> None:
    """Make the tables, and have the database refuse changes of spends and events."""
    op.create_table("schema_version", sa.Column("version", sa.Integer, nullable=False))
    op.execute("INSERT INTO schema_version (version) VALUES (1)")
    _make_promises()
    _make_releases()
    _make_journals()
    _refuse_changes()


def _make_promises() -> None:
    op.create_table(
        "grants",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_text("epsilon"),
        *_whole("window_length"),
        *_text("alpha", "unit"),
        *_whole("leaves_per_step"),
        *_text("windows", "calendar"),
        *_whole("longest_spend"),
    )
    op.create_table(
        "streams",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("grant_id", KEY, sa.ForeignKey("grants.id"), nullable=False, index=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_text("model", "hierarchy_hash", "calibration", "calendar", "document", "head"),
        *_whole("n_events"),
    )


def _make_releases() -> None:
    op.create_table(
        "releases",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("streams.id"), nullable=False),
        *_text("period"),
        *_whole("revision", kind=sa.Integer),
        *_text("state", "owner", "lease_until"),
        *_whole("fence"),
        sa.Column("drawing", sa.Boolean, nullable=False),
        *_whole("redraws", kind=sa.Integer),
        *_whole("first_step", "n_steps"),
        *_whole("generation", kind=sa.Integer),
        *_text("spends_hash"),
        *(
            sa.Column(name, sa.Text)
            for name in ("measurements_hash", "staged_hash", "published_name", "reason")
        ),
        sa.UniqueConstraint("stream_id", "period", "revision", name="one_release"),
        sa.CheckConstraint("state IN ('RESERVED', 'DRAWN', 'PUBLISHED', 'VOID')", name="known_state"),
    )
    op.create_index("releases_by_step", "releases", ["stream_id", "first_step"])


def _make_journals() -> None:
    op.create_table(
        "spends",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("grant_id", KEY, sa.ForeignKey("grants.id"), nullable=False),
        sa.Column("release_id", KEY, sa.ForeignKey("releases.id"), nullable=False),
        *_whole("generation", "position", kind=sa.Integer),
        *_whole("first_step", "n_steps"),
        *_text("document"),
        sa.UniqueConstraint("release_id", "generation", "position", name="one_spend"),
    )
    op.create_index("spends_by_step", "spends", ["grant_id", "first_step"])
    op.create_table(
        "events",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("streams.id"), nullable=False),
        *_whole("number"),
        *_text("at", "kind"),
        sa.Column("period", sa.Text),
        sa.Column("revision", sa.Integer),
        *_text("body", "previous"),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.UniqueConstraint("stream_id", "number", name="one_event"),
    )


def _refuse_changes() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute(
            "CREATE OR REPLACE FUNCTION optstream_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN RAISE EXCEPTION ''{REFUSAL}''; END'"
        )
        action = "FOR EACH ROW EXECUTE FUNCTION optstream_append_only()"
    else:
        action = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    for table in APPEND_ONLY:
        for verb in ("UPDATE", "DELETE"):
            op.execute(f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {action}")
