"""The table [published]: where releases go, what lies beside them, and what describes them."""

from typing import Literal

from pydantic import Field

from optstream.catalogue.about import LONGEST_LINE
from tasks.config.tables.base import Section
from tasks.config.tables.fields import ClockTime, Column, ShownLine, WebAddress

FOLDER = "the path of a folder, relative to the configuration file's folder or absolute"
PLACE = f"{FOLDER}, or the URL of one in an object store, such as s3://bucket/folder"
COLUMN = "the name of a column"
SHORT_TEXT = f"a printable text of 1 to {LONGEST_LINE} characters, without spaces around it"
WEB_ADDRESS = "an address that begins with http:// or https:// and holds no space"
MOST_KEYS = 100


class PublishedAbout(Section):
    """What machine-readable descriptions of the published folder say beside publisher and licence."""

    title: ShownLine | None = Field(None, description=SHORT_TEXT)
    description: ShownLine | None = Field(None, description=SHORT_TEXT)
    contact: ShownLine | None = Field(None, description=SHORT_TEXT)
    citation: ShownLine | None = Field(None, description=SHORT_TEXT)
    address: WebAddress | None = Field(None, description=WEB_ADDRESS)
    licence_address: WebAddress | None = Field(None, description=WEB_ADDRESS)
    intended_use: ShownLine | None = Field(None, description=SHORT_TEXT)
    region: ShownLine | None = Field(None, description=SHORT_TEXT)
    sector: ShownLine | None = Field(None, description=SHORT_TEXT)
    curator_type: ShownLine | None = Field(None, description=SHORT_TEXT)


class Published(Section):
    folder: str = Field(min_length=1, description=PLACE)
    value: Column = Field(description=COLUMN)
    rounding: Literal["nearest", "unbiased"] = Field("nearest", description='"nearest" or "unbiased"')
    not_before: ClockTime | None = Field(
        None, description='a clock time such as "06:00", of the day after a day, or so long after an hour'
    )
    errors: bool = Field(True, description="true or false")
    measurements: bool = Field(False, description="true or false")
    publisher: ShownLine | None = Field(None, description=SHORT_TEXT)
    licence: ShownLine | None = Field(None, description=SHORT_TEXT)
    about: PublishedAbout = PublishedAbout()
    signing_key: str | None = Field(
        None,
        min_length=1,
        description="the path of a file in the trusted folder, made by `optstream keys new`",
    )
    public_keys: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=MOST_KEYS,
        description=f"a list of at most {MOST_KEYS} paths of PEM files with public keys",
    )
