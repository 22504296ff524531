"""What is wrong with a table, as errors say it: key, legal range, and what it got."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from optstream.errors import ConfigurationError
from tasks.config.tables.base import Section
from tasks.config.tables.covariates import COVARIATES, PublicSeries
from tasks.config.tables.fields import TooLongError
from tasks.config.tables.hierarchy_changes import HIERARCHY_CHANGES, HierarchyChange
from tasks.config.tables.sections import CHANGES, MOST_FEATURES, Change

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
RELEASED = (
    'Where days were released under another value than the default ("strict", "sliding"), declare the change '
    "with `optstream ledger amend`: they stay as they are and are priced for what follows"
)
REMOVED = {
    "questions": "`optstream.queries` answers sliding sums and events from what was published "
    "(docs/data/published.md)",
    "privacy.calibration": f"noise is always for what every window may lose. {RELEASED}",
    "privacy.windows": f"the privacy guarantee covers every window, also one over two days. {RELEASED}",
    "mechanism.leaves_per_period": "it limited how customers move, which the privacy guarantee does not: "
    "stream.unit and input.schema say in how many leaves a customer's readings of a day may lie, and the "
    "noise follows; the word that they lie in one, for joint noise, is stream.leaves_per_period",
}
"""Keys and tables that an earlier version had, and what to do without them."""


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
    return f"{key} must be {known.get(key)}{_broken_limit(entry, str(known.get(key)))}{got}"


def _broken_limit(entry: Mapping[str, Any], described: str) -> str:
    """The limit that a value is beyond, where its key's description does not say it."""
    if entry["type"] == "value_error":
        error = entry["ctx"]["error"]
        return f", {error}" if isinstance(error, TooLongError) else ""
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
