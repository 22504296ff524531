"""The reference of files: contracts, columns, states, alarms, metrics, JSON documents, exported ledger."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from data_contracts import metrics, suites
from data_contracts.judge import Contract, columns_of
from flows.web.poll import LABELS, METRICS
from optstream.catalogue.rows import columns_of as published_columns
from tasks.ledger.export import COLUMNS
from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tasks.schemas import DOCUMENTS, schema_of

HEAD = """\
# Files and contracts

Look up files that come in, contracts that judge them, and files that go out.

## Dumps

`<input>/region=<code>/date=<YYYY-MM-DD>/*.parquet`, complete when the marker is there. Columns, unit and
marker are named by `[input]`: [Dumps, and layouts that change](../data/input.md).
"""
PUBLISHED = """\
## Published rows

`<published>/data/date=<YYYY-MM-DD>/release-<hash>.parquet`; `optstream.read_published` reads what the
catalogue lists ([The published folder](../data/published.md)). `[published] value` names the value
column. The column `date` is in the path, not in the file.

| column | type | what it is |
| --- | --- | --- |
"""
METERED = metrics.raw_columns(metered=True)
STOPPED = "the day stops; nothing is spent"
UNPUBLISHED = "it is not published; what it spent stays spent"


def data_page() -> str:
    """Markdown: everything above, from the code that reads and writes it."""
    parts = [HEAD]
    for heading, contract, columns, then in (
        ("the raw readings, a row a step", suites.raw_contract(metered=False), metrics.RAW, STOPPED),
        ("the raw readings, a row a customer and step", suites.raw_contract(metered=True), METERED, STOPPED),
        ("the release", suites.RELEASE_CONTRACT, metrics.RELEASE, UNPUBLISHED),
    ):
        parts += _contract(heading, contract, columns, then)
    columns = published_columns("load_mw", with_customers=True)
    rows = [f"| `{one.name}` | {one.type} | {one.meaning} |" for one in columns]
    parts += [PUBLISHED + "\n".join(rows)]
    parts += ["", "## States of a day\n", "| letter | state | the day … |", "| --- | --- | --- |"]
    parts += [f"| `{one.letter}` | {one.value} | {one.meaning} |" for one in State]
    parts += ["", "## Alarms\n", "| alarm | severity | when |", "| --- | --- | --- |"]
    parts += [f"| `{one.value}` | {one.severity} | {one.meaning} |" for one in Kind]
    parts += [
        "",
        "## Metrics\n",
        "Of each stream (label `stream`), at `/metrics` ([pages](../pages.md#prometheus)).\n",
        "| metric | more labels | value |",
        "| --- | --- | --- |",
    ]
    parts += [
        f"| `optstream_{name}` | {', '.join(LABELS.get(name, ()))} | {says} |"
        for name, says in METRICS.items()
    ]
    parts += [
        "",
        "## JSON documents\n",
        "`python -m tasks.schemas FORMAT` prints the JSON Schema (2020-12) of one.\n",
    ]
    for name in sorted(DOCUMENTS):
        parts += _document(name, schema_of(name))
    parts += ["## The exported ledger\n", "What `optstream ledger export` writes, for the trusted zone.\n"]
    for table, columns in COLUMNS.items():
        parts += [f"### {table}.parquet\n", "| column | type | what it is |", "| --- | --- | --- |"]
        parts += [f"| `{name}` | {kind} | {says} |" for name, (kind, says) in columns.items()]
        parts += [""]
    return "\n".join(parts)


def _contract(heading: str, contract: Contract, columns: Mapping[str, str], then: str) -> list[str]:
    """Tables of a frame's columns and of what its built-in suite expects of them."""
    lines = [f"## Contract of {heading}\n", "| metric | what it is |", "| --- | --- |"]
    lines += [f"| `{name}` | {says} |" for name, says in columns.items()]
    lines += ["", "| expectation | of | message | then |", "| --- | --- | --- | --- |"]
    for one in contract.suite:
        found = one.configuration
        said = found.meta["says"]
        effect = then if found.severity == "critical" else "an alarm in the trusted zone"
        of = ", ".join(f"`{name}`" for name in columns_of(found))
        for text in said.values() if isinstance(said, dict) else [said]:
            lines += [f"| {type(one).__name__.removeprefix('Expect')} | {of} | {text} | {effect} |"]
    return [*lines, ""]


def _document(name: str, schema: dict[str, Any]) -> list[str]:
    """A table of the document's keys, and of those of each of its parts."""
    lines = [f"### {schema['title']}\n", f"`{name}`. {schema.get('description', '')}\n"]
    parts = {"": schema, **{f"{part}: ": one for part, one in schema.get("$defs", {}).items()}}
    lines += ["| key | type | what it is |", "| --- | --- | --- |"]
    for prefix, part in [*parts.items(), *_objects(schema)]:
        for key, value in part.get("properties", {}).items():
            needed = "" if key in part.get("required", ()) else " (may be absent)"
            lines += [f"| `{prefix}{key}` | {_kind(value)} | {value.get('description', '')}{needed} |"]
    return [*lines, ""]


def _objects(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects within a schema that have no name of their own, by their keys."""
    for key, value in schema.get("properties", {}).items():
        if "properties" in value:
            yield f"{key}: ", value
            yield from _objects(value)


def _kind(value: dict[str, Any]) -> str:
    """The type of a schema's value, in a few words."""
    if "$ref" in value:
        return str(value["$ref"]).rsplit("/", 1)[-1]
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
    for several in ("oneOf", "anyOf"):
        if several in value:
            return " or ".join(_kind(one) for one in value[several])
    kind = value.get("type", "")
    named = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if named == "array":
        return f"list of {_kind(value.get('items', {}))}"
    if named == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"object of {_kind(value['additionalProperties'])}"
    return named
