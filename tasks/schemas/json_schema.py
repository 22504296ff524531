"""The JSON Schema of each format, made from the types of its document."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from optstream.errors import ParameterError
from tasks.monitor.document import Status
from tasks.schemas.catalogue import Catalogue, NumberedCatalogue
from tasks.schemas.fields import Part
from tasks.schemas.manifest import Manifest

DOCUMENTS: dict[str, tuple[type[Part], str, str]] = {
    "optstream.status/3": (
        Status,
        "optstream status --json",
        "Calendar, budget by the accountant, and alarms of a stream. Holds no reading; for operators.",
    ),
    "optstream.manifest/1": (
        Manifest,
        "The manifest of a published release",
        "What a release is, protects and cost. Public.",
    ),
    "optstream.catalogue/1": (
        Catalogue,
        "catalogue.json of a published folder",
        "Which file is the release of which day. Public.",
    ),
    "optstream.catalogue/2": (
        NumberedCatalogue,
        "catalogue.json of a published folder whose catalogues are signed",
        "Which file is the release of which day, numbered. Public. Its signature is in signatures/.",
    ),
}
"""The type of each format, with the title and the description of its schema."""


class _Plain(GenerateJsonSchema):
    """Pydantic's, but a key's name is not said again as its title, and an absent key has no default."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a format such as "optstream.status/3".

    Keys that it does not list are refused, but for parameters of mechanisms. Raises ParameterError for a name
    that no format has.
    """
    if name not in DOCUMENTS:
        raise ParameterError(f"a format with a schema must be one of {', '.join(DOCUMENTS)}; got {name!r}")
    kind, title, description = DOCUMENTS[name]
    schema = kind.model_json_schema(mode="serialization", schema_generator=_Plain)
    for part in schema.get("$defs", {}).values():
        part.pop("title", None)
    head = {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"urn:{name.replace('.', ':').replace('/', ':')}",
    }
    return {**head, **schema, "title": title, "description": description}
