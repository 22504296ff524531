"""Public facts in `about.json` and `hierarchy.parquet`; no figure and no configuration's hash uses them."""

import io
import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
    model_validator,
)

from optstream.catalogue.backends import Readable, read_if_any
from optstream.catalogue.documents import Document, OrAbsent, absent, as_written
from optstream.catalogue.layout import ABOUT, HIERARCHY
from optstream.catalogue.rows import HIERARCHY_COLUMNS
from optstream.catalogue.signing import Signer, put_fact
from optstream.errors import OptStreamError, PublicationError
from optstream.storage.parquet import Limits, decode_table
from optstream.storage.store import Location
from optstream.stream import DatedHierarchy, Unit

LONGEST_NAME, LONGEST_LINE = 100, 200
MOST_NAMED = 20  # releases that words name


def _line(longest: int) -> AfterValidator:
    def check(text: str) -> str:
        # it may stand on a page as a name: no control characters, no reversed text
        if not (0 < len(text) <= longest and text.isprintable() and text == text.strip()):
            raise ValueError(f"must be printable text of 1 to {longest} characters")
        return text

    return AfterValidator(check)


def _address(text: str) -> str:
    if not text.startswith(("http://", "https://")) or " " in text:
        raise ValueError("must begin with http:// or https:// and hold no space")
    return text


Line = Annotated[str, _line(LONGEST_LINE)]
Address = Annotated[Line, AfterValidator(_address)]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
KnownNoise = Annotated[
    tuple[Line, Line],
    BeforeValidator(lambda one: (one["stream"], one["period"]) if isinstance(one, Mapping) else one),
    PlainSerializer(lambda one: {"stream": one[0], "period": one[1]}),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"stream": {"type": "string"}, "period": {"type": "string"}},
            "required": ["stream", "period"],
        }
    ),
]
"""Stream and period of a release."""


class NodeFacts(Document):
    """A node as people know it; a key that is not given is None, and a place has both coordinates."""

    called: ClassVar[str] = ""
    name: OrAbsent[Annotated[str, _line(LONGEST_NAME)]] = absent()
    latitude: OrAbsent[Latitude] = absent()
    longitude: OrAbsent[Longitude] = absent()

    @model_validator(mode="after")
    def _has_a_place(self) -> "NodeFacts":
        if (self.latitude is None) != (self.longitude is None):
            raise ValueError("latitude and longitude must be given together")
        return self


def called(node: str, facts: Mapping[str, NodeFacts]) -> str:
    """Return how people call a node: its name with its code, "Bretagne (53)", or the code alone."""
    known = facts.get(node)
    return node if known is None or known.name in (None, node) else f"{known.name} ({node})"


class About(Document):
    """Publisher, licence, names and places of nodes, and noise that became known. Public.

    `known_noise`: stream and period of each release of the privacy budget whose noise others know.
    """

    called: ClassVar[str] = ""
    format: Literal["optstream.about/1"] = "optstream.about/1"
    stream: str = ""
    publisher: OrAbsent[Line] = absent()
    licence: OrAbsent[Line] = absent()
    title: OrAbsent[Line] = absent()
    description: OrAbsent[Line] = absent()
    contact: OrAbsent[Line] = absent()
    citation: OrAbsent[Line] = absent()
    intended_use: OrAbsent[Line] = absent()
    region: OrAbsent[Line] = absent()
    sector: OrAbsent[Line] = absent()
    curator_type: OrAbsent[Line] = absent()
    address: OrAbsent[Address] = absent()
    licence_address: OrAbsent[Address] = absent()
    nodes: Mapping[str, NodeFacts] = Field(default_factory=dict)
    known_noise: Annotated[tuple[KnownNoise, ...], Strict(False)] = absent(None, ())

    def _derived(self) -> Mapping[str, Any]:
        return {"nodes": dict(sorted(self.nodes.items()))}

    @property
    def known_noise_in_words(self) -> str:
        """Which windows are not protected; "" where no noise became known."""
        if not self.known_noise:
            return ""
        named = ", ".join(f"{stream} {period}" for stream, period in self.known_noise[:MOST_NAMED])
        more = len(self.known_noise) - MOST_NAMED
        rest = f" and {more:,} more, which {ABOUT} names" if more > 0 else ""
        return (
            f"The noise of {len(self.known_noise):,} release(s) of this privacy budget became known ({named}"
            f"{rest}): windows with a step of one of them are not protected, whatever else is said of them."
        )

    def to_bytes(self) -> bytes:
        return (json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


TEXTS = tuple(name for name, one in About.model_fields.items() if one.default is None)
"""What may be said of the whole series, each a line."""


def read_about(storage: Readable, check: Callable[[bytes], object] | None = None) -> About:
    """Return `about.json`, empty where there is none; `check` is called with its bytes before parsing."""
    data = read_if_any(storage, ABOUT, check)
    return About() if data is None else parse_about(data)


def parse_about(data: bytes) -> About:
    """Parse the bytes of `about.json`, ignoring unknown keys. Raises PublicationError."""
    words = f"{ABOUT} is not of format optstream.about/1; `optstream report` replaces it, or remove it"
    with as_written(words, PublicationError):
        document: Any = json.loads(data)
        if not {"format", "nodes"} <= document.keys():
            raise ValueError
        return About.read(document)


def put_about(folder: Location | str, about: About, signer: Signer | None = None) -> bool:
    """Atomically replace `about.json`, signed if there is a key; where it would say nothing, none is made."""
    is_needed = about != About(stream=about.stream)
    return put_fact(folder, ABOUT, about.to_bytes(), is_needed, signer)


# `hierarchy.parquet`: which units the hierarchy had on which days, and what each became. It is there where
# the hierarchy ever changed, or will on a known day; rows of releases keep the codes of their day and are
# joined to it by node and date.

LIMITS = Limits(rows=2**23, columns=6)
FIRST, LAST = ((date(year, 1, 1) - date(1970, 1, 1)).days for year in (2, 9999))
"""Days since 1970 of the first and the last permitted date; Python also has the days just outside them."""
COLUMNS = {one.name: one.type for one in HIERARCHY_COLUMNS}


def hierarchy_rows(hierarchy: DatedHierarchy, names: Callable[[str], str | None]) -> pl.DataFrame:
    """Return a row for each unit while its code and its parent stay the same; names: of a node, or None."""
    rows = [
        (one.code, one.parent, names(one.code), one.valid_from, one.valid_until, ";".join(one.became) or None)
        for one in hierarchy.units()
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def put_hierarchy(
    folder: Location | str,
    hierarchy: DatedHierarchy,
    names: Callable[[str], str | None],
    signer: Signer | None = None,
) -> bool:
    """Atomically replace `hierarchy.parquet`, signed if there is a key; none is made without changes."""
    buffer = io.BytesIO()
    hierarchy_rows(hierarchy, names).write_parquet(buffer, compression="zstd", statistics=False)
    return put_fact(folder, HIERARCHY, buffer.getvalue(), bool(hierarchy.changes), signer)


def find_hierarchy(
    storage: Readable, check: Callable[[bytes], object] | None = None
) -> DatedHierarchy | None:
    """Return the dated hierarchy of a published folder, None where it never changed."""
    data = read_if_any(storage, HIERARCHY, check)
    if data is None:
        return None
    words = f"{HIERARCHY} is not as OptStream writes it; `optstream report` rebuilds it"
    with as_written(words, OptStreamError):
        rows, _ = decode_table(data, LIMITS, HIERARCHY)
        if [*rows.schema.items()] != [*COLUMNS.items()] or rows["node"].has_nulls():
            raise ValueError
        # looked at as numbers, for polars panics at dates far away
        days = rows.select(pl.col("valid_from", "valid_until").to_physical())
        if not all(day.is_between(FIRST, LAST).all() for day in days):
            raise ValueError
        return DatedHierarchy.of_units(
            [
                # no node of a configuration has a semicolon in its name
                Unit(node, parent, first, last, tuple(became.split(";")) if became else ())
                for node, parent, _, first, last, became in rows.iter_rows()
            ]
        )
