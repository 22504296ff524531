"""Reading the configuration: from bytes to settings, or to one error that lists every problem."""

import difflib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from optstream.errors import ParameterError
from tasks.config.checks import cross_checks
from tasks.config.guarantee import guarantee_of
from tasks.config.problems import MOST_PROBLEMS, REMOVED, keys, nearest, plain, problems_of, refused, shown
from tasks.config.settings import Settings
from tasks.config.tables.hierarchy import read_hierarchy
from tasks.config.tables.mechanisms import MECHANISMS, NAMES, OWN_TABLES, Mechanism, names_with, section_of
from tasks.config.tables.population import Population, with_population
from tasks.config.tables.sections import DEFAULT_FEATURES, OPTIONAL, SECTIONS, Input, Privacy
from tasks.config.toml_file import read_toml

MOST_STAGES = 3


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
    problems, sections = _sections(document)
    problems = [*twice, *problems]
    nodes = None
    if "hierarchy" in sections:
        nodes, wrong = read_hierarchy(sections["hierarchy"], folder)
        problems += wrong
    of_population = population is not None and "url" in population.tables["ledger"] and not url
    ledger_folder = population.file.parent if population and of_population else folder
    problems += cross_checks(sections, nodes and nodes.parents, folder, ledger_folder)
    problems += _stage_problems(document, named)
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


def _stage_problems(document: Mapping[str, Any], named: type[Mechanism] | None) -> Iterator[str]:
    """Look at the file's own words, not at validated tables: a mistake elsewhere hides nothing here.
    document: with the default features where they hold. named: None where the file names no known mechanism.
    """
    budget, sampling, features = (document.get(name) for name in ("budget", "sampling", "features"))
    stages = budget.get("stages") if isinstance(budget, dict) else None
    if stages is None:
        return
    if named is not None and "stages" not in named.tables:
        yield f"budget.stages must be left out: it is for mechanism.name {names_with('stages')}"
        return
    method = sampling.get("method") if isinstance(sampling, dict) else None
    if method not in ("equally_spaced", "l1") or not isinstance(features, dict):
        return  # how many there should be is not known
    names = [*(["sampling"] if method == "l1" else []), "samples", *(["features"] if features else [])]
    if isinstance(stages, list) and len(stages) <= MOST_STAGES and len(stages) != len(names):
        shares = "1 share" if len(names) == 1 else f"{len(names)} shares"
        yield f"budget.stages must have {shares} ({', '.join(names)}); got {len(stages)}"
