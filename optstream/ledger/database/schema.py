"""The tables, as typed rows. Exact numbers are text; spends and events are written once and never touched
again.

What is here is what the queries go by. Databases are made and changed by `migrations`, and by nothing else; a
test compares the two. There are no sessions: `rows.rows` reads plain rows, typed as these classes.
"""

from typing import Annotated

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text
from sqlalchemy import UniqueConstraint as Unique
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from optstream.privacy.model import Unit, Windows

SCHEMA = "0006"
"""The newest of `migrations`: numbers of four digits, each one more than the one before."""

# SQLite gives a row number of its own only to a column of exactly this type
Key = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)]
Small = Annotated[int, mapped_column(Integer)]
GrantId = Annotated[int, mapped_column(ForeignKey("grants.id"))]
StreamId = Annotated[int, mapped_column(ForeignKey("streams.id"))]
ReleaseId = Annotated[int, mapped_column(ForeignKey("releases.id"))]
# the number of a privacy budget's amendment
Amendment = Annotated[int, mapped_column(Integer, server_default="0")]


class Row(DeclarativeBase):
    """A row of a table that has numbered rows."""

    type_annotation_map = {str: Text, int: BigInteger, Unit: Text, Windows: Text}  # noqa: RUF012  # read once

    id: Mapped[Key]


metadata = Row.metadata

# Programs from before the migrations look here, and refuse a number that they do not know.
Table("schema_version", metadata, Column("version", Integer, nullable=False))


class GuaranteeColumns:
    """What a budget privacy guarantees: now, and in each of its amendments.

    delta, rho: None where it is an epsilon alone.
    """

    epsilon: Mapped[str]
    window_length: Mapped[int]
    alpha: Mapped[str]
    unit: Mapped[Unit]
    leaves_per_step: Mapped[int]
    windows: Mapped[Windows]
    delta: Mapped[str | None]
    rho: Mapped[str | None]


class GrantRow(GuaranteeColumns, Row):
    """A privacy budget.

    longest_spend: the most steps of any spend: how far before a window one that reaches into it may begin.
    amendment: the number of the amendment that its guarantee is.
    """

    __tablename__ = "grants"

    name: Mapped[str] = mapped_column(unique=True)
    calendar: Mapped[str]
    longest_spend: Mapped[int]
    amendment: Mapped[Amendment]


class AmendmentRow(GuaranteeColumns, Row):
    """A guarantee of a privacy budget, from its first terms (number 0) on: old spends are priced anew."""

    __tablename__ = "amendments"
    __table_args__ = (Unique("grant_id", "number", name="one_amendment"),)

    grant_id: Mapped[GrantId]
    number: Mapped[Small]


class StreamRow(Row):
    """A stream under its terms.

    hierarchy: the list of its trees as JSON (`dated_trees.to_text`). head, n_events: hash of its last event,
    and how many there are.
    """

    __tablename__ = "streams"

    grant_id: Mapped[int] = mapped_column(ForeignKey("grants.id"), index=True)
    name: Mapped[str] = mapped_column(unique=True)
    model: Mapped[str]
    hierarchy_hash: Mapped[str]
    calibration: Mapped[str]
    calendar: Mapped[str]
    document: Mapped[str]
    hierarchy: Mapped[str] = mapped_column(server_default="[]")
    head: Mapped[str]
    n_events: Mapped[int]


class ReleaseRow(Row):
    """A release. A VOID one keeps its place: the period is never drawn again under the same revision.

    generation, spends_hash: which of the release's generations of spends is charged, and its hash.
    amendment: that of the privacy budget under which it was planned. withdrawn, compromised: why it was taken
    out of the catalogue, and why its noise protects nobody.
    """

    __tablename__ = "releases"
    __table_args__ = (
        Unique("stream_id", "period", "revision", name="one_release"),
        Index("releases_by_step", "stream_id", "first_step"),
        CheckConstraint("state IN ('RESERVED', 'DRAWN', 'PUBLISHED', 'VOID')", name="known_state"),
    )

    stream_id: Mapped[StreamId]
    period: Mapped[str]
    revision: Mapped[Small]
    state: Mapped[str]
    owner: Mapped[str]
    lease_until: Mapped[str]
    fence: Mapped[int]
    drawing: Mapped[bool]
    redraws: Mapped[Small]
    first_step: Mapped[int]
    n_steps: Mapped[int]
    generation: Mapped[Small]
    spends_hash: Mapped[str]
    measurements_hash: Mapped[str | None]
    staged_hash: Mapped[str | None]
    published_name: Mapped[str | None]
    reason: Mapped[str | None]
    amendment: Mapped[Amendment]
    withdrawn: Mapped[str | None]
    compromised: Mapped[str | None]


class VintageRow(Row):
    """A new estimate of a published release, from measurements that are charged already: those of `basis`."""

    __tablename__ = "vintages"
    __table_args__ = (Unique("release_id", "number", name="one_vintage"),)

    release_id: Mapped[ReleaseId]
    number: Mapped[Small]
    basis: Mapped[str]
    staged_hash: Mapped[str]
    published_name: Mapped[str]
    published: Mapped[bool]


class SpendRow(Row):
    """A spend of one of a release's generations, and its place there."""

    __tablename__ = "spends"
    __table_args__ = (
        Unique("release_id", "generation", "position", name="one_spend"),
        Index("spends_by_step", "grant_id", "first_step"),
    )

    grant_id: Mapped[GrantId]
    release_id: Mapped[ReleaseId]
    generation: Mapped[Small]
    position: Mapped[Small]
    first_step: Mapped[int]
    n_steps: Mapped[int]
    document: Mapped[str]


class EventRow(Row):
    """What happened to a stream, or to the release that period and revision name."""

    __tablename__ = "events"
    __table_args__ = (Unique("stream_id", "number", name="one_event"),)

    stream_id: Mapped[StreamId]
    number: Mapped[int]
    at: Mapped[str]
    kind: Mapped[str]
    period: Mapped[str | None]
    revision: Mapped[int | None] = mapped_column(Integer)
    body: Mapped[str]
    previous: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
