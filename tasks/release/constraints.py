"""Public facts of a day, `[[constraints]]`: read, refused where they clash, and kept by its estimate."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256

import polars as pl

from optstream.errors import ConfigurationError, OptStreamError
from optstream.estimation.constraints import Fact, Kind, clash, keep
from optstream.mechanisms import Release
from optstream.stream import Measured
from tasks.config import Settings
from tasks.config.schema import CONSTRAINTS
from tasks.release.mechanism import Mechanism
from tasks.trusted.covariates import private_zones

LARGEST_TOTALS = 2**24
"""Bytes."""
MOST_UNITS = 2**53
"""Of a total, in units of the resolution: what is more has no answer, which would show after the draw."""
MOST_NAMED = 12
"""Facts that one error names."""


def facts_of(settings: Settings, day: date) -> tuple[Fact, ...]:
    """Return the facts of a day, of nodes that its tree has; ConfigurationError where they clash."""
    tree, found, unit = settings.tree_of(day), list[Fact](), settings.privacy.resolution
    place = {node: number for number, node in enumerate(tree.nodes)}
    for number, one in enumerate(settings.constraints, 1):
        kind: Kind = "at_most" if one.at_most is not None else "most_change"
        most, stated = one.at_most or one.most_change or 0, one.model_dump(mode="json", exclude_defaults=True)
        if most == "up":
            kind, most = "never_falls", 0
        if kind == "at_most" and not isinstance(one.nodes, dict):
            # lowered to whole units, as the lower bound is raised to them
            most = math.floor(most / unit) * unit
        sums = [(float(most), weights) for weights in one.sums_in(tree)]
        if one.totals is not None:
            kind, (stated, totals) = "totals", _totals(settings, number, one.totals, day)
            sums = [(total, {node: 1.0}) for node, total in totals.items() if node in place]
        for limit, weights in sums:
            named = ", ".join(f"{'' if w == 1 else f'{w:g} '}{node!r:.80}" for node, w in weights.items())
            words = f"{CONSTRAINTS} {number}, {kind} {limit:.15g} of {named}"
            at = {place[node]: weight for node, weight in weights.items()}
            found.append(Fact(words, at, kind, limit, stated))
    bound = float(settings.least_units * unit)
    clashing, at_bound = clash(found, tree, settings.calendar.n_steps(day), bound)
    if clashing:
        listed = [f"privacy.lower_bound {bound:g} of each leaf"] if at_bound else []
        listed += [fact.words for fact in clashing]
        more = f"; and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
        raise ConfigurationError(
            f"the public facts of {day} clash, for no values keep these together: "
            f"{'; '.join(listed[:MOST_NAMED])}{more}. Correct one of them, or leave one out"
        )
    return tuple(found)


def clashes(settings: Settings, days: Sequence[date]) -> list[str]:
    """Return what is wrong with the facts of some days."""
    found = []
    for day in days if settings.constraints else ():
        try:
            facts_of(settings, day)
        except OptStreamError as error:
            found.append(str(error))
    return found


def estimate_of(
    settings: Settings, day: date, mechanism: Mechanism, measured: Measured, later: Sequence[Measured] = ()
) -> Release:
    """Return the estimate of a day that keeps its public facts; a new one where there are later days."""
    release = mechanism.revise(measured, later) if later else mechanism.estimate(measured)
    facts = facts_of(settings, day)
    if not facts:
        return release
    free, unit = release.unbounded, settings.privacy.resolution
    bound, tree = float(settings.least_units * unit), settings.tree_of(day)
    kept = keep(facts, tree, mechanism.program(release), free, release.values, bound, float(unit))
    optimality = release.optimality if kept.values is release.values else None
    return replace(release, values=kept.values, optimality=optimality, kept=kept, before_bound=free)


def _totals(settings: Settings, number: int, path: str, day: date) -> tuple[dict[str, str], dict[str, float]]:
    """Return the hash of a file of totals, and those of a day; no error shows what is in the file."""
    named, place = f"{CONSTRAINTS} {number}: totals {path!r:.80}", settings.folder / path
    most = float(MOST_UNITS * settings.privacy.resolution)
    try:
        real, zones = place.resolve(strict=True), private_zones(settings, place)
        if any(real.is_relative_to(zone.resolve()) for zone in zones.values()) or not real.is_file():
            raise ValueError
        with real.open("rb") as file:
            data = file.read(LARGEST_TOTALS)
        data.decode()  # packed data, which polars would unpack to any size, is no text
        kinds = {"node": pl.String, "date": pl.String, "total": pl.Float64}
        table = pl.read_csv(data, schema_overrides=kinds)
        table = table.with_columns(pl.col("date").str.to_date("%Y-%m-%d"))
        nodes = {node for _, tree in settings.dated_hierarchy.periods for node in tree.nodes}
        is_known = table["node"].is_in(nodes) & table["date"].is_not_null() & (table["total"].abs() < most)
        is_whole = len(data) < LARGEST_TOTALS and bool(is_known.fill_null(value=False).all())
        if not is_whole or table["node", "date"].is_duplicated().any():
            raise ValueError
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, RuntimeError, ValueError):
        raise ConfigurationError(
            f"{named} must be a file in no private folder, of less than {LARGEST_TOTALS // 2**20} MiB, with "
            "columns node, date and total: in each line a node of the hierarchy, a date such as 2016-02-01 "
            f"and a number of less than {most:.3g} in size, each node once a day; correct the file"
        ) from None
    of_day = table.filter(pl.col("date") == day)
    return {"totals_sha256": sha256(data).hexdigest()}, dict(
        zip(of_day["node"], of_day["total"], strict=True)
    )
