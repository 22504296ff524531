"""Regions that are new, gone or renamed: what is suggested, by brute force and on real folders."""

from datetime import date
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optstream.stream import AggregationTree
from optstream.stream.lattice import Margin
from tasks.monitor.alarms import likeness, renamed
from tasks.monitor.days import lacking, touched

TWO = date(2016, 6, 2)
TREE = AggregationTree.from_parents(
    {"FR": None, "north": "FR", "south": "FR", "84": "south", "93": "south", "11": "north", "32": "north"}
)


def rename(watched, leaf, name, day=TWO):
    target = watched.folder / f"dumps/region={name}"
    target.mkdir(exist_ok=True)
    (watched.folder / f"dumps/region={leaf}/date={day}").rename(target / f"date={day}")


def test_of_several_the_most_alike_are_paired_and_the_last_by_elimination():
    assert renamed(["FR-84", "IDF", "fr-93"], ["93", "84", "11"]) == {
        "FR-84": "84",
        "fr-93": "93",
        "IDF": "11",
    }
    assert renamed(["AURA", "IDF"], ["84", "11"]) == {"AURA": None, "IDF": None}
    assert renamed(["AURA"], ["84", "11"]) == {"AURA": None}
    assert renamed(["AURA"], []) == {"AURA": None}


@given(
    st.lists(st.text("ab1-", min_size=1, max_size=4), unique=True, max_size=5),
    st.lists(st.text("AB2", min_size=1, max_size=4), unique=True, max_size=5),
)
def test_no_leaf_is_suggested_twice_and_the_most_alike_pair_always_is(unknown, vanished):
    found = renamed(unknown, vanished)
    suggested = [leaf for leaf in found.values() if leaf is not None]
    assert list(found) == unknown
    assert len(set(suggested)) == len(suggested)
    assert set(suggested) <= set(vanished)
    best = max((likeness(one, leaf) for one in unknown for leaf in vanished), default=0)
    if best >= 0.5:
        assert best in {likeness(one, leaf) for one, leaf in found.items() if leaf}


def test_the_nodes_that_lack_their_input_are_the_fewest_that_cover_it():
    """Every subset of the leaves, against the definitions."""
    below = {name: {name} for name in TREE.leaves}
    for number in range(len(TREE.nodes) - 1, 0, -1):
        below.setdefault(TREE.nodes[TREE.parents[number]], set()).update(below[TREE.nodes[number]])
    for size in range(len(TREE.leaves) + 1):
        for leaves in combinations(TREE.leaves, size):
            found = lacking(TREE, leaves)
            assert set().union(*(below[node] for node in found)) == set(leaves)
            assert sum(len(below[node]) for node in found) == len(leaves)
            whole = {node for node in TREE.nodes if below[node] <= set(leaves)}
            smallest = min(
                (len(some) for n in range(len(whole) + 1) for some in combinations(whole, n)
                 if set().union(*(below[node] for node in some)) == set(leaves)),
                default=0,
            )  # fmt: skip
            assert len(found) == smallest
            counted = [sum(bool(below[TREE.nodes[i]] & set(leaves)) for i in level) for level in TREE.levels]
            assert list(touched(TREE, leaves)) == counted


@pytest.mark.parametrize("clock", ["2016-06-02T23:00:00", "2016-06-03T12:00:00"])
def test_a_renamed_region_is_an_alarm_the_same_night_that_names_both(watched, clock):
    rename(watched, "84", "FR-AURA")
    watched.at(clock)
    watched.release(date(2016, 6, 1), TWO)
    (alarm,) = watched.watch().alarms
    assert (alarm.kind.value, alarm.day, alarm.node, alarm.suggestion) == (
        "unknown-region",
        TWO,
        "FR-AURA",
        "84",
    )
    assert "region=FR-AURA" in alarm.words
    assert "region=84" in alarm.words
    assert watched.states()[2] == "failed"


def test_a_new_region_beside_all_others_is_told_with_the_nearest_name(watched):
    folder = watched.folder / f"dumps/region=84b/date={TWO}"
    folder.mkdir(parents=True)
    watched.release(date(2016, 6, 1))
    (alarm,) = watched.watch().alarms
    assert (alarm.node, alarm.suggestion) == ("84b", "84")
    assert "the nearest is 84" in alarm.words


def test_a_leaf_whose_marker_is_late_was_not_renamed(watched):
    """It has a folder of the day: only leaves without one are candidates."""
    (watched.folder / f"dumps/region=84/date={TWO}/_SUCCESS").unlink()
    (watched.folder / f"dumps/region=new/date={TWO}").mkdir(parents=True)
    watched.release(date(2016, 6, 1))
    (alarm,) = watched.watch().alarms
    assert (alarm.node, alarm.suggestion) == ("new", None)


def test_cells_that_lack_touch_their_nodes_of_the_margin_and_are_covered_by_regions():
    tree = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
    lattice = Margin("sector", ("industry", "homes")).on(tree)
    assert touched(lattice, ["84-industry", "84-homes"]) == (1, 1, 2, 2)
    assert lacking(lattice, ["84-industry", "84-homes"]) == ("84",)
    assert lacking(lattice, lattice.leaves) == ("FR",)
    assert lacking(lattice, ["84-industry", "11-industry"]) == ("84-industry", "11-industry")
