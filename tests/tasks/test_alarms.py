"""Alarms: what they compare, and that each channel and the event log have each of them once."""

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
from optstream.stream import AggregationTree, Hour
from optstream.stream.lattice import Margin
from studies.audit.run import keep_audit
from tasks.monitor import alarms as monitored
from tasks.monitor import notify
from tasks.monitor.alarms import Kind, Severity, likeness, renamed
from tasks.monitor.days import lacking, touched
from tasks.monitor.facts import LEAST_DAYS, Suspect, compare, last_audit, loudest, read_verdicts
from tasks.monitor.notify import heard, line_of, log_transitions, news_for, read_memory, seen, write_memory
from tasks.trusted.files import append_lines
from tests.tasks.conftest import DAY, NOW
from tests.tasks.pages.conftest import AT, alarm
from tests.tasks.two_regions import DAYS, FEW_BLOCKS, in_another_unit

FIRST, TWO = DAYS[:2]
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
    assert ("84: 100.0% clamped" in " ".join(capsys.readouterr().out.split())) is (SUSPECT in seen)
    assert ("Replaced readings" in watched.settings.report_file.read_text()) is (SUSPECT in seen)
    public = (watched.folder / "published/index.html").read_text()
    assert "clamped on" not in public
    assert "suspect" not in public


def compared(*means, noise=1.0, model=None):
    """The comparison of a node's last mean with those before, one a day; those that are far."""
    hashes = [f"{day:064}" for day in range(len(means))]
    usual = {"revision": 0, "vintage": 0, "rows_hash": "0" * 64, "ledger_head": "head"}
    entries = [Entry(period=FIRST + timedelta(n), file_hash=one, **usual) for n, one in enumerate(hashes)]
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


def test_a_day_unlike_all_others_is_a_warning_until_the_next(installation):
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    installation.simulate(*SPAN)
    for path in (installation.folder / "dumps").glob(f"region=*/date={SPAN[8]}/*.parquet"):
        pl.read_parquet(path).with_columns(pl.col("load_mw") * 0.25).write_parquet(path)
    installation.released(*SPAN[:8])
    assert installation.of_kind("unlike-history") == []  # ordinary days are no news
    installation.release(SPAN[8])
    (alarm,) = installation.of_kind("unlike-history")
    assert (alarm.day, alarm.node, alarm.severity) == (SPAN[8], None, Severity.WARNING)
    installation.release(SPAN[9])
    assert installation.of_kind("unlike-history") == []
    installation.write_pages()
    assert "finds unlike all others: 9 Jun 2016." in installation.settings.report_file.read_text()


def test_a_level_that_misses_its_predictions_is_a_warning(installation, monkeypatch):
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    installation.released(SPAN[0])
    assert installation.of_kind("off-prior") == []  # a stream that has learned nothing expects nothing
    monkeypatch.setattr(InformedMechanism, "self_check", lambda mechanism, measured: SelfCheck((), (1,)))
    installation.release(SPAN[1])
    found = (installation.folder / "trusted/validation").rglob("*-release.json")
    newest = max(found, key=lambda one: one.name[21:])
    document = json.loads(newest.read_bytes())
    document["meta"]["self_checks"] = {str(SPAN[1]): {}}  # of a later estimate of the day
    newest.with_name(f"{newest.name[:22]}9{newest.name[23:]}").write_text(json.dumps(document))
    (alarm,) = installation.of_kind("off-prior")
    assert (alarm.day, alarm.severity) == (SPAN[1], Severity.WARNING)
    assert "level 1" in alarm.words


AT_NIGHT = datetime(2016, 6, 3, tzinfo=UTC)


def made(day, kind=Kind.LATE, node=None, suggestion=None):
    return monitored.alarm(kind, "s", f"{day}: words", day, node, suggestion)


def test_over_random_nights_every_channel_hears_all_of_it_once():
    """What a channel was notified of, new minus over, is what lasts, whenever it was reachable at last."""
    chosen = random.Random(5)
    notified = 0
    for _ in range(300):
        memory, knows = {}, {"a": [], "b": []}
        for night in range(8):
            alarms = [made(day) for day in DAYS[:4] if chosen.random() < 0.5]
            memory = seen(memory, alarms, knows, AT_NIGHT + timedelta(hours=night))
            for channel, known in knows.items():
                if night < 7 and chosen.random() < 0.4:
                    continue  # it does not answer tonight
                news = news_for(memory, channel)
                for one in news.new:
                    assert one.key not in known
                    known.append(one.key)
                for one in news.over:
                    known.remove(one.key)
                memory = heard(memory, channel)
                notified += len(news.new)
                assert sorted(known) == sorted(one.key for one in alarms)
                assert not news_for(memory, channel)
        assert all(one.lasts for one in memory.values())
    assert notified > 1000


def test_an_old_archive_has_one_alarm_and_a_night_more_is_sent_alone(watched):
    watched.configure("[watch]", '[watch]\nlog = "trusted/events.jsonl"')
    watched.at("2016-11-29T12:00:00")
    found = watched.watch()
    (missing, late) = (one for one in found.joined if one.kind in (Kind.MISSING, Kind.LATE))
    assert (missing.day, missing.last, missing.number) == (FIRST, FIRST + timedelta(days=1), 2)
    assert (late.day, late.last, late.number) == (date(2016, 6, 3), date(2016, 11, 28), 179)
    assert late.words.startswith("179 days, 2016-06-03 to 2016-11-28; the last: 2016-11-28: the dump of ")
    memory = seen({}, found.alarms, ["a"], AT_NIGHT)
    assert news_for(memory, "a").joined.new == found.joined
    assert log_transitions(watched.settings, {}, memory, AT_NIGHT) is None
    lines = watched.settings.event_log_file.read_text().splitlines()
    assert len(lines) == len(found.joined)
    assert '{"key":"optstream.last","value":{"stringValue":"2016-11-28"}}' in lines[-1]
    after = seen(heard(memory, "a"), watched.at("2016-11-30T12:00:00").watch().alarms, ["a"], AT_NIGHT)
    (news,) = news_for(after, "a").joined.new
    assert (news.day, news.last, news.number) == (date(2016, 11, 29), None, 1)


def test_a_suggestion_that_becomes_known_is_sent_again_once():
    unknown, known = ([made(FIRST, Kind.UNKNOWN_REGION, "AURA", leaf)] for leaf in (None, "84"))
    after = seen(heard(seen({}, unknown, ["a"], AT_NIGHT), "a"), known, ["a"], AT_NIGHT)
    assert [one.suggestion for one in news_for(after, "a").new] == ["84"]
    assert not news_for(seen(heard(after, "a"), known, ["a"], AT_NIGHT), "a")


def test_what_was_sent_survives_on_disk_for_its_owner_alone(watched):
    settings = watched.settings
    file = settings.watch_folder / notify.FILE
    hours = [made(Hour(FIRST, 13)), made(Hour(FIRST, 2, again=True))]
    several = heard(seen({}, [made(FIRST, node="84"), made(None, Kind.BLIND), *hours], ["a"], AT_NIGHT), "a")
    one = seen({}, [monitored.alarm(Kind.EXPIRING, "s", "words", FIRST, "84", "11")], ["a"], AT_NIGHT)
    for memory in (several, one):
        write_memory(settings, memory)
        assert read_memory(settings) == memory
    assert file.stat().st_mode & 0o777 == 0o600
    for spoilt in (b"", b"[]", b'{"format": "optstream.told/1", "alarms": [{"kind": "late"}]}', b"\xff"):
        file.write_bytes(spoilt)
        assert read_memory(settings) == {}


LATE = alarm(node="84")


def parts_of(line):
    (resource,) = json.loads(line)["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    (record,) = scope["logRecords"]
    return resource["resource"], record


def test_a_line_is_a_log_record_of_opentelemetry():
    resource, record = parts_of(line_of("alarm", LATE, AT))
    assert resource["attributes"][1] == {"key": "optstream.stream", "value": {"stringValue": "two-regions"}}
    assert record["timeUnixNano"] == f"{int(AT.timestamp())}000000000"
    assert (record["severityNumber"], record["severityText"]) == (17, "ERROR")
    assert record["eventName"] == "optstream.alarm.late"
    assert record["body"] == {"stringValue": LATE.words}
    attributes = {one["key"]: one["value"]["stringValue"] for one in record["attributes"]}
    assert attributes == {"optstream.kind": "late", "optstream.day": str(FIRST), "optstream.node": "84"}
    _, warning = parts_of(line_of("alarm", alarm(Kind.EXPIRING, None), AT))
    assert warning["severityText"] == "WARN"
    assert [one["key"] for one in warning["attributes"]] == ["optstream.kind"]
    assert parts_of(line_of("resolved", LATE, AT))[1]["severityText"] == "INFO"


def test_what_a_crash_left_of_a_line_spoils_no_other(tmp_path):
    file, lines = tmp_path / "events.jsonl", [line_of(what, LATE, AT) for what in ("alarm", "resolved")]
    file.write_bytes(b'{"resourceLogs":[{"reso')
    for line in lines:
        append_lines(file, [line])
    assert file.read_text().splitlines() == ['{"resourceLogs":[{"reso', *lines]


def test_each_event_of_the_ledger_is_logged_once_from_the_first_look_on(installation):
    installation.configure("[published]", '[watch]\nlog = "trusted/events.jsonl"\n[published]')
    settings = installation.settings
    logged = settings.watch_folder / notify.LOGGED

    def look():
        assert log_transitions(settings, {}, {}, AT) is None
        if settings.event_log_file.exists():
            lines = settings.event_log_file.read_text().splitlines()
            return [parts_of(line)[1]["eventName"] for line in lines]
        return []

    assert look() == []  # there is no ledger yet
    installation.release(date(2016, 6, 1))
    copy, first = installation.copy_ledger(), look()
    kinds = ["reserved", "draw-begun", "drawn", "staged", "published"]
    assert [one.rpartition(".")[2] for one in first][-5:] == kinds
    assert look() == first
    installation.bring_back(copy)
    logged.write_text("1000")
    assert look() == first
    n_events = len(installation.ledger.events_of("two-regions"))
    assert logged.read_text() == str(n_events)
    logged.write_text(str(n_events - 1))
    assert look() == [*first, first[-1]]


EARLIER, LATER = datetime(2016, 5, 1, tzinfo=UTC), datetime(2016, 5, 2, tzinfo=UTC)


def test_the_newest_audit_counts_and_is_an_alarm_where_it_failed(watched):
    assert last_audit(watched.settings) is None
    path = keep_audit(watched.settings, {"passed": True}, LATER)
    keep_audit(watched.settings, {"passed": False}, EARLIER)
    assert last_audit(watched.settings) == (LATER, True, True)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert last_audit(watched.settings).at == EARLIER
    # one that failed is an alarm until the configuration is another
    watched.released(FIRST)
    watched.at("2016-06-02T12:00:00")
    keep_audit(watched.settings, {"passed": False}, LATER)
    assert watched.alarms() == [("audit", None, None)]
    watched.configure("n_samples = 10", "n_samples = 8")
    # points elsewhere: the windows over midnight would hold more of them, and the next day must wait
    assert watched.alarms() == [("budget", 2, None)]
    assert not last_audit(watched.settings).same
