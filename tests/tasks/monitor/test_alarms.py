"""What alarms compare: regions with the hierarchy, replaced readings, published means with history."""

import json
import random
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import combinations
from statistics import median

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.cli.output import Terminal
from flows.cli.status import show_view
from optstream.catalogue import Entry
from optstream.mechanisms.base import SelfCheck
from optstream.mechanisms.history_informed import InformedMechanism
from optstream.stream import AggregationTree
from optstream.stream.lattice import Margin
from tasks.monitor.alarms import Severity, likeness, renamed
from tasks.monitor.days import lacking, touched
from tasks.monitor.facts import LEAST_DAYS, Suspect, compare, loudest, read_verdicts
from tests.tasks.conftest import DAY, NOW
from tests.tasks.monitor.conftest import FIRST, Watched
from tests.tasks.two_regions import FEW_BLOCKS, in_another_unit, released_by

TWO = date(2016, 6, 2)
TREE = AggregationTree.from_parents(
    {"FR": None, "north": "FR", "south": "FR", "84": "south", "93": "south", "11": "north", "32": "north"}
    | {"west": "FR", "53": "west"}
)


@settings(deadline=None)
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
    for leaves in (some for size in range(len(TREE.leaves) + 1) for some in combinations(TREE.leaves, size)):
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
        assert all(node in TREE.leaves or len(below[node]) > 1 for node in found), "a leaf has its own name"
        counted = [sum(bool(below[TREE.nodes[i]] & set(leaves)) for i in level) for level in TREE.levels]
        assert list(touched(TREE, leaves)) == counted


def test_cells_that_lack_touch_their_nodes_of_the_margin_and_are_covered_by_regions():
    tree = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
    lattice = Margin("sector", ("industry", "homes")).on(tree)
    assert touched(lattice, ["84-industry", "84-homes"]) == (1, 1, 2, 2)
    assert lacking(lattice, ["84-industry", "84-homes"]) == ("84",)
    assert lacking(lattice, lattice.leaves) == ("FR",)
    assert lacking(lattice, ["84-industry", "11-industry"]) == ("84-industry", "11-industry")


@pytest.mark.parametrize(
    ("gone", "name", "suggestion", "words"),
    [
        ("", "FR-AURA", "84", "region=FR-AURA is there, which no leaf is called, and region=84 is not"),
        # next to all others
        (None, "84b", "84", "the nearest is 84"),
        # a leaf with a folder of the day, whose marker is late, was not renamed
        ("_SUCCESS", "new", None, "no leaf of the hierarchy is called so"),
    ],
)
@pytest.mark.parametrize("clock", ["2016-06-02T23:00:00", "2016-06-03T12:00:00"])
def test_an_unknown_region_is_an_alarm_the_same_night(watched, clock, gone, name, suggestion, words):
    dumps = watched.folder / "dumps"
    (dumps / f"region={name}").mkdir()
    if gone is None:
        (dumps / f"region={name}/date={TWO}").mkdir()
    elif gone:
        (dumps / f"region={name}/date={TWO}").mkdir()
        (dumps / f"region=84/date={TWO}" / gone).unlink()
    else:
        (dumps / f"region=84/date={TWO}").rename(dumps / f"region={name}/date={TWO}")
    watched.at(clock)
    watched.release(FIRST, TWO)
    (alarm,) = watched.watch().alarms
    found = (alarm.kind.value, alarm.day, alarm.node, alarm.suggestion)
    assert found == ("unknown-region", TWO, name, suggestion)
    assert words in alarm.words
    assert watched.states()[2] == "failed"


def shares(stream, day):
    return read_verdicts(stream.settings, {day}).suspect.get(day, {})


@pytest.mark.slow
def test_a_spoilt_dump_of_all_leaves_is_an_alarm_that_names_them(watched):
    watched.configure('folder = "dumps"', 'folder = "dumps of all"\nregion = "zone"')
    folder = watched.folder / f"dumps of all/date={FIRST}"
    folder.mkdir(parents=True)
    for name in ("_SUCCESS", "notes.txt"):
        (folder / name).touch()
    (alarm,) = (one for one in watched.watch().alarms if one.kind.value == "failed")
    assert "the files of 84, 11 are not as they should be" in alarm.words


def test_the_newest_verdict_of_the_day_counts_and_others_do_not(small):
    stream = small()
    assert shares(stream, DAY) == {}
    for later, load in ((1, 1e9), (2, 40.0)):
        stream.fill(load)
        stream.judge(now=NOW + timedelta(minutes=later))
    assert shares(stream, DAY) == dict.fromkeys(("84", "11"), Suspect(0.0, 0.0, 0.0))
    assert shares(stream, DAY + timedelta(days=1)) == {}


@pytest.mark.parametrize(
    ("share", "revision", "remedy"),
    [("0", 0, "withdraw it"), ("1/10", 0, "deliver it again"), ("1/10", 1, "withdraw it")],
)
def test_a_run_says_loudly_what_is_most_of_a_region(small, share, revision, remedy):
    """A thousandfold delivery is clamped and published: the remedy is one that the ledger does not refuse."""
    stream = small()
    changed = stream.settings.budget.model_copy(update={"restatement_share": Fraction(share)})
    stream.settings = stream.settings.model_copy(update={"budget": changed})
    stream.write("84", stream.rows(100_000.0))
    stream.write("11", stream.rows(1.0))
    assert stream.judge()[0].error is None
    (line,) = loudest(stream.settings, {DAY: revision})
    assert line.startswith(f"{DAY}: readings were clamped in 84 (100%), so that readers have the bounds in ")
    assert f"If it is wrong, {remedy}" in line
    assert f"restatement_share = {share}" in line


SPAN = [FIRST + timedelta(days=number) for number in range(10)]
*USUAL, LAST = SPAN[: LEAST_DAYS + 1]
FAR, SUSPECT = (("far-from-history", LAST.day, "84"), ("suspect-readings", LAST.day, "84"))


def shown(installation, *days):
    installation.release(*days)
    installation.write_pages()


@pytest.mark.parametrize(("factor", "seen"), [(1000, [SUSPECT]), (-1, [FAR, SUSPECT]), (1 / 1000, [FAR])])
def test_a_region_in_another_unit_or_sign_is_published_green_and_seen(watched, capsys, factor, seen):
    """A thousandfold load is clamped to the bound; a thousandth is not, and history shows it."""
    watched.configure('epsilon = "1"', 'epsilon = "50"')
    watched.simulate(*USUAL, LAST)
    watched.at("2016-06-09 12:00")
    watched.once(shown, *USUAL)
    in_another_unit(watched, "84", LAST, factor)
    assert [kind for kind, _, _ in watched.alarms()] == ["missing"]
    assert watched.status(LAST) == "published"
    watched.write_pages()
    assert sorted(watched.alarms()) == seen
    view = watched.watch(live=False)
    far = [alarm for alarm in view.alarms if alarm.kind == "far-from-history"]
    assert all(" of the median of the days before" in alarm.words for alarm in far)
    assert {alarm.severity for alarm in far} <= {Severity.WARNING}
    wholly = [alarm for alarm in view.alarms if "readers have the bounds in place of" in alarm.words]
    assert [alarm.node for alarm in wholly] == ["84"] * (SUSPECT in seen)
    assert all("restatement_share" in alarm.words for alarm in wholly)
    show_view(watched.settings, view, Terminal())
    printed = " ".join(capsys.readouterr().out.split())
    assert ("84: 100.0% clamped" in printed) is (SUSPECT in seen)
    assert ("Replaced readings" in watched.settings.report_file.read_text()) is (SUSPECT in seen)
    public = (watched.folder / "published/index.html").read_text()
    assert "clamped on" not in public
    assert "suspect" not in public


def compared(*means, noise=1.0, model=None):
    """The comparison of a node's last mean with those before, one a day; those that are far."""
    hashes = [f"{day:064}" for day in range(len(means))]
    entries = [
        Entry(
            period=FIRST + timedelta(days=number), revision=0, vintage=0, file_hash=file_hash,
            rows_hash="0" * 64, ledger_head="head",
        )
        for number, file_hash in enumerate(hashes)
    ]  # fmt: skip
    kept = pl.DataFrame({"file_hash": hashes, "node": "a", "mean": means})
    kept = kept.with_columns(noise=pl.lit(noise, pl.Float64), model=pl.lit(model, pl.Float64))
    found = compare(kept, entries, lambda _day: {"a"})
    assert [one.is_far for one in found.newest] == [one in found.far for one in found.newest]
    return found.newest[0], found.far


FAR_OR_NOT = [
    (1000.0, True, "10 times"),
    (990.0, False, "9.9 times"),
    (10.0, True, "1/10 of"),
    (11.0, False, "1/9.09 of"),
    (-100.0, True, "of the other sign than"),
    (0.0, True, "none of"),
    (104400.0, True, "1,044 times"),
    (0.01, True, "1/10,000 of"),
]
EXPLAINED = [
    (0.5, 8.0, 1.0, None, False),
    (0.5, 9.0, 1.0, None, True),
    # a zone of one trip a day has days without; nobody knows the noise in what `HistoryInformed` says
    (1 / 24, 0.0, None, 0.3, False),
    (1 / 24, 0.0, None, 0.01, True),
    (1 / 24, 0.0, None, None, True),
    (1 / 24, 2.0, None, 0.3, True),
]


def test_far_is_ten_times_a_tenth_or_the_other_sign_unless_noise_or_a_model_explains_it():
    for mean, is_far, words in FAR_OR_NOT:
        found, _ = compared(*[100.0] * LEAST_DAYS, mean)
        assert (found.day, found.mean, found.usual) == (FIRST + timedelta(days=LEAST_DAYS), mean, 100.0)
        assert (found.is_far, found.words) == (is_far, words)
    for usual, mean, noise, model, is_far in EXPLAINED:
        found, _ = compared(*[usual] * LEAST_DAYS, mean, noise=noise, model=model)
        assert found.is_far == is_far, (usual, mean, noise, model)


def test_each_of_the_last_days_is_compared_with_those_before_it_by_brute_force():
    chosen = random.Random(3)
    means = [100.0 * chosen.choice((1, 1, 30, 1 / 30)) * chosen.uniform(0.5, 2) for _ in range(70)]
    _, far = compared(*means)
    expected = []
    for day in reversed(range(42, 70)):
        usual = median(means[day - 28 : day])
        if not 0.1 < means[day] / usual < 10 and abs(means[day] - usual) > 8:
            expected.append((FIRST + timedelta(days=day), means[day], pytest.approx(usual)))
    assert len(expected) > 5
    assert [(one.day, one.mean, one.usual) for one in far] == expected


def test_a_day_unlike_all_others_is_a_warning_until_the_next(tmp_path):
    """Of ten days the ninth has a quarter of the load in all regions."""
    days, dark = SPAN, SPAN[8]
    (tmp_path / "optstream.toml").write_text(released_by("HistoryInformed", keys=FEW_BLOCKS))
    installation = Watched(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(*days)
    for path in (tmp_path / "dumps").glob(f"region=*/date={dark}/*.parquet"):
        pl.read_parquet(path).with_columns(pl.col("load_mw") * 0.25).write_parquet(path)
    installation.released(*days[:8])
    assert installation.of_kind("unlike-history") == []  # ordinary days are no news
    installation.release(dark)
    (alarm,) = installation.of_kind("unlike-history")
    assert (alarm.day, alarm.node, alarm.severity) == (dark, None, Severity.WARNING)
    installation.release(days[9])
    assert installation.of_kind("unlike-history") == []
    installation.write_pages()
    assert "finds unlike all others: 9 Jun 2016." in installation.settings.report_file.read_text()


def test_a_level_that_misses_its_predictions_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "optstream.toml").write_text(released_by("HistoryInformed", keys=FEW_BLOCKS))
    installation = Watched(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(*SPAN[:2])
    installation.released(SPAN[0])
    assert installation.of_kind("off-prior") == []  # a stream that has learned nothing expects nothing
    monkeypatch.setattr(InformedMechanism, "self_check", lambda mechanism, measured: SelfCheck((), (1,)))
    installation.release(SPAN[1])
    newest = max((tmp_path / "trusted/validation").rglob("*-release.json"), key=lambda one: one.name[21:])
    document = json.loads(newest.read_bytes())
    document["meta"]["self_checks"] = {str(SPAN[1]): {}}  # of a later estimate of the day
    newest.with_name(f"{newest.name[:22]}9{newest.name[23:]}").write_text(json.dumps(document))
    (alarm,) = installation.of_kind("off-prior")
    assert (alarm.day, alarm.severity) == (SPAN[1], Severity.WARNING)
    assert "level 1" in alarm.words
