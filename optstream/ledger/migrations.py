"""The ledger's tables, a step for each schema, run through alembic. No step is ever edited.

A step imports nothing that may change. SQLite copies a table to change a column (`op.batch_alter_table`), and
the copy has no triggers: a step that changes spends or events makes them again.
"""

import sqlalchemy as sa
from alembic.operations import Operations

# SQLite gives a row number of its own only to a column of exactly this type
KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
REFUSAL = "the ledger only appends here"
GUARANTEE = "epsilon, window_length, alpha, unit, leaves_per_step, windows"


def _key() -> sa.Column[int]:
    return sa.Column("id", KEY, primary_key=True)


def _refers(name: str, key: str, index: bool = False) -> sa.Column[int]:
    return sa.Column(name, KEY, sa.ForeignKey(key), nullable=False, index=index)


def _text(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def _whole(*names: str, kind: type[sa.Integer] = sa.BigInteger) -> list[sa.Column[int]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _refuse_changes(op: Operations, *tables: str) -> None:
    action = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    if op.get_bind().dialect.name == "postgresql":
        action = "FOR EACH ROW EXECUTE FUNCTION optstream_append_only()"
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            op.execute(f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {action}")


def _refuse_truncate(op: Operations, *tables: str) -> None:
    """Refuse PostgreSQL's TRUNCATE, which fires no triggers for rows."""
    if op.get_bind().dialect.name == "postgresql":
        for table in tables:
            op.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION optstream_append_only()"
            )


def make_tables(op: Operations) -> None:
    """Make the first tables, spends and events append-only, as they were before there were migrations."""
    op.create_table("schema_version", sa.Column("version", sa.Integer, nullable=False))
    op.execute("INSERT INTO schema_version (version) VALUES (1)")
    op.create_table(
        "grants",
        _key(),
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
        _key(),
        _refers("grant_id", "grants.id", index=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_text("model", "hierarchy_hash", "calibration", "calendar", "document", "head"),
        *_whole("n_events"),
    )
    op.create_table(
        "releases",
        _key(),
        _refers("stream_id", "streams.id"),
        *_text("period"),
        *_whole("revision", kind=sa.Integer),
        *_text("state", "owner", "lease_until"),
        *_whole("fence"),
        sa.Column("drawing", sa.Boolean, nullable=False),
        *_whole("redraws", kind=sa.Integer),
        *_whole("first_step", "n_steps"),
        *_whole("generation", kind=sa.Integer),
        *_text("spends_hash"),
        *_text("measurements_hash", "staged_hash", "published_name", "reason", nullable=True),
        sa.UniqueConstraint("stream_id", "period", "revision", name="one_release"),
        sa.CheckConstraint("state IN ('RESERVED', 'DRAWN', 'PUBLISHED', 'VOID')", name="known_state"),
    )
    op.create_index("releases_by_step", "releases", ["stream_id", "first_step"])
    op.create_table(
        "spends",
        _key(),
        _refers("grant_id", "grants.id"),
        _refers("release_id", "releases.id"),
        *_whole("generation", "position", kind=sa.Integer),
        *_whole("first_step", "n_steps"),
        *_text("document"),
        sa.UniqueConstraint("release_id", "generation", "position", name="one_spend"),
    )
    op.create_index("spends_by_step", "spends", ["grant_id", "first_step"])
    op.create_table(
        "events",
        _key(),
        _refers("stream_id", "streams.id"),
        *_whole("number"),
        *_text("at", "kind"),
        *_text("period", nullable=True),
        sa.Column("revision", sa.Integer),
        *_text("body", "previous"),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.UniqueConstraint("stream_id", "number", name="one_event"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE OR REPLACE FUNCTION optstream_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN RAISE EXCEPTION ''{REFUSAL}''; END'"
        )
    _refuse_changes(op, "spends", "events")


def stop_old_programs(op: Operations) -> None:
    """Refuse TRUNCATE, and raise the number at which programs from before the migrations refuse."""
    _refuse_truncate(op, "spends", "events")
    op.execute("UPDATE schema_version SET version = 2")


def add_amendments(op: Operations) -> None:
    """Let a guarantee be amended, a release withdrawn, its noise compromised; the first is amendment 0."""
    op.create_table(
        "amendments",
        _key(),
        _refers("grant_id", "grants.id"),
        *_whole("number", kind=sa.Integer),
        *_text("epsilon"),
        *_whole("window_length"),
        *_text("alpha", "unit"),
        *_whole("leaves_per_step"),
        *_text("windows"),
        sa.UniqueConstraint("grant_id", "number", name="one_amendment"),
    )
    op.execute(
        f"INSERT INTO amendments (grant_id, number, {GUARANTEE}) "
        f"SELECT id, 0, {GUARANTEE} FROM grants ORDER BY id"
    )
    for table in ("grants", "releases"):
        op.add_column(table, sa.Column("amendment", sa.Integer, nullable=False, server_default="0"))
    _add_text(op, "releases", "withdrawn", "compromised")
    _refuse_changes(op, "amendments")
    _refuse_truncate(op, "amendments")


def add_vintages(op: Operations) -> None:
    """Let a published release be estimated again; without a row it has its first estimate alone."""
    op.create_table(
        "vintages",
        _key(),
        _refers("release_id", "releases.id"),
        *_whole("number", kind=sa.Integer),
        *_text("basis", "staged_hash", "published_name"),
        sa.Column("published", sa.Boolean, nullable=False),
        sa.UniqueConstraint("release_id", "number", name="one_vintage"),
    )


def add_hierarchies(op: Operations) -> None:
    """List a stream's trees by first step and hash; earlier streams have one, which its hash identifies."""
    op.add_column("streams", sa.Column("hierarchy", sa.Text, nullable=False, server_default="[]"))


def add_delta(op: Operations) -> None:
    """Add delta and rho of zero-concentrated privacy; earlier guarantees have an epsilon alone."""
    for table in ("grants", "amendments"):
        _add_text(op, table, "delta", "rho")


def _add_text(op: Operations, table: str, *names: str) -> None:
    for column in _text(*names, nullable=True):
        op.add_column(table, column)


STEPS = (make_tables, stop_old_programs, add_amendments, add_vintages, add_hierarchies, add_delta)
"""Step n makes schema n, from 1 on, of the schema before."""
