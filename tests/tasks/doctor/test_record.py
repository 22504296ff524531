"""What the doctor says of ledger, published folder and dumps beside each other."""

import shutil
from datetime import UTC, date, datetime, timedelta

from optstream.noise import simulated_noise
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


def test_a_clock_behind_the_ledger_is_wrong(open_house, around):
    last = open_house.ledger.last_event_at("two-regions")
    assert last == open_house.now
    assert around(open_house, now=last - timedelta(minutes=5)) == []
    ((severity, place, words),) = around(open_house, now=last - timedelta(minutes=6))
    assert (severity, place) == ("wrong", "the clock of this machine")
    assert "2016-07-01 00:00" in words


def test_seeded_noise_in_a_production_stream_is_wrong(open_house, around):
    (open_house.folder / "dumps").chmod(0o700)
    open_house.simulate(NEXT)
    open_house.release(NEXT, steps=STEPS[:6])
    assert around(open_house) == []
    third = NEXT + timedelta(days=1)
    open_house.simulate(third)
    open_house.release(third, steps=STEPS[:6], noise=simulated_noise(7))
    ((severity, place, words),) = around(open_house)
    assert severity == "wrong"
    assert place.endswith(f"{third}-r0")
    assert "seeded noise, which protects nobody" in words


def test_a_ledger_that_is_gone_or_another_is_wrong(open_house, around):
    away = open_house.folder / "trusted/ledger.sqlite"
    away.rename(away.with_suffix(".kept"))
    ((severity, place, words),) = around(open_house)
    assert (severity, place) == ("wrong", str(away))
    assert "restore it from a backup" in words
    assert not away.exists()
    open_house.ledger.close()
    found = around(open_house)
    assert {severity for severity, _, _ in found} == {"wrong"}
    places = [place.removeprefix(f"{open_house.folder}/") for _, place, _ in found]
    assert places == ["published", "ledger.url", f"trusted/measurements/two-regions/{DAY}-r0"]
    assert all("another" in words for _, _, words in found)


def test_a_stream_that_has_not_begun_is_only_noted(open_house, around):
    for name in ("trusted", "published"):
        shutil.rmtree(open_house.folder / name)
    assert [entry[0] for entry in around(open_house)] == ["note"]
    assert not (open_house.folder / "trusted").exists()


def test_dumps_without_any_marker_are_told(open_house, around):
    open_house.configure("[input]", '[input]\nmarker = "DONE"')
    ((severity, place, words),) = around(open_house)
    assert (severity, place) == ("warning", str(open_house.folder / "dumps"))
    assert "DONE" in words
    assert "input.marker" in words


def test_each_layout_needs_its_own_marker(open_house, around):
    change = f'value = "load_mw"\n[[input.changes]]\nvalid_from = {NEXT}\nfile_list = "_FILES"\n[published]'
    open_house.configure('value = "load_mw"\n[published]', change)
    assert around(open_house) == []
    open_house.simulate(NEXT, NEXT + timedelta(days=1))
    (open_house.folder / "dumps").chmod(0o700)
    (open_house.folder / "dumps/region=84/date=unknown").mkdir()
    assert around(open_house) == []
    for listed in open_house.folder.glob("dumps/*/*/_FILES"):
        listed.rename(listed.with_name("_SUCCESS"))
    ((severity, place, words),) = around(open_house)
    assert (severity, place) == ("warning", str(open_house.folder / "dumps"))
    assert f"dumps of {NEXT} and later are there, and none has _FILES" in words
    assert f"correct file_list of [[input.changes]] from {NEXT}" in words


def test_a_broken_catalogue_and_a_ledger_that_does_not_answer_are_findings(open_house, around):
    (open_house.folder / "trusted/ledger.sqlite").write_bytes(b"not a database, but long enough to be one")
    (open_house.folder / "trusted/ledger.sqlite-wal").unlink(missing_ok=True)
    assert [entry[:2] for entry in around(open_house)] == [("wrong", "ledger.url")]
    (open_house.folder / "published/catalogue.json").write_text("{")
    assert [entry[:2] for entry in around(open_house)] == [("wrong", str(open_house.folder / "published"))]


def test_the_last_event_of_nobody_is_none(open_house):
    assert open_house.ledger.last_event_at("nobody") is None
    assert datetime.now(UTC) > open_house.ledger.last_event_at("two-regions")
