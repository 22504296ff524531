"""Reading the configuration: from bytes to settings, or to one error that lists every problem."""

import difflib
import itertools
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from optstream.errors import ConfigurationError, ParameterError
from tasks.config.checks import cross_checks
from tasks.config.problems import keys, nearest, plain, problems_of, shown
from tasks.config.settings import Settings, guarantee_of
from tasks.config.stage_shares import stage_problems
from tasks.config.tables.hierarchy import read_hierarchy
from tasks.config.tables.mechanisms import MECHANISMS, NAMES, OWN_TABLES, names_with, section_of
from tasks.config.tables.sections import DEFAULT_FEATURES, OPTIONAL, SECTIONS

LARGEST_FILE = 2**20
MOST_PARTS = 32
"""Parts of a dotted key; the parser takes quadratic time in them."""
MOST_PROBLEMS = 50
"""Lines of one error; further problems are counted."""
# From the start of a part on, so that a search looks at each letter a bounded number of times.
_DOTTED = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % MOST_PARTS)


class Environment(BaseSettings):
    """What environment variables override: secrets, never echoed."""

    model_config = SettingsConfigDict(
        env_prefix="OPTSTREAM_", frozen=True, extra="ignore", hide_input_in_errors=True, env_ignore_empty=True
    )

    ledger_url: SecretStr | None = None


def load_settings(path: Path) -> Settings:
    """Read the configuration file; OPTSTREAM_LEDGER_URL, where set, replaces `[ledger] url`.

    Args:
        path: The TOML file; relative paths in it start at its folder.

    Returns:
        The settings, validated.

    Raises:
        ConfigurationError: One error that lists every problem: its key as in the file, the legal range and
            what it got. Secrets are never shown.
    """
    document = _read_toml(path)
    url = Environment().ledger_url
    if url is not None:
        document = {**document, "ledger": {"url": url.get_secret_value()}}
    named = section_of(document.get("mechanism"))
    if named is None or "features" in named.tables:
        document = {"features": DEFAULT_FEATURES, **document}
    folder = path.absolute().parent
    problems, sections = _sections(document)
    nodes = None
    if "hierarchy" in sections:
        nodes, wrong = read_hierarchy(sections["hierarchy"], folder)
        problems += wrong
    problems += cross_checks(sections, nodes and nodes.parents, folder)
    problems += stage_problems(document, named)
    problems += _mechanism_problems(sections, is_known=bool(problems))
    if problems:
        raise _refused(path, problems)
    if "features" in sections:
        sections["features_"] = sections.pop("features")
    parents, facts = nodes or ({}, {})
    return Settings(
        **sections, parents=tuple(parents.items()), node_facts=facts, folder=folder, file=path.absolute()
    )


def _mechanism_problems(sections: Mapping[str, Any], *, is_known: bool) -> list[str]:
    """What the mechanism itself refuses, where the guarantee that it would be made for can be told.

    is_known: problems were found already, among which is why there is no guarantee, if there is none.
    """
    if not {"mechanism", "privacy", "stream", "input"} <= set(sections):
        return []
    try:
        model = guarantee_of(sections["privacy"], sections["stream"], sections["input"])
    except ParameterError as error:
        return [] if is_known else [f"privacy: {error}"]
    try:
        sections["mechanism"].check(model)
    except ParameterError as error:
        return [f"mechanism: {error}"]
    return []


def _refused(path: Path, problems: Sequence[str]) -> ConfigurationError:
    listed = list(problems[:MOST_PROBLEMS])
    if len(problems) > len(listed):
        listed.append(f"and {len(problems) - len(listed)} more")
    lines = "".join(f"\n  - {problem}" for problem in listed)
    return ConfigurationError(f"the configuration {path} is not usable; correct:{lines}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be read"
        raise ConfigurationError(
            f"the configuration {path} cannot be read: {reason}; `optstream init` writes an example"
        ) from None
    if len(content) > LARGEST_FILE:
        raise ConfigurationError(f"the configuration {path} must be at most 1 MiB")
    if _DOTTED.search(content):
        raise ConfigurationError(
            f"the configuration {path} must have keys of at most {MOST_PARTS} dotted parts"
        )
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"the configuration {path} must be UTF-8 text; see line {line}") from None
    except (ValueError, RecursionError) as error:
        # The parser says what it expected and where; it never repeats a value.
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else _reason(error)
        raise ConfigurationError(f"the configuration {path} is not TOML: {reason}") from None


def _reason(error: ValueError | RecursionError) -> str:
    """Why it is no TOML, where the parser left it to Python to say so."""
    return "nested too deeply" if isinstance(error, RecursionError) else "an integer has too many digits"


def _sections(document: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Validate each table by itself, so that one bad section does not hide another's problems."""
    problems = [
        f"{plain(key)} is not a known section{nearest(key, SECTIONS)}"
        for key in itertools.islice((key for key in document if key not in SECTIONS), 2 * MOST_PROBLEMS)
    ]
    sections: dict[str, Any] = {}
    named = section_of(document.get("mechanism"))
    for name, section in SECTIONS.items():
        table = document.get(name)
        if name == "covariates" and name in document:
            table = {"given": table}
        if name == "mechanism" and isinstance(table, dict):
            if named is None:
                problems.append(_unnamed(table))
                continue
            section = named
        is_own = name in OWN_TABLES
        if is_own and named is not None and name not in named.tables:
            if name in document:
                problems.append(f"[{name}] must be left out: it is for mechanism.name {names_with(name)}")
        elif name not in document and (name in OPTIONAL or (is_own and named is None)):
            continue
        elif name not in document:
            problems.append(f"[{name}] is missing; its keys: {', '.join(keys(section))}")
        elif not isinstance(table, dict):
            problems.append(f"{name} must be a table of keys: {', '.join(keys(section))}")
        else:
            try:
                given = {"named": table} if name in ("features", "questions") else table
                sections[name] = section.model_validate(given)
            except ValidationError as error:
                problems += problems_of(name, section, error, table)
    return problems, sections


def _unnamed(table: Mapping[str, Any]) -> str:
    if "name" not in table:
        return f"mechanism.name is missing; it must be {NAMES}"
    near = difflib.get_close_matches(
        shown(table["name"]).strip("'\"").casefold(), [name.casefold() for name in MECHANISMS], n=1
    )
    meant = "".join(f"; did you mean {name}?" for name in MECHANISMS if name.casefold() in near)
    return f"mechanism.name must be {NAMES}; got {shown(table['name'])}{meant}"
