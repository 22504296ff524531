"""Reading the configuration: from bytes to settings, or to one error that lists every problem."""

import difflib
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from unicodedata import normalize

import polars as pl
from pydantic import TypeAdapter, ValidationError

from optstream.catalogue.about import NodeFacts
from optstream.errors import ConfigurationError, ParameterError, PublicationError
from optstream.storage.parquet import Limits, claims_of
from optstream.storage.store import Location, StoreUrl, open_store
from tasks.config import schema
from tasks.config.fields import (
    Section,
    is_node_name,
    ledger_database,
    lies_within,
    located,
    resolve_ledger_url,
)
from tasks.config.pattern import RuleError
from tasks.config.settings import SECTIONS, Settings

# Problems of a table, as errors state them: key, legal range, and the value found.

LISTS: dict[tuple[str, ...], tuple[str, type[Section]]] = {
    ("input", "changes"): (schema.CHANGES, schema.Change),
    ("hierarchy", "changes"): (schema.HIERARCHY_CHANGES, schema.HierarchyChange),
    ("covariates",): (schema.COVARIATES, schema.PublicSeries),
    ("constraints",): (schema.CONSTRAINTS, schema.PublicFact),
}
"""What heads the tables of a list, and what each of them is."""
LONGEST_SHOWN = 80
MOST_PROBLEMS = 50
"""Lines of one error; further problems are counted."""
GUARANTEE = "the privacy guarantee is the same on all days; `optstream ledger amend` declares another one"
NOT_OF_A_DAY = {
    "schema": "it decides what is protected: each customer's readings, or sums as the supplier states them; "
    "give those days a stream of their own, of the same privacy.population",
    "folder": "all dumps lie below one folder, by region and date",
    **dict.fromkeys(("alpha", "bounds", "resolution", "epsilon", "window", "unit"), GUARANTEE),
}
"""Keys that an entry of [[input.changes]] may not have, and why."""
_AMEND = "Where days were released with the other, declare the change with `optstream ledger amend`"
_TUNED = [f"mechanism.{key}" for section in schema.MECHANISMS.values() for key in section.fixed]
REMOVED = {
    "questions": "`optstream.queries` answers them from published rows (docs/data/published.md)",
    **dict.fromkeys(
        ("published.publisher", "published.licence"), "it is one of the texts of [published.about]"
    ),
    "published.errors": "every release has replicates; published.replicates = 0 leaves them out",
    **dict.fromkeys(
        (f"trusted.{name}_retention_days" for name in ("staging", "validation", "raw_state")),
        "trusted.retention_days holds for it too; raw state is kept for at most 7 days",
    ),
    "schedule.port": "`optstream serve` takes a free port, and the same at the next start; for another, run "
    "`prefect server start --port N` and name it with --api",
    "schedule.look_every_minutes": "a night looks each half hour until watch.late_after, or as often as a "
    "schedule.cron says that fires more than once a day",
    "hierarchy.areas": "no page has a map, so borders of nodes are published no longer; places stay",
    "sampling.method": "with sampling.threshold points are where the series bends, without it equally spaced",
    "watch.suspect_share": "a twentieth of a region's readings is the share that raises an alarm",
    "covariates.node": "the column of nodes is called node: rename it in the file",
    "covariates.level": "nodes of the deepest level of at most 40 nodes respond each in their own way; with "
    "nodes = [...] a covariate applies below these alone",
    "privacy.calibration": f"noise is always for what every window may lose. {_AMEND}",
    "privacy.windows": f"the privacy guarantee covers every window, also one over two days. {_AMEND}",
    **dict.fromkeys(
        (*_TUNED, "budget.stages", "sampling.allocation", "privacy.horizon"),
        "how a mechanism is tuned inside is no longer configured; other values than its defaults are for "
        "`optstream.mechanisms` in Python. Days that were released with one keep their charges",
    ),
    **dict.fromkeys(
        ("budget.shared_with", 'budget.stream_share = "model"', 'budget.levels = "model"'),
        "shares are numbers: `optstream advise --write FILE` writes those with the least expected error, of "
        "several streams with --config for each. Released streams keep what their manifests state",
    ),
    "mechanism.leaves_per_period": "noise follows stream.unit and input.schema; that a customer's readings "
    "of any window lie in one leaf, for joint noise, is stream.leaves_per_window",
    "stream.leaves_per_period": "joint noise now goes on from day to day and needs more: where each "
    "customer's readings of any window lie in one leaf, also over midnight, say leaves_per_window = 1; "
    "else leave it out, and levels of several nodes have Laplace noise",
}
"""Keys, values and tables that an earlier version had, and what to do without them."""


def refused(named: str, problems: Sequence[str]) -> ConfigurationError:
    listed = list(problems[:MOST_PROBLEMS])
    if len(problems) > len(listed):
        listed.append(f"and {len(problems) - len(listed)} more")
    lines = "".join(f"\n  - {problem}" for problem in listed)
    return ConfigurationError(f"{named} is not usable; correct:{lines}")


def problems_of(name: str, section: Any, error: ValidationError, given: Any) -> list[str]:
    """A line for each key of the table or list `name` that its type refuses."""
    problems = {}
    for entry in error.errors(include_url=False, include_input=False):
        place, table = "", given
        match (name, *entry["loc"]):
            case (str(listed), int(number), *path) if (listed,) in LISTS:
                (heading, one), table = LISTS[listed,], given[number]
                place, known = f"{heading} {number + 1}: ", keys(one)
            case (_, str(listed), int(number), *path) if (name, listed) in LISTS:
                (heading, one), table = LISTS[name, listed], given[listed][number]
                place, known = f"{heading} {number + 1}: ", keys(one)
            case ("features", str(key), *_):
                place, path = "features.", [key]
                known = {key: 'a list of clock times such as ["07:00", "12:00"]'}
            case ("features" | "covariates" | "constraints",):
                path, table = [name], {name: given}
                field = Settings.model_fields["features_" if name == "features" else name]
                known = {name: field.description or ""}
            case (_, *path):
                place, known = f"{name}.", keys(section)
        key = str(path[0]) if path else ""
        problems[place, key] = place + _problem(f"{name}.{key}", key, known, entry, table)
    return list(problems.values())


def _problem(named: str, key: str, known: Mapping[str, str], entry: Mapping[str, Any], table: Any) -> str:
    """A problem of one key of a table, or of the table, where there is no key."""
    if not key:
        return f"must be a table of keys: {', '.join(known)}; got {shown(table)}"
    if entry["type"] == "extra_forbidden":
        if known == keys(schema.Change) and key in NOT_OF_A_DAY:
            return f"{key} must be left out: {NOT_OF_A_DAY[key]}"
        if named in REMOVED:
            return f"{key} must be left out: {REMOVED[named]}"
        return f"{plain(key)} is not a known key{nearest(key, known)}"
    if entry["type"] == "missing" and key not in table:
        return f"{key} is missing; it must be {known.get(key)}"
    got = "" if named == "ledger.url" else f"; got {shown(table[key])}"
    if table[key] == "model" and (former := f'{named} = "model"') in REMOVED:
        got += f": {REMOVED[former]}"
    broken = entry["ctx"]["error"] if entry["type"] == "value_error" else None
    rule = f", {broken}" if isinstance(broken, RuleError) else ""
    return f"{plain(key)} must be {known.get(key)}{rule}{got}"


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
        return "a value too long or too deep to be shown"
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
        if len(content) > LARGEST_FILE:
            problem = "must be at most 1 MiB"
        elif _DOTTED.search(content):
            problem = f"must have keys of at most {MOST_PARTS} dotted parts"
        else:
            return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be read"
        problem = f"cannot be read: {reason}; `optstream init` writes an example"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"must be UTF-8 text; see line {line}"
    except tomllib.TOMLDecodeError as error:
        problem = f"is not TOML: {error}"  # what the parser expected and where; it never repeats a value
        if "namespace" in problem or "twice" in problem:
            problem += "; a table stands once, and NAME = {…} takes no more: write it as [NAME], a line a key"
    except RecursionError:
        problem = "is not TOML: nested too deeply"
    except ValueError:  # of Python's own, which the parser lets pass
        problem = "is not TOML: an integer has too many digits"
    raise ConfigurationError(f"the configuration {path} {problem}")


# The hierarchy's source: tables of the configuration, or a CSV or Parquet file.

LARGEST_TREE_FILE = 64 * 2**20
MOST_NODES = 2**22
LIMITS = Limits(rows=MOST_NODES, columns=1000)
"""What a Parquet file's footer may claim."""
UNUSABLE_TREE = (
    "must hold the columns node and parent, and may hold name, latitude and longitude, "
    "readable as its ending says"
)
# a column of whole numbers is text as it stands
CODES = dict.fromkeys(("node", "parent", "name"), pl.String)
PLACES = dict.fromkeys(("latitude", "longitude"), pl.Float64)


class Nodes(NamedTuple):
    """The hierarchy as read. parents: the root's is None. facts: of nodes that have a name or a place."""

    parents: dict[str, str | None]
    facts: dict[str, NodeFacts]


def read_hierarchy(section: schema.Hierarchy, folder: Path) -> tuple[Nodes | None, list[str]]:
    """Return the nodes and the problems found; None where there is no usable table."""
    rows: list[Mapping[str, Any]] = [
        {"node": node, "name": section.names.get(node), "latitude": latitude, "longitude": longitude}
        for node in dict.fromkeys((*section.names, *section.places))
        for latitude, longitude in [section.places.get(node, (None, None))]
    ]
    if (section.parents is None) == (section.file is None):
        given = "neither" if section.parents is None else "both"
        return None, [f"hierarchy must have one of the keys parents, file; got {given}"]
    if section.parents is not None:
        key, pairs = "hierarchy.parents", list(section.parents.items())
    else:
        key, table = "hierarchy.file", _read_file(folder / str(section.file))
        if isinstance(table, str):
            return None, [f"hierarchy.file {section.file!r} {table}"]
        pairs = list(table.select("node", "parent").iter_rows())
        if not {row["node"] for row in rows}.isdisjoint(table["node"]):
            return None, [
                "hierarchy.names and places go with parents, or are of units that begin by a change; "
                "hierarchy.file has columns for its own"
            ]
        rows = [*table.iter_rows(named=True), *rows]
    if len(pairs) > MOST_NODES:
        return None, [f"{key} must name at most {MOST_NODES:,} nodes; got {len(pairs):,}"]
    problems = []
    if bad := [node for node, _ in pairs if not is_node_name(node)]:
        listed = ", ".join(f"{str(node)!r:.80}" for node in bad[:5])
        problems.append(
            f"{key} must name nodes, which name folders, by letters (without combining marks), digits, "
            "spaces and _.,'()+- only, starting with a letter or digit, at most 200 bytes; "
            f"got {listed}. What readers see may be any words: hierarchy.names, or the column name of "
            "hierarchy.file"
        )
    parents = {str(node): parent or None for node, parent in pairs}
    if len(parents) < len(pairs):
        problems.append(f"{key} must name each node once")
    if problems:
        return None, problems
    changes = section.tree_changes
    codes = {*parents, *(code for change in changes for code in change.beginning)}
    if (margin := section.margin) is not None:
        codes |= {*margin.nodes, *(cell for leaf in parents for cell in margin.cells_of(leaf))}
    facts, problems = _facts_of(rows, codes)
    renamed = (pair for change in changes for pair in change.renamed.items())
    respelled = {new for old, new in renamed if _folded(old) == _folded(new)}
    return Nodes(parents, facts), problems + _alike(codes - respelled)


DRAWN_AS_NOTHING = {0x115F: None, 0x1160: None}
"""Hangul's fillers, the only letters that nobody sees."""


def _folded(code: str) -> str:
    return "".join(normalize("NFKC", code).translate(DRAWN_AS_NOTHING).casefold().split())


def _alike(codes: Collection[str]) -> list[str]:
    """Return problems of codes that people and file systems confuse, or that end in a space."""
    found: dict[str, list[str]] = defaultdict(list)
    for code in sorted(codes):
        found[_folded(code)].append(code)
    problems = [
        f"hierarchy: {', '.join(map(repr, same[:5]))} differ by case, spaces or the form of letters alone: "
        "give each unit a code of its own"
        for same in found.values()
        if len(same) > 1
    ]
    if spaced := [code for code in sorted(codes) if code != code.strip()]:
        problems.append(f"hierarchy: {spaced[0]!r:.80} ends in a space: take it out, in the dumps too")
    return problems[:5]


def _facts_of(
    rows: Iterable[Mapping[str, Any]], nodes: Collection[str]
) -> tuple[dict[str, NodeFacts], list[str]]:
    """The facts of the rows that have any, and the problems of the first rows."""
    facts, problems = {}, []
    for row in rows:
        given = {key: row[key] for key in ("name", *PLACES) if row.get(key) is not None}
        named = f"{str(row['node'])!r:.80}"
        if given and row["node"] not in nodes:
            problems.append(f"hierarchy: {named} has a name or a place, and is not a node")
        elif given:
            try:
                facts[row["node"]] = NodeFacts(**given)
            except ParameterError as error:
                problems.append(f"hierarchy: node {named}: {error}")
    return facts, problems[:5]


def _read_file(path: Path) -> pl.DataFrame | str:
    """The known columns, or the problem of the file."""
    if path.suffix not in (".csv", ".parquet"):
        return "must end in .csv or .parquet"
    try:
        if not path.is_file():
            return "does not exist, or is not a file"
        if path.stat().st_size > LARGEST_TREE_FILE:
            return "must be at most 64 MiB"
    except (OSError, ValueError):
        return "is no path that can be looked up; shorten it"
    try:
        if path.suffix == ".csv":
            table = pl.read_csv(path, infer_schema=False, glob=False)
            if twice := [name for name in table.columns if f"{name}_duplicated_0" in table.columns]:
                return f"must have each column once; {twice[0]!r:.80} is there twice: take one out"
        else:
            claims = claims_of(path)
            if claims is None or not claims.is_flat:
                return UNUSABLE_TREE
            if not claims.within(LIMITS):
                return f"must claim {LIMITS.words}"
            table = pl.read_parquet(path, glob=False, hive_partitioning=False)
        kinds, texts = table.schema, (pl.String, pl.Categorical, pl.Enum, pl.Null)
        if not all(kinds[one].is_integer() or kinds[one] in texts for one in CODES if one in kinds):
            return (
                "must have text or whole numbers as node, parent and name: 1.0, true or a date is read "
                "otherwise than dumps and readers write it"
            )
        if not all(
            kinds[one].is_numeric() or kinds[one] in (pl.String, pl.Null) for one in PLACES if one in kinds
        ):
            return "must have numbers as latitude and longitude: true or a date is none"
        wanted = [one for one in (*CODES, *PLACES) if one in kinds or one in ("node", "parent")]
        return table.select(pl.col(one).cast({**CODES, **PLACES}[one]) for one in wanted)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return UNUSABLE_TREE


# The file of a population: the settings shared by its streams, in one file that each of them names.

OF_POPULATION: Mapping[str, frozenset[str]] = {
    "privacy": frozenset({"population", "epsilon", "delta", "window", "windows", "budget_alpha"}),
    "stream": frozenset({"step", "time_zone", "day", "unit", "leaves_per_step"}),
    "ledger": frozenset({"url"}),
}
"""What streams of one privacy budget agree on, by table; all else is each one's own."""
STREAMS = "streams"
"""A key that only a population file has."""
MOST_STREAMS = 33


@dataclass(frozen=True)
class Population:
    """What a population file says: keys for every stream by table, and its streams' files."""

    file: Path
    tables: Mapping[str, Mapping[str, Any]]
    streams: tuple[Path, ...]

    @classmethod
    def read(cls, file: Path) -> "Population":
        """Return the file's document, its keys not judged. Raises ConfigurationError."""
        file, document = file.absolute(), read_toml(file)
        known = dict.fromkeys((*OF_POPULATION, STREAMS))
        problems = [
            f"{plain(key)} is none of its tables{nearest(key, known)}"
            for key in document.keys() - known.keys()
        ]
        tables = {name: document.get(name, {}) for name in OF_POPULATION}
        for name, table in tables.items():
            own = ", ".join(sorted(OF_POPULATION[name]))
            if not isinstance(table, dict):
                problems.append(f"{name} must be a table of keys: {own}")
                continue
            problems += [
                f"{name}.{plain(key)} is each stream's own: write it in their files; here may stand {own}"
                for key in table.keys() - OF_POPULATION[name]
            ]
        streams = document.get(STREAMS, [])
        if not isinstance(streams, list) or len(streams) > MOST_STREAMS or not all(map(_is_path, streams)):
            problems.append(
                f"{STREAMS} must be a list of at most {MOST_STREAMS} paths of configurations; "
                f"got {shown(streams)}"
            )
        if problems:
            raise refused(f"the population file {file}", problems)
        return cls(file, tables, tuple((file.parent / path).resolve() for path in dict.fromkeys(streams)))

    @classmethod
    def named_by(cls, document: Mapping[str, Any], path: Path) -> "Population | None":
        """Return the population file that a stream's document names, if any. Raises ConfigurationError."""
        if STREAMS in document:
            raise ConfigurationError(
                f"{path} is the file of a population: name the configuration of one of its streams"
            )
        table = document.get("privacy")
        named = table.get("population_file") if isinstance(table, dict) else None
        if not _is_path(named):
            return None
        # resolved, so that places relative to it read the same in every stream's settings
        population = cls.read((path.absolute().parent / named).resolve())
        if population.streams and path.resolve() not in population.streams:
            raise ConfigurationError(
                f"{path} names the population file {population.file}, whose streams do not list it: add it "
                "there, for its share of epsilon is theirs too"
            )
        return population

    def merged(self, document: Mapping[str, Any], file: Path) -> tuple[dict[str, Any], list[str]]:
        """Return a stream's configuration with this file's keys, and a line for each that contradicts."""
        found, problems = dict(document), list[str]()
        for name, table in self.tables.items():
            own = document.get(name, {})
            if not table or not isinstance(own, dict):
                continue
            for key in sorted(table.keys() & own.keys()):
                here, there = own[key], table[key]
                if name == "ledger" and isinstance(here, str) and isinstance(there, str):
                    here = resolve_ledger_url(here, file.parent)
                    there = resolve_ledger_url(there, self.file.parent)
                if here != there:
                    shows = "" if name == "ledger" else f"; got {shown(here)} and {shown(there)}"
                    problems.append(
                        f"{name}.{key} is another in {self.file}{shows}: say it once, there, for all "
                        "streams of the population"
                    )
            found[name] = {**own, **table}
        return found, problems

    def placed(self, problem: str) -> str:
        """Return the problem, with this file where its key is written here."""
        here = {f"{name}.{key}" for name, table in self.tables.items() for key in table}
        is_here = problem.split(" ", 1)[0] in here and str(self.file) not in problem
        return f"{problem} (in {self.file})" if is_here else problem


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) < 2**12 and "\0" not in value


def stream_files(paths: Sequence[Path]) -> list[Path]:
    """Return the configurations that these files are or list. Raises ConfigurationError."""
    found: dict[Path, Path] = {}
    for path in paths:
        document: dict[str, Any] = {}
        with suppress(ConfigurationError):  # a stream's own file is judged where it is loaded
            document = read_toml(path)
        listed = Population.read(path).streams if STREAMS in document else (path,)
        if not listed:
            raise ConfigurationError(f"{path}: streams must list the population's configurations; got none")
        for one in listed:
            found.setdefault(one.resolve(), one)
    return list(found.values())


# From the document to settings.


def load_settings(path: Path) -> Settings:
    """Read the configuration file; raise one ConfigurationError of every problem, which shows no secret."""
    file = path.absolute()
    document, problems = read_toml(path), list[str]()
    population = Population.named_by(document, path)
    ledger_folder = file.parent
    if population is not None:
        document, problems = population.merged(document, file)
        ledger_folder = population.file.parent if "url" in population.tables["ledger"] else file.parent
    urls = (value for name, value in os.environ.items() if name.upper() == "OPTSTREAM_LEDGER_URL")
    if url := next(filter(None, urls), None):
        document, ledger_folder = {**document, "ledger": {"url": url}}, file.parent
    source, published = document.get("input"), document.get("published", {})
    if isinstance(source, dict) and isinstance(published, dict) and isinstance(source.get("value"), str):
        document = {**document, "published": {"value": source["value"], **published}}
    tables, wrong = _tables(document)
    problems += wrong
    nodes, trees = None, ()
    if "hierarchy" in tables:
        nodes, wrong = read_hierarchy(tables["hierarchy"], file.parent)
        problems += wrong
    if nodes is not None:
        trees, wrong = tables["hierarchy"].trees(nodes.parents)
        problems += wrong
    if trees and "budget" in tables:
        tables["budget"] = tables["budget"].over(trees[0])
    problems += schema.broken_rules(tables, trees)
    problems += _mechanism_problems(tables, is_known=bool(problems))
    if nodes is not None and not problems:
        privacy = tables["privacy"]
        alpha = schema.delivered_alpha(privacy, tables["input"])
        if population is not None and alpha == privacy.budget_alpha:
            # whose alpha is the budget's has none of its own
            tables["privacy"] = privacy.model_copy(update={"budget_alpha": None})
        settings = Settings(
            **{"features_" if name == "features" else name: table for name, table in tables.items()},
            parents=tuple(nodes.parents.items()),
            node_facts=nodes.facts,
            folder=file.parent,
            file=file,
            ledger_folder=ledger_folder,
        )
        problems = list(_misplaced(settings))
        if not problems:
            if "counts" not in settings.privacy.model_fields_set and settings.counts_by_facts:
                privacy = settings.privacy.model_copy(update={"counts": True})
                settings = settings.model_copy(update={"privacy": privacy})
            return settings
    raise refused(
        f"the configuration {path}", list(map(population.placed, problems) if population else problems)
    )


def _tables(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Validate each table by itself, so that one bad table does not hide another's problems."""
    problems = [
        f"[{key}] must be left out: {REMOVED[key]}"
        if key in REMOVED
        else f"{plain(key)} is not a known section{nearest(key, SECTIONS)}"
        for key in [key for key in document if key not in SECTIONS][: 2 * MOST_PROBLEMS]
    ]
    tables: dict[str, Any] = {}
    table = document.get("mechanism")
    named = table.get("name") if isinstance(table, dict) else None
    mechanism = schema.MECHANISMS.get(named) if isinstance(named, str) else None
    for name, section in SECTIONS.items():
        table, is_given = {"features": schema.USUAL_FEATURES, **document}.get(name, {}), name in document
        if name == "mechanism" and isinstance(table, dict):
            if mechanism is None:
                problems.append(_unnamed(table))
                continue
            section = mechanism
        is_table = isinstance(section, type)
        if name in schema.OWN_TABLES and mechanism is not None and name not in mechanism.tables:
            if is_given:
                able = " or ".join(f'"{one}"' for one, its in schema.MECHANISMS.items() if name in its.tables)
                problems.append(f"[{name}] must be left out: it is for mechanism.name {able}")
        elif not is_given and (name in schema.OPTIONAL or (name in schema.OWN_TABLES and mechanism is None)):
            continue
        elif is_table and not is_given and any(one.is_required() for one in section.model_fields.values()):
            problems.append(f"[{name}] is missing; its keys: {', '.join(keys(section))}")
        elif is_table and not isinstance(table, dict):
            problems.append(f"{name} must be a table of keys: {', '.join(keys(section))}")
        else:
            try:
                tables[name] = TypeAdapter(section).validate_python(table)
            except ValidationError as error:
                problems += problems_of(name, section, error, table)
    return tables, problems


def _unnamed(table: Mapping[str, Any]) -> str:
    if "name" not in table:
        return f"mechanism.name is missing; it must be {schema.NAMES}"
    folded = {name.casefold(): name for name in schema.MECHANISMS}
    near = difflib.get_close_matches(shown(table["name"]).strip("'\"").casefold(), folded, n=1)
    meant = "".join(f"; did you mean {folded[name]}?" for name in near)
    return f"mechanism.name must be {schema.NAMES}; got {shown(table['name'])}{meant}"


def _mechanism_problems(tables: Mapping[str, Any], *, is_known: bool) -> list[str]:
    """What the mechanism refuses of its keys; is_known: whether it is known why there is no guarantee."""
    if not {"mechanism", "privacy", "stream", "input"} <= tables.keys():
        return []
    try:
        model = schema.guarantee_of(tables["privacy"], tables["stream"], tables["input"])
    except ParameterError as error:
        return [] if is_known else [f"privacy: {error}"]
    mechanism = tables["mechanism"]
    try:
        if mechanism.is_checked:
            mechanism.kind(model, **mechanism.parameters)
    except ParameterError as error:
        return [f"mechanism: {error}"]
    return []


# Whether folders and ledger are places that can be, and none that is private lies where readers look.

NO_PATH = "is no path: it holds a NUL, is too long, or links to itself"
_NO_PATH_ERRORS = (OSError, ValueError, RuntimeError)


def _misplaced(settings: Settings) -> Iterator[str]:
    problems, places, database = list[str](), dict[str, Location](), None
    try:
        database = ledger_database(settings.ledger_url)
    except ConfigurationError as error:
        yield str(error)
    named = {f"{name}.folder": getattr(settings, name).folder for name in ("input", "published", "trusted")}
    for key, text in {**named, "trusted.witness": settings.trusted.witness}.items():
        if text is None:
            continue
        try:
            places[key] = place = located(text, settings.folder)
            if isinstance(place, StoreUrl) and key == "trusted.folder":
                problems.append(f"{key} must be a path of this machine: draws must be durable and private")
            elif isinstance(place, StoreUrl):
                open_store(place)
        except ParameterError as error:
            problems.append(f"{key} {error}")
        except PublicationError as error:
            problems.append(f"{key}: {error}")
    if problems:
        yield from problems
        return
    public = places.pop("published.folder")
    private = {**places, "watch.log": settings.event_log_file, "the file of ledger.url": database}
    for key, zone in private.items():
        try:
            if zone is not None and lies_within(zone, public):
                yield f"{key} must not lie in published.folder, which is the public zone"
        except _NO_PATH_ERRORS:
            yield f"{key} or published.folder {NO_PATH}"
    # who has the key signs in the stream's name: it lies where nobody else may enter
    if (signs := settings.signing_key_file) is not None:
        is_private = False
        with suppress(*_NO_PATH_ERRORS):
            is_private = lies_within(signs, settings.trusted_folder)
        if not is_private:
            yield "published.signing_key must be the path of a file in trusted.folder, and of nobody else"
    files = {f"{schema.COVARIATES} {n}: path": one.path for n, one in enumerate(settings.covariates, 1)}
    files |= {
        f"{schema.CONSTRAINTS} {n}: totals": one.totals
        for n, one in enumerate(settings.constraints, 1)
        if one.totals
    }
    for named_by, path in files.items():
        try:
            file = _in_real_folder(settings.folder / path)
            for key in ("input.folder", "trusted.folder"):
                zone = places[key]
                zones = (zone.resolve(), _in_real_folder(zone)) if isinstance(zone, Path) else ()
                if any(map(file.is_relative_to, zones)):  # it shows uncharged values, so it must be public
                    yield (
                        f"{named_by} must not lie in {key}, which is private: anything learned from it would "
                        "leak, and no ledger would see it; name a file that is public"
                    )
        except _NO_PATH_ERRORS:
            yield f"{named_by} {NO_PATH}"


def _in_real_folder(place: Path) -> Path:
    """Return a path in the folder that it lies in, whose links are followed. Raises as `Path.resolve`."""
    return place.parent.resolve() / place.name
