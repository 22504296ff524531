"""What values of several documents are."""

from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar, Union

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
Date = Annotated[str, Field(pattern=f"^{DAY}$")]


def _written(value: Any) -> Any:
    """Instants in UTC, and local days and hours, as texts of ISO 8601."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else value


Period = Annotated[str, BeforeValidator(_written), Field(pattern=f"^{DAY}(T[0-9]{{2}}B?)?$")]
"""A local day, or an hour of one."""
PARTITION = f"date={DAY}(/hour=[0-9]{{2}}B?)?"
"""The folder of one."""
Instant = Annotated[str, BeforeValidator(_written), Field(json_schema_extra={"format": "date-time"})]
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
    """An object of a document, which has no other keys; made of a mapping, or of a value's attributes."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, use_enum_values=True)
