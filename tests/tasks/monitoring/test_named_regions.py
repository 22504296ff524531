"""Whatever a person reads of a region says its name beside its code; what machines read keeps the code."""

import shutil

import pytest

from flows.cli.output import Terminal
from flows.cli.watch import show_view
from tasks.ui.day_facts import read_day
from tasks.ui.views.dump_rows import dump_rows, when_written
from tests.tasks.monitoring.conftest import FIRST

NAMED = "Auvergne-Rhône-Alpes (84)"


@pytest.fixture
def named(watched):
    watched.configure("[budget]", '[hierarchy.names]\n84 = "Auvergne-Rhône-Alpes"\n[budget]')
    return watched


def words_of(watched):
    return {alarm.kind.value: (alarm.words, alarm.node) for alarm in watched.watch().alarms}


def dump_of(watched, region):
    return watched.folder / f"dumps/region={region}/date={FIRST}"


def test_a_late_dump(named, capsys):
    (dump_of(named, 84) / "_SUCCESS").unlink()
    words, node = words_of(named)["late"]
    assert f"the dump of {NAMED} was not complete by 2016-06-02 06:00" in words
    assert node == "84"
    show_view(named.settings, named.watch(), Terminal(as_json=False))
    shown = capsys.readouterr().out
    assert f"{FIRST}  late; {NAMED}; " in shown


def test_a_node_that_stands_for_all_its_leaves(named):
    named.configure("[hierarchy.names]\n", '[hierarchy.names]\nFR = "France"\n')
    for region in (84, 11):
        (dump_of(named, region) / "_SUCCESS").unlink()
    assert "the dump of France (FR) was not complete" in words_of(named)["late"][0]


def test_a_region_that_was_renamed_and_one_that_is_near(named):
    dump_of(named, 84).parent.rename(dump_of(named, "840").parent)
    words, node = words_of(named)["unknown-region"]
    assert "region=84 (Auvergne-Rhône-Alpes) is not: if it was renamed, add renamed = { 84 = " in words
    assert "to [[hierarchy.changes]] from its first day on, or deliver it as region=84;" in words
    assert node == "840"
    shutil.copytree(dump_of(named, "840").parent, dump_of(named, 84).parent)
    assert f"(the nearest is {NAMED})" in words_of(named)["unknown-region"][0]


def test_a_dump_that_is_not_as_it_should_be(named):
    (next(dump_of(named, 84).glob("*.parquet"))).rename(dump_of(named, 84) / "no.txt")
    said = [words for words, _ in words_of(named).values()]
    assert any(NAMED in words for words in said), said


def test_both_pages_and_the_operators_rows(named):
    named.release(FIRST)
    (named.folder / "dumps/region=84/date=2016-06-02/_SUCCESS").unlink()
    named.write_pages()
    report = named.settings.report_file.read_text()
    assert f">{NAMED} <span" in report
    assert f"of {NAMED}" in report  # what a curve shows, for those who do not see it
    assert f"{NAMED}; " in report  # the day that waits for it
    facts = read_day(named.settings, FIRST)
    rows = dump_rows(facts, ("84", "11"), named.settings.called)
    assert [row.region for row in rows] == [NAMED, "11"]
    assert any(NAMED in words for _, words in when_written(facts, named.settings.called))


def test_without_names_codes_stand_alone(watched):
    (dump_of(watched, 84) / "_SUCCESS").unlink()
    assert "the dump of 84 was not complete" in words_of(watched)["late"][0]
