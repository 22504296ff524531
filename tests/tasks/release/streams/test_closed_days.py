"""Days of hours that are over lie in one file; what changes one of their hours opens the day again."""

import json
from dataclasses import replace
from datetime import date
from functools import partial
from hashlib import sha256

import polars as pl
import pytest

from optstream import read_published
from optstream.catalogue import check_files, find_catalogue, publication
from optstream.catalogue.backends import LocalTransaction, open_storage
from optstream.catalogue.read import read_release
from optstream.catalogue.statement import decode, encode
from optstream.errors import PublicationError
from optstream.stream import Hour
from tasks.monitor.view import watch
from tasks.operate.keys import new_key
from tasks.release.publish import close_over
from tasks.release.run import Status
from tests.by_night import few
from tests.failing import death_at
from tests.tasks.operate.test_sign import sign_with
from tests.tasks.release.streams.conftest import hours

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
HOUR = Hour(DAY, 5)


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
    assert {
        one.state.value
        for one in watch(day_of_hours.settings, day_of_hours.ledger, day_of_hours.now, live=False).days
        if one.day < Hour(NEXT, 1)
    } == {"published"}


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
    published = [path for path in day_of_hours.files("published") if path.suffix == ".parquet"]
    found = pl.concat(
        pl.read_parquet(day_of_hours.folder / path, columns=["load_mw"], hive_partitioning=False)
        for path in published
        if "errors" not in str(path)
    )
    assert not set(values) & set(found["load_mw"])


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
    """Its own file lies where it was when the day was open, and the day's file is there."""
    (at, change), before = case, day_of_hours.rows()
    with death_at(publication, at):
        close_over(day_of_hours.run())
    changed(day_of_hours, change)
    of_others, after = (pl.col("date") != DAY) | ~pl.col("step").is_in([10, 11]), day_of_hours.rows()
    assert after.filter(of_others).equals(before.filter(of_others))
    assert after.height == (before if change == "restate" else before.filter(of_others)).height


@pytest.mark.parametrize("change", few(["withdraw", "restate"], 1))
def test_a_day_that_was_opened_leaves_no_file_though_whoever_opened_it_died(day_of_hours, change):
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


def changed_and_closed(installation):
    """Three hours of a day are closed, one is restated and one withdrawn, and what is left closed again."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/4"')
    asked, folder = hours(DAY)[:3], str(installation.settings.published_folder)
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


@pytest.mark.parametrize("place", ["store", "signed"])
def test_days_are_closed_and_opened_in_a_store_and_under_a_signature(by_the_hour, place):
    installation, key = by_the_hour("Laplace", DAY), None
    if place == "store":
        installation.configure(
            'folder = "published"', f'folder = "memory://{installation.folder.name}/public"'
        )
    else:
        sign_with(installation, "one.pem")
        key = new_key(installation.settings.signing_key_file)
    changed_and_closed(installation)
    folder = installation.settings.published_folder
    assert check_files(folder, key) == []
    if key is not None:
        read_published(folder, public_key=key)
        path = folder / "catalogue.json"
        path.write_bytes(path.read_bytes().replace(b'"closed_in": "', b'"closed_in": "0')[:-1])
        with pytest.raises(PublicationError):
            read_published(folder, public_key=key)
