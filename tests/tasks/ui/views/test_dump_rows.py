"""Dumps of a day with sizes and times: what is complete, what is not, and what a store does not tell."""

from datetime import timedelta
from pathlib import Path

from tasks.ingest import Arrival
from tasks.ingest.formats import FileFacts
from tasks.monitor.facts import Suspect
from tasks.ui.day_facts import DayFacts
from tasks.ui.views.dump_rows import dump_rows, when_written
from tasks.ui.words import replaced_in_words
from tests.tasks.ui.conftest import AT, FIRST

EARLY, LATE = AT - timedelta(hours=2), AT - timedelta(hours=1)


def facts_of(broken=(), waiting=(), **files):
    arrival = Arrival(FIRST, (), {part: (Path("a"),) * len(own) for part, own in files.items()}, {}, {})
    return DayFacts(
        Arrival(FIRST, (), arrival.files, dict(waiting), dict(broken)),
        {part: tuple(FileFacts(size, at) for size, at in own) for part, own in files.items()},
    )


def test_a_region_has_the_size_of_its_files_and_the_time_of_the_last():
    facts = facts_of({"b": "no Parquet file"}, {"c": "no marker"}, a=[(1500, LATE), (2500, EARLY)])
    rows = {one.region: (one.words, one.size, one.written) for one in dump_rows(facts, ("a", "b", "c", "d"))}
    assert rows == {
        "a": ("complete, 2 files", "4.0 kB", LATE),
        "b": ("no Parquet file", "", None),
        "c": ("no marker", "", None),
        "d": ("not there", "", None),
    }


def test_what_is_not_complete_comes_first_of_many():
    many = {f"r{number}": [(1, LATE)] for number in range(300)}
    rows = list(dump_rows(facts_of({"last": "no Parquet file"}, **many), (*many, "last", "absent")))
    assert [(one.region, one.is_complete) for one in rows[:3]] == [
        ("last", False),
        ("absent", False),
        ("r0", True),
    ]


def test_a_region_has_the_shares_of_its_readings_whatever_became_of_its_files():
    shares = {"a": Suspect(1.0, 0.0, 0.0), "c": Suspect(0.0, 0.031, 0.5)}
    rows = list(dump_rows(facts_of(a=[(9, AT)], b=[(9, AT)]), ("a", "b", "c"), suspect=shares))
    assert {one.region: one.replaced for one in rows} == {"a": shares["a"], "b": None, "c": shares["c"]}
    assert replaced_in_words(shares["c"]) == "3.1 % absent, 50.0 % doubled"
    assert replaced_in_words(Suspect(0.0, 0.0, 0.0)) == "none"
    assert replaced_in_words(Suspect(1e-6, 1 - 1e-6, 0.0)) == "< 0.1 % clamped, > 99.9 % absent"


def test_the_first_and_the_last_file_are_told_with_the_size_of_all():
    facts = facts_of(a=[(1000, LATE), (500, EARLY)], b=[(500, None)])
    assert list(when_written(facts)) == [
        (EARLY, "The first file of its dump was written, of a"),
        (LATE, "The last file of its dump was written, of a: 3 files, 2.0 kB"),
    ]


def test_the_only_file_is_told_once():
    assert list(when_written(facts_of(**{"": [(7, LATE)]}))) == [
        (LATE, "The file of its dump was written, of all regions: 1 file, 7 B")
    ]


def test_a_store_that_tells_no_times_leaves_them_out():
    facts = facts_of(a=[(9, None)])
    assert list(when_written(facts)) == []
    assert [(one.size, one.written) for one in dump_rows(facts, ("a",))] == [("9 B", None)]
    assert list(dump_rows(DayFacts(), ("a",))) == []
