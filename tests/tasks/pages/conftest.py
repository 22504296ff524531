"""Snapshots by hand of days and alarms of any kind, and published days made without a night."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optstream import AggregationTree, PrivacyModel
from optstream.catalogue import ReleaseStatement, StandardErrors, error_columns, read_catalogue, stage
from optstream.catalogue.backends import open_storage
from optstream.catalogue.publication import publish, withdraw
from optstream.stream import Calendar, days_from
from tasks.config import load_settings
from tasks.monitor import alarms as monitored
from tasks.monitor.alarms import Kind
from tasks.monitor.days import DayState, State
from tasks.monitor.facts import Facts, Surprises
from tasks.monitor.view import StreamView
from tasks.operate.simulate import daily_load, region_of
from tasks.pages.published import NO_SUMMARIES, PublicFacts, public_facts
from tasks.pages.snapshot import Night, Snapshot
from tasks.release.outcomes import Budget
from tests.optstream.catalogue.conftest import make_statement, tree_frame
from tests.tasks.two_regions import CONFIGURATION

FIRST = date(2016, 6, 1)
STREAM, STATES, HALF, NO_SURPRISES = "two-regions", (State.PUBLISHED,) * 70, Fraction(1, 2), Surprises()
AT = datetime(2016, 9, 1, 6, tzinfo=UTC)
WATCH = '\n[watch]\nfirst_day = 2016-06-01\n[schedule]\ncron = "30 3 * * *"\n'


def alarm(kind=Kind.LATE, day=FIRST, node=None, **changes):
    return monitored.alarm(kind, "two-regions", f"{day}: what is wrong and what to do", day, node, **changes)


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    file = tmp_path_factory.mktemp("ui") / "optstream.toml"
    file.write_text(CONFIGURATION.replace('restatement_share = "0"', 'restatement_share = "1/10"') + WATCH)
    return load_settings(file)


@pytest.fixture
def snapshot(settings):
    """`snapshot(states=…, alarms=…, spent=…, …)`: a stream whose days are in these states."""

    def make(name=STREAM, states=STATES, alarms=(), spent=HALF, surprises=NO_SURPRISES, **changes):
        days = tuple(
            DayState(day=day, state=state, listed=0 if state is State.PUBLISHED else None)
            for day, state in zip(days_from(FIRST, FIRST + timedelta(len(states) - 1)), states, strict=True)
        )
        facts = Facts(
            live=True, first=FIRST, last=days[-1].day, releases={}, holds={}, catalogue=None,
            catalogue_error=None, is_own_ledger=True, arrivals={}, refused=frozenset(),
            budget=Budget(model=settings.model, spent=spent), page=None, audit=None, surprises=surprises,
        )  # fmt: skip
        view = StreamView(name, AT, facts, days, tuple(alarms))
        reserved = datetime(2016, 6, 2, 3, tzinfo=UTC)
        begun = {one.day: reserved + timedelta(n) for n, one in enumerate(days) if one.listed == 0}
        nights = {day: Night(at, at + timedelta(minutes=5)) for day, at in begun.items()}
        usual = {"nights": nights, "ended": {"look": AT, "watch": AT}}
        return Snapshot(Path(f"{name}.toml"), name, AT, settings, view, **usual | changes)

    return make


OLDEST = date(2016, 1, 1)
N_DAYS = 32
GONE = OLDEST + timedelta(days=30)
STEPS = 48
LEAVES = ("11", "24", "84")
FRANCE = AggregationTree.from_parents({"FR": None, **dict.fromkeys(LEAVES, "FR")})
CALENDAR = Calendar(30, "Europe/Paris", "elapsed")
NOISE_MW = 300.0


@pytest.fixture(scope="session")
def many_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder of N_DAYS with the noise column, one of them withdrawn. Not to be changed."""
    folder = tmp_path_factory.mktemp("many") / "published"
    lay_out_published(folder, [statement_of(OLDEST + timedelta(days=number)) for number in range(N_DAYS)])
    withdraw(folder, GONE, lambda _entry, _known: "withdrawn", stream="simulated-load")
    return folder


@pytest.fixture(scope="session")
def without_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "published"
    days = [OLDEST + timedelta(days=number) for number in range(3)]
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
    noise = NOISE_MW * n_leaves.sqrt()
    return tree_frame(day, FRANCE, values.tolist()).with_columns(load_mw_noise_se=noise)
