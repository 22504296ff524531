"""Reading the configuration: from bytes to settings, or to one error that lists every problem."""

import difflib
import itertools
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import ValidationError

from optstream.errors import ConfigurationError, ParameterError
from tasks.config.checks import cross_checks, trees_of, with_even_shares
from tasks.config.fields import RuleError, Section, absolute, resolve_ledger_url
from tasks.config.hierarchy import read_hierarchy
from tasks.config.schema import (
    CHANGES,
    COVARIATES,
    DEFAULT_FEATURES,
    HIERARCHY_CHANGES,
    MECHANISMS,
    MOST_FEATURES,
    NAMES,
    OPTIONAL,
    OWN_TABLES,
    SECTIONS,
    Change,
    HierarchyChange,
    Input,
    Privacy,
    PublicSeries,
    names_with,
    section_of,
)
from tasks.config.settings import Settings, guarantee_of

# What is wrong with a table, as errors say it: key, legal range, and what it got.

LISTS: dict[tuple[str, str], tuple[str, type[Section]]] = {
    ("input", "changes"): (CHANGES, Change),
    ("hierarchy", "changes"): (HIERARCHY_CHANGES, HierarchyChange),
    ("covariates", "given"): (COVARIATES, PublicSeries),
}
"""What heads the tables of a list, and what each of them is."""
SECRETS = {"ledger.url"}
LIMITS = {
    "greater_than": ("more than {}", "gt"),
    "greater_than_equal": ("at least {}", "ge"),
    "less_than": ("less than {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "too_short": ("with at least {} entries", "min_length"),
    "too_long": ("with at most {} entries", "max_length"),
    "string_too_short": ("of at least {} characters", "min_length"),
    "string_too_long": ("of at most {} characters", "max_length"),
}
"""What pydantic calls a limit that is broken: how it is said, and where its error has it."""
LONGEST_SHOWN = 80
MOST_PROBLEMS = 50
"""Lines of one error; further problems are counted."""
NOT_OF_A_DAY = {
    "schema": "it decides what is protected: each customer's readings, or sums as the supplier states them; "
    "give those days a stream of their own, of the same privacy.population",
    "folder": "all dumps lie below one folder, by region and date",
    **dict.fromkeys(
        ("alpha", "bounds", "resolution", "epsilon", "window", "unit"),
        "the privacy guarantee is the same on all days; `optstream ledger amend` declares another one",
    ),
}
"""Keys that an entry of [[input.changes]] may not have, and why."""
REMOVED = {
    "questions": "`optstream.queries` answers sliding sums and events from what was published "
    "(docs/data/published.md)",
    **dict.fromkeys(
        ("published.publisher", "published.licence"),
        "it is one of the texts of [published.about]: write it there",
    ),
    "published.errors": "the files of how sure sums are lie beside every release that they can be made for",
    **dict.fromkeys(
        (
            "trusted.staging_retention_days",
            "trusted.validation_retention_days",
            "trusted.raw_state_retention_days",
        ),
        "trusted.retention_days holds for staged bytes, validation results and raw state, which is kept for "
        "at most 7 days",
    ),
    "schedule.port": "`optstream serve` takes a free port, and the same at the next start; "
    "for another, run `prefect server start --port N` and name it with --api",
    "schedule.look_every_minutes": "a night looks each half hour until watch.late_after; a schedule.cron "
    "that fires more than once a day is all looks by itself",
    "hierarchy.areas": "no page has a map, so borders of nodes are published no longer; places stay",
    "sampling.method": 'with sampling.threshold points are where the series bends ("l1"), without it equally '
    "spaced",
    "watch.suspect_share": "a twentieth of a region's readings is the share that raises an alarm",
    "covariates.node": "the column of nodes is called node: rename it in the file",
    "covariates.level": "nodes of the deepest level of at most 40 nodes respond each in their own way; with "
    "nodes = [...] a covariate applies below these alone",
    "privacy.calibration": "noise is always for what every window may lose. Where days were released with "
    '"paper", declare the change with `optstream ledger amend`: they stay as they are and are priced for '
    "what follows",
    "privacy.windows": "the privacy guarantee covers every window, also one over two days. Where days were "
    'released with "aligned", declare the change with `optstream ledger amend`: they stay as they are and '
    "are priced for what follows",
    **dict.fromkeys(
        (
            *(f"mechanism.{key}" for section in MECHANISMS.values() for key in section.fixed),
            "budget.stages",
            "sampling.allocation",
            "privacy.horizon",
        ),
        "how a mechanism is tuned inside is no longer configured: it goes by its defaults; other values are "
        "for `optstream.mechanisms` in Python. Days that were released with one keep their charges",
    ),
    **dict.fromkeys(
        ("budget.shared_with", 'budget.stream_share = "model"', 'budget.levels = "model"'),
        "shares are numbers: `optstream advise --write FILE` writes those with the least expected error, of "
        "several streams with --config for each. Streams that were released keep the shares that their "
        "manifests state",
    ),
    "mechanism.leaves_per_period": "it limited how customers move, which the privacy guarantee does not: "
    "stream.unit and input.schema say in how many leaves a customer's readings of a day may lie, and the "
    "noise follows; the word that they lie in one, for joint noise, is stream.leaves_per_period",
}
"""Keys, values and tables that an earlier version had, and what to do without them."""


def refused(named: str, problems: Sequence[str]) -> ConfigurationError:
    listed = list(problems[:MOST_PROBLEMS])
    if len(problems) > len(listed):
        listed.append(f"and {len(problems) - len(listed)} more")
    lines = "".join(f"\n  - {problem}" for problem in listed)
    return ConfigurationError(f"{named} is not usable; correct:{lines}")


def problems_of(
    name: str, section: type[Section], error: ValidationError, table: Mapping[str, Any]
) -> list[str]:
    """A line for each key of the table `name` that its section refuses."""
    entries = error.errors(include_url=False, include_input=False)
    if name == "features":
        if len(table) > MOST_FEATURES:
            return [f"features must be at most {MOST_FEATURES} tables; got {len(table)}"]
        broken = dict.fromkeys(str(entry["loc"][1]) for entry in entries)
        return [
            f'features.{plain(key)} must be a list of clock times such as ["07:00", "12:00"]; '
            f"got {shown(table[key])}"
            for key in broken
        ]
    problems = {}
    for entry in entries:
        match entry["loc"]:
            case (str(listed), int(number), *path) if (name, listed) in LISTS:
                headed, one = LISTS[name, listed]
                place, known, within = f"{headed} {number + 1}: ", keys(one), table[listed][number]
            case ("given",) if name == "covariates":
                place, known, within = "", {name: keys(section)["given"]}, {name: table["given"]}
                path = [name]
            case (*path,):
                place, known, within = f"{name}.", keys(section), table
        key = str(path[0]) if path else ""
        problems[place, key] = place + _problem(f"{name}.{key}", key, known, entry, within)
    return list(problems.values())


def _problem(secret: str, key: str, known: Mapping[str, str], entry: Mapping[str, Any], table: Any) -> str:
    """What is wrong with one key of a table, or with the table, where there is no key."""
    kind = entry["type"]
    if not key:
        return f"must be a table of keys: {', '.join(known)}; got {shown(table)}"
    if kind == "extra_forbidden":
        if known == keys(Change) and key in NOT_OF_A_DAY:
            return f"{key} must be left out: {NOT_OF_A_DAY[key]}"
        if secret in REMOVED:
            return f"{key} must be left out: {REMOVED[secret]}"
        return f"{plain(key)} is not a known key{nearest(key, known)}"
    if kind == "missing" and key not in table:
        return f"{key} is missing; it must be {known.get(key)}"
    got = "" if secret in SECRETS else f"; got {shown(table[key])}"
    if table[key] == "model" and (former := f'{secret} = "model"') in REMOVED:
        got += f": {REMOVED[former]}"
    return f"{key} must be {known.get(key)}{_broken_limit(entry, str(known.get(key)))}{got}"


def _broken_limit(entry: Mapping[str, Any], described: str) -> str:
    """The limit that a value is beyond, where its key's description does not say it."""
    if entry["type"] == "value_error":
        error = entry["ctx"]["error"]
        return f", {error}" if isinstance(error, RuleError) else ""
    if entry["type"] not in LIMITS:
        return ""
    words, name = LIMITS[entry["type"]]
    limit = entry["ctx"][name]
    numbers = "|".join(re.escape(one) for one in (str(limit), f"{limit:g}", f"{limit:,}"))
    if re.search(rf"(?<![\d.,])({numbers})(?!\d|[.,]\d)", described):
        return ""
    return f", {words.format(f'{limit:,}')}"


def keys(section: type[Section]) -> dict[str, str]:
    return {field.alias or key: field.description or "" for key, field in section.model_fields.items()}


def nearest(key: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"


def plain(key: str) -> str:
    """A key as the file has it, short and without control characters."""
    return key if key.isidentifier() and len(key) <= LONGEST_SHOWN else shown(key)


def shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "what is too long or too deep to be shown"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


# A TOML file of the configuration, read whole and bounded; errors say the place and show no value.

LARGEST_FILE = 2**20
MOST_PARTS = 32
"""Parts of a dotted key; the parser takes quadratic time in them."""
# From the start of a part on, so that a search looks at each letter a bounded number of times.
_DOTTED = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % MOST_PARTS)


def read_toml(path: Path) -> dict[str, Any]:
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


# The file of a population: what its streams say alike is said once, in a file that each of them names.

KEY = "population_file"
STREAMS = "streams"
"""A key that only a population file has."""
OF_POPULATION: Mapping[str, frozenset[str]] = {
    "privacy": frozenset({"population", "epsilon", "delta", "window", "windows", "budget_alpha"}),
    "stream": frozenset({"step", "time_zone", "day", "unit", "leaves_per_step"}),
    "ledger": frozenset({"url"}),
}
"""What streams of one privacy budget agree on, by table; all else is each one's own."""
MOST_STREAMS = 33


@dataclass(frozen=True)
class Population:
    """What a population file says: keys that hold for each stream, by table, and the configurations of its
    streams; all paths absolute and resolved, but for the file's own. streams: () where it lists none.
    """

    file: Path
    tables: Mapping[str, Mapping[str, Any]]
    streams: tuple[Path, ...]


def stream_files(paths: Sequence[Path]) -> list[Path]:
    """Return the configurations of streams that these files are or, as population files, list; each once.
    Raises ConfigurationError for a population file that is not usable, or lists no stream.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        listed: tuple[Path, ...] = (path,)
        document: dict[str, Any] = {}
        with suppress(ConfigurationError):  # of a stream's own file it is told where that is loaded
            document = read_toml(path)
        if STREAMS in document:
            listed = _read_population(path, document).streams
        if not listed:
            raise ConfigurationError(f"{path}: streams must list the population's configurations; got none")
        for one in listed:
            found.setdefault(one.resolve(), one)
    return list(found.values())


def with_population(
    document: dict[str, Any], path: Path
) -> tuple[dict[str, Any], Population | None, list[str]]:
    """Return the document with what its population file says, that file, and what is said twice differently.
    Raises ConfigurationError for a population file in place of a stream's, and for one that is not usable.
    """
    if STREAMS in document:
        raise ConfigurationError(
            f"{path} is the file of a population: name the configuration of one of its streams"
        )
    table = document.get("privacy")
    named = table.get(KEY) if isinstance(table, dict) else None
    if not _is_path(named):
        return document, None, []
    # resolved, so that places relative to it read the same in every stream's settings
    file = absolute(named, path.absolute().parent).resolve()
    population = _read_population(file, read_toml(file))
    if population.streams and path.resolve() not in population.streams:
        raise ConfigurationError(
            f"{path} names the population file {file}, whose streams do not list it: add it there, for its "
            "share of epsilon is theirs too"
        )
    together, twice = _merged(document, population, path.absolute())
    return together, population, twice


def _read_population(file: Path, document: Mapping[str, Any]) -> Population:
    """Return the keys and streams that a population's file says, not judged; raises ConfigurationError for a
    table or a key that is each stream's own, or no list of streams.
    """
    known = (*OF_POPULATION, STREAMS)
    problems = [
        f"{plain(key)} is none of its tables{nearest(key, dict.fromkeys(known))}"
        for key in document
        if key not in known
    ]
    tables: dict[str, dict[str, Any]] = {}
    for name, own in OF_POPULATION.items():
        table = document.get(name, {})
        if not isinstance(table, dict):
            problems.append(f"{name} must be a table of keys: {', '.join(sorted(own))}")
            continue
        problems += [
            f"{name}.{plain(key)} is each stream's own: write it in their files; here may stand "
            f"{', '.join(sorted(own))}"
            for key in table
            if key not in own
        ]
        tables[name] = {key: value for key, value in table.items() if key in own}
    streams = document.get(STREAMS, [])
    if not isinstance(streams, list) or len(streams) > MOST_STREAMS or not all(map(_is_path, streams)):
        problems.append(
            f"{STREAMS} must be a list of at most {MOST_STREAMS} paths of configurations; "
            f"got {shown(streams)}"
        )
        streams = []
    if problems:
        raise refused(f"the population file {file}", problems)
    folder = file.absolute().parent
    return Population(
        file.absolute(), tables, tuple(absolute(path, folder).resolve() for path in dict.fromkeys(streams))
    )


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) < 2**12 and "\0" not in value


def _merged(
    document: Mapping[str, Any], population: Population, file: Path
) -> tuple[dict[str, Any], list[str]]:
    """Return a stream's configuration with what its population file says, and a line for each thing that is
    said twice differently, which shows no secret. file: the stream's own, absolute.
    """
    found, problems = dict(document), list[str]()
    for name, table in population.tables.items():
        own = document.get(name, {})
        if not table or not isinstance(own, dict):
            continue
        for key in sorted(table.keys() & own.keys()):
            said, there = own[key], table[key]
            if name == "ledger" and isinstance(said, str) and isinstance(there, str):
                said = resolve_ledger_url(said, file.parent)
                there = resolve_ledger_url(there, population.file.parent)
            if said != there:
                shows = "" if name == "ledger" else f"; got {shown(said)} beside {shown(table[key])}"
                problems.append(
                    f"{name}.{key} is another in {population.file}{shows}: say it once, there, for all "
                    "streams of the population"
                )
        found[name] = {**own, **table}
    return found, problems


def load_settings(path: Path) -> Settings:
    """Read the configuration file; OPTSTREAM_LEDGER_URL, in capitals or not, replaces `[ledger] url`.
    Relative paths in it start at its folder.

    Raises one ConfigurationError that lists every problem: its key as in the file, the legal range and what
    it got. Secrets are never shown.
    """
    folder = path.absolute().parent
    document, population, twice = with_population(read_toml(path), path)
    given = {name.upper(): value for name, value in os.environ.items() if value}
    if url := given.get("OPTSTREAM_LEDGER_URL"):
        document = {**document, "ledger": {"url": url}}
    named = section_of(document.get("mechanism"))
    if named is None or "features" in named.tables:
        document = {"features": DEFAULT_FEATURES, **document}
    document = _with_followers(document)
    problems, sections = _sections(document)
    problems = [*twice, *problems]
    nodes = None
    if "hierarchy" in sections:
        nodes, wrong = read_hierarchy(sections["hierarchy"], folder)
        problems += wrong
    of_population = population is not None and "url" in population.tables["ledger"] and not url
    ledger_folder = population.file.parent if population and of_population else folder
    trees, wrong = trees_of(nodes and nodes.parents, sections.get("hierarchy"))
    problems += wrong
    if trees and "budget" in sections:
        sections["budget"] = with_even_shares(sections["budget"], trees[0])
    problems += cross_checks(sections, trees, folder, ledger_folder)
    problems += _mechanism_problems(sections, is_known=bool(problems))
    if problems:
        raise refused(f"the configuration {path}", [_placed(line, population) for line in problems])
    if population is not None:
        sections["privacy"] = _own_alpha(sections["privacy"], sections["input"])
    if "features" in sections:
        sections["features_"] = sections.pop("features")
    parents, facts = nodes or ({}, {})
    return Settings(
        **sections,
        parents=tuple(parents.items()),
        node_facts=facts,
        folder=folder,
        file=path.absolute(),
        ledger_folder=ledger_folder,
    )


def _with_followers(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with defaults that follow another key: the published column is called as that
    of the dumps, and counts are whole numbers.
    """
    source, published, privacy = (document.get(name, {}) for name in ("input", "published", "privacy"))
    if isinstance(source, dict) and isinstance(published, dict) and isinstance(source.get("value"), str):
        document = {**document, "published": {"value": source["value"], **published}}
    if isinstance(privacy, dict) and privacy.get("counts") is True:
        document = {**document, "privacy": {"resolution": "1", **privacy}}
    return document


def _placed(problem: str, population: Population | None) -> str:
    """The problem, and where its key is said, if that is the population's file."""
    if population is None or str(population.file) in problem:
        return problem
    said = {f"{name}.{key}" for name, table in population.tables.items() for key in table}
    return f"{problem} (in {population.file})" if problem.split(" ", 1)[0] in said else problem


def _own_alpha(privacy: Privacy, source: Input) -> Privacy:
    """The table without budget_alpha where that is the stream's alpha: then it has none of its own."""
    is_budgets = privacy.alpha + source.supplier_rounding == privacy.budget_alpha
    return privacy.model_copy(update={"budget_alpha": None}) if is_budgets else privacy


def _mechanism_problems(sections: Mapping[str, Any], *, is_known: bool) -> list[str]:
    """What the mechanism itself refuses, where the guarantee that it would be made for can be told. is_known:
    why there is none is among the problems that were found already.
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


def _sections(document: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Validate each table by itself, so that one bad section does not hide another's problems."""
    problems = [
        f"[{key}] must be left out: {REMOVED[key]}"
        if key in REMOVED
        else f"{plain(key)} is not a known section{nearest(key, SECTIONS)}"
        for key in itertools.islice((key for key in document if key not in SECTIONS), 2 * MOST_PROBLEMS)
    ]
    sections: dict[str, Any] = {}
    named = section_of(document.get("mechanism"))
    for name, section in SECTIONS.items():
        table = document.get(name, {})
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
        elif name not in document and any(field.is_required() for field in section.model_fields.values()):
            problems.append(f"[{name}] is missing; its keys: {', '.join(keys(section))}")
        elif not isinstance(table, dict):
            problems.append(f"{name} must be a table of keys: {', '.join(keys(section))}")
        else:
            try:
                given = {"named": table} if name == "features" else table
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
