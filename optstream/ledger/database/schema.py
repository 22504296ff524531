"""The tables. Exact numbers are text; spends and events are written once and never touched again.

What is here is what the queries go by. Databases are made and changed by `migrations`, and by nothing else; a
test compares the two.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA = "0004"
"""The newest of `migrations`: numbers of four digits, each one more than the one before."""

# SQLite gives a row number of its own only to a column of exactly this type
Key = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()


def _guarantee() -> list[Column[Any]]:
    """Return what a budget privacy guarantees: now, and in each of its amendments."""
    return [
        Column("epsilon", Text, nullable=False),
        Column("window_length", BigInteger, nullable=False),
        Column("alpha", Text, nullable=False),
        Column("unit", Text, nullable=False),
        Column("leaves_per_step", BigInteger, nullable=False),
        Column("windows", Text, nullable=False),
    ]


# Programs from before the migrations look here, and refuse a number that they do not know.
schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

grants = Table(
    "grants",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    *_guarantee(),
    Column("calendar", Text, nullable=False),
    # the most steps of any spend: how far before a window a spend that reaches into it may begin
    Column("longest_spend", BigInteger, nullable=False),
    # the number of the amendment that these columns are
    Column("amendment", Integer, nullable=False, server_default="0"),
)

# the guarantees of a privacy budget, from its first terms (number 0) on: old spends are priced anew
amendments = Table(
    "amendments",
    metadata,
    Column("id", Key, primary_key=True),
    Column("grant_id", ForeignKey("grants.id"), nullable=False),
    Column("number", Integer, nullable=False),
    *_guarantee(),
    UniqueConstraint("grant_id", "number", name="one_amendment"),
)

streams = Table(
    "streams",
    metadata,
    Column("id", Key, primary_key=True),
    Column("grant_id", ForeignKey("grants.id"), nullable=False, index=True),
    Column("name", Text, nullable=False, unique=True),
    Column("model", Text, nullable=False),
    Column("hierarchy_hash", Text, nullable=False),
    Column("calibration", Text, nullable=False),
    Column("calendar", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("n_events", BigInteger, nullable=False),
)

releases = Table(
    "releases",
    metadata,
    Column("id", Key, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False),
    Column("period", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_until", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("drawing", Boolean, nullable=False),
    Column("redraws", Integer, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("n_steps", BigInteger, nullable=False),
    # which of the release's generations of spends is charged, and its hash
    Column("generation", Integer, nullable=False),
    Column("spends_hash", Text, nullable=False),
    Column("measurements_hash", Text),
    Column("staged_hash", Text),
    Column("published_name", Text),
    Column("reason", Text),
    # the privacy budget's amendment under which it was planned
    Column("amendment", Integer, nullable=False, server_default="0"),
    # why it was taken out of the catalogue; why its noise protects nobody
    Column("withdrawn", Text),
    Column("compromised", Text),
    # a VOID release keeps its place: the period is never drawn again under the same revision
    UniqueConstraint("stream_id", "period", "revision", name="one_release"),
    Index("releases_by_step", "stream_id", "first_step"),
    CheckConstraint("state IN ('RESERVED', 'DRAWN', 'PUBLISHED', 'VOID')", name="known_state"),
)

# new estimates of published releases, from measurements that are charged already
vintages = Table(
    "vintages",
    metadata,
    Column("id", Key, primary_key=True),
    Column("release_id", ForeignKey("releases.id"), nullable=False),
    Column("number", Integer, nullable=False),
    # identifies the measurements that it was computed from
    Column("basis", Text, nullable=False),
    Column("staged_hash", Text, nullable=False),
    Column("published_name", Text, nullable=False),
    Column("published", Boolean, nullable=False),
    UniqueConstraint("release_id", "number", name="one_vintage"),
)

spends = Table(
    "spends",
    metadata,
    Column("id", Key, primary_key=True),
    Column("grant_id", ForeignKey("grants.id"), nullable=False),
    Column("release_id", ForeignKey("releases.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("n_steps", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("release_id", "generation", "position", name="one_spend"),
    Index("spends_by_step", "grant_id", "first_step"),
)

events = Table(
    "events",
    metadata,
    Column("id", Key, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("period", Text),
    Column("revision", Integer),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    UniqueConstraint("stream_id", "number", name="one_event"),
)
