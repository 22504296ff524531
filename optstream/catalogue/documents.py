"""Documents that machines read, each one pydantic model: their values, checks and JSON Schemas.

What follows from other values, such as sentences and names of files, is a field too, and is never read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, SkipJsonSchema
from pydantic_core import core_schema

from optstream.errors import OptStreamError, ParameterError, PublicationError
from optstream.privacy.exact import exact_from_text
from optstream.stream.period import period_from

WRITTEN_OTHERWISE: tuple[type[Exception], ...] = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError),
)
"""What reading a document raises that is not as OptStream writes it; anyone may have written it."""


@contextmanager
def as_written(otherwise: str, *also: type[Exception]) -> Iterator[None]:
    """Raise PublicationError, with these words, if the block reads data that OptStream does not write."""
    try:
        yield
    except WRITTEN_OTHERWISE + also as error:
        raise PublicationError(otherwise) from error


LONGEST_TEXT = 200
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
PARTITION = f"date={DAY}(/hour=[0-9]{{2}}B?)?"  # the folder of a local day, or of an hour of one
EXACT: JsonSchemaValue = {
    "type": "string",
    "pattern": "^[0-9]+(/[0-9]+)?$",
    "description": "exact: a whole number, or numerator/denominator",
}
Given = TypeVar("Given")


def _amount(value: object) -> Fraction:
    amount = value if isinstance(value, Fraction) else exact_from_text(value)
    if amount < 0:
        raise ValueError(f"must be at least 0; got {amount}")
    return amount


def _signed(value: object) -> Fraction:
    if isinstance(value, str) and value.startswith("-"):
        return -exact_from_text(value[1:])
    return value if isinstance(value, Fraction) else exact_from_text(value)


def _period(value: object) -> date:
    if isinstance(value, str):
        return period_from(value)
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError("must be a local day, or an hour of one")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT or not value.isprintable():
        raise ValueError(f"must be printable text of 1 to {LONGEST_TEXT} characters")
    return value


Amount = Annotated[Fraction, PlainValidator(_amount), PlainSerializer(str), WithJsonSchema(EXACT)]
"""An exact number of at least 0."""
Signed = Annotated[
    Fraction,
    PlainValidator(_signed),
    PlainSerializer(str),
    WithJsonSchema(EXACT | {"pattern": "^-?[0-9]+(/[0-9]+)?$"}),
]
"""An exact number."""
Period = Annotated[
    date,
    PlainValidator(_period),
    PlainSerializer(lambda period: period.isoformat()),  # an hour has its own
    WithJsonSchema({"type": "string", "pattern": f"^{DAY}(T[0-9]{{2}}B?)?$"}),
]
"""A local day, or an hour of one."""
Name = Annotated[
    str, PlainValidator(_text), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT})
]
"""A line of printable text."""
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # a SHA-256
Count = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]
Text = Annotated[str, Field(min_length=1)]
Several = Annotated[list[Given], Field(min_length=1)]
OrAbsent = Union[Given, SkipJsonSchema[None]]  # noqa: UP007  # `|` of a variable is no type that takes one
"""A key that may be absent, and is never null."""


def absent(description: str | None = None, default: Any = None, **others: Any) -> Any:
    """Return the field of a key that is left out where it has its default."""
    return Field(default, description=description, exclude_if=lambda value: value == default, **others)


class Document(BaseModel):
    """A document, or a part of one, that others read. Raises ParameterError, which names a wrong field."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    called: ClassVar[str] = "a part of a document"  # what errors call it

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            # without the names that pydantic gives to the members of a union
            place = ".".join(part for part in map(str, first["loc"]) if not set("[-") & set(part))
            rule = first["msg"].removeprefix("Value error, ")
            where = " of ".join(filter(None, (place, self.called)))
            raise ParameterError(f"{where}: {rule}" if place else rule) from error

    # pydantic makes parts, and what it reads, without calling this
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def _derived(self) -> Mapping[str, Any]:
        """Return the fields that follow from the others."""
        return {}

    @model_validator(mode="after")
    def _derive(self) -> Self:
        self.__dict__.update(self._derived())
        return self

    def changed(self, **changes: Any) -> Self:
        """Return the document with other values of some fields, checked again."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def to_json(self) -> dict[str, Any]:
        """Return the document JSON-ready: exact numbers as text, absent keys left out."""
        return self.model_dump(mode="json")

    @classmethod
    def read(cls, document: object) -> Self:
        """Return what a JSON document says, which anyone may have written, or raise PublicationError."""
        # keys that it does not know are not read: a later version may have added them
        with as_written(f"{cls.called} is not as OptStream writes it", OptStreamError):
            return cls.model_validate(document, extra="ignore")


class Part(BaseModel):
    """A part of a document that is printed; made of a mapping, or of a value's attributes."""

    model_config = ConfigDict(defer_build=True, extra="forbid", from_attributes=True, use_enum_values=True)


def _written(value: Any) -> Any:
    """Return instants in UTC, and local days and hours, as texts of ISO 8601."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else value


PeriodText = Annotated[str, BeforeValidator(_written), Field(pattern=f"^{DAY}(T[0-9]{{2}}B?)?$")]
Instant = Annotated[str, BeforeValidator(_written), Field(json_schema_extra={"format": "date-time"})]


class _Plain(GenerateJsonSchema):
    """Pydantic's schemas without titles and defaults; only keys that may be absent are not required."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema without its default."""
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema with the first paragraph of the class."""
        found = super().model_schema(schema)
        found.pop("title", None)
        if "description" in found:
            found["description"] = found["description"].partition("\n\n")[0]
        return found

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Return whether a key is always there."""
        if self.mode == "serialization" and field["type"] == "model-field":
            return "serialization_exclude_if" not in field
        return super().field_is_required(field, total)


def json_schema(kind: type[BaseModel], name: str, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the format called `name`; keys not listed are refused."""
    schema = kind.model_json_schema(mode="serialization", schema_generator=_Plain)
    head = {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"urn:{name.replace('.', ':').replace('/', ':')}",
    }
    return {**head, **schema, "title": title}
