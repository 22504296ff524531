"""Streams by the hour: released, summed, shown, on days of uneven length, and closed into one file a day."""

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from hashlib import sha256

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

from flows.web.app import application
from flows.web.poll import Looks
from optstream import read_published, read_sum
from optstream.catalogue import check_files, find_catalogue, publication, read_catalogue
from optstream.catalogue.backends import LocalTransaction, open_storage
from optstream.catalogue.read import read_release
from optstream.catalogue.standard_errors import daily_replicates, period_sums
from optstream.catalogue.statement import decode, encode
from optstream.errors import DumpError, ParameterError, PublicationError
from optstream.privacy import GaussianSpend
from optstream.privacy.spends import OrderSpend
from optstream.stream import Hour, partition_of
from tasks.config.schema import MECHANISMS
from tasks.ingest import LateDumpError, days_with_dumps, discover
from tasks.monitor.days import State
from tasks.operate.keys import new_key
from tasks.pages.snapshot import take_snapshot
from tasks.plan.backfill import days_of_night
from tasks.release import pipeline as chunk
from tasks.release.publish import close_over
from tasks.release.run import Status
from tests.by_night import few
from tests.failing import death_at
from tests.flows.web.test_app import SECRET, basic
from tests.optstream.ledger.brute_force import order_cost
from tests.tasks.operate.test_sign import sign_with
from tests.tasks.release.test_release_mechanisms import OTHERS
from tests.tasks.two_regions import DAYS, STEPS

DAY, NEXT = DAYS[:2]
HOUR = Hour(DAY, 5)


def hours(*days):
    return [Hour(day, hour) for day in days for hour in range(24)]


def by_the_hour(installation, mechanism, *days):
    """The small stream, now of hours, with dumps of these days."""
    shutil.rmtree(installation.settings.input_folder)  # dumps of days
    installation.change_mechanism(mechanism)
    installation.configure('step = "30min"', 'step = "30min"\nperiod = "hour"')
    installation.simulate(*(days or (DAY, NEXT)))


@pytest.fixture
def day_of_hours(installation):
    """A whole day and an hour of the next, released by the hour."""
    by_the_hour(installation, "Laplace")
    installation.configure('restatement_share = "0"', 'restatement_share = "1/4"')
    installation.now = datetime(2016, 6, 2, 8, tzinfo=UTC)
    installation.released(*hours(DAY), Hour(NEXT, 0))
    return installation


def charged(spends, first):
    """What a window of 48 steps is charged, by hand: Lemmas 1, 16b and 20."""
    found = Fraction(0)
    for spend in spends:
        inside = {step - spend.first_step for step in range(first, first + 48)}
        if isinstance(spend, OrderSpend):
            found += order_cost(spend, range(first, first + 48), 1)
        elif isinstance(spend, GaussianSpend):
            found += sum(len(inside & {*part}) ** 2 for part in spend.parts) * spend.unit_charge
        else:
            found += sum(charge for step, charge in enumerate(spend.charges) if step in inside)
    return found


def test_one_hour_goes_from_dump_to_published_rows_once(installation):
    by_the_hour(installation, "PeGaSus")
    hour = Hour(DAY, 13)
    assert f"date={DAY}/hour=13/release-" in installation.ends(hour, Status.PUBLISHED).file
    rows = installation.rows()
    assert rows.height == 3 * 2
    assert rows.select("date", "step", "timestamp").unique().sort("step").rows() == [
        (DAY, 26 + half, datetime(2016, 6, 1, 11, 30 * half, tzinfo=UTC)) for half in (0, 1)
    ]
    (manifest,) = installation.files("published/manifests").values()
    assert json.loads(manifest)["statement"]["period"] == "2016-06-01T13"
    place = installation.settings.published_folder / "data/**/*.parquet"
    hive = pl.scan_parquet(place, hive_partitioning=True).select("date", "hour")
    assert hive.unique().collect().rows() == [(DAY, 13)]
    before = installation.files("published", "trusted/measurements")
    installation.later(hours=1)
    assert installation.status(hour, noise=None) is Status.UNCHANGED
    assert before == installation.files("published", "trusted/measurements")


@pytest.mark.parametrize("name", few([name for name in OTHERS if name not in ("Fourier", "Uniform")], 1))
def test_a_midnight_of_hours_costs_any_window_no_more_than_the_grant(installation, name):
    by_the_hour(installation, name)
    asked = [*hours(DAY)[20:], *hours(NEXT)[:4]]
    assert installation.statuses(*asked) == {Status.PUBLISHED}
    spends = [spend for period in asked for spend in installation.record(period).spends]
    ledger = installation.ledger
    begins = installation.settings.calendar.first_step(asked[0])
    by_hand = {first: charged(spends, first) for first in range(begins - 94, begins + 16)}
    assert max(by_hand.values()) <= installation.settings.model.budget
    for first in range(begins - 47, begins + 16):
        worst = max(by_hand[first - before] for before in range(48))
        assert worst == ledger.window_spent("people", range(first, first + 1)).epsilon
    rows = installation.rows()
    assert rows.height == rows.select("date", "step", "node").n_unique() == 8 * 2 * 3


def test_the_hours_that_a_clock_skips_and_repeats_are_released(installation):
    autumn = date(2015, 10, 25)
    by_the_hour(installation, "Laplace", autumn, date(2016, 3, 27))
    assert installation.statuses(Hour(autumn, 2), Hour(autumn, 2, True)) == {Status.PUBLISHED}
    rows = installation.rows()
    midnight = datetime(2015, 10, 25, 0, tzinfo=UTC)
    expected = [(4 + number, midnight + number * timedelta(minutes=30)) for number in range(4)]
    assert rows.select("step", "timestamp").unique().sort("step").rows() == expected
    skipped = Hour(date(2016, 3, 27), 2)
    _, (refused,) = installation.through(STEPS[:1], skipped)
    assert refused.status is Status.FAILED
    assert "has no hour 02" in refused.message
    assert installation.ledger.latest("two-regions", str(skipped)) is None


def test_what_is_no_period_of_the_stream_is_refused_before_anything_is_spent(installation):
    by_the_hour(installation, "Laplace")
    ended = installation.ends(DAY, Status.FAILED, "released by the hour", steps=STEPS[:1])
    assert chunk.groups(installation.run(), [ended]) == [[ended]]
    assert not list(installation.ledger.outlines("two-regions"))
    installation.configure('period = "hour"\n', "")
    assert "released by the day" in installation.outcome(Hour(DAY, 3), steps=STEPS[:1]).message


def test_what_lies_between_the_folders_of_hours_stops_those_of_its_day(installation):
    by_the_hour(installation, "Laplace")
    (installation.settings.input_folder / f"region=84/date={DAY}/hour=24").mkdir()
    (installation.settings.input_folder / f"region=84/date={DAY}/hour=03B").mkdir()
    hour, other = Hour(DAY, 3), Hour(NEXT, 3)
    assert Hour(DAY, 3, again=True) not in days_with_dumps(installation.settings)
    found = discover(installation.settings, [hour, other])
    assert type(found[hour]) is DumpError
    assert "'hour=24' does not fit input.path" in str(found[hour])
    assert not isinstance(found[other], DumpError) or isinstance(found[other], LateDumpError)


def test_the_schedule_takes_up_each_hour_that_is_over_and_the_watch_says_which_is_late(installation):
    by_the_hour(installation, "Laplace")
    path = installation.folder / "optstream.toml"
    path.write_text(path.read_text() + '[watch]\nfirst_day = "2016-06-01"\nlate_after = "00:30"\n')
    installation.now = datetime(2016, 6, 1, 3, 20, tzinfo=UTC)  # 05:20 in Paris: hour 4 ended 20 minutes ago
    asked = days_of_night(installation.settings, installation.ledger, installation.now)
    assert asked == hours(DAY)[:5]
    installation.release(*asked[:2])
    (installation.settings.input_folder / "region=84" / partition_of(asked[4]) / "_SUCCESS").unlink()
    view = installation.watch()
    expected = [State.PUBLISHED] * 2 + [State.MISSING] * 2 + [State.WAITING]
    assert [one.state for one in view.days] == expected
    installation.later(minutes=15)
    view = installation.watch()
    assert view.days[-1].state is State.LATE
    assert {str(alarm.day) for alarm in view.alarms if alarm.day} >= {str(asked[4])}
    installation.write_pages()
    assert str(asked[4]) in installation.settings.report_file.read_text()


def test_the_application_has_a_page_for_the_stream_each_hour_and_each_node(day_of_hours):
    file = day_of_hours.folder / "optstream.toml"
    file.write_text(file.read_text() + '[watch]\nlate_after = "00:30"\n')
    now = datetime(2016, 6, 2, 4, tzinfo=UTC)  # 06:00 in Paris
    day_of_hours.now = now
    close_over(day_of_hours.run())
    looks = Looks([file], 30, lambda: now)
    looks._found = {file: take_snapshot(file, now)}
    client = TestClient(application(looks, SECRET, looks.clock))
    home = "/streams/two-regions"

    def page(path):
        found = client.get(path, headers=basic())
        return found.status_code, found.text

    status, text = page(home)
    assert (status, text.count("4 hours, 2016-06-02T01 to 2016-06-02T04")) == (200, 1)
    assert re.search(rf'id="d-{NEXT}"[^>]* tabindex="0"', text)
    assert "Next run" in page("/")[1]
    status, text = page(f"{home}/days/2016-06-01T05")
    assert (status, "2016-06-01T04" in text, "2016-06-01T06" in text) == (200, True, True)
    assert ("Hour before" in text, "Day before" in text) == (True, False)
    assert page(f"{home}/days/{NEXT}")[1] == page(f"{home}/days/{Hour(NEXT, 1)}")[1]
    assert page(f"{home}/days/2016-06-05")[0] == page(f"{home}/days/2016-06-01T24")[0] == 404
    assert page(f"{home}/nodes/84?from={DAY}&to={DAY}")[0] == 200
    curve = re.search(r'application/json">(.*)</script>', page(f"{home}/nodes/84?from={DAY}&to={DAY}")[1])
    assert len(json.loads(curve[1])["spans"][0]["at"]) == 48


def by_hand(rows, node, steps):
    """The value of a sum and its error: Laplace noise is drawn for each step."""
    own = rows.filter(pl.col("date") == DAY, pl.col("node") == node, pl.col("step").is_in(steps))
    return own["load_mw"].sum(), np.sqrt((own["load_mw_noise_se"].cast(pl.Float64) ** 2).sum())


@pytest.mark.parametrize("closed", [False, True])
def test_a_sum_over_hours_has_the_error_of_its_steps(day_of_hours, closed):
    folder = str(day_of_hours.settings.published_folder)
    if closed:
        assert close_over(day_of_hours.run()) == (DAY,)
    rows = read_published(folder)
    for node, steps in (("FR", None), ("84", range(9, 31)), ("FR", [0]), ("84", [47])):
        found = read_sum(folder, [node], DAY, DAY, steps)
        value, error = by_hand(rows, node, range(48) if steps is None else [*steps])
        assert found.value == pytest.approx(value)
        assert found.noise_standard_error == pytest.approx(error, rel=0.5)
    catalogue = read_catalogue(open_storage(folder))
    sums = period_sums(rows, "load_mw", "day", daily_replicates(open_storage(folder), catalogue, [DAY, NEXT]))
    own = sums.filter(date=DAY, node="84").row(0, named=True)
    assert own["load_mw_sum_noise_se"] == pytest.approx(by_hand(rows, "84", range(48))[1], rel=0.5)
    day_of_hours.write_pages()
    assert day_of_hours.problems() == []


ONE = timedelta(days=1)
CHANGES = [
    ("Pacific/Apia", "30min", date(2011, 12, 30)),
    ("Pacific/Kwajalein", "24h", date(1993, 8, 21)),
    ("America/Caracas", "30min", date(2016, 5, 1)),
    ("America/Caracas", "1h", date(2007, 12, 9)),
    ("Europe/Moscow", "1h", date(2010, 3, 28)),
    ("Australia/Lord_Howe", "30min", date(2024, 4, 7)),
]
# the others' days are of other lengths alike, but for Fourier's, of which none may be shorter
BY_DAY = [*(("OptStream", *one) for one in CHANGES), ("Fourier", *CHANGES[4])]
OF_EACH = [(name, *change) for name in MECHANISMS for change in CHANGES]


@pytest.mark.parametrize("case", few(dict.fromkeys([*BY_DAY, *OF_EACH]), len(BY_DAY)))
def test_a_day_is_released_or_nothing_of_it_is_charged(installation, case):
    name, zone, step, day = case
    installation.change_mechanism(name)
    installation.configure("Europe/Paris", zone)
    installation.configure('"30min"', f'"{step}"')
    installation.now = datetime(2026, 7, 1, tzinfo=UTC)
    asked = installation.settings.calendar.periods(day - ONE, day + ONE)
    whole = []
    for one in asked:
        with suppress(ParameterError):
            installation.settings.calendar.n_steps(one)
            whole.append(one)
    installation.simulate(*whole)
    done = installation.release(*whole)
    failed = [one for one, work in done.items() if work.status is not Status.PUBLISHED]
    # Fourier plans a day of 23 hours by itself: the ledger has the next one wait for a window with headroom
    assert failed == ([day + ONE] if (name, zone) == ("Fourier", "Europe/Moscow") else [])
    assert [one for one in failed if installation.ledger.latest("two-regions", str(one))] == []


# Days of hours that are over lie in one file; what changes one of their hours opens the day again.


def data_files(installation):
    return sorted(str(path) for path in installation.files("published/data"))


def is_whole(installation):
    assert installation.problems() == []
    hive = pl.read_parquet(installation.folder / "published" / "data/**/*.parquet", hive_partitioning=True)
    rows = installation.rows()
    assert hive.select(rows.columns).sort("date", "step", "node").equals(rows)
    return True


def test_a_day_that_is_over_lies_in_one_file_with_its_hours_hashes(day_of_hours):
    before, old = day_of_hours.rows(), find_catalogue(day_of_hours.settings.published_folder)
    assert len(data_files(day_of_hours)) == 25
    assert close_over(day_of_hours.run()) == (DAY,)
    files = data_files(day_of_hours)
    assert len(files) == 2
    assert "date=2016-06-01/hour=all/day-" in files[0]
    assert day_of_hours.rows().equals(before)
    assert is_whole(day_of_hours)
    now = find_catalogue(day_of_hours.settings.published_folder)
    hashes = [[(one.period, one.file_hash, one.rows_hash) for one in each.entries] for each in (old, now)]
    assert hashes[0] == hashes[1]
    # who has read the older catalogue reads on
    place = open_storage(day_of_hours.settings.published_folder)
    assert pl.concat(read_release(place, old, entry, True)[0] for entry in old.entries).equals(before)
    assert close_over(day_of_hours.run()) == ()
    days = day_of_hours.watch(live=False).days
    assert {one.state.value for one in days if one.day < Hour(NEXT, 1)} == {"published"}


def test_a_day_with_an_hour_that_may_still_come_stays_open(day_of_hours):
    path = day_of_hours.folder / "published/catalogue.json"
    document = json.loads(path.read_text())
    del document["periods"]["2016-06-01T23"]
    path.write_text(json.dumps(document))
    assert close_over(day_of_hours.run()) == ()
    day_of_hours.later(days=8)  # catch_up_days
    assert close_over(day_of_hours.run()) == (DAY, NEXT)


def test_nothing_of_an_hour_that_is_withdrawn_from_a_closed_day_is_left(day_of_hours):
    assert close_over(day_of_hours.run()) == (DAY,)
    values = day_of_hours.rows().filter(date=DAY).filter(pl.col("step").is_in([10, 11]))["load_mw"]
    assert day_of_hours.withdraw(HOUR).status is Status.WITHDRAWN
    assert is_whole(day_of_hours)
    left = day_of_hours.rows()
    assert left.height == 24 * 2 * 3
    assert close_over(day_of_hours.run()) == (DAY,)
    assert day_of_hours.rows().equals(left)
    assert is_whole(day_of_hours)
    files = [path for path in day_of_hours.files("published") if path.suffix == ".parquet"]
    data = [day_of_hours.folder / path for path in files if "errors" not in str(path)]
    found = pl.concat(pl.read_parquet(path, hive_partitioning=False)["load_mw"] for path in data)
    assert not set(values) & set(found)


@pytest.mark.parametrize("at", few(["put_catalogue", "clear_superseded"], 1))
def test_a_close_that_is_cut_short_leaves_all_rows_to_readers_and_the_next_completes_it(day_of_hours, at):
    before = day_of_hours.rows()
    with death_at(publication, at):
        close_over(day_of_hours.run())
    (day_of_hours.settings.published_folder / ".incoming/catalogue.json").write_bytes(b"half of it")
    assert day_of_hours.rows().equals(before)
    assert close_over(day_of_hours.run()) == ((DAY,) if at == "put_catalogue" else ())
    assert day_of_hours.rows().equals(before)
    assert is_whole(day_of_hours)
    assert close_over(day_of_hours.run()) == ()


CUTS = [("put_catalogue", "withdraw"), ("clear_superseded", "withdraw"), ("clear_superseded", "restate")]


def changed(installation, change):
    if change == "withdraw":
        assert installation.withdraw(HOUR).status is Status.WITHDRAWN
    else:
        assert installation.status(HOUR, restate=True) is Status.PUBLISHED
    assert is_whole(installation)


@pytest.mark.parametrize("case", few(CUTS, 1))
def test_an_hour_changes_though_the_close_before_was_cut_short(day_of_hours, case):
    (at, change), before = case, day_of_hours.rows()
    with death_at(publication, at):
        close_over(day_of_hours.run())
    changed(day_of_hours, change)
    of_others, after = (pl.col("date") != DAY) | ~pl.col("step").is_in([10, 11]), day_of_hours.rows()
    assert after.filter(of_others).equals(before.filter(of_others))
    assert after.height == (before if change == "restate" else before.filter(of_others)).height


@pytest.mark.parametrize("change", few(["withdraw", "restate"], 1))
def test_a_day_that_was_opened_leaves_no_file_where_its_opener_died(day_of_hours, change):
    """Its file shows what was withdrawn, or restated, to a reader of data/ without the catalogue."""
    assert close_over(day_of_hours.run()) == (DAY,)
    values = day_of_hours.rows().filter(date=DAY).filter(pl.col("step").is_in([10, 11]))["load_mw"]
    act = day_of_hours.withdraw if change == "withdraw" else partial(day_of_hours.release, restate=True)
    with death_at(LocalTransaction, "remove"):
        act(HOUR)
    day_of_hours.later(hours=1)
    changed(day_of_hours, change)
    shown = pl.read_parquet(day_of_hours.settings.published_folder / "data/**/*.parquet")["load_mw"]
    assert not set(values) & set(shown)
    assert close_over(day_of_hours.run()) == (DAY,)
    assert is_whole(day_of_hours)


def test_a_file_of_a_day_whose_footer_tells_other_hours_is_reported_and_not_read(day_of_hours):
    assert close_over(day_of_hours.run()) == (DAY,)
    before, folder = day_of_hours.rows(), day_of_hours.settings.published_folder
    (name, _) = data_files(day_of_hours)
    inner, footer = decode((day_of_hours.folder / name).read_bytes())
    catalogue, path = find_catalogue(folder), day_of_hours.folder / "published/catalogue.json"
    for stated_hours in (None, [["x"]], [[1, 2, 3, "4"]], [["2016-06-01T00", "a", "b", 6]]):
        edited = replace(footer, statement={"format": "optstream.day/1", "hours": stated_hours})
        data = encode(inner.with_columns(date=pl.lit(DAY)), edited)
        digest = sha256(data).hexdigest()
        entries = tuple(one.changed(closed_in=one.closed_in and digest) for one in catalogue.entries)
        (day_of_hours.folder / name).unlink()
        name = f"published/{entries[0].shown_in}"
        (day_of_hours.folder / name).write_bytes(data)
        path.write_bytes(catalogue.changed(periods=entries).to_bytes())
        problems = check_files(folder)
        assert any("has other hours than the catalogue names" in line for line in problems), hours
        assert day_of_hours.rows().equals(before)


@pytest.mark.parametrize("place", ["store", "signed"])
def test_days_are_closed_and_opened_in_a_store_and_under_a_signature(installation, place):
    by_the_hour(installation, "Laplace", DAY)
    key = None
    if place == "store":
        installation.configure('"published"', f'"memory://{installation.folder.name}/public"')
    else:
        sign_with(installation, "one.pem")
        key = new_key(installation.settings.signing_key_file)
    # three hours of a day are closed, one is restated and one withdrawn, and what is left closed again
    installation.configure('restatement_share = "0"', 'restatement_share = "1/4"')
    asked, folder = hours(DAY)[:3], installation.settings.published_folder
    installation.release(*asked)
    before = read_published(folder, verify=True)
    assert close_over(installation.run()) == (DAY,)
    assert read_published(folder, verify=True).equals(before)
    assert check_files(folder) == []
    installation.release(asked[0], restate=True)
    installation.withdraw(asked[2])
    assert check_files(folder) == []
    rows = read_published(folder, verify=True)
    assert rows.select("step", "revision").unique().sort("step").rows() == [(0, 1), (1, 1), (2, 0), (3, 0)]
    assert close_over(installation.run()) == (DAY,)
    assert read_published(folder, verify=True).equals(rows)
    assert check_files(folder) == []
    assert check_files(folder, key) == []
    if key is not None:
        read_published(folder, public_key=key)
        path = folder / "catalogue.json"
        path.write_bytes(path.read_bytes().replace(b'"closed_in": "', b'"closed_in": "0')[:-1])
        with pytest.raises(PublicationError):
            read_published(folder, public_key=key)
