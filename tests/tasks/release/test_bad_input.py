"""Bad dumps are refused and spend nothing; days that wait for their hour are held."""

import shutil
from datetime import UTC, date, datetime, timedelta
from itertools import product

import polars as pl
import pytest

from optstream.ledger import ReleaseState
from tasks.release.run import Status, let_go
from tests.tasks.two_regions import STEPS

DAY = date(2016, 6, 1)
WEEK = [DAY + timedelta(days=number) for number in range(7)]
PLANTED = 71234.5


def place_of(day):
    return f"dumps/region=84/date={day}"


def rewrite(installation, change, day=DAY):
    path = installation.folder / f"{place_of(day)}/part-0.parquet"
    change(pl.read_parquet(path)).write_parquet(path)


def with_first(column, value):
    """Change one cell of the first row."""

    def change(rows):
        first = pl.int_range(pl.len()) == 0
        changed = rows.with_columns(pl.when(first).then(pl.lit(value)).otherwise(column).alias(column))
        return changed.select(rows.columns).cast(dict(rows.schema))

    return change


def set_first(value):
    """Put a value into the first reading."""
    return lambda installation, day=DAY: rewrite(installation, with_first("load_mw", value), day)


def remove_region(installation, day):
    shutil.rmtree(installation.folder / place_of(day))


def remove_marker(installation, day):
    (installation.folder / place_of(day) / "_SUCCESS").unlink()


def another_region(name):
    def copy(installation, day):
        shutil.copytree(installation.folder / place_of(day), installation.folder / f"dumps/{name}/date={day}")

    return copy


def truncated(installation, day):
    path = installation.folder / place_of(day) / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def without_last(installation, day):
    rewrite(installation, lambda rows: rows.head(-1), day)


REFUSED = {
    "missing step": (without_last, "step 47"),
    "null": (set_first(None), "step 0"),
    "unknown region": (another_region("region=FR-AURA"), "'region=FR-AURA' is not a leaf"),
    "a name that climbs": (another_region("region=..%2Fx"), "is not a leaf"),
    "truncated file": (truncated, "part-0.parquet"),
}


def test_a_broken_dump_is_refused_and_spends_nothing(installation):
    """Each on a day of its own: faults of what a dump holds and of what is there."""
    days = [DAY + timedelta(days=2 * number) for number in range(len(REFUSED))]
    installation.simulate(*days[1:])
    for day, (damage, _) in zip(days, REFUSED.values(), strict=True):
        set_first(PLANTED)(installation, day)
        damage(installation, day)
    works = installation.release(*days)
    for day, (fault, (_, place)) in zip(days, REFUSED.items(), strict=True):
        outcome = works[day].outcome
        assert outcome.status is Status.REFUSED, fault
        assert place in outcome.message, fault
        assert "region=" in outcome.message
        assert "71234" not in outcome.message
        assert installation.record(day) is None
    assert not (installation.folder / "published").exists()


@pytest.mark.parametrize("damage", [remove_region, remove_marker])
def test_a_dump_that_is_not_there_yet_waits(installation, damage):
    damage(installation, DAY)
    outcome = installation.outcome(DAY)
    assert outcome.status is Status.WAITING
    assert place_of(DAY).removeprefix("dumps/") in outcome.message
    assert installation.record(DAY) is None
    assert not (installation.folder / "published").exists()


def test_readings_beyond_the_public_bounds_are_clamped_and_stop_no_day(installation):
    """Each on a day of its own."""
    values = (float("inf"), float("-inf"), 1e300, -PLANTED, PLANTED)
    days = [DAY + timedelta(days=number) for number in range(len(values))]
    installation.simulate(*days[2:])
    for day, value in zip(days, values, strict=True):
        set_first(value)(installation, day)
    for day, work in installation.release(*days).items():
        assert work.outcome.status is Status.PUBLISHED, day
        assert "71234" not in str(installation.verdict(day))
    assert installation.rows()["load_mw"].max() < 40_000


@pytest.fixture
def metered(installation):
    """A week of three customers in two leaves."""
    installation.configure(
        'schema = "aggregated"\nvalue = "load_mw"', 'schema = "metered"\nvalue = "energy_kwh"'
    )
    shutil.rmtree(installation.folder / "dumps")
    calendar = installation.settings.calendar
    for day, (leaf, customers) in product(WEEK, {"84": ["a", "b"], "11": ["c"]}.items()):
        stamps = pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
        folder = installation.folder / f"dumps/region={leaf}/date={day}"
        folder.mkdir(parents=True)
        rows = pl.concat(
            pl.DataFrame({"customer_id": [name] * 48, "timestamp": stamps, "energy_kwh": [0.25] * 48})
            for name in customers
        )
        rows.write_parquet(folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
    return installation


METERED = {
    "null": with_first("energy_kwh", None),
    "NaN": with_first("energy_kwh", float("nan")),
    "infinite": with_first("energy_kwh", float("inf")),
    "huge": with_first("energy_kwh", 1e300),
    "below the bounds": with_first("energy_kwh", -PLANTED),
    "customer in two leaves": with_first("customer_id", "c"),
    "step seen twice": lambda rows: pl.concat([rows, rows.head(1)]),
}


def test_no_metered_reading_decides_whether_a_day_appears(metered):
    """Each fault on a day of its own."""
    for day, change in zip(WEEK, METERED.values(), strict=True):
        rewrite(metered, change, day)
    works = metered.release(*WEEK)
    for day, fault in zip(WEEK, METERED, strict=True):
        assert works[day].outcome.status is Status.PUBLISHED, fault
        verdict = metered.verdict(day)
        assert verdict["alarms"], fault
        assert "71234" not in str(verdict)


HOUR = datetime(2016, 6, 2, 4, tzinfo=UTC)  # 06:00 in Paris


@pytest.fixture
def held(installation):
    installation.configure('folder = "published"\n', 'folder = "published"\nnot_before = "06:00"\n')
    installation.now = HOUR - timedelta(minutes=10)
    return installation


def run(installation, *days, **changes):
    """As the flow does: the steps, then the leases."""
    works = installation.release(*days, **changes)
    let_go(installation.run(), works.values())
    return works


def test_a_run_before_the_hour_draws_and_holds_and_the_next_one_publishes_those_bytes(held):
    outcome = run(held, DAY)[DAY].outcome
    assert (outcome.status, outcome.status.is_good) == (Status.HELD, True)
    assert "held until 2016-06-02 06:00 (Europe/Paris)" in outcome.message
    assert not (held.folder / "published").exists()
    assert held.record(DAY).state is ReleaseState.DRAWN
    staged = (held.settings.staging_of(DAY, 0) / held.record(DAY).staged_hash[:32]).read_bytes()
    held.now = HOUR - timedelta(microseconds=1)
    assert run(held, DAY)[DAY].outcome.status is Status.HELD
    # the lease of a held day is over: the run at the hour need not wait for it
    held.now = HOUR
    works = run(held, DAY, noise=None)
    assert works[DAY].outcome.status is Status.PUBLISHED
    assert (held.folder / "published" / works[DAY].outcome.file).read_bytes() == staged


def test_days_whose_hour_is_past_are_published_at_once(held):
    held.simulate(DAY - timedelta(days=1))
    before = DAY - timedelta(days=1)
    works = run(held, before, DAY)
    assert [work.outcome.status for work in works.values()] == [Status.PUBLISHED, Status.HELD]
    assert held.rows()["date"].unique().to_list() == [before]


def test_a_run_that_holds_its_day_changes_no_inode_that_readers_see(held):
    """The time of such a change would show when the draw was over."""
    published = held.folder / "published"

    def night(day):
        run(held, day)
        assert held.write_pages().problem is None
        return {
            path.relative_to(published): (path.stat().st_ino, path.stat().st_ctime_ns)
            for path in [published, *published.rglob("*")]
        }

    held.simulate(DAY - timedelta(days=1))
    before = night(DAY - timedelta(days=1))
    assert night(DAY) == before
    held.now = HOUR
    assert night(DAY).keys() > before.keys()


def test_no_published_byte_names_a_moment_of_the_run(installation):
    installation.now = datetime(2031, 8, 9, 10, 11, 12, 131415, tzinfo=UTC)
    installation.release(DAY, steps=STEPS)
    for path, data in installation.files("published").items():
        for moment in (b"2031-08-09", b"10:11:12", f"{installation.now.timestamp():.0f}".encode()):
            assert moment not in data, path
            assert moment not in str(path).encode()
