"""The file of a population: what its streams say alike is said once, in a file that each of them names."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from optstream.errors import ConfigurationError
from tasks.config.paths import absolute, resolve_ledger_url
from tasks.config.problems import nearest, plain, refused, shown
from tasks.config.toml_file import read_toml

KEY = "population_file"
STREAMS = "streams"
"""A key that only a population file has."""
SHARED_WITH = "shared_with"
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

    With `stream_share = "model"` the other streams that the population lists are those that share epsilon.
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
    budget = document.get("budget")
    if isinstance(budget, dict) and budget.get("stream_share") == "model" and population.streams:
        if SHARED_WITH in budget:
            problems.append(f"budget.{SHARED_WITH} must be left out: {population.file} lists the streams")
        others = [str(one) for one in population.streams if one != file.resolve()]
        found["budget"] = {**budget, SHARED_WITH: others}
    return found, problems
