"""Small streams for the tests of the tasks: one with dumps, and one of two regions that is released."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optstream.errors import ContractError
from optstream.measurement.sums import open_private_period
from optstream.stream import PrivatePeriod
from tasks.config import Settings, load_settings
from tasks.ingest import discover, ingest
from tasks.ingest.arrivals import place_of
from tasks.ingest.validate import validate
from tasks.trusted.verdicts import RAW, result_files
from tests.cheap_days import short_spans, verdicts_once, whole_spans  # noqa: F401
from tests.tasks.two_regions import CONFIGURATION as TWO_REGIONS
from tests.tasks.two_regions import DAYS, FEW_BLOCKS, WATCH, Installation

DAY, NEXT = date(2025, 1, 15), date(2025, 1, 16)
NOW = datetime(2025, 1, 16, 3, tzinfo=UTC)
SMALL = {
    'name = "two-regions"\nstep = "30min"': 'name = "small"\nstep = "{step}"\nday = "{day}"',
    'population = "people"': 'population = "customers"',
    'alpha = "1"': 'alpha = "10"\nresolution = "{resolution}"',
    '"20000"': '"100"',
    'schema = "aggregated"\nvalue = "load_mw"': (
        'schema = "{schema}"\ntimestamp = "{timestamp}"\ncustomer = "{customer}"\nvalue = "{value}"\n{marker}'
    ),
    'value = "load_mw"\n[trusted]': 'value = "load"\n[trusted]',
}
"""What the small stream has in place of texts of the two regions."""
CONFIGURATION = reduce(lambda text, change: text.replace(*change), SMALL.items(), TWO_REGIONS)
PLAIN = {
    "schema": "aggregated",
    "day": "elapsed",
    "step": "30min",
    "resolution": "0.001",
    "marker": "",
    "timestamp": "timestamp",
    "customer": "customer_id",
    "value": "load",
}


@dataclass(frozen=True)
class Verdict:
    day: date
    period: PrivatePeriod | None
    error: ContractError | None
    alarms: tuple[str, ...]
    results: Path

    @property
    def units(self) -> np.ndarray:
        """The private integers of a day that nothing stopped."""
        assert self.error is None, self.error
        return open_private_period(self.period)


@dataclass
class SmallStream:
    """Leaves 84 and 11 below FR; values in [0, 100]."""

    settings: Settings

    def folder(self, region: str, day: date = DAY) -> Path:
        return self.settings.input_folder / place_of(region, day)

    def write(self, region: str, rows: pl.DataFrame, day: date = DAY, name: str = "part-0.parquet") -> Path:
        folder = self.folder(region, day)
        folder.mkdir(parents=True, exist_ok=True)
        rows.write_parquet(folder / name)
        (folder / "_SUCCESS").touch()
        return folder / name

    def rows(self, values, day: date = DAY, **columns) -> pl.DataFrame:
        """One row a step, in UTC; `values` for all steps, or one for each."""
        stamps = pl.Series(self.settings.calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
        series = values if isinstance(values, pl.Series) else pl.Series(np.resize(values, len(stamps)))
        return pl.DataFrame({"timestamp": stamps, "load": series}).with_columns(**columns)

    def fill(self, values, *days: date, listed: str = "") -> None:
        """The same rows for both leaves on some days. listed: the text of the list of files."""
        for day, region in product(days or [DAY], ("84", "11")):
            path = self.write(region, self.rows(values, day), day)
            if listed:
                (path.parent / "_FILES").write_text(listed)

    def metered(self, customer: str, values, day: date = DAY) -> pl.DataFrame:
        return self.rows(values, day, customer_id=pl.lit(customer))

    def found(self, day: date = DAY):
        """The dump of a day, or why there is none."""
        return discover(self.settings, [day])[day]

    def ingest(self, *days: date):
        found = discover(self.settings, days or [DAY])
        for entry in found.values():
            if isinstance(entry, Exception):
                raise entry
        return ingest(self.settings, list(found.values()))

    def judge(self, *days: date, now: datetime = NOW):
        """What each day came to, with its alarms and where the results are kept."""
        ingested = self.ingest(*days)
        found = validate(self.settings, ingested, now=now)
        span = (min(day.day for day in ingested), max(day.day for day in ingested))
        files = result_files(self.settings, ".json")
        results = next(one.path for one in files if (one.suite, one.first, one.last) == (RAW, *span))
        alarms = json.loads(results.read_text())["meta"]["alarms"]
        verdicts = []
        for day, one in zip(ingested, found, strict=True):
            error, own = one if isinstance(one, ContractError) else None, alarms.get(str(day.day), ())
            verdicts.append(Verdict(day.day, None if error else one, error, tuple(own), results))
        return verdicts

    def verdict(self, day: date = DAY) -> Verdict:
        (judged,) = self.judge(day)
        return judged

    def units(self, day: date = DAY) -> np.ndarray:
        (ingested,) = self.ingest(day)
        assert ingested.period is not None, ingested.metrics.to_dicts()
        return open_private_period(ingested.period)


RELEASED = {"installation", "watched", "opened", "many_days", "siblings", "informed_nights"}
"""Fixtures of days that are released: too slow for `make quick`."""


def pytest_collection_modifyitems(items):
    for item in items:
        if RELEASED.intersection(getattr(item, "fixturenames", ())) and not item.get_closest_marker("quick"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def load_text(tmp_path):
    """Load the configuration of a text after replacing texts of it: load_text(text, (old, new), …)."""

    def load(text, *changes, folder=tmp_path):
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        file = folder / "optstream.toml"
        file.write_text(text, encoding="utf-8")
        return load_settings(file)

    return load


@pytest.fixture
def small(tmp_path):
    """Make a small stream: small(schema="metered", day="fixed", …)."""

    def make(**changes) -> SmallStream:
        file = tmp_path / "optstream.toml"
        file.write_text(CONFIGURATION.format(**{**PLAIN, **changes}))
        return SmallStream(load_settings(file))

    return make


@pytest.fixture
def days():
    """`days(n)`: DAY and the days after it."""
    return lambda n: [DAY + timedelta(days=number) for number in range(n)]


@pytest.fixture
def installation(tmp_path):
    (tmp_path / "optstream.toml").write_text(TWO_REGIONS)
    installation = Installation(tmp_path)
    installation.simulate(date(2016, 6, 1), date(2016, 6, 2))
    return installation


@pytest.fixture
def watched(installation):
    """At noon of 2016-06-03, two days of dumps, nothing released."""
    installation.configure("[input]", f"{WATCH}[input]")
    return installation.at("2016-06-03T12:00")


@pytest.fixture
def released(installation):
    installation.released(*DAYS[:2])
    return installation


@pytest.fixture
def learning(installation):
    """The small stream by HistoryInformed with few blocks, whose last two days get new estimates."""
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.configure("[ledger]", "[release]\nrevise_days = 2\n[ledger]")
    installation.configure("[published]\n", "[published]\nreplicates = 5\n")  # of 50: they take time
    installation.simulate(*DAYS)
    return installation


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def either(request, installation):
    """The small stream with its ledger on either database; on PostgreSQL by night."""
    if request.param == "postgresql":
        installation.configure("sqlite:///trusted/ledger.sqlite", request.getfixturevalue("postgresql_url"))
    return installation
