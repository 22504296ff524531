"""Published days of half-hours of simulated load, made without a night, as OptStream writes them."""

from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optstream import AggregationTree, PrivacyModel
from optstream.catalogue import (
    ReleaseStatement,
    StandardErrors,
    error_columns,
    publish,
    read_catalogue,
    stage,
    withdraw,
)
from optstream.catalogue.backends import open_storage
from optstream.stream import Calendar
from tasks.operate.simulate import daily_load, region_of
from tasks.pages.published import NO_SUMMARIES, PublicFacts, public_facts
from tests.optstream.catalogue.conftest import frame_of, make_statement, nodes_of
from tests.tasks.pages.snapshots import settings, snapshot

__all__ = ["settings", "snapshot"]

FIRST = date(2016, 1, 1)
N_DAYS = 32
GONE = FIRST + timedelta(days=30)
STEPS = 48
LEAVES = ("11", "24", "84")
FRANCE = AggregationTree.from_parents({"FR": None, **dict.fromkeys(LEAVES, "FR")})
CALENDAR = Calendar(30, "Europe/Paris", "elapsed")
NOISE_MW = 300.0


@pytest.fixture(scope="session")
def many_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder of N_DAYS with the noise column, one of them withdrawn. Not to be changed."""
    folder = tmp_path_factory.mktemp("many") / "published"
    lay_out_published(folder, [statement_of(FIRST + timedelta(days=number)) for number in range(N_DAYS)])
    withdraw(folder, GONE, lambda _entry, _known: "withdrawn", stream="simulated-load")
    return folder


@pytest.fixture(scope="session")
def without_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "published"
    days = [FIRST + timedelta(days=number) for number in range(3)]
    lay_out_published(folder, [statement_of(day, standard_errors=None) for day in days])
    return folder


def facts_of(folder: Path) -> PublicFacts:
    place = open_storage(folder)
    return public_facts(place, read_catalogue(place), NO_SUMMARIES)[0]


def lay_out_published(folder: Path, statements: Iterable[ReleaseStatement]) -> None:
    releases = []
    for statement in statements:
        rows = _rows(statement.period)
        if statement.standard_errors is None:
            rows = rows.drop(error_columns("load_mw"))
        releases.append(stage(rows, statement))
    publish(folder, releases, lambda _: "simulated")


def statement_of(day: date, epsilon: str = "1", **changes: object) -> ReleaseStatement:
    usual = {
        "stream": "simulated-load",
        "model": PrivacyModel(epsilon, STEPS, 10),
        "mechanism": {"name": "OptStream", "level_shares": ["1/3", "2/3"]},
        "epsilon_own": Fraction(1),
        "day": CALENDAR.day,
        "standard_errors": StandardErrors(noise="all", posterior="none"),
    }
    return make_statement(day, 0, 0, **usual | changes)


def _rows(day: date) -> pl.DataFrame:
    leaves = np.array([daily_load(region_of(name), name, day, CALENDAR, 0) for name in FRANCE.leaves])
    noise = np.random.default_rng([0, day.toordinal()]).normal(0.0, NOISE_MW, leaves.shape)
    values = FRANCE.add_up(np.round(np.maximum(leaves + noise, 0.0), 3))
    n_leaves = pl.when(node="FR").then(len(LEAVES)).otherwise(1)
    return frame_of(day, nodes_of(FRANCE), values.tolist()).with_columns(
        load_mw_noise_se=NOISE_MW * n_leaves.sqrt()
    )
