"""What values of several documents are."""

from typing import Annotated, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
Date = Annotated[str, Field(pattern=f"^{DAY}$")]
Period = Annotated[str, Field(pattern=f"^{DAY}(T[0-9]{{2}}B?)?$")]
"""A local day, or an hour of one."""
PARTITION = f"date={DAY}(/hour=[0-9]{{2}}B?)?"
"""The folder of one."""
Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Fraction = Annotated[
    str,
    Field(pattern="^[0-9]+(/[0-9]+)?$", description="exact: a whole number, or numerator/denominator"),
]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
DataFile = Annotated[
    str,
    Field(pattern=rf"^(data|superseded)/{PARTITION}/release-[0-9a-f]{{64}}\.parquet$"),
]
Given = TypeVar("Given")
Several = Annotated[list[Given], Field(min_length=1)]
OrAbsent = Union[Given, SkipJsonSchema[None]]  # noqa: UP007  # `|` of a variable is no type that takes one
"""A key that may be absent, and is never null."""


class Part(BaseModel):
    """An object of a document, which has no other keys."""

    model_config = ConfigDict(extra="forbid")
