"""The configuration's reference, from the settings themselves and docs/generate/meanings.toml."""

import json
import tomllib
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tasks.config.fields import Section
from tasks.config.load import LISTS
from tasks.config.schema import MECHANISMS, OPTIONAL, USUAL_FEATURES
from tasks.config.settings import SECTIONS
from tasks.config.templates import EXAMPLE

MEANINGS = Path(__file__).with_name("meanings.toml")
HEAD = """\
# Configuration

Look up a key, its type, default and range.

One TOML file, `optstream.toml` unless `--config` says otherwise; `optstream init` writes it. Relative
paths start at the file's folder. Keys that are not here are refused, and so is a value outside its range:
the message names the key, the range and what was found. Exact numbers are texts (`"1/2"`, `"0.001"`), so
that nothing is rounded.
"""
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", dict: "table", tuple: "list"}


def keys_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The section's fields by what the file calls them."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def tables() -> dict[str, tuple[str, dict[str, FieldInfo]]]:
    """By their name in meanings.toml: the heading, and the keys. Mechanisms without keys have no table."""
    found = {}
    for name, section in SECTIONS.items():
        if (name,) in LISTS:
            heading, one = LISTS[name,]
            found[name] = (heading, keys_of(one))
            continue
        usual = FieldInfo.from_annotated_attribute(dict[str, tuple[str, ...]], USUAL_FEATURES)
        keys = {"*": usual} if name == "features" else keys_of(section)
        found[name] = (f"[{name}]", keys)
        if (name, "changes") in LISTS:
            heading, one = LISTS[name, "changes"]
            del keys["changes"]  # the heading of a table of its own
            found[f"{name}.changes"] = (heading, keys_of(one))
    shared: dict[type[Section], list[str]] = {}
    for name, section in MECHANISMS.items():
        shared.setdefault(section, []).append(name)
    for section, names in shared.items():
        own = {key: field for key, field in keys_of(section).items() if key != "name"}
        if own:
            listed = ", ".join(names)
            found[f"mechanism: {listed}"] = (f"[mechanism] name = {listed}", own)
    return found


def full_name(table: str, key: str) -> str:
    """Name a key, for its anchor: a layout's keys are the input's, a mechanism's are all mechanisms'."""
    own = "mechanism" if table.startswith("mechanism: ") else table.replace("input.changes", "input")
    return f"{own}.{key}"


def key_names() -> list[str]:
    """Every key of the file by its table, once."""
    return sorted({full_name(name, key) for name, (_, keys) in tables().items() for key in keys})


def meanings() -> dict[str, dict[str, str]]:
    return tomllib.loads(MEANINGS.read_text(encoding="utf-8"))


def type_of(annotation: Any) -> str:
    """A type in the words of a TOML file."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return type_of(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return " or ".join(type_of(one) for one in get_args(annotation) if one is not NoneType)
    if origin is Literal:
        return WORDS[type(get_args(annotation)[0])]
    if origin is tuple:
        return f"list of {type_of(get_args(annotation)[0])}"
    plain = origin or annotation
    if plain.__name__ in ("Fraction", "SecretStr"):
        return "text"
    if isinstance(plain, type) and issubclass(plain, Section):
        return "tables"
    return WORDS.get(plain, plain.__name__)


def configuration_page() -> str:
    """Markdown: a table for each table of the file, and the file that `optstream init` writes."""
    said, anchored, lines = meanings(), set[str](), [HEAD, '<div class="described" markdown>\n']
    for name, (heading, keys) in tables().items():
        lines += [f"## {heading}\n"]
        if name in OPTIONAL:
            lines += ["May be left out.\n"]
        lines += ["| key | meaning | type | default | legal |", "| --- | --- | --- | --- | --- |"]
        for key, field in keys.items():
            anchor = full_name(name, key)
            first = "" if anchor in anchored else f'<span id="{anchor}"></span>'
            anchored.add(anchor)
            lines += [_row(f"{first}`{key}`", said[name][key], field)]
        lines += [""]
    names = key_names()
    lines += [
        "</div>\n",
        f"## All {len(names)} keys\n",
        ", ".join(f"[`{name}`](#{name})" for name in names) + "\n",
        "## The file that `optstream init` writes\n",
        "```toml",
        EXAMPLE.rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _row(key: str, meaning: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else _shown(field.default)
    cells = [key, meaning, type_of(field.annotation), default, field.description or ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _shown(default: Any) -> str:
    if default is PydanticUndefined or default in (None, (), {}):
        return "none"
    return f"`{json.dumps(default)}`" if isinstance(default, str | dict) else f"`{default}`"
